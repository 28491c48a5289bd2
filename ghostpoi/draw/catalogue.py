"""The venues of a series: their crowds, positions and popularity, tables that draw from them, and how venues join.

Existing crowds stay as they are. In the first file all venues are divided into crowds, as for a release that stands
alone. Later, new venues form a crowd of their own where at least `size` of them are close together and as many people
visit them. Any other one becomes a guest of the crowd of the nearest venue: it draws from that crowd and is not drawn
itself, so the crowd draws as before. A new venue that is far from all crowds may share a smaller one with its
neighbours, if two people visit these; else it is a guest of the nearest crowd. Without neighbours, it has none until
some come.
"""

import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Bools, Checkins, Floats, Ints, Longs, Venues
from ghostpoi.data.geo import chord, unit_sphere
from ghostpoi.data.places import SLOTS, Places, hidden_venues, of_table
from ghostpoi.draw.crowds import by_hours, category_hours, find, learned_name
from ghostpoi.draw.methods import AnyMethod
from ghostpoi.draw.methods.crowd import Crowd, CrowdDraw, CrowdHalves, KAnonymous, RandomisedResponse
from ghostpoi.errors import InputError
from ghostpoi.files import replacing, save_arrays
from ghostpoi.options import option
from ghostpoi.settings import HideSettings

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


def join(known: Catalogue, table: Checkins, method: CrowdDraw, hide: HideSettings) -> Catalogue:
    """Return the catalogue with the venues and categories of a file."""
    more = _with_venues(_with_categories(known, table, method), table, hidden_venues(table, hide))
    found = _with_crowds(more, table, method, first=not len(known))
    return _with_hosts(replace(found, member=found.member & ~found.hidden))


def _with_categories(known: Catalogue, table: Checkins, method: CrowdDraw) -> Catalogue:
    new = [at for at, name in enumerate(table.category_ids) if name not in set(known.categories)]
    places = of_table(table)
    hours, names = category_hours(places), table.category_ids[new].astype(object)
    group = np.full(len(new), "", object)
    if method.keeps_category == "group":
        given = table.category_groups
        for name, here in zip(known.categories, known.group, strict=True):
            if given.get(name, here) != here:
                raise InputError(
                    f"{table.name}: the category {name!r} is in the group {given[name]!r} here and in {here!r} in the "
                    "series; use the groups of the series"
                )
        if given:
            group = np.array([given.get(name, name) for name in names], object)
        elif len(known.categories):  # the group whose categories are visited at the most similar hours
            groups, number = np.unique(known.group.astype(str), return_inverse=True)
            centre = np.stack([np.sqrt(known.hours[number == n]).mean(axis=0) for n in range(len(groups))])
            away = ((np.sqrt(hours[new])[:, None] - centre) ** 2).sum(axis=2)
            group = groups[away.argmin(axis=1)].astype(object)
        else:
            group = np.array([learned_name(n) for n in by_hours(places)], object)
    return known.extended(categories=names, group=group, hours=hours[new])


def _with_venues(known: Catalogue, table: Checkins, hidden: Bools) -> Catalogue:
    """Add the venues in the order of their ids: the order of the file reveals which was visited first."""
    numbers, here = known.number, table.venues
    new = [v for v in range(1, len(table.venue_ids)) if table.venue_ids[v] not in numbers]
    new.sort(key=lambda v: str(table.venue_ids[v]))
    category = {name: at for at, name in enumerate(known.categories)}
    return known.extended(
        ids=table.venue_ids[new].astype(object), lat=here.lat[new], lon=here.lon[new],
        category=np.array([category[table.category_ids[c]] for c in here.category[new]], np.int32),
        visits=np.where(hidden, 0, np.bincount(table.venue, minlength=len(table.venue_ids)))[new], hidden=hidden[new],
        crowd=np.zeros(len(new), np.int64), member=np.ones(len(new), bool),
    )  # fmt: skip


def _with_crowds(known: Catalogue, table: Checkins, method: CrowdDraw, first: bool) -> Catalogue:
    """Give a crowd to all venues that have none."""
    todo = np.flatnonzero(known.crowd == 0)
    if not len(todo):
        return known
    kind = known.places(np.arange(len(known))).kind(method.keeps_category)[1:]
    point, reach = unit_sphere(known.lat, known.lon), chord(method.reach_km)
    own = _partition(known, todo, kind, method)  # (T,) the number of a crowd among the new ones, from 1; 0: alone
    visitors = _visitors(known, todo, own, table)
    crowd, member, last = known.crowd.copy(), known.member.copy(), int(known.crowd.max(initial=0))

    def host(venues: Longs, reach: float) -> None:  # in the crowds of the nearest venues of their kinds
        for what in np.unique(kind[venues]):
            hosts = np.flatnonzero((kind == what) & (crowd > 0) & member)
            guests = venues[kind[venues] == what]
            if len(hosts):
                away, nearest = scipy.spatial.cKDTree(point[hosts]).query(point[guests], distance_upper_bound=reach)
                near = np.isfinite(away)
                crowd[guests[near]], member[guests[near]] = crowd[hosts[nearest[near]]], False

    big = (own > 0) & (np.bincount(own, minlength=1)[own] >= (2 if first else method.size))
    if not first:  # a crowd of new venues shows that somebody went to each of them
        big &= visitors[own] >= method.size
    crowd[todo[big]] = last + own[big]
    left, left_own = todo[~big], own[~big]
    host(left, reach)
    together = (crowd[left] == 0) & (left_own > 0)
    enough = together & (np.bincount(left_own[together], minlength=int(left_own.max(initial=0)) + 1)[left_own] > 1)
    alone = enough & (visitors[left_own] < 2)  # their crowd would show one person's visits
    crowd[left[enough & ~alone]] = last + left_own[enough & ~alone]
    host(left[alone], np.inf)
    return replace(known, crowd=crowd, member=member)


def _with_hosts(known: Catalogue) -> Catalogue:
    """Let crowds of hidden venues draw from the crowd of the nearest venue that may appear; if there is none, wait."""
    crowd, shown = known.crowd.copy(), known.member & (known.crowd > 0)
    alone = np.flatnonzero(~np.isin(crowd, crowd[shown]) & known.hidden)
    together = np.unique(crowd[alone], return_index=True, return_inverse=True)
    first = np.where(crowd[alone] > 0, alone[together[1]][together[2]], alone)  # of each crowd
    crowd[alone] = 0
    if shown.any() and len(alone):
        hosts, point = np.flatnonzero(shown), unit_sphere(known.lat, known.lon)
        crowd[alone] = crowd[hosts[scipy.spatial.cKDTree(point[hosts]).query(point[first])[1]]]
    return replace(known, crowd=crowd)


def _visitors(known: Catalogue, venues: Longs, crowd: Longs, table: Checkins) -> Longs:
    """Return how many users of a table visit each crowd of these venues."""
    of_name = dict(zip(known.ids[venues].tolist(), crowd.tolist(), strict=True))
    of_venue = np.array([of_name.get(name, 0) for name in table.venue_ids])
    pairs = np.unique(np.stack([of_venue[table.venue], table.user]), axis=1)[0]
    return np.bincount(pairs, minlength=int(crowd.max(initial=0)) + 1)


def _partition(known: Catalogue, venues: Longs, kind: Ints, method: CrowdDraw) -> Longs:
    """Divide venues into crowds, in the order of their ids; return the number of each one's crowd, 0 if it is alone."""
    venues = venues[order := np.argsort(known.ids[venues].astype(str), kind="stable")]
    lat, lon = (np.append(np.nan, values[venues]) for values in (known.lat, known.lon))
    kinds = np.append(np.int32(-1), kind[venues])
    weight = method.popularity(np.append(0, known.visits[venues]))
    sets = find(lat, lon, kinds, method.dividing, weight=weight).poi[1:]
    numbered = np.zeros(len(venues), np.int64)
    numbered[order] = np.where(sets[:, 0] > 0, np.unique(sets, axis=0, return_inverse=True)[1].reshape(-1) + 1, 0)
    return numbered
