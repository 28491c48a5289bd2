"""The base classes of methods. A method proposes released venues; `draw.model_walk` enforces the rules."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from ghostpoi.data.candidates import Candidates, candidate_sets
from ghostpoi.data.checkins import Bools, Floats, Ints
from ghostpoi.data.places import Places
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.draw.channel import Channel, channel_of
from ghostpoi.draw.noise import Noise
from ghostpoi.settings import CandidateSettings, Section

if TYPE_CHECKING:
    import torch

    from ghostpoi.draw import scoring
    from ghostpoi.models.transformer import CausalTransformer


# Texts at run time: methods must import without torch, because `verify` and `report` read their settings.
Position: TypeAlias = "scoring.Position"
Tensor: TypeAlias = "torch.Tensor"
LanguageModel: TypeAlias = "CausalTransformer | None"

KeepsCategory = Literal["exact", "group", "any"]
# An aggregate that a release without categories does not publish.
CATEGORY_HOURS = "visits per category and four-hour slot of the week, where a category has at least 5"
LEARNED_GROUPS = "which categories are visited at similar hours of the week"  # the groups reveal this
VENUE_USE = (
    "which nearby venues are visited at similar hours and for similar stays"  # learned candidate sets reveal this
)
KEEP = -1  # a proposal to release the clean venue itself


class AnyMethod(Section):
    """A way to make a release. Its settings are dataclass fields; its `repr` is its identity."""

    label: ClassVar[str]  # name in tables, charts and pages
    summary: ClassVar[str]  # one sentence on what it does
    version: ClassVar[int] = 1  # raised whenever the same input gives other draws
    needs_surrogate: ClassVar[bool] = False
    may_keep: ClassVar[bool] = False  # it may propose KEEP, or draw the clean venue from its own sets
    own_sets: ClassVar[bool] = False  # it replaces the candidate rule by sets that include the venue itself
    in_paper: ClassVar[bool] = False  # the paper on GHOST describes it, so a release made with it cites that paper
    exact_channel: ClassVar[bool] = False  # `channel` gives its exact probabilities, not just a first guess

    @property
    def needs_trajectory_lm(self) -> bool:
        """Whether it uses the manifold term, `position.mani()`."""
        return False

    @property
    def needs_likelihood(self) -> bool:
        """Whether it uses what the surrogate predicts, `position.likelihood()`."""
        return False

    @property
    def needs_torch(self) -> bool:
        """Whether a release needs torch: for models, or because the method itself works on tensors."""
        return self.needs_surrogate or self.needs_trajectory_lm

    @property
    def keeps_category(self) -> KeepsCategory:
        """What a substitute has in common with the clean venue: its category, its group of categories, or neither."""
        return "exact"

    @property
    def published_aggregates(self) -> tuple[str, ...]:
        """What its draws reveal about the whole file, in addition to each row's candidate set."""
        return ()

    @property
    def popularity_power(self) -> float:
        """The exponent that turns released counts into popularity among venues with equal channels; 0: none."""
        return 0.0

    def candidate_sets(self, places: Places, rule: CandidateSettings, known: Bools | None = None) -> Candidates:
        """Return the set that each place draws from. `known` (P+1,) marks those that models know; None means all."""
        return candidate_sets(places, rule)

    def channel(self, candidates: Candidates, lat: Floats | None = None, lon: Floats | None = None) -> Channel:
        """Return the probability that each venue is released as another, as far as the code reveals it.

        `lat` and `lon` (P+1,) are the venues' positions, for methods that draw by distance.
        """
        return channel_of(candidates, keeps=self.may_keep and not self.own_sets)


class Method(AnyMethod):
    """A way to choose a released venue among candidates, position by position."""

    @property
    def needs_torch(self) -> bool:
        return super().needs_torch or type(self).choose is not Method.choose

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        """Return the column (B,) of `position.candidates` to release, or KEEP. `uniform` (B,) is all its randomness.

        By default, this is a draw by the weights of the candidate set. `weighted_walk` draws the same without torch.
        """
        return position.sample(position.weights(), uniform)


@dataclass(frozen=True)
class FreeDraw(AnyMethod, ABC):
    """A way to choose all released venues at once, among all venues: without candidate sets and speed limit."""

    may_keep = True
    own_sets = True  # all venues, including the clean one

    @property
    def keeps_category(self) -> KeepsCategory:
        return "any"

    @abstractmethod
    def release(self, sessions: Sessions, vocabulary: Vocabulary, lm: LanguageModel, noise: Noise) -> Ints:
        """Return the released venue of every position of the sessions, (N,); `lm` is T_psi if the method needs it.

        `noise` is all its randomness.
        """

    @abstractmethod
    def release_outside(self, places: Places, anchor: Ints, noise: Noise) -> Ints:
        """Return the released venues, (M,), of rows outside sessions, whose clean venues are `anchor` (M,)."""

    def candidate_sets(self, places: Places, rule: CandidateSettings, known: Bools | None = None) -> Candidates:
        return Candidates.anywhere(len(places.lat))
