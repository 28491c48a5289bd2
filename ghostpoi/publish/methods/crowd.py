"""crowd: draw from the crowd of the clean venue, with the same probabilities for every venue of the crowd.

Visits to two venues of one crowd at the same place of a trajectory have the same released distribution. A release
therefore reveals the crowd and nothing more about a visit, however often a user returns and however many releases are
made. Unless `draw` is `even`, it also reveals how popular venues are. If `beta` is positive, it reveals which venue
usually follows which (docs/explanation/crowd.md).
"""

from dataclasses import dataclass
from typing import Literal

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Bools
from ghostpoi.data.places import Places
from ghostpoi.publish import crowd_partition, popularity
from ghostpoi.publish.methods.base import CATEGORY_HOURS, KeepsCategory, Method, Position, Tensor
from ghostpoi.settings import CandidateSettings, setting


@dataclass(frozen=True)
class Crowd(Method):
    """Draw p' from the crowd with P(p') proportional to weight(p') T_psi(p' | released prefix)^beta."""

    label = "crowd"
    summary = "Draw from the venue's crowd: a group of neighbouring venues, itself included."
    may_keep = True
    own_sets = True
    exact_channel = True

    size: int = setting(
        16, "minimum crowd size; a crowd holds between size and 2 x size - 1 venues, fewer where venues are sparse", 2
    )
    reach_km: float = setting(
        5.0, "maximum width of a crowd; an isolated venue may join a crowd and make it wider", 0, 20_100
    )
    category: KeepsCategory = setting(
        "any", "which venues share a crowd: those of one category, of one group of categories, or any"
    )
    draw: Literal["even", "popular", "popular-by-hour"] = setting(
        "popular-by-hour",
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
    def keeps_category(self) -> KeepsCategory:
        return self.category

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

    def candidate_sets(self, places: Places, rule: CandidateSettings, known: Bools | None = None) -> Candidates:
        kind = places.kind(self.category)
        crowds = crowd_partition.find(places.lat, places.lon, kind, self.size, self.reach_km, known)
        if self.draw == "even":
            return crowds
        return popularity.weighted(crowds, places, self.min_visits, by_hour=self.draw == "popular-by-hour")
