"""New user ids for a release: who gets which, the order of its rows, and the private map that undoes both.

Rows are released by time and, at one time, by the new id: the order of the file could tell whose sessions belong
together.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data import pseudonyms
from ghostpoi.data.checkins import Checkins, Longs
from ghostpoi.errors import InputError
from ghostpoi.formats import CheckinFile
from ghostpoi.options import option
from ghostpoi.publish.pseudonym_ids import form_for, fresh_ids
from ghostpoi.publish.publication_settings import Publication
from ghostpoi.randomness import Seed

PAIRS = "pairs.npz"  # in the private folder
Texts = NDArray[Any]


@dataclass(frozen=True)
class NewUsers:
    """The pseudonyms of a release."""

    number: Longs  # (N,) the pseudonym of each clean row
    ids: Texts  # (Q,) the id of each pseudonym
    row: Longs  # (M,) the clean row of each released row

    @property
    def released_ids(self) -> Texts:
        """The user id of each released row, (M,)."""
        return self.ids[self.number[self.row]]

    @property
    def public(self) -> dict[str, Any]:
        """What the manifest says about them."""
        return {"ids": len(np.unique(self.number[self.row])), "row_order": "time, then user id"}


def numbers(table: Checkins, settings: Publication) -> Longs:
    """Number the pseudonyms of all rows of a clean table, (N,), from 0."""
    kind = settings.identity.pseudonyms
    return pseudonyms.of_rows(table.user, table.time, kind, settings.filters.session_gap_s)


def hidden(table: Checkins, settings: Publication) -> Longs | None:
    """Number the pseudonyms of all rows, (N,), or return None if user ids are kept."""
    return None if settings.identity.pseudonyms == "keep" else numbers(table, settings)


def wanted(file: CheckinFile, settings: Publication) -> Longs | None:
    """Return the same for a file; refuse a user column that cannot hold so many ids."""
    number = hidden(file.table, settings)
    if number is not None:
        form_for(file.table.user_ids.tolist(), int(number.max()) + 1, file.rows.largest_number(file.mapping["user"]))
    return number


def draw(table: Checkins, shown: Longs, settings: Publication, seed: Seed, most: int | None = None) -> NewUsers:
    """Draw the pseudonyms of a table. `shown` (M,) are the rows that are not withheld.

    `most` is the largest number that the user column can hold, if it holds numbers.
    """
    number = numbers(table, settings)
    ids = fresh_ids(table.user_ids.tolist(), int(number.max()) + 1, seed.generator("pseudonyms"), most)
    return NewUsers(number, ids, shown[released_order(table.time[shown], ids[number[shown]])])


def released_order(time: Longs, ids: Texts) -> Longs:
    """Return the order in which rows with these times and user ids are released, (M,)."""
    return np.lexsort((np.unique(ids.astype(str), return_inverse=True)[1], time))


@dataclass(frozen=True)
class PrivateMap:
    """What undoes the pseudonyms of a release. It stays in the private folder."""

    row: Longs  # (M,) the clean row of each released row
    pseudonym: Texts  # (Q,) the released id of each pseudonym, in the order of `numbers`
    user: Texts  # (Q,) the clean user id of each


def map_arrays(table: Checkins, new: NewUsers) -> dict[str, Any]:
    """Return the arrays that the private folder keeps of the pseudonyms, beside the clean row of each released row."""
    user = np.empty(len(new.ids), np.int64)
    user[new.number] = table.user
    return {"pseudonym": new.ids.astype(str), "user": table.user_ids[user].astype(str)}


def read_map(private: Path) -> PrivateMap:
    """Read the private map of a release with pseudonyms."""
    path = private / PAIRS
    if not path.is_file():
        raise InputError(
            f"the user ids of this release are pseudonyms, and {private} does not hold the private map that undoes "
            f"them; name the private folder that protect wrote with {option('private')}"
        )
    try:
        with np.load(path, allow_pickle=False) as file:
            return PrivateMap(file["shown"], file["pseudonym"], file["user"])
    except (OSError, ValueError, KeyError, EOFError):
        raise InputError(
            f"{path} holds no map of pseudonyms; give the private folder of this release, or make the release again"
        ) from None


def clean_rows(private: Path, clean: Checkins, released: Checkins) -> Longs:
    """Return the clean row of each released row, (M,). Refuse a map of another file or release."""
    found = read_map(private)
    if not _belongs(found, clean, released):
        raise InputError(
            f"{private / PAIRS} holds the pseudonyms of another release or file than {released.name}; name the "
            f"private folder that protect wrote with {option('private')}"
        )
    return found.row


def _belongs(found: PrivateMap, clean: Checkins, released: Checkins) -> bool:
    """Tell whether a map fits: the same rows, times and, behind the pseudonyms, users."""
    row = found.row
    if len(row) != len(released) or len(np.unique(row)) != len(row) or (row < 0).any() or (row >= len(clean)).any():
        return False
    user = dict(zip(found.pseudonym.tolist(), found.user.tolist(), strict=True))
    behind = np.array([user.get(i, "") for i in released.user_ids.tolist()], object)[released.user]
    same_user = behind == clean.user_ids[clean.user[row]]
    return bool(same_user.all() and (clean.time[row] == released.time).all())
