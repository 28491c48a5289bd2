"""A victim that reads the city as a graph: POIs that follow one another lend each other their meaning.

The graph is that of the sessions it is trained on, released or restored: nobody has another.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.nn import functional as F

from ghostpoi.attack.victims.base import Exam, Job, Result
from ghostpoi.attack.victims.lines import Lines
from ghostpoi.attack.victims.stack import Stack, look_up, repeated
from ghostpoi.attack.victims.steps import Seen
from ghostpoi.attack.victims.together import STAGE, train_stacks
from ghostpoi.attack.victims.transformer import initial, other_settings
from ghostpoi.data.sessions import Sessions
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.models.windows import next_poi
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Precision

LAYERS = 2


@dataclass(frozen=True)
class Graph:
    """Somebody trains a Transformer on embeddings that a graph convolution spread over the transitions."""

    dropout: float = 0.4  # clean NYC validation acc@1 .231, with .2 it is .226

    def train(self, jobs: Sequence[Job], exam: Exam, protocol: str) -> list[Result]:
        """One result per job, in their order."""

        def build(some: Sequence[Job], model: ModelSettings) -> GraphStack:
            graphs = [transitions(job.train, exam.rows) for job in some]
            return GraphStack.start(initial(exam.rows, model, some[0].seed).to(exam.device), graphs, some[0].seed)

        settings = other_settings(protocol, dropout=self.dropout)
        return train_stacks(jobs, exam, *settings, build, bulk=GraphStack.bulk)


def transitions(sessions: Sessions, rows: int) -> sparse.csr_array:
    """How often POIs follow one another in either direction, and every POI itself once, symmetrically normalised."""
    pairs = next_poi(sessions, max(2, sessions.positions))
    once = sparse.coo_array((np.ones(len(pairs.token)), (pairs.token, pairs.target)), (rows, rows)).tocsr()
    both = once + once.T + sparse.eye_array(rows)
    scale = sparse.diags_array(both.sum(1) ** -0.5)
    return (scale @ both @ scale).astype(np.float32).tocsr()


class GraphStack(Stack):
    """With the weights of the convolution, `spread.0.weight` (M, d, d) and so on, and a graph for every victim."""

    bulk = 2

    def __init__(
        self, weights: Mapping[str, Tensor], rows: int, settings: ModelSettings, precision: Precision,
        graphs: Sequence[sparse.csr_array],
    ) -> None:  # fmt: skip
        super().__init__(weights, rows, settings, precision)
        self.graphs = graphs
        self.all_graphs = _tensor(sparse.block_diag(graphs, "csr")).to(self.device)  # (M*(P+1), M*(P+1))

    @staticmethod
    def start(model: CausalTransformer, graphs: Sequence[sparse.csr_array], seed: Seed) -> "GraphStack":
        weights: dict[str, Tensor] = dict(model.named_parameters())
        generator = torch.Generator().manual_seed(seed.torch_seed(*STAGE, "graph"))
        d = model.settings.dim
        for i in range(LAYERS):
            weights[f"spread.{i}.weight"] = (torch.randn(d, d, generator=generator) * d**-0.5).to(model.device)
            weights[f"spread.{i}.bias"] = torch.zeros(d, device=model.device)
        return GraphStack(repeated(weights, len(graphs)), model.rows, model.settings, "float32", graphs)

    def embed(self, seen: Seen, lines: Lines) -> Tensor:
        position = lines.position.expand(len(self), -1)
        return look_up(self.table(), seen.token) + look_up(self.weights["position"], position)

    def table(self) -> Tensor:
        """The embedding of every POI with what came over the graph, (M, P+1, d)."""
        own = self.weights["embedding"]
        near = own
        for i in range(LAYERS):
            near = F.gelu(near) if i else near
            near = _Spread.apply(self._linear(f"spread.{i}", near), self.all_graphs)  # type: ignore[no-untyped-call]
        return own + near

    def _with(self, weights: Mapping[str, Tensor], victims: Tensor) -> Self:
        graphs = [self.graphs[m] for m in victims.tolist()]
        return type(self)(weights, self.rows, self.settings, self.precision, graphs)


class _Spread(torch.autograd.Function):
    """(M, P+1, d) over a symmetric graph, whose product is therefore its own gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, graph: Tensor) -> Tensor:
        ctx.graph = graph
        return torch.mm(graph, x.flatten(0, 1)).view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return torch.mm(ctx.graph, grad.flatten(0, 1)).view_as(grad), None


def _tensor(matrix: sparse.csr_array) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that torch may still change these tensors, and does not check them
        first, column, value = (torch.from_numpy(a) for a in (matrix.indptr, matrix.indices, matrix.data))
        return torch.sparse_csr_tensor(first, column, value, matrix.shape)
