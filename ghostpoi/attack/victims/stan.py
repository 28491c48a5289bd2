"""A victim that knows when and where: attention depends on the time and the distance between check-ins, as in STAN.

STAN (Luo et al., WWW 2021) interpolates learned embeddings of time gaps and distances and adds them to the attention
logits. So does this, for each head of each layer of the Transformer, and the hour of the week is read with every POI.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from ghostpoi.attack.victims.base import Exam, Job, Result
from ghostpoi.attack.victims.lines import Lines
from ghostpoi.attack.victims.stack import Stack, look_up, repeated
from ghostpoi.attack.victims.steps import Seen
from ghostpoi.attack.victims.together import train_stacks
from ghostpoi.attack.victims.transformer import initial, other_settings
from ghostpoi.data.geo import EARTH_RADIUS_KM, unit_sphere
from ghostpoi.data.sessions import Vocabulary
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.settings import ModelSettings, Precision

KNOTS = 8  # of each relation, one for every doubling: up to 32 hours, and up to 32 km
GAP_S, KM = 900.0, 0.25  # the first doubling
HOURS = 7 * 24


@dataclass(frozen=True)
class Stan:
    """Somebody trains a Transformer that uses the times and the coordinates that come with every release."""

    dropout: float = 0.4  # clean NYC validation acc@1 .232, with .2 it is .226

    def train(self, jobs: Sequence[Job], exam: Exam, protocol: str) -> list[Result]:
        """One result per job, in their order. It needs the vocabulary."""
        if exam.vocabulary is None or len(exam.vocabulary) != exam.rows:
            raise ValueError("this victim measures distances: give it the vocabulary of the POIs")
        places = points(exam.vocabulary).to(exam.device)

        def build(some: Sequence[Job], model: ModelSettings) -> StanStack:
            return StanStack.start(initial(exam.rows, model, some[0].seed).to(exam.device), len(some), places)

        settings = other_settings(protocol, dropout=self.dropout)
        return train_stacks(jobs, exam, *settings, build, bulk=StanStack.bulk)


def points(vocabulary: Vocabulary) -> Tensor:
    """Every POI in km from the centre of the earth, (P+1, 3). Padding, and so any unknown POI, lies amid the others."""
    xyz = EARTH_RADIUS_KM * unit_sphere(vocabulary.lat, vocabulary.lon)
    xyz[0] = xyz[1:].mean(0) if len(xyz) > 1 else 0.0
    return torch.from_numpy(xyz.astype(np.float32))


class StanStack(Stack):
    """With two more tables of weights: `relation`, (M, L*H, 2*KNOTS), and `hour`, (M, HOURS, d), both from nothing."""

    bulk = 2

    def __init__(
        self, weights: Mapping[str, Tensor], rows: int, settings: ModelSettings, precision: Precision, places: Tensor
    ) -> None:
        super().__init__(weights, rows, settings, precision)
        self.places = places

    @staticmethod
    def start(model: CausalTransformer, victims: int, places: Tensor) -> "StanStack":
        s = model.settings
        more = {"relation": (s.layers * s.heads, 2 * KNOTS), "hour": (HOURS, s.dim)}
        weights: dict[str, Tensor] = dict(model.named_parameters())
        weights |= {name: torch.zeros(shape, device=model.device) for name, shape in more.items()}
        return StanStack(repeated(weights, victims), model.rows, s, "float32", places)

    def embed(self, seen: Seen, lines: Lines) -> Tensor:
        return super().embed(seen, lines) + look_up(self.weights["hour"], seen.time // 3600 % HOURS)

    def masks(self, seen: Seen, lines: Lines) -> list[Tensor]:
        s, victims, (many, width) = self.settings, len(self), lines.owner.shape
        token, time = (side.index_select(1, lines.there).view(-1, width) for side in (seen.token, seen.time))
        gap = (time[:, :, None] - time[:, None, :]).abs() / GAP_S  # (M*B, t, t)
        place = self.places[token]  # (M*B, t, 3)
        km = torch.cdist(place, place, compute_mode="donot_use_mm_for_euclid_dist")  # products would be off by a km
        near = _hats(torch.stack([gap, km / KM], 1).flatten(2))  # (M*B, 2*KNOTS, t*t)
        # A table for each line, not for each victim: the gradients of many short products are faster than of one long.
        table = self.weights["relation"][:, None].expand(-1, many, -1, -1).flatten(0, 1)  # (M*B, L*H, 2*KNOTS)
        bias = torch.bmm(table, near).view(-1, s.layers, s.heads, width, width)
        mask = lines.mask(victims, self.dtype)  # (M*B, 1, t, t)
        return [(layer + mask).contiguous() for layer in bias.unbind(1)]

    def _with(self, weights: Mapping[str, Tensor], victims: Tensor) -> Self:
        return type(self)(weights, self.rows, self.settings, self.precision, self.places)


def _hats(x: Tensor) -> Tensor:
    """Weights of the knots of log2(1 + x) for linear interpolation: (n, 2, m) -> (n, 2*KNOTS, m)."""
    at = torch.log2(1 + x).clamp_(max=KNOTS - 1)[:, :, None]
    off = (at - torch.arange(KNOTS, device=x.device)[:, None]).abs_()
    return off.neg_().add_(1).clamp_(min=0).flatten(1, 2)
