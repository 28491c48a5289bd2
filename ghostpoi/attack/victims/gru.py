"""A recurrent victim, as in GRU4Rec: one gated recurrent unit, step by step for many victims at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ghostpoi.attack.victims.base import STAGE, Exam, Job
from ghostpoi.attack.victims.stacked_model import TOKEN, PackedRows, StackedModel, dropped, look_up
from ghostpoi.attack.victims.stacked_training import StackedVictim
from ghostpoi.models.transformer import Pad


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
        states = _Recurrence.apply(gates, w, bias, rows.running)  # type: ignore[no-untyped-call]
        return Pad.apply(states, rows.step_rank, rows.step_order)  # type: ignore[no-any-return,no-untyped-call]


@dataclass(frozen=True)
class GRU(StackedVictim):
    """A GRU knows about the past only what its state carries."""

    label = "GRU"
    summary = "A recurrent network with one gated recurrent unit, as in GRU4Rec."
    reads_users = False
    model_type = GRUModel
    dropout: float = 0.4  # clean NYC validation acc@1 .225, with .2 to .6 it is .223 to .227
    max_positions: int = 50  # a GRU forgets sooner, and each position is one more step to wait for


class _Recurrence(torch.autograd.Function):
    """The states after each token, (M, N, d), from the input's share of the gates, (M, N, 3d), both step by step.

    Autograd would launch three times the kernels. Here a step back is little more than one product.
    """

    @staticmethod
    def forward(ctx: Any, gates: Tensor, weight: Tensor, bias: Tensor, running: list[int]) -> Tensor:
        d = weight.shape[2]
        states, candidate, inner = (gates.new_empty(*gates.shape[:2], d) for _ in range(3))
        switches = gates.new_empty(*gates.shape[:2], 2 * d)  # reset and update
        views = (gates[:, :, : 2 * d], gates[:, :, 2 * d :], switches, *switches.chunk(2, 2), candidate, inner, states)
        h, bias, w = gates.new_zeros(len(gates), max(running, default=0), d), bias[:, None], weight.transpose(1, 2)
        for into_switch, into_new, switch, reset, update, new, own_new, state in _by_step(views, running):
            own_switch, own = torch.split(torch.baddbmm(bias, h[:, : state.shape[1]], w), [2 * d, d], 2)
            own_new.copy_(own)
            torch.add(into_switch, own_switch, out=switch).sigmoid_()
            torch.addcmul(into_new, reset, own, out=new).tanh_()
            h = torch.lerp(new, h[:, : state.shape[1]], update, out=state)
        ctx.running = running
        ctx.save_for_backward(weight, states, candidate, inner, switches)
        return states

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        weight, states, candidate, inner, switches = ctx.saved_tensors
        reset, update = switches.chunk(2, 2)
        # The state before each token: that of the same window a step earlier, or zeros.
        first = states.new_zeros(len(states), max(ctx.running, default=0), states.shape[2])
        steps = _by_step((states,), ctx.running)[:-1]
        before = torch.cat([first, *(h[:, :n] for (h,), n in zip(steps, ctx.running[1:], strict=True))], 1)
        # How much each gate changes the state; only the gradient of the state is missing.
        by_candidate = (1 - update) * (1 - candidate * candidate)
        by_reset = by_candidate * inner * reset * (1 - reset)
        by_update = (before - candidate) * update * (1 - update)
        by_own = torch.stack([by_reset, by_update, by_candidate * reset], 2)  # (M, N, 3, d)
        total, d_own = grad.clone(), torch.empty_like(by_own)
        later = grad[:, :0]
        for d_state, by, d_gate, kept in reversed(_by_step((total, by_own, d_own, update), ctx.running)):
            d_state[:, : later.shape[1]] += later
            torch.mul(d_state[:, :, None], by, out=d_gate)
            later = torch.baddbmm(d_state * kept, d_gate.flatten(2), weight)
        d_gates = torch.cat([d_own[:, :, :2].flatten(2), total * by_candidate], 2)
        d_own = d_own.flatten(2)  # (M, N, 3d)
        return d_gates, torch.bmm(d_own.transpose(1, 2), before), d_own.sum(1), None


def _by_step(tensors: Sequence[Tensor], running: list[int]) -> list[tuple[Tensor, ...]]:
    """Return views of each (M, N, ...) at every step."""
    return list(zip(*(torch.split(t, running, 1) for t in tensors), strict=True)) if running else []
