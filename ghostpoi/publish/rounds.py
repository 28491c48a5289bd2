"""The publisher's loop: warm up the surrogate, then substitute and refit, round by round.

The surrogate and its optimizer continue from round to round. Each round chooses afresh from C(p_i) of the clean anchor,
on the prefix of its own choices. The last round needs no refit: no release would use it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Ints
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.errors import InputError
from ghostpoi.models import fit, tensor_file
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.models.windows import next_poi
from ghostpoi.progress import BEFORE, Report, Say, no_report
from ghostpoi.publish.methods import KEEP, Method
from ghostpoi.publish.position import Position
from ghostpoi.publish.protocols import Publication
from ghostpoi.publish.substitution import Substitution
from ghostpoi.publish.walk import Walker
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Rounds, SpeedSettings, Training


@dataclass(frozen=True)
class Task:
    """All that decides what is released, but for the seed."""

    sessions: Sessions
    vocabulary: Vocabulary
    candidates: Candidates
    method: Method
    rounds: Rounds
    speed: SpeedSettings
    surrogate: ModelSettings
    training: Training
    trajectory_lm: CausalTransformer | None

    @staticmethod
    def of(
        settings: Publication, sessions: Sessions, vocabulary: Vocabulary, candidates: Candidates,
        trajectory_lm: CausalTransformer | None = None,
    ) -> "Task":  # fmt: skip
        """The task of publishing these sessions under these settings."""
        s = settings
        return Task(
            sessions, vocabulary, candidates, s.method, s.rounds, s.speed, s.surrogate, s.training, trajectory_lm
        )


class BrokenMethod(Exception):
    """A method proposed a venue that it may not release: a bug in the method."""


def publish(
    task: Task,
    seed: Seed,
    device: torch.device,
    checkpoint: "Checkpoint | None" = None,
    report: Report = no_report,
) -> Substitution:
    """Run all rounds. With a checkpoint, continue after the last round stored there."""
    rounds, method = task.rounds, task.method
    if not method.needs_surrogate:  # rounds learn nothing from each other, and only the last one is released
        report("substituting", 0)
        return substitute(task, None, seed, rounds.outer, device, report)
    surrogate = CausalTransformer(len(task.vocabulary), task.surrogate, seed.torch_seed("surrogate")).to(device)
    optimizer = fit.adamw(surrogate, task.training)
    done = (
        checkpoint.load(surrogate, optimizer) if checkpoint else None
    )  # the last round whose refit the weights include
    if done is None:
        _refit(task, surrogate, optimizer, task.sessions.poi, seed, 0, "warming up", report)
        done = 0
        if checkpoint:
            checkpoint.store(surrogate, optimizer, done)
    else:
        report(BEFORE, (done + 1) * rounds.inner + done * WALK_UNITS)
    substituter = Substituter(task, surrogate, device, again=rounds.outer - done > 1)
    while True:
        number = done + 1
        result = substituter.round(seed, number, report)
        if number == rounds.outer:
            return result
        _refit(task, surrogate, optimizer, result.poi, seed, number, f"refitting after round {number}", report)
        done = number
        if checkpoint:
            checkpoint.store(surrogate, optimizer, done)


WALK_UNITS = 3.0  # a round of scoring takes about as long as this many epochs; only for estimates of the time left


def units(method: Method, rounds: Rounds) -> float:
    """The whole work of a run, in epochs."""
    return rounds.outer * (WALK_UNITS + rounds.inner) if method.needs_surrogate else WALK_UNITS


def substitute(
    task: Task, surrogate: CausalTransformer | None, seed: Seed, number: int, device: torch.device, report: Report
) -> Substitution:
    """Run a single round."""
    return Substituter(task, surrogate, device, again=False).round(seed, number, report)


class Substituter:
    """Runs rounds: the method proposes, this class enforces membership in C(p) and the speed mask."""

    def __init__(self, task: Task, surrogate: CausalTransformer | None, device: torch.device, again: bool) -> None:
        self.task = task
        # A captured CUDA walk needs the random numbers and the fault flags of all rounds in the same place.
        self.uniform = torch.zeros(task.sessions.positions, dtype=torch.float64, device=device)
        self.broken = torch.zeros(
            task.sessions.positions, dtype=torch.bool, device=device
        )  # one flag per position: threads share none
        lm = task.trajectory_lm if task.method.needs_trajectory_lm else None
        self.walker = Walker(
            task.sessions, task.candidates, task.vocabulary, task.speed, (surrogate, lm),
            _enforced(task.method, self.uniform, self.broken), device, precision=task.rounds.precision, again=again,
        )  # fmt: skip

    def round(self, seed: Seed, number: int, report: Report) -> Substitution:
        """Run one round with the surrogate in its present state."""
        n, label = self.task.sessions.positions, f"substituting, round {number}"
        self.uniform.copy_(torch.from_numpy(seed.generator("round", number).random(n)))
        self.broken.zero_()
        result = self.walker.run(lambda done: report(label, WALK_UNITS * done / n))
        if self.broken.any():
            raise BrokenMethod(f"{self.task.method!r} proposed a POI outside the candidate set or the speed mask")
        return result


def _enforced(method: Method, uniform: Tensor, broken: Tensor) -> Callable[[Position], Tensor]:
    def choose(position: Position) -> Tensor:
        proposed = method.choose(position, uniform[position.index])
        keep, column = proposed == KEEP, proposed.clamp(0, position.candidates.shape[1] - 1)
        fine = (proposed == column) & position.feasible.gather(1, column[:, None]).squeeze(1)
        if method.may_keep:
            fine = fine | (keep & position.anchor_feasible)
        broken.index_copy_(0, position.index, position.feasible.any(1) & ~fine)
        return torch.where(keep, position.anchor, position.candidates.gather(1, column[:, None]).squeeze(1))

    return choose


def _refit(
    task: Task, surrogate: CausalTransformer, optimizer: torch.optim.Optimizer, poi: Ints,
    seed: Seed, number: int, label: str, report: Report,
) -> None:  # fmt: skip
    s = task.sessions
    pairs = next_poi(Sessions(s.user, s.start, poi, s.time, s.row), task.surrogate.max_positions)
    for e in range(task.rounds.inner):
        report(label, 0)
        loss = fit.epoch(surrogate, optimizer, pairs, task.training, seed, ("refit", number), e)
        if not math.isfinite(loss):
            raise InputError("the surrogate's training diverged; lower --set training.learning_rate=1e-3")
        report(label, 1)


@dataclass(frozen=True)
class Checkpoint:
    """The surrogate, its optimizer and the number of finished rounds, stored after every round."""

    path: Path
    key: str  # of the data, the settings and the seed: a checkpoint of another run is refused
    say: Say

    def store(self, surrogate: CausalTransformer, optimizer: torch.optim.Optimizer, done: int) -> None:
        tensors = {f"model.{name}": weight for name, weight in surrogate.state_dict().items()}
        for number, state in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{number}.{name}": value for name, value in state.items()}
        tensor_file.write(self.path, tensors, {"key": self.key, "done": done})

    def load(self, surrogate: CausalTransformer, optimizer: torch.optim.Optimizer) -> int | None:
        """Restore weights and optimizer; return the number of finished rounds, None if there is nothing to resume."""
        try:
            tensors, note = tensor_file.read(self.path, surrogate.device)
        except FileNotFoundError:
            return None
        except tensor_file.Damaged as e:
            self.say(f"the checkpoint {self.path} is damaged ({e}); starting again from the first round")
            return None
        if note.get("key") != self.key:
            self.say(
                f"the checkpoint {self.path} belongs to other data or settings; starting again from the first round"
            )
            return None
        surrogate.load_state_dict({name: tensors[f"model.{name}"] for name in surrogate.state_dict()})
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            if name.startswith("optimizer."):
                _, number, field = name.split(".", 2)
                state.setdefault(int(number), {})[field] = value
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
        return int(str(note["done"]))
