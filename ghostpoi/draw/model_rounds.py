"""The publisher's loop with models: warm up the surrogate, then substitute and refit, round by round.

The surrogate and its optimizer continue from round to round. Each round chooses afresh from C(p_i) of the clean anchor,
on the prefix of its own choices. The last round needs no refit: no release would use it.
"""

import math
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor
from torch.optim import Optimizer

from ghostpoi.data.checkins import Ints
from ghostpoi.draw.methods import KEEP, Method
from ghostpoi.draw.model_walk import Walker
from ghostpoi.draw.noise import ByPosition, Noise
from ghostpoi.draw.publication import WALK_UNITS, Checkpoint, Task
from ghostpoi.draw.scoring import Position
from ghostpoi.draw.walks import Substitution
from ghostpoi.errors import InputError
from ghostpoi.models import fit
from ghostpoi.models.training_windows import next_poi
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.options import option
from ghostpoi.progress import BEFORE, Report, no_report
from ghostpoi.randomness import Seed


class BrokenMethod(Exception):
    """A method proposed a venue that it may not release: a bug in the method."""


def run(
    task: Task, seed: Seed, device: torch.device, checkpoint: Checkpoint | None = None, report: Report = no_report,
    noise: Noise | None = None,
) -> Substitution:  # fmt: skip
    """Run all rounds. With a checkpoint, continue after the last round stored there."""
    noise = noise or ByPosition(seed, task.sessions.positions)
    settings, rounds = task.settings, task.settings.rounds
    if not settings.method.needs_surrogate:  # rounds learn nothing from each other, and only the last one is released
        report("substituting", 0)
        return Substituter(task, None, device).round(noise, rounds.outer, report)
    surrogate = CausalTransformer(len(task.vocabulary), settings.surrogate, seed.torch_seed("surrogate")).to(device)
    optimizer = fit.adamw(surrogate, settings.training)

    def refit(poi: Ints, number: int) -> None:
        _refit(task, surrogate, optimizer, poi, seed, number, report)
        if checkpoint:
            checkpoint.store(surrogate, optimizer, number)

    done = checkpoint.load(surrogate, optimizer) if checkpoint else None  # the last round that the weights have seen
    if done is None:
        done = 0
        refit(task.sessions.poi, done)
    else:
        report(BEFORE, (done + 1) * rounds.inner + done * WALK_UNITS)
    substituter = Substituter(task, surrogate, device, again=rounds.outer - done > 1)
    for number in range(done + 1, rounds.outer):
        refit(substituter.round(noise, number, report).poi, number)
    return substituter.round(noise, rounds.outer, report)


class Substituter:
    """Runs rounds: the method proposes, this class enforces membership in C(p) and the speed mask."""

    def __init__(
        self, task: Task, surrogate: CausalTransformer | None, device: torch.device, again: bool = False
    ) -> None:
        self.task, settings, n = task, task.settings, task.sessions.positions
        # A captured CUDA walk needs the random numbers and the fault flags of all rounds in the same place.
        self.uniform = torch.zeros(n, dtype=torch.float64, device=device)
        self.broken = torch.zeros(n, dtype=torch.bool, device=device)  # one flag per position: threads share none
        lm = task.trajectory_lm if settings.method.needs_trajectory_lm else None
        if not isinstance(settings.method, Method):
            raise TypeError(f"{settings.method!r} chooses no candidates; `rounds.publish` runs it")
        choose = partial(_choose, settings.method, self.uniform, self.broken)
        self.walker = Walker(
            task.sessions, task.candidates, task.vocabulary, settings.speed, (surrogate, lm), choose, device,
            settings.rounds.precision, again, keep_clean=not settings.method.own_sets,
            predicts=settings.method.needs_likelihood,
        )  # fmt: skip

    def round(self, noise: Noise, number: int, report: Report) -> Substitution:
        """Run one round with the surrogate in its present state."""
        n, label = self.task.sessions.positions, f"substituting, round {number}"
        self.uniform.copy_(torch.from_numpy(noise.uniform("round", number)))
        self.broken.zero_()
        result = self.walker.run(lambda done: report(label, WALK_UNITS * done / n))
        if self.broken.any():
            raise BrokenMethod(
                f"{self.task.settings.method!r} proposed a venue outside the candidate set or the speed mask"
            )
        return result


def _choose(method: Method, uniform: Tensor, broken: Tensor, position: Position) -> Tensor:
    """Return what the method proposes, (B,), and flag what it may not propose."""
    proposed = method.choose(position, uniform[position.index])
    column = proposed.clamp(0, position.candidates.shape[1] - 1)
    fine = position.feasible.gather(1, column[:, None]).squeeze(1) & (proposed == column)
    chosen = position.candidates.gather(1, column[:, None]).squeeze(1)
    if method.may_keep:
        keep = proposed == KEEP
        fine = fine | (keep & position.anchor_feasible)
        chosen = torch.where(keep, position.anchor, chosen)
    broken.index_copy_(0, position.index, position.feasible.any(1) > fine)  # there is a choice, and this is none
    return chosen


def _refit(
    task: Task, surrogate: CausalTransformer, optimizer: Optimizer, poi: Ints, seed: Seed, number: int, report: Report
) -> None:
    """Train the surrogate on the release of a round; round 0 is the clean data."""
    s, label = task.settings, f"refitting after round {number}" if number else "warming up"
    pairs = next_poi(replace(task.sessions, poi=poi), s.surrogate.max_positions)
    report(label, 0)
    for loss in fit.epochs(surrogate, optimizer, pairs, s.training, seed, ("refit", number), range(s.rounds.inner)):
        if not math.isfinite(loss):
            raise InputError(f"the surrogate's training diverged; lower {option('set', 'training.learning_rate=1e-3')}")
        report(label, 1)
