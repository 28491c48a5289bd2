"""A victim that reads the city as a graph: POIs that follow one another share their embeddings."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.nn import functional as F

from ghostpoi.attack.victims.base import STAGE, Exam, Job
from ghostpoi.attack.victims.markov import after
from ghostpoi.attack.victims.stacked_model import StackedModel
from ghostpoi.attack.victims.stacked_training import StackedVictim
from ghostpoi.data.sessions import Sessions

LAYERS = 2


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
    reads_users = False
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
