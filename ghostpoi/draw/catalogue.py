"""The venues of a series: their crowds, positions and popularity, and tables that draw from them."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Bools, Checkins, Floats, Ints, Longs, Venues
from ghostpoi.data.places import SLOTS
from ghostpoi.draw.methods import AnyMethod
from ghostpoi.draw.methods.crowd import Crowd, CrowdHalves, KAnonymous, RandomisedResponse, medoids
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


@dataclass(frozen=True)
class KeptCrowds:
    """What a series keeps of the venues of a table: first those that its rows visit, then all others."""

    method: AnyMethod  # to which the sets belong
    sets: Candidates  # (V+1,)
    in_series: Longs  # (V+1,) the index of each venue in the catalogue, -1 in row 0
    repeated: Bools  # (N,) rows that repeat the draw of an earlier release


def check_method(name: str, method: AnyMethod) -> None:
    """Refuse a method whose sets a series cannot keep."""
    if type(method) not in SETS or method.needs_trajectory_lm:
        why = " with method.beta above 0" if isinstance(method, Crowd) else ""
        raise InputError(
            f"{option('series')}: the method {name}{why} cannot keep its sets from release to release; use crowd, "
            "crowd-halves, k-anonymous or randomised-response"
        )


def with_crowds(
    table: Checkins, known: Catalogue, method: AnyMethod, repeated: Bools | None = None
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
    places = Venues(
        np.append(np.nan, known.lat[at]), np.append(np.nan, known.lon[at]),
        np.append(np.int32(-1), renamed[known.category[at]]),
    )  # fmt: skip
    more = replace(
        table, venue_ids=np.append(table.venue_ids, known.ids[others]), category_ids=category_ids, places=places,
        category_groups=dict(zip(known.categories, known.group, strict=True)) if known.group.any() else {},
    )  # fmt: skip
    again = np.zeros(len(table), bool) if repeated is None else repeated
    crowds, hidden, kind = (
        _crowds(known, at),
        np.append(False, known.hidden[at]),
        np.append(-1, kinds(known, method)[at]),
    )
    borrows = hidden & (crowds.poi[:, 0] > 0) & (kind[crowds.poi[:, 0]] != kind)
    sets = replace(SETS[type(method)](method, crowds, known, at), hidden=hidden, borrows=borrows)
    return more, KeptCrowds(method, sets, np.append(-1, at), again)


def kinds(known: Catalogue, method: AnyMethod) -> Longs:
    """Number what venues must have in common to share a crowd, (V,)."""
    if method.keeps_category == "any":
        return np.zeros(len(known), np.int64)
    if method.keeps_category == "exact":
        return known.category.astype(np.int64)
    number = np.unique(known.group.astype(str), return_inverse=True)[1]
    return number[known.category].astype(np.int64)


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


def _popular(method: Crowd, crowds: Candidates, known: Catalogue, at: Longs) -> Candidates:
    """Weigh venues as the method does, by the popularity that the series keeps."""
    if method.draw == "even":
        return crowds
    visits = np.append(0.0, method.popularity(known.visits[at]))
    weight, slots = np.where(crowds.poi > 0, visits[crowds.poi], 0.0), None
    if method.draw == "popular-by-hour":
        hours = known.hours[known.category[at]] * known.hours.shape[1]  # (V, SLOTS), mean 1
        slots = np.concatenate([np.zeros((hours.shape[1], 1)), hours.T], axis=1)
    return replace(crowds, weight=weight, slot_weight=slots)


def _centre(method: KAnonymous, crowds: Candidates, known: Catalogue, at: Longs) -> Candidates:
    lat, lon = (np.append(np.nan, values[at]) for values in (known.lat, known.lon))
    return Candidates(medoids(crowds.poi, lat, lon)[:, None], crowds.radius_km)


def _mostly_own(method: RandomisedResponse, crowds: Candidates, known: Catalogue, at: Longs) -> Candidates:
    own = crowds.poi == np.arange(len(crowds.poi))[:, None]  # a guest has none, so it draws evenly
    return replace(crowds, weight=np.where(crowds.poi > 0, np.where(own, np.exp(method.epsilon), 1.0), 0.0))


SETS: dict[type, Callable[..., Candidates]] = {
    Crowd: _popular, CrowdHalves: _popular, KAnonymous: _centre, RandomisedResponse: _mostly_own,
}  # fmt: skip
