"""What the publisher does in sessions: all that decides the result, but for the seed."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.publish.publication_settings import Publication

if TYPE_CHECKING:
    from ghostpoi.models.transformer import CausalTransformer

WALK_UNITS = 3.0  # a round of scoring takes about as long as this many epochs; only for estimates of the time left


@dataclass(frozen=True)
class Task:
    """All that decides what is released, but for the seed."""

    settings: Publication
    sessions: Sessions
    vocabulary: Vocabulary
    candidates: Candidates
    trajectory_lm: "CausalTransformer | None" = None
