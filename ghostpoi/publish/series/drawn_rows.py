"""The rows that a series has released, by their keys: what was drawn for them, and under which user id."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.checkins import Bools, Longs
from ghostpoi.errors import InputError
from ghostpoi.files import replacing, save_arrays
from ghostpoi.publish.series.row_keys import Keys, RowKeys

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

    def save(self, path: Path) -> None:
        """Store the rows."""
        ids, user = np.unique(self.user, return_inverse=True)
        arrays = {"row": self.row, "moment": self.moment, "venue": self.venue, "ids": ids}
        with replacing(path, mode=0o600) as out:
            save_arrays(out, arrays | {"user": user.astype(np.int32)})

    def same(self, other: "DrawnRows") -> bool:
        """Tell whether these are the same rows with the same draws."""
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
