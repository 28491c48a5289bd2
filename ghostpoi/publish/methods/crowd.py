"""crowd: draw from the crowd of the clean venue, with the same probabilities for every venue of the crowd.

Visits to two venues of one crowd at the same place of a trajectory have the same released distribution. With uniform
draws, a release therefore reveals the crowd and nothing more, however often a user returns and however many releases
are made. A positive `beta` also reveals popularity (docs/explanation/crowd.md).
"""

from dataclasses import dataclass

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Bools, Floats, Ints
from ghostpoi.publish import crowd_partition
from ghostpoi.publish.methods.base import Method, Position, Tensor
from ghostpoi.settings import CandidateSettings, setting


@dataclass(frozen=True)
class Crowd(Method):
    """Draw p' from the crowd with P(p') proportional to T_psi(p' | released prefix)^beta."""

    label = "crowd"
    summary = "Draw uniformly from the venue's crowd: a group of neighbouring venues of its category, itself included."
    may_keep = True
    own_sets = True
    exact_channel = True

    size: int = setting(
        32, "minimum crowd size; a crowd holds between size and 2 x size - 1 venues, fewer where venues are sparse", 2
    )
    reach_km: float = setting(40.0, "maximum width of a crowd", 0, 20_100)
    beta: float = setting(0.0, "weight of the manifold term, learned from clean data; 0 draws uniformly", 0, 1e6)

    @property
    def needs_trajectory_lm(self) -> bool:
        return self.beta > 0

    @property
    def popularity_power(self) -> float:
        return 1.0 if self.beta else 0.0

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        return position.sample(self.beta * position.mani() if self.beta else position.zeros(), uniform)

    def candidate_sets(
        self, lat: Floats, lon: Floats, category: Ints, rule: CandidateSettings, known: Bools | None = None
    ) -> Candidates:
        return crowd_partition.find(lat, lon, category, self.size, self.reach_km, known)
