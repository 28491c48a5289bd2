"""The base class of methods: a method proposes a released venue per position, `publish.rounds` enforces the rules."""

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data import candidates
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Floats, Ints
from ghostpoi.publish.channel import Channel, uniform
from ghostpoi.settings import CandidateSettings, Section

if TYPE_CHECKING:  # methods must import without torch: `verify` and `report` need them for their settings only
    from torch import Tensor

    from ghostpoi.publish.position import Position

KEEP = -1  # a proposal to release the clean venue itself


class Method(Section):
    """A way to choose released venues. Its settings are dataclass fields; `repr` is its identity."""

    label: ClassVar[str]  # the name in tables, charts and pages
    summary: ClassVar[str]  # what it does, in one sentence
    needs_surrogate: ClassVar[bool] = False
    may_keep: ClassVar[bool] = False  # it may propose KEEP, or draw the clean venue from its own set
    own_sets: ClassVar[bool] = False  # it replaces the candidate rule by sets that contain the venue itself
    exact_channel: ClassVar[bool] = False  # `channel` states its probabilities exactly; otherwise it is a first guess

    @property
    def needs_trajectory_lm(self) -> bool:
        """Whether it asks a position for its manifold term."""
        return False

    @property
    def popularity_power(self) -> float:
        """The power of a released count that reflects popularity among venues with equal channels; 0: none."""
        return 0.0

    def choose(self, position: "Position", uniform: "Tensor") -> "Tensor":
        """Return the column (B,) of position.candidates to release, or KEEP; `uniform` (B,) is its only randomness."""
        raise NotImplementedError

    def candidate_sets(
        self, lat: Floats, lon: Floats, category: Ints, rule: CandidateSettings,
        known: NDArray[np.bool_] | None = None,
    ) -> Candidates:  # fmt: skip
        """The set that each venue is drawn from; arguments are (P+1,) with row 0 as padding.

        `known` marks the venues that models know, where these are not all of them.
        """
        return candidates.find(lat, lon, category, rule)

    def channel(self, candidates: Candidates) -> Channel:
        """How likely each venue is released as another, as far as anyone can know from the code."""
        return uniform(candidates, keeps=self.may_keep and not self.own_sets)
