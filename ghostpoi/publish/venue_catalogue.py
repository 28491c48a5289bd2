"""The venues of a series: their crowds, positions and popularity. Entries are added and never change.

The one exception is a venue that had no crowd: it may join one later.
"""

import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.checkins import Bools, Floats, Ints, Longs
from ghostpoi.data.places import SLOTS
from ghostpoi.errors import InputError
from ghostpoi.files import replacing, save_arrays

UNREADABLE = (OSError, ValueError, KeyError, IndexError, EOFError, BadZipFile, zlib.error)  # what a damaged file raises
ARRAYS = ("lat", "lon", "category", "visits", "crowd", "member")  # one value per venue
TEXTS = ("ids", "categories", "group")  # stored as text


@dataclass(frozen=True)
class Catalogue:
    """All venues that a series knows, in the order in which they came, and their categories."""

    ids: NDArray[np.object_]  # (V,)
    lat: Floats  # (V,)
    lon: Floats  # (V,)
    category: Ints  # (V,) an index into `categories`
    visits: Longs  # (V,) in the file with which the venue came
    crowd: Longs  # (V,) the number of the crowd that it draws from, from 1; 0: none
    member: Bools  # (V,) whether its crowd draws it; a guest only draws
    categories: NDArray[np.object_]  # (C,)
    group: NDArray[np.object_]  # (C,) the group of each category; "" if the method does not use groups
    hours: Floats  # (C, SLOTS) the share of visits in each slot of the week, in the file with which the category came

    @staticmethod
    def empty() -> "Catalogue":
        """Return the catalogue of a series without a release."""
        text, number, none = np.empty(0, object), np.empty(0), np.empty(0, np.int64)
        return Catalogue(
            text, number, number, none.astype(np.int32), none, none, none.astype(bool), text, text,
            np.empty((0, SLOTS)),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def number(self) -> dict[str, int]:
        """The index of each venue by its id."""
        return {name: at for at, name in enumerate(self.ids)}

    def members(self) -> dict[int, Longs]:
        """Return the venues that each crowd draws, south to north; equal positions are ordered by id."""
        inside = np.flatnonzero(self.member & (self.crowd > 0))
        order = inside[np.lexsort((self.ids[inside].astype(str), self.lon[inside], self.lat[inside]))]
        order = order[np.argsort(self.crowd[order], kind="stable")]
        numbers, first = np.unique(self.crowd[order], return_index=True)
        parts = np.split(order, first[1:])  # one empty part if there is no crowd
        return dict(zip(numbers.tolist(), parts, strict=False))

    def save(self, path: Path, since: "Catalogue") -> None:
        """Store what this catalogue has beyond an earlier one."""
        old, older = len(since), len(since.categories)
        again = np.flatnonzero(self.crowd[:old] != since.crowd)
        arrays: dict[str, Any] = {name: getattr(self, name)[old:] for name in ARRAYS}
        arrays |= {"ids": self.ids[old:].astype(str), "hours": self.hours[older:]}
        arrays |= {name: getattr(self, name)[older:].astype(str) for name in ("categories", "group")}
        arrays |= {"again": again, "again_crowd": self.crowd[again], "again_member": self.member[again]}
        with replacing(path, mode=0o600) as out:
            save_arrays(out, arrays)

    def load_more(self, path: Path) -> "Catalogue":
        """Return this catalogue with what a file adds to it; refuse a file that changes a crowd."""
        with np.load(path, allow_pickle=False) as file:
            stored = {name: file[name] for name in file.files}
        crowd, member = self.crowd.copy(), self.member.copy()
        again = stored["again"]
        if crowd[again].any():
            raise InputError(f"{path} changes crowds of earlier releases; restore it from a copy")
        crowd[again], member[again] = stored["again_crowd"], stored["again_member"]
        return replace(self, crowd=crowd, member=member).extended(
            **{name: stored[name].astype(object) if name in TEXTS else stored[name] for name in (*ARRAYS, *MORE)}
        )

    def extended(self, **more: NDArray[Any]) -> "Catalogue":
        """Return this catalogue with further venues and categories."""
        joined = {name: np.concatenate([getattr(self, name), values]) for name, values in more.items()}
        return replace(self, **joined)


MORE = ("ids", "categories", "group", "hours")
