"""Methods that draw from crowds: `crowd`, and what one would use without it, k-anonymous and randomised-response.

`crowd` has compact crowds of equal size. The others halve boxes, as is usual for k-anonymity.

`crowd` draws from the crowd of the clean venue, with the same probabilities for every venue of the crowd. k-anonymous
generalises as statistical offices do: all venues of a crowd become one venue, its centre. randomised-response keeps the
venue with a fixed probability, else draws another one of its crowd evenly.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Bools, Floats, Ints, Longs
from ghostpoi.data.geo import unit_sphere
from ghostpoi.data.places import Places
from ghostpoi.draw.channel import Channel, channel_of
from ghostpoi.draw.crowds import Dividing, Division, category_hours, find, slot_weights
from ghostpoi.draw.methods.base import CATEGORY_HOURS, KeepsCategory, Method, Position, Tensor
from ghostpoi.settings import LEAST_GAP_KM, CandidateSettings, setting


@dataclass(frozen=True)
class CrowdDraw(Method):
    """Draw a venue of the crowd by its weight."""

    may_keep = True
    own_sets = True
    exact_channel = True
    division: ClassVar[Division] = "compact"

    size: int = setting(
        48, "crowd size; a crowd holds this many venues or slightly more, fewer only where reach_km joins fewer", 2
    )
    reach_km: float = setting(
        40.0,
        "venues can share a crowd if steps of at most this length from venue to venue join them",
        LEAST_GAP_KM,
        20_000,
    )
    category: KeepsCategory = setting(
        "any", "which venues share a crowd: those of one category, of one group of categories, or any"
    )

    @property
    def keeps_category(self) -> KeepsCategory:
        return self.category

    def candidate_sets(self, places: Places, rule: CandidateSettings, known: Bools | None = None) -> Candidates:
        kind, weight = places.kind(self.category), self.popularity(places.visits)
        crowds = find(places.lat, places.lon, kind, self.dividing, known, weight).without(places, known)
        return self.drawn_from(crowds, places, category_hours(places))

    def drawn_from(self, crowds: Candidates, places: Places, hours: Floats) -> Candidates:
        """Return what places draw, given the crowd of each, and the `category_hours`."""
        return crowds

    @property
    def dividing(self) -> Dividing:
        return Dividing(self.size, self.reach_km, self.division)

    def popularity(self, visits: Longs) -> Floats:
        """Return how popular places look in a release, given their visits."""
        return np.ones(len(visits))


@dataclass(frozen=True)
class Crowd(CrowdDraw):
    """Draw p' from the crowd with P(p') proportional to weight(p') T_psi(p' | released prefix)^beta."""

    label = "crowd"
    summary = "Draw from the venue's crowd: a group of neighbouring venues, itself included."
    version = 2

    draw: Literal["even", "popular", "popular-by-hour"] = setting(
        "popular",
        "even: draw all venues of a crowd equally often; popular: popular venues more often; popular-by-hour: the "
        "same, and each more often in the slots of the week when venues of its category are visited",
    )
    min_visits: int = setting(5, "a venue counts as having at least this many visits when popular ones are drawn", 1)
    beta: float = setting(0.0, "weight of the manifold term, learned from clean data; 0 leaves it out", 0, 1e6)

    @property
    def needs_trajectory_lm(self) -> bool:
        return self.beta > 0

    @property
    def needs_torch(self) -> bool:
        return self.beta > 0 or type(self).choose is not Crowd.choose

    @property
    def published_aggregates(self) -> tuple[str, ...]:
        if self.draw == "even":
            return ()
        hours = (CATEGORY_HOURS,) if self.draw == "popular-by-hour" else ()
        return (f"visits per venue, where fewer than {self.min_visits} count as {self.min_visits}", *hours)

    @property
    def popularity_power(self) -> float:
        return 1.0 if self.beta or self.draw != "even" else 0.0

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        weights = position.weights()
        return position.sample(weights + self.beta * position.mani() if self.beta else weights, uniform)

    def drawn_from(self, crowds: Candidates, places: Places, hours: Floats) -> Candidates:
        if self.draw == "even":
            return crowds
        weight = np.where(crowds.poi > 0, self.popularity(places.visits)[crowds.poi], 0.0)
        slots = slot_weights(places.category, hours) if self.draw == "popular-by-hour" else None
        return replace(crowds, weight=weight, slot_weight=slots)

    def popularity(self, visits: Longs) -> Floats:
        return super().popularity(visits) if self.draw == "even" else np.maximum(visits, self.min_visits).astype(float)


HALF_SIZE = setting(
    16, "minimum crowd size; a crowd holds between size and 2 x size - 1 venues, fewer where venues are sparse", 2
)
HALF_REACH = setting(
    5.0, "maximum width of a crowd; an isolated venue may join a crowd and make it wider", LEAST_GAP_KM, 20_100
)


@dataclass(frozen=True)
class CrowdHalves(Crowd):
    """The default of earlier versions: boxes that were cut in two, drawn by popularity and hour."""

    label = "crowd (halves)"
    summary = "Draw from a crowd made by cutting the map in two again and again."
    version = 1
    division = "halves"

    size: int = HALF_SIZE
    reach_km: float = HALF_REACH
    draw: Literal["even", "popular", "popular-by-hour"] = setting(
        "popular-by-hour", "as in crowd: draw venues evenly, by popularity, or by popularity and hour"
    )


@dataclass(frozen=True)
class KAnonymous(CrowdDraw):
    """Release the medoid of the crowd, the only candidate of all its venues."""

    label = "k-anonymous"
    summary = "Release every venue as the centre venue of its crowd."
    division = "halves"

    size: int = HALF_SIZE
    reach_km: float = HALF_REACH

    def drawn_from(self, crowds: Candidates, places: Places, hours: Floats) -> Candidates:
        return replace(crowds, poi=medoids(crowds.poi, places.lat, places.lon)[:, None])


def medoids(crowds: Ints, lat: Floats, lon: Floats) -> Ints:
    """Return the member of each crowd (P+1, K) with the least sum of distances to the others, (P+1,); 0 if it is empty.

    If several members have the least sum, the first is returned.
    """
    each, place = np.unique(crowds, axis=0, return_inverse=True)
    centre = np.zeros(len(each), np.int32)
    for number, crowd in enumerate(each):
        if len(members := crowd[crowd > 0]):
            point = unit_sphere(lat[members], lon[members])
            centre[number] = members[np.sqrt(((point[:, None] - point) ** 2).sum(axis=2)).sum(axis=1).argmin()]
    return centre[place.reshape(-1)]


@dataclass(frozen=True)
class RandomisedResponse(CrowdDraw):
    """Keep p with P = e^epsilon / (e^epsilon + k - 1) in a crowd of k venues; every other venue gets the same share."""

    label = "randomised response"
    summary = "Keep the venue with a fixed probability, else draw another venue of its crowd evenly."
    division = "halves"

    size: int = HALF_SIZE
    reach_km: float = HALF_REACH
    epsilon: float = setting(1.0, "privacy loss of a visit inside its crowd; 0 draws all venues evenly", 0, 50)

    def channel(self, candidates: Candidates, lat: Floats | None = None, lon: Floats | None = None) -> Channel:
        return channel_of(self._weighted(candidates))

    def drawn_from(self, crowds: Candidates, places: Places, hours: Floats) -> Candidates:
        return self._weighted(crowds)

    def _weighted(self, crowds: Candidates) -> Candidates:
        own = crowds.poi == np.arange(len(crowds.poi))[:, None]
        return replace(crowds, weight=np.where(crowds.poi > 0, np.where(own, np.exp(self.epsilon), 1.0), 0.0))
