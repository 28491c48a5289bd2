"""A victim that knows when and where: attention depends on the time and the distance between check-ins, as in STAN.

STAN (Luo et al., WWW 2021) adds interpolated embeddings of time gaps and distances to the attention logits. This victim
does so in each head of each layer of the Transformer, and reads the hour of the week with each POI.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ghostpoi.attack.victims.base import Exam, Job
from ghostpoi.attack.victims.stacked_model import TIME, PackedRows, StackedModel, look_up
from ghostpoi.attack.victims.stacked_training import StackedVictim
from ghostpoi.data.geo import EARTH_RADIUS_KM, unit_sphere
from ghostpoi.data.sessions import Vocabulary

KNOTS = 8  # of each relation, one per doubling: up to 32 hours, and up to 32 km
GAP_S, KM = 900.0, 0.25  # the first doubling
HOURS = 7 * 24


class StanModel(StackedModel):
    """Adds two tables of weights that start at zero: `relation`, (M, L*H, 2*KNOTS), and `hour`, (M, HOURS, d)."""

    memory_factor = 2
    xyz: Tensor  # (P+1, 3) the POIs in km

    def initial(self, jobs: Sequence[Job], exam: Exam) -> dict[str, Tensor]:
        if exam.vocabulary is None or len(exam.vocabulary) != exam.rows:
            raise ValueError("this victim measures distances: give it the vocabulary of the POIs")
        self.xyz, s = points(exam.vocabulary).to(self.device), self.settings
        tables = {"relation": torch.zeros(s.layers * s.heads, 2 * KNOTS), "hour": torch.zeros(HOURS, s.dim)}
        return super().initial(jobs, exam) | tables

    def embed(self, inputs: Tensor, rows: PackedRows) -> Tensor:
        return super().embed(inputs, rows) + look_up(self.weights["hour"], inputs[TIME] // 3600 % HOURS)

    def masks(self, inputs: Tensor, rows: PackedRows) -> list[Tensor]:
        s, victims, (many, width) = self.settings, len(self), rows.owner.shape
        token, _, time = inputs.index_select(2, rows.token_at).view(3, -1, width)
        gap = (time[:, :, None] - time[:, None, :]).abs() / GAP_S  # (M*B, t, t)
        xyz = self.xyz[token]  # (M*B, t, 3)
        km = torch.cdist(xyz, xyz, compute_mode="donot_use_mm_for_euclid_dist")  # products would be off by a km
        near = _knot_weights(torch.stack([gap, km / KM], 1).flatten(2))  # (M*B, 2*KNOTS, t*t)
        # One table per row instead of per victim: the gradients of many short products are faster than of a long one.
        table = self.weights["relation"][:, None].expand(-1, many, -1, -1).flatten(0, 1)  # (M*B, L*H, 2*KNOTS)
        bias = torch.bmm(table, near).view(-1, s.layers, s.heads, width, width)
        mask = rows.mask(victims, self.dtype)  # (M*B, 1, t, t)
        return [(layer + mask).contiguous() for layer in bias.unbind(1)]


@dataclass(frozen=True)
class Stan(StackedVictim):
    """Uses the times and the coordinates that every release shows. It needs the vocabulary."""

    label = "STAN"
    summary = "A Transformer whose attention depends on time gaps and distances, as in STAN."
    reads_users = False
    model_type = StanModel
    dropout: float = 0.4  # clean NYC validation acc@1 .232, with .2 it is .226


def points(vocabulary: Vocabulary) -> Tensor:
    """Return every POI in km from the centre of the earth, (P+1, 3); padding lies amid the others."""
    xyz = EARTH_RADIUS_KM * unit_sphere(vocabulary.lat, vocabulary.lon)
    xyz[0] = xyz[1:].mean(0) if len(xyz) > 1 else 0.0
    return torch.from_numpy(xyz.astype(np.float32))


def _knot_weights(x: Tensor) -> Tensor:
    """Return the weights of the knots of log2(1 + x) for linear interpolation: (n, 2, m) -> (n, 2*KNOTS, m)."""
    at = torch.log2(1 + x).clamp_(max=KNOTS - 1)[:, :, None]
    off = (at - torch.arange(KNOTS, device=x.device)[:, None]).abs_()
    return off.neg_().add_(1).clamp_(min=0).flatten(1, 2)
