"""The crowds of a series, as the rows of one table draw from them."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Bools, Checkins, Longs, Venues
from ghostpoi.errors import InputError
from ghostpoi.options import option
from ghostpoi.publish.methods import AnyMethod
from ghostpoi.publish.methods.crowd import Crowd
from ghostpoi.publish.methods.k_anonymous import KAnonymous, medoids
from ghostpoi.publish.methods.randomised_response import RandomisedResponse
from ghostpoi.publish.venue_catalogue import Catalogue


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
            "k-anonymous or randomised-response"
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
    sets = SETS[type(method)](method, _crowds(known, at), known, at)
    return more, KeptCrowds(method, sets, np.append(-1, at), again)


def _crowds(known: Catalogue, at: Longs) -> Candidates:
    """Return the crowds of venues (V,) of the catalogue as candidate sets; venue i has the number i + 1."""
    number = np.empty(len(at), np.int64)
    number[at] = np.arange(1, len(at) + 1)
    members = known.members()
    poi = np.zeros((len(at) + 1, max(map(len, members.values()), default=1)), np.int32)
    for row, crowd in enumerate(known.crowd[at].tolist(), 1):
        if crowd:
            poi[row, : len(members[crowd])] = number[members[crowd]]
    return Candidates(poi, np.zeros(len(poi)))


def _popular(method: Crowd, crowds: Candidates, known: Catalogue, at: Longs) -> Candidates:
    """Weigh venues as the method does, by the popularity that the series keeps."""
    if method.draw == "even":
        return crowds
    visits = np.append(0.0, np.maximum(known.visits[at], method.min_visits))
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
    Crowd: _popular, KAnonymous: _centre, RandomisedResponse: _mostly_own,
}  # fmt: skip
