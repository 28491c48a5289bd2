"""The check-in table: one row per check-in in the order of the file, ids as codes, checked values."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

IDS = ("user", "poi", "category")
FIELDS = (*IDS, "lat", "lon", "time")


@dataclass(frozen=True)
class Checkins:
    """Check-ins in the order of their file. Codes count from 0 in order of first appearance."""

    user: Ints  # (N,)
    poi: Ints  # (N,)
    category: Ints  # (N,)
    lat: Floats  # (N,) degrees
    lon: Floats  # (N,) degrees
    time: Longs  # (N,) UTC seconds
    users: NDArray[np.object_]  # the id behind each user code, as text
    pois: NDArray[np.object_]
    categories: NDArray[np.object_]
    category_field: str = "category"  # the name of the column that served as category
    name: str = "the table"  # what messages call it: the file's path

    def __len__(self) -> int:
        return len(self.user)


@dataclass(frozen=True)
class Places:
    """What each POI is: the attributes of its first row in time order."""

    lat: Floats  # (pois,)
    lon: Floats  # (pois,)
    category: Ints  # (pois,)


def places(table: Checkins) -> Places:
    """One position and one category per POI, also where a file gives several."""
    order = np.argsort(table.time, kind="stable")
    first = np.empty(len(table.pois), np.int64)
    # Assigned from the last row to the first, so that the earliest row of each POI is what stays.
    first[table.poi[order[::-1]]] = order[::-1]
    return Places(table.lat[first], table.lon[first], table.category[first])


def duplicates(table: Checkins) -> int:
    """Rows that repeat an earlier row's user, POI and time."""
    key = np.stack([table.user.astype(np.int64), table.poi.astype(np.int64), table.time])
    order = np.lexsort(key)
    key = key[:, order]
    return int((key[:, 1:] == key[:, :-1]).all(axis=0).sum())


def code(
    raw: NDArray[np.integer], distinct: NDArray[np.integer], names: NDArray[np.object_]
) -> tuple[Ints, NDArray[np.object_]]:
    """Any integer codes, with their distinct values and names, as codes by first appearance and their names."""
    first = np.empty(int(distinct.max()) + 1, np.int64)
    first[raw[::-1]] = np.arange(len(raw) - 1, -1, -1)  # the last to be written, the first row, stays
    order = np.argsort(first[distinct])
    renumber = np.empty(len(first), np.int32)
    renumber[distinct[order]] = np.arange(len(order), dtype=np.int32)
    return renumber[raw], names[order]
