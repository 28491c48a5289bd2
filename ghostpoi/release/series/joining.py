"""How the venues of a file join a series. Existing crowds stay as they are.

In the first file all venues are divided into crowds, as for a release that stands alone. Later, new venues form a crowd
of their own where at least `size` of them are close together and as many people visit them. Any other one becomes a
guest of the crowd of the nearest venue: it draws from that crowd and is not drawn itself, so the crowd draws as before.
A new venue that is far from all crowds may share a smaller one with its neighbours, if two people visit these; else it
is a guest of the nearest crowd. Without neighbours, it has none until some come.
"""

from dataclasses import replace

import numpy as np
import scipy  # its parts are loaded when they are used

from ghostpoi.data.checkins import Bools, Checkins, Ints, Longs
from ghostpoi.data.geo import chord, unit_sphere
from ghostpoi.data.places import hidden_venues, of_table
from ghostpoi.draw import crowds
from ghostpoi.draw.catalogue import Catalogue
from ghostpoi.draw.crowds import by_hours, category_hours, learned_name
from ghostpoi.draw.methods.crowd import CrowdDraw
from ghostpoi.errors import InputError
from ghostpoi.settings import HideSettings


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
    sets = crowds.find(lat, lon, kinds, method.dividing, weight=weight).poi[1:]
    numbered = np.zeros(len(venues), np.int64)
    numbered[order] = np.where(sets[:, 0] > 0, np.unique(sets, axis=0, return_inverse=True)[1].reshape(-1) + 1, 0)
    return numbered
