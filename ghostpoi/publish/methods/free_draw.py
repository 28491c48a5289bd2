"""The base of methods that can release any venue for any other: they have no candidate sets and no speed limit."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Bools, Ints
from ghostpoi.data.places import Places
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.publish.methods.base import AnyMethod, KeepsCategory
from ghostpoi.randomness import Seed
from ghostpoi.settings import CandidateSettings

if TYPE_CHECKING:
    from ghostpoi.models.transformer import CausalTransformer

LanguageModel: TypeAlias = "CausalTransformer | None"


@dataclass(frozen=True)
class FreeDraw(AnyMethod, ABC):
    """A way to choose all released venues at once, among all venues."""

    may_keep = True
    own_sets = True  # all venues, including the clean one

    @property
    def keeps_category(self) -> KeepsCategory:
        return "any"

    @abstractmethod
    def release(self, sessions: Sessions, vocabulary: Vocabulary, lm: LanguageModel, seed: Seed) -> Ints:
        """Return the released venue of every position of the sessions, (N,); `lm` is T_psi if the method needs it."""

    @abstractmethod
    def release_outside(self, places: Places, anchor: Ints, seed: Seed) -> Ints:
        """Return the released venues, (M,), of rows outside sessions, whose clean venues are `anchor` (M,)."""

    def candidate_sets(self, places: Places, rule: CandidateSettings, known: Bools | None = None) -> Candidates:
        return Candidates.anywhere(len(places.lat))
