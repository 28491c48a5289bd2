"""The venues of a series: their crowds, positions and popularity, and tables that draw from them."""

import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Bools, Checkins, Floats, Ints, Longs, Venues
from ghostpoi.data.places import SLOTS, Places
from ghostpoi.draw.methods import AnyMethod
from ghostpoi.draw.methods.crowd import Crowd, CrowdDraw, CrowdHalves, KAnonymous, RandomisedResponse
from ghostpoi.errors import InputError
from ghostpoi.files import replacing, save_arrays
from ghostpoi.options import option

UNREADABLE = (OSError, ValueError, KeyError, IndexError, EOFError, BadZipFile, zlib.error)  # what a damaged file raises
ARRAYS = ("lat", "lon", "category", "visits", "hidden", "crowd", "member")  # one value per venue
TEXTS = ("ids", "categories", "group")  # stored as text


@dataclass(frozen=True)
class Catalogue:
    """All venues that a series knows, in the order in which they came, and their categories."""

    ids: NDArray[np.object_]  # (V,)
    lat: Floats  # (V,)
    lon: Floats  # (V,)
    category: Ints  # (V,) an index into `categories`
    visits: Longs  # (V,) in the file with which the venue came, 0 if it is hidden
    hidden: Bools  # (V,) whether it is never released: decided once, as what a crowd draws must not change
    crowd: Longs  # (V,) the number of the crowd that it draws from, from 1; 0: none
    member: Bools  # (V,) whether its crowd draws it; a guest or a hidden venue only draws
    categories: NDArray[np.object_]  # (C,)
    group: NDArray[np.object_]  # (C,) the group of each category; "" if the method does not use groups
    hours: Floats  # (C, SLOTS) the share of visits in each slot of the week, in the file with which the category came

    @staticmethod
    def empty() -> "Catalogue":
        """Return the catalogue of a series without a release."""
        text, number, none = np.empty(0, object), np.empty(0), np.empty(0, np.int64)
        return Catalogue(
            text, number, number, none.astype(np.int32), none, none.astype(bool), none, none.astype(bool), text, text,
            np.empty((0, SLOTS)),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def number(self) -> dict[str, int]:
        """The index of each venue by its id."""
        return {name: at for at, name in enumerate(self.ids)}

    def places(self, at: Longs) -> Places:
        """Return these venues after row 0, which is padding. The series keeps no visits by hour."""
        lat, lon = (np.append(np.nan, values[at]) for values in (self.lat, self.lon))
        group = np.unique(self.group.astype(str), return_inverse=True)[1].astype(np.int32)
        category = np.append(-1, self.category[at]).astype(np.int32)
        return Places(lat, lon, category, np.append(0, self.visits[at]), np.empty((0, SLOTS), np.int64), group)

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
            raise InputError(f"{path} changes crowds of earlier releases; restore it from a backup")
        crowd[again], member[again] = stored["again_crowd"], stored["again_member"]
        return replace(self, crowd=crowd, member=member).extended(
            **{name: stored[name].astype(object) if name in TEXTS else stored[name] for name in (*ARRAYS, *MORE)}
        )

    def extended(self, **more: NDArray[Any]) -> "Catalogue":
        """Return this catalogue with further venues and categories."""
        joined = {name: np.concatenate([getattr(self, name), values]) for name, values in more.items()}
        return replace(self, **joined)


MORE = ("ids", "categories", "group", "hours")


@dataclass(frozen=True)
class KeptCrowds:
    """What a series keeps of the venues of a table: first those that its rows visit, then all others."""

    method: AnyMethod  # to which the sets belong
    sets: Candidates  # (V+1,)
    in_series: Longs  # (V+1,) the index of each venue in the catalogue, -1 in row 0
    repeated: Bools  # (N,) rows that repeat the draw of an earlier release


KEPT = (Crowd, CrowdHalves, KAnonymous, RandomisedResponse)  # methods whose sets a series can keep


def check_method(name: str, method: AnyMethod) -> None:
    """Refuse a method whose sets a series cannot keep."""
    if type(method) not in KEPT or method.needs_trajectory_lm:
        why = " with method.beta above 0" if isinstance(method, Crowd) else ""
        raise InputError(
            f"{option('series')}: the method {name}{why} cannot keep its sets from release to release; use crowd, "
            "crowd-halves, k-anonymous or randomised-response"
        )


def with_crowds(
    table: Checkins, known: Catalogue, method: CrowdDraw, repeated: Bools | None = None
) -> tuple[Checkins, KeptCrowds]:
    """Return a table whose venues the catalogue knows with all venues of the catalogue, and their crowds."""
    number = known.number
    here = np.array([number[name] for name in table.venue_ids[1:]], np.int64)
    others = np.setdiff1d(np.arange(len(known)), here)
    at = np.concatenate([here, others])  # (V,)
    unseen = [name for name in known.categories if name not in set(table.category_ids)]
    category_ids = np.append(table.category_ids, np.array(unseen, object))
    category = {name: n for n, name in enumerate(category_ids)}
    renamed = np.array([category[name] for name in known.categories], np.int32)
    places = known.places(at)
    venues = Venues(places.lat, places.lon, np.append(np.int32(-1), renamed[known.category[at]]))
    more = replace(
        table, venue_ids=np.append(table.venue_ids, known.ids[others]), category_ids=category_ids, places=venues,
        category_groups=dict(zip(known.categories, known.group, strict=True)) if known.group.any() else {},
    )  # fmt: skip
    again = np.zeros(len(table), bool) if repeated is None else repeated
    crowds, hidden = _crowds(known, at), np.append(False, known.hidden[at])
    kind = places.kind(method.keeps_category)
    borrows = hidden & (crowds.poi[:, 0] > 0) & (kind[crowds.poi[:, 0]] != kind)
    sets = replace(method.drawn_from(crowds, places, known.hours), hidden=hidden, borrows=borrows)
    return more, KeptCrowds(method, sets, np.append(-1, at), again)


def _crowds(known: Catalogue, at: Longs) -> Candidates:
    """Return the crowds of venues (V,) of the catalogue as candidate sets; venue i has the number i + 1."""
    number = np.empty(len(at), np.int64)
    number[at] = np.arange(1, len(at) + 1)
    members = known.members()
    poi = np.zeros((len(at) + 1, max(map(len, members.values()), default=1)), np.int32)
    for row, crowd in enumerate(known.crowd[at].tolist(), 1):
        if crowd in members:
            poi[row, : len(members[crowd])] = number[members[crowd]]
    return Candidates(poi, np.zeros(len(poi)))
