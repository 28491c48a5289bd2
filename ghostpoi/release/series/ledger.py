"""The series folder: what its releases share, the rows that they released, and the ledger of what was released when."""

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.checkins import Bools, Checkins, Longs
from ghostpoi.draw.catalogue import UNREADABLE, Catalogue
from ghostpoi.draw.noise import ByContent, hashed, plain
from ghostpoi.errors import InputError
from ghostpoi.files import PARTIAL, make_private_folder, remove_partial, replacing, save_arrays
from ghostpoi.options import option
from ghostpoi.randomness import Seed

NOTE = "series.json"
FORMAT = 3
BEGUN, COMPLETE, REPLACED = "begun", "complete", "replaced"


@dataclass(frozen=True)
class Entry:
    """One release in the ledger."""

    number: int
    status: str
    begun: str  # UTC
    completed: str | None
    release: str
    private: str
    input: str  # keyed hash of the file
    data_sha256: str  # of the released data
    first: int  # UTC seconds of the earliest row
    last: int
    rows: int  # released ones
    repeated: int  # of them, rows that an earlier release showed
    new_venues: int
    new_guests: int  # of them, venues that joined the crowd of another
    files: dict[str, str]  # what the series folder keeps of it: name -> SHA-256


@dataclass(frozen=True)
class Series:
    """A series folder as its note describes it. `repr` hides the seed."""

    folder: Path
    seed: Seed
    method: str
    settings: dict[str, dict[str, Any]]  # those that decide the draws
    columns: dict[str, Any]  # names, roles and the form of the file
    entries: tuple[Entry, ...] = ()
    created: str = field(default_factory=lambda: now())
    forgotten: tuple[str, ...] = ()  # keyed hashes of the users of whom no row may come again

    def named(self, kind: str, number: int, ending: str) -> Path:
        """Return the path of a file of an entry."""
        return self.folder / f"{kind}-{number:04}{ending}"

    def entry(self, changed: Entry) -> "Series":
        """Return the series with this entry in place of the one with its number, or as the last one."""
        others = [e for e in self.entries if e.number != changed.number]
        return replace(self, entries=tuple(sorted([*others, changed], key=lambda e: e.number)))

    def store(self) -> None:
        """Write the note."""
        make_private_folder(self.folder)
        remove_partial(self.folder)
        note = {name: getattr(self, name) for name in ("created", "method", "settings", "columns")}
        note |= {"releases": [asdict(entry) for entry in self.entries]}
        note |= {"forgotten": list(self.forgotten)} if self.forgotten else {}
        text = json.dumps({"format": FORMAT, "seed": f"{self.seed.value:x}"} | note, indent=2, ensure_ascii=False)
        with replacing(self.folder / NOTE, mode=0o600) as out:
            out.write(text.encode())


def now() -> str:
    """Return the time as text."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def read_series(folder: Path) -> Series:
    """Read a series folder; refuse one that is damaged."""
    path = folder / NOTE
    if not path.is_file():
        raise InputError(
            f"{folder} is not a series folder: it has no {NOTE}; give the folder of protect {option('series')}"
        )
    try:
        found = json.loads(path.read_text("utf-8"))
        if found["format"] != FORMAT:
            raise InputError(f"{path} was written by another version of ghostpoi; use that version")
        entries = tuple(_entry(one) for one in found["releases"])
        if [entry.number for entry in entries] != list(range(1, len(entries) + 1)):
            raise ValueError
        if not all(isinstance(found[name], dict) for name in ("settings", "columns")):
            raise TypeError
        seed = Seed(int(found["seed"], 16))
        return Series(
            folder, seed, str(found["method"]), found["settings"], found["columns"], entries, str(found["created"]),
            tuple(map(str, found.get("forgotten", ()))),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError):  # the message must not quote the note: it holds the seed
        raise InputError(f"{path} is damaged; restore the series folder from a copy") from None


def _entry(stored: dict[str, Any]) -> Entry:
    entry = Entry(**stored)
    for f in fields(Entry):
        kind: Any = dict if f.name == "files" else f.type
        if not isinstance(getattr(entry, f.name), kind):
            raise TypeError
    if entry.status not in (BEGUN, COMPLETE, REPLACED) or any(Path(name).name != name for name in entry.files):
        raise ValueError
    return entry


def check_new(folder: Path) -> None:
    """Refuse to start a series in a folder that holds anything but what a killed process left of the note."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{option('series', folder)} is a file; give a folder")
    if folder.exists() and any(not path.match(f".{NOTE}.*{PARTIAL}") for path in folder.iterdir()):
        raise InputError(
            f"{option('series', folder)} holds files but no {NOTE}, so it is another folder or a part of a series; "
            "give an empty or new folder, or restore the series from a copy"
        )


def damage(series: Series) -> list[str]:
    """Return what is wrong with the files that the ledger names."""
    found = []
    for entry in series.entries:
        for name, digest in entry.files.items():
            path = series.folder / name
            if not path.is_file():
                found.append(f"{name} is missing")
            elif sha256(path) != digest:
                found.append(f"{name} is damaged")
    return found


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_catalogue(series: Series) -> Catalogue:
    """Read the venues of all releases of a series."""
    catalogue = Catalogue.empty()
    try:
        for entry in series.entries:
            catalogue = catalogue.load_more(series.named("venues", entry.number, ".npz"))
    except UNREADABLE:
        raise InputError(f"the venues in {series.folder} cannot be read; restore the folder from a copy") from None
    return catalogue


Keys = NDArray[np.uint64]
MOMENT = "series moment"


@dataclass(frozen=True)
class RowKeys:
    """The keys of the rows of a table."""

    row: Keys  # (N,) of user, time and venue; the second of two equal rows has another key than the first
    moment: Keys  # (N,) of user and time


def row_keys(table: Checkins, seed: Seed) -> RowKeys:
    """Compute the keys of all rows."""
    of_moment = ByContent.of(table, seed)
    venue = hashed(list(map(str, table.venue_ids)), seed, "venues")[:, 0]
    of_row = replace(of_moment, place=venue[table.venue] + _earlier_copies(table).astype(np.uint64))
    return RowKeys(of_row.words(1, "series row")[0], of_moment.words(1, MOMENT)[0])


def forgotten_key(user: str, seed: Seed) -> str:
    """Return the keyed hash of a user by which a series knows whom it has forgotten."""
    return "".join(f"{word:016x}" for word in hashed([plain(user)], seed, "forgotten")[0])


def check_forgotten(series: Series, table: Checkins) -> None:
    """Refuse a file that holds rows of a person whom the series has forgotten."""
    if not series.forgotten:
        return
    gone = [str(user) for user in table.user_ids if forgotten_key(str(user), series.seed) in series.forgotten]
    if gone:
        raise InputError(
            f"{table.name}: the series has forgotten {len(gone):,} of its users, for example {gone[0]!r}; leave their "
            "rows out"
        )


def _earlier_copies(table: Checkins) -> Longs:
    """Count the earlier rows of a table with the same user, time and venue, (N,)."""
    order = np.lexsort((table.venue, table.time, table.user))
    key = np.stack([table.user, table.time, table.venue])[:, order]
    first = np.flatnonzero(np.append(True, (np.diff(key) != 0).any(axis=0)))
    copies = np.empty(len(order), np.int64)
    copies[order] = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    return copies


PREFIXED = re.compile(r"(\D*)0*(\d+)")


def meaning(user: str) -> str:
    """Return what a user id means, however it is written: u7 for U007 and u7, 7 for 007."""
    found = PREFIXED.fullmatch(text := plain(user).casefold())
    return f"{found[1]}{found[2]}" if found else text


@dataclass(frozen=True)
class KnownUsers:
    """Users of earlier releases: keyed hashes of their ids, and of what these mean however they are written."""

    written: Keys  # (U,)
    meant: Keys  # (U,)

    @staticmethod
    def of(table: Checkins, seed: Seed) -> "KnownUsers":
        """Return the users of a table."""
        ids = list(map(str, table.user_ids))
        return KnownUsers(*(hashed(texts, seed, "known users")[:, 0] for texts in (ids, list(map(meaning, ids)))))

    @staticmethod
    def load(paths: list[Path]) -> "KnownUsers":
        """Read the users of several releases."""
        parts = [[np.empty(0, np.uint64)] * 2]
        for path in paths:
            with np.load(path, allow_pickle=False) as file:
                parts.append([file["written"], file["meant"]])
        return KnownUsers(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def check_written_alike(self, table: Checkins, seed: Seed) -> None:
        """Refuse a user whose id earlier releases write otherwise: the rows would seem to be another user's."""
        here = KnownUsers.of(table, seed)
        gone = self.meant[~np.isin(self.written, here.written)]
        if len(other := np.flatnonzero(~np.isin(here.written, self.written) & np.isin(here.meant, gone))):
            raise InputError(
                f"{table.name}: the user id {table.user_ids[other[0]]!r} is written otherwise than in earlier releases "
                f"of the series ({len(other):,} of {len(here.written):,} ids), so its visits would seem to be new; "
                "write user ids as in the first file"
            )


Texts = NDArray[np.str_]


@dataclass(frozen=True)
class DrawnRows:
    """Rows in the order of their keys."""

    row: Keys  # (R,) ascending
    moment: Keys  # (R,)
    venue: Longs  # (R,) the released venue, an index into the catalogue
    user: Texts  # (R,) the pseudonym, "" if user ids are kept

    @staticmethod
    def of(row: Keys, moment: Keys, venue: Longs, user: Texts) -> "DrawnRows":
        """Put rows in order."""
        order = np.argsort(row, kind="stable")
        return DrawnRows(row[order], moment[order], venue[order], user[order])

    @staticmethod
    def load(paths: list[Path]) -> "DrawnRows":
        """Read the rows of several releases."""
        none = np.empty(0, np.uint64)
        parts: list[list[NDArray[Any]]] = [[none, none, none.astype(np.int64), none.astype(str)]]
        for path in paths:
            with np.load(path, allow_pickle=False) as file:
                parts.append([file["row"], file["moment"], file["venue"], file["ids"][file["user"]]])
        return DrawnRows.of(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def save(self, path: Path, users: KnownUsers) -> None:
        """Store the rows, and the users of their file."""
        ids, user = np.unique(self.user, return_inverse=True)
        arrays = {"row": self.row, "moment": self.moment, "venue": self.venue, "ids": ids}
        arrays |= {"written": users.written, "meant": users.meant}
        with replacing(path, mode=0o600) as out:
            save_arrays(out, arrays | {"user": user.astype(np.int32)})

    def same(self, other: "DrawnRows") -> bool:
        """Return whether these are the same rows with the same draws."""
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in ("row", "venue", "user"))

    def find(self, keys: RowKeys) -> Longs:
        """Return the place of each row (N,) among these, -1 if it is not one of them."""
        if not len(self.row):
            return np.full(len(keys.row), -1)
        at = np.minimum(np.searchsorted(self.row, keys.row), len(self.row) - 1)
        return np.where(self.row[at] == keys.row, at, -1)

    def check_unchanged(self, found: Longs, keys: RowKeys, name: str) -> None:
        """Refuse a row whose user and time were released at another venue: the draw of that visit cannot be repeated.

        A further check-in in the same second is no change, if the file still has the earlier one.
        """
        gone: Bools = np.ones(len(self.row), bool)
        gone[found[found >= 0]] = False
        changed = np.flatnonzero((found < 0) & np.isin(keys.moment, self.moment[gone]))
        if len(changed):
            rows = f"{len(changed):,} row{'s' * (len(changed) > 1)}"
            raise InputError(
                f"{name}: the series has released the user and time of check-in {changed[0] + 1:,} at another venue "
                f"({rows} in all), and a second draw would reveal more about the visit; give these rows as they were, "
                "or leave them out"
            )
