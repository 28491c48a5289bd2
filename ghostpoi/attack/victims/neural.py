"""Neural victims: the paper's causal Transformer, its variants that know more, and a recurrent network.

A variant knows the user; the times of and the distances between check-ins, as in STAN (Luo et al., WWW 2021), whose
interpolated embeddings of both are added to the attention logits; or which POIs follow one another. The recurrent one
is a single gated unit, as in GRU4Rec, run step by step for many victims at once.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn
from torch.nn import functional as F

from ghostpoi.attack.adversaries.distillation import after
from ghostpoi.attack.victims.base import STAGE, Exam, Job, Victim
from ghostpoi.attack.victims.stacked import (
    TIME,
    TOKEN,
    USER,
    PackedRows,
    StackedModel,
    StackedVictim,
    dropped,
    look_up,
)
from ghostpoi.data.geo import EARTH_RADIUS_KM, unit_sphere
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.models.transformer import Pad
from ghostpoi.settings import ModelSettings, Training

KNOTS = 8  # of each relation of STAN, one per doubling: up to 32 hours, and up to 32 km
GAP_S, KM = 900.0, 0.25  # the first doubling
HOURS = 7 * 24
LAYERS = 2  # of the graph


@dataclass(frozen=True)
class Transformer(StackedVictim):
    """The paper's model, trained with early stopping on clean validation sessions."""

    label = "Transformer"
    summary = "The paper's causal Transformer."
    knows_users = False
    model: ModelSettings | None = None  # None: as the protocol says
    training: Training | None = None

    def settings(self, protocol: str) -> tuple[ModelSettings, Training]:
        model, training = Victim.settings(self, protocol)
        return self.model or model, self.training or training


class UserModel(StackedModel):
    """Adds one table of weights: `user`, (M, U, d)."""

    def initial(self, jobs: Sequence[Job], exam: Exam) -> dict[str, Tensor]:
        everyone = [exam.validation, exam.test, *(job.train for job in jobs)]
        users = 1 + max(int(sessions.user.max(initial=0)) for sessions in everyone)
        return super().initial(jobs, exam) | {"user": torch.zeros(users, self.settings.dim)}

    def embed(self, inputs: Tensor, rows: PackedRows) -> Tensor:
        return super().embed(inputs, rows) + look_up(self.weights["user"], inputs[USER])


@dataclass(frozen=True)
class User(StackedVictim):
    """Adds an embedding of the user to that of every POI; it stays zero for a user without training sessions."""

    label = "User embedding"
    summary = "The Transformer with an embedding of each user."
    model_type = UserModel
    dropout: float = 0.5  # clean NYC validation acc@1 .262, with .2 and .6 it is .256


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
    knows_users = False
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


class GraphModel(StackedModel):
    """Adds the weights of a convolution, `spread.0.weight` (M, d, d) and so on, and a graph for every victim."""

    memory_factor = 2
    graphs: Sequence[sparse.csr_array]  # (P+1, P+1) each
    all_graphs: Tensor  # (M*(P+1), M*(P+1))

    def initial(self, jobs: Sequence[Job], exam: Exam) -> dict[str, Tensor]:
        self._over([transitions(job.train, exam.rows) for job in jobs])
        generator = torch.Generator().manual_seed(jobs[0].seed.torch_seed(*STAGE, "graph"))
        d, weights = self.settings.dim, super().initial(jobs, exam)
        for i in range(LAYERS):
            weights[f"spread.{i}.weight"] = torch.randn(d, d, generator=generator) * d**-0.5
            weights[f"spread.{i}.bias"] = torch.zeros(d)
        return weights

    def take(self, victims: Tensor) -> Self:
        return super().take(victims)._over([self.graphs[m] for m in victims.tolist()])

    def table(self) -> Tensor:
        """Return the embedding of every POI plus what comes over the graph, (M, P+1, d)."""
        near = own = self.weights["embedding"]
        for i in range(LAYERS):
            near = F.gelu(near) if i else near
            near = _OverGraph.apply(self._linear(f"spread.{i}", near), self.all_graphs)  # type: ignore[no-untyped-call]
        return own + near

    def _over(self, graphs: Sequence[sparse.csr_array]) -> Self:
        self.graphs, matrix = graphs, sparse.block_diag(graphs, "csr")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns that sparse tensors are unchecked and may still change
            first, column, value = (torch.from_numpy(a) for a in (matrix.indptr, matrix.indices, matrix.data))
            self.all_graphs = torch.sparse_csr_tensor(first, column, value, matrix.shape).to(self.device)
        return self


@dataclass(frozen=True)
class Graph(StackedVictim):
    """Takes the graph from the sessions that it is trained on, released or restored."""

    label = "Graph"
    summary = "A Transformer on embeddings that a graph convolution spreads over the transitions."
    knows_users = False
    model_type = GraphModel
    dropout: float = 0.4  # clean NYC validation acc@1 .231, with .2 it is .226


def transitions(sessions: Sessions, rows: int) -> sparse.csr_array:
    """Count how often POIs follow one another in either direction, and each itself once; normalise symmetrically."""
    once = after(sessions, 1, rows)
    both = once + once.T + sparse.eye_array(rows)
    scale = sparse.diags_array(both.sum(1) ** -0.5)
    return (scale @ both @ scale).astype(np.float32).tocsr()


class _OverGraph(torch.autograd.Function):
    """The product of a symmetric graph with (M, P+1, d); by symmetry its gradient is the same product."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, graph: Tensor) -> Tensor:
        ctx.graph = graph
        return torch.mm(graph, x.flatten(0, 1)).view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return torch.mm(ctx.graph, grad.flatten(0, 1)).view_as(grad), None


class GRUModel(StackedModel):
    """A GRU inside a residual block, between two LayerNorms: a bare GRU needs three times the epochs."""

    def initial(self, jobs: Sequence[Job], exam: Exam) -> dict[str, Tensor]:
        s = self.settings
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(jobs[0].seed.torch_seed(*STAGE, "gru"))
            parts = nn.ModuleDict({name: nn.LayerNorm(s.dim) for name in ("before", "norm")})
            parts["gru"] = nn.GRU(s.dim, s.dim)
            tables = ["embedding"] if s.tied else ["embedding", "untied"]
            weights = {name: torch.randn(self.rows, s.dim) * s.start for name in tables}
            return weights | dict(parts.named_parameters())

    def hidden(self, inputs: Tensor, rows: PackedRows, dropout: float = 0.0) -> Tensor:
        x = dropped(look_up(self.weights["embedding"], inputs[TOKEN]), dropout)
        return self._norm("norm", x + dropped(self.recur(self._norm("before", x), rows), dropout))

    def recur(self, x: Tensor, rows: PackedRows) -> Tensor:
        """Return the states of the GRU after each token, (M, N, d)."""
        kinds = "weight_ih", "weight_hh", "bias_ih", "bias_hh"
        into, w, into_bias, bias = (self.weights[f"gru.{kind}_l0"] for kind in kinds)
        gates = torch.baddbmm(into_bias[:, None], x, into.transpose(1, 2))  # (M, N, 3d)
        gates = Pad.apply(gates, rows.step_order, rows.step_rank)  # type: ignore[no-untyped-call]
        d, states = w.shape[2], [gates[:, :0, : w.shape[2]]]
        h = gates.new_zeros(len(gates), max(rows.running, default=0), d)
        for given in torch.split(gates, rows.running, 1) if rows.running else ():
            h = h[:, : given.shape[1]]  # shorter windows have ended
            own = torch.baddbmm(bias[:, None], h, w.transpose(1, 2))
            reset, update = (given[:, :, : 2 * d] + own[:, :, : 2 * d]).sigmoid().chunk(2, 2)
            h = torch.lerp(torch.addcmul(given[:, :, 2 * d :], reset, own[:, :, 2 * d :]).tanh(), h, update)
            states.append(h)
        return Pad.apply(torch.cat(states, 1), rows.step_rank, rows.step_order)  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class GRU(StackedVictim):
    """A GRU knows about the past only what its state carries."""

    label = "GRU"
    summary = "A recurrent network with one gated recurrent unit, as in GRU4Rec."
    knows_users = False
    model_type = GRUModel
    dropout: float = 0.4  # clean NYC validation acc@1 .225, with .2 to .6 it is .223 to .227
    max_positions: int = 50  # a GRU forgets sooner, and each position is one more step to wait for
