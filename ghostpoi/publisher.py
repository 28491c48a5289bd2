"""The publisher's loop: warm up the surrogate, then substitute and refit, round by round.

The surrogate and its optimizer go on from round to round. Each round chooses afresh from C(p_i) of the clean anchor, on
the prefix of its own choices. What the last refit would learn no release ever sees, so it is left out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ghostpoi import fit, settings, vault
from ghostpoi.candidates import Candidates
from ghostpoi.checkins import Ints
from ghostpoi.methods import KEEP, Method
from ghostpoi.model import CausalTransformer, ModelSettings
from ghostpoi.position import Position, walk
from ghostpoi.randomness import Seed
from ghostpoi.sessions import Sessions, Vocabulary
from ghostpoi.settings import Section, setting

Report = Callable[[str, float], None]  # what is being done, and how many units of work were just done


@dataclass(frozen=True)
class Rounds(Section):
    """How often the publisher substitutes and refits."""

    outer: int = setting(5, "rounds of substitution (T_outer)", 1)
    inner: int = setting(5, "epochs of warm-up, and of refitting between two rounds (E_inner)", 0)
    precision: Literal["float32", "bfloat16"] = setting("float32", "type of matrix products in scoring")


@dataclass(frozen=True)
class Task:
    """All that decides what is released, but for the seed."""

    sessions: Sessions
    vocabulary: Vocabulary
    candidates: Candidates
    method: Method
    rounds: Rounds
    speed: settings.Speed
    surrogate: ModelSettings
    training: fit.Training
    trajectory_lm: CausalTransformer | None


@dataclass(frozen=True)
class Substitution:
    """What a round released."""

    poi: Ints  # (N,) in the order of Sessions
    forced: NDArray[np.bool_]  # (N,) the speed mask left nothing of a set that was not empty


class Broken(Exception):
    """A method proposed what it may not: a bug in the method."""


def publish(
    task: Task,
    seed: Seed,
    device: torch.device,
    checkpoint: "Checkpoint | None" = None,
    report: Report = lambda label, units: None,
) -> Substitution:
    """Run all rounds. With a checkpoint, go on after the last round that was stored there."""
    rounds, method = task.rounds, task.method
    if not method.needs_surrogate:  # then no round learns anything from another, and only the last is released
        report("substituting", 0)
        return substitute(task, None, seed, rounds.outer, device, report)
    surrogate = CausalTransformer(len(task.vocabulary), task.surrogate, seed.torch_seed("surrogate")).to(device)
    optimizer = fit.adamw(surrogate, task.training)
    done = checkpoint.load(surrogate, optimizer) if checkpoint else None  # the last round whose refit is in the weights
    if done is None:
        _refit(task, surrogate, optimizer, task.sessions.poi, seed, 0, "warming up", report)
        done = 0
        if checkpoint:
            checkpoint.store(surrogate, optimizer, done)
    else:
        report("resuming", (done + 1) * rounds.inner + done * WALK_UNITS)
    while True:
        number = done + 1
        result = substitute(task, surrogate, seed, number, device, report)
        if number == rounds.outer:
            return result
        _refit(task, surrogate, optimizer, result.poi, seed, number, f"refitting after round {number}", report)
        done = number
        if checkpoint:
            checkpoint.store(surrogate, optimizer, done)


WALK_UNITS = 3.0  # a round of scoring takes about as long as this many epochs; for estimates of the time left only


def units(method: Method, rounds: Rounds) -> float:
    """The whole work, in epochs."""
    return rounds.outer * (WALK_UNITS + rounds.inner) if method.needs_surrogate else WALK_UNITS


def substitute(
    task: Task, surrogate: CausalTransformer | None, seed: Seed, number: int, device: torch.device, report: Report
) -> Substitution:
    """One round: the method proposes, this enforces membership in C(p) and the speed mask."""
    n = task.sessions.positions
    uniform = torch.from_numpy(seed.generator("round", number).random(n)).to(device)
    broken = torch.zeros((), dtype=torch.bool, device=device)

    def choose(position: Position) -> Tensor:
        column = task.method.choose(position, uniform[position.index])
        keep = column == KEEP
        column = column.clamp(min=0)
        fine = position.feasible.gather(1, column[:, None]).squeeze(1)
        if task.method.may_keep:
            fine = fine | (keep & position.anchor_feasible)
        broken.logical_or_((position.feasible.any(1) & ~fine).any())
        return torch.where(keep, position.anchor, position.candidates.gather(1, column[:, None]).squeeze(1))

    label = f"substituting, round {number}"
    lm = task.trajectory_lm if task.method.needs_trajectory_lm else None
    result = walk(
        task.sessions, task.candidates, task.vocabulary, task.speed, surrogate, lm, choose, device,
        precision=task.rounds.precision, progress=lambda done: report(label, WALK_UNITS * done / n),
    )  # fmt: skip
    if broken:
        raise Broken(f"{task.method!r} proposed a POI outside the candidate set or the speed mask")
    return Substitution(result.poi, result.forced)


def _refit(
    task: Task, surrogate: CausalTransformer, optimizer: torch.optim.Optimizer, poi: Ints,
    seed: Seed, number: int, label: str, report: Report,
) -> None:  # fmt: skip
    s = task.sessions
    pairs = fit.next_poi(Sessions(s.user, s.start, poi, s.time, s.row), task.surrogate.max_positions)
    for e in range(task.rounds.inner):
        report(label, 0)
        fit.epoch(surrogate, optimizer, pairs, task.training, seed, ("refit", number), e)
        report(label, 1)


@dataclass(frozen=True)
class Checkpoint:
    """The surrogate, its optimizer and the number of rounds done, on disk after every round."""

    path: Path
    key: str  # of the data, the settings and the seed: a checkpoint of another run is not taken
    say: Callable[[str], None]

    def store(self, surrogate: CausalTransformer, optimizer: torch.optim.Optimizer, done: int) -> None:
        tensors = {f"model.{name}": weight for name, weight in surrogate.state_dict().items()}
        for number, state in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{number}.{name}": value for name, value in state.items()}
        vault.write(self.path, _untied(tensors), {"key": self.key, "done": done})

    def load(self, surrogate: CausalTransformer, optimizer: torch.optim.Optimizer) -> int | None:
        """The rounds done, with weights and optimizer as they were; None if there is nothing to go on from."""
        try:
            tensors, note = vault.read(self.path, surrogate.device)
        except FileNotFoundError:
            return None
        except vault.Damaged as e:
            self.say(f"the checkpoint {self.path} is damaged ({e}); starting again from the first round")
            return None
        if note["key"] != self.key:
            self.say(f"the checkpoint {self.path} is of other data or settings; starting again from the first round")
            return None
        names = [name for name, _ in surrogate.state_dict().items()]
        surrogate.load_state_dict({n: tensors[f"model.{n}"] for n in names if f"model.{n}" in tensors}, strict=False)
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            if name.startswith("optimizer."):
                _, number, field = name.split(".", 2)
                state.setdefault(int(number), {})[field] = value
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
        return int(str(note["done"]))


def _untied(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """A tied output is the embedding under a second name: stored once."""
    seen: set[int] = set()
    return {n: t for n, t in tensors.items() if not (t.data_ptr() in seen or seen.add(t.data_ptr()))}  # type: ignore[func-returns-value]
