"""The publisher's loop: warm up the surrogate, then substitute and refit, round by round.

The surrogate and its optimizer continue from round to round. Each round chooses afresh from C(p_i) of the clean anchor,
on the prefix of its own choices. The last round needs no refit: no release would use it.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Ints
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.errors import InputError
from ghostpoi.models import fit, tensor_file
from ghostpoi.models.training_windows import next_poi
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.progress import BEFORE, Report, Say, no_report
from ghostpoi.publish.methods import KEEP, AnyMethod, FreeDraw, Method
from ghostpoi.publish.publication_settings import Publication
from ghostpoi.publish.scored_position import Position
from ghostpoi.publish.session_walk import Walker
from ghostpoi.publish.substitution import Substitution
from ghostpoi.randomness import Seed
from ghostpoi.settings import Rounds

WALK_UNITS = 3.0  # a round of scoring takes about as long as this many epochs; only for estimates of the time left


@dataclass(frozen=True)
class Task:
    """All that decides what is released, but for the seed."""

    settings: Publication
    sessions: Sessions
    vocabulary: Vocabulary
    candidates: Candidates
    trajectory_lm: CausalTransformer | None = None


class BrokenMethod(Exception):
    """A method proposed a venue that it may not release: a bug in the method."""


def publish(
    task: Task, seed: Seed, device: torch.device, checkpoint: "Checkpoint | None" = None, report: Report = no_report
) -> Substitution:
    """Run all rounds. With a checkpoint, continue after the last round stored there."""
    settings, rounds = task.settings, task.settings.rounds
    if not settings.method.needs_surrogate:  # rounds learn nothing from each other, and only the last one is released
        report("substituting", 0)
        return Substituter(task, None, device).round(seed, rounds.outer, report)
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
        refit(substituter.round(seed, number, report).poi, number)
    return substituter.round(seed, rounds.outer, report)


def units(method: AnyMethod, rounds: Rounds) -> float:
    """The whole work of a run, in epochs."""
    return rounds.outer * (WALK_UNITS + rounds.inner) if method.needs_surrogate else WALK_UNITS


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
            return
        choose = partial(_choose, settings.method, self.uniform, self.broken)
        self.walker = Walker(
            task.sessions, task.candidates, task.vocabulary, settings.speed, (surrogate, lm), choose, device,
            settings.rounds.precision, again, keep_clean=not settings.method.own_sets,
            predicts=settings.method.needs_likelihood,
        )  # fmt: skip

    def round(self, seed: Seed, number: int, report: Report) -> Substitution:
        """Run one round with the surrogate in its present state. A method that draws freely runs by itself."""
        n, label = self.task.sessions.positions, f"substituting, round {number}"
        if isinstance(method := self.task.settings.method, FreeDraw):
            poi = method.release(self.task.sessions, self.task.vocabulary, self.task.trajectory_lm, seed)
            report(label, WALK_UNITS)
            return Substitution(poi, np.zeros(n, bool))
        self.uniform.copy_(torch.from_numpy(seed.generator("round", number).random(n)))
        self.broken.zero_()
        result = self.walker.run(lambda done: report(label, WALK_UNITS * done / n))
        if self.broken.any():
            raise BrokenMethod(f"{method!r} proposed a POI outside the candidate set or the speed mask")
        return result


def _choose(method: Method, uniform: Tensor, broken: Tensor, position: Position) -> Tensor:
    """Return what the method proposes, (B,), and flag what it may not propose."""
    proposed = method.choose(position, uniform[position.index])
    keep, column = proposed == KEEP, proposed.clamp(0, position.candidates.shape[1] - 1)
    fine = (proposed == column) & position.feasible.gather(1, column[:, None]).squeeze(1)
    if method.may_keep:
        fine = fine | (keep & position.anchor_feasible)
    broken.index_copy_(0, position.index, position.feasible.any(1) & ~fine)
    return torch.where(keep, position.anchor, position.candidates.gather(1, column[:, None]).squeeze(1))


def _refit(
    task: Task, surrogate: CausalTransformer, optimizer: Optimizer, poi: Ints, seed: Seed, number: int, report: Report
) -> None:
    """Train the surrogate on the release of a round; round 0 is the clean data."""
    s, label = task.settings, f"refitting after round {number}" if number else "warming up"
    pairs = next_poi(replace(task.sessions, poi=poi), s.surrogate.max_positions)
    for e in range(s.rounds.inner):
        report(label, 0)
        loss = fit.epoch(surrogate, optimizer, pairs, s.training, seed, ("refit", number), e)
        if not math.isfinite(loss):
            raise InputError("the surrogate's training diverged; lower --set training.learning_rate=1e-3")
        report(label, 1)


@dataclass(frozen=True)
class Checkpoint:
    """The surrogate, its optimizer and the number of finished rounds, stored after every round."""

    path: Path
    key: str  # of the data, the settings and the seed: a checkpoint of another run is refused
    say: Say

    def store(self, surrogate: CausalTransformer, optimizer: Optimizer, done: int) -> None:
        tensors = {f"model.{name}": weight for name, weight in surrogate.state_dict().items()}
        for number, state in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{number}.{name}": value for name, value in state.items()}
        tensor_file.write(self.path, tensors, {"key": self.key, "done": done})

    def load(self, surrogate: CausalTransformer, optimizer: Optimizer) -> int | None:
        """Restore weights and optimizer; return the number of finished rounds, None if there is nothing to resume."""
        try:
            tensors, note = tensor_file.read(self.path, surrogate.device)
            problem = None if note.get("key") == self.key else "belongs to other data or settings"
        except FileNotFoundError:
            return None
        except tensor_file.Damaged as e:
            problem = f"is damaged ({e})"
        if problem:
            self.say(f"the checkpoint {self.path} {problem}; starting again from the first round")
            return None
        surrogate.load_state_dict({name: tensors[f"model.{name}"] for name in surrogate.state_dict()})
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            if name.startswith("optimizer."):
                _, number, field = name.split(".", 2)
                state.setdefault(int(number), {})[field] = value
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
        return int(str(note["done"]))
