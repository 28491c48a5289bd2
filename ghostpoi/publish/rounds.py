"""Choose the released POI of every position in sessions. Only methods that need torch import it."""

from typing import TYPE_CHECKING

import numpy as np

from ghostpoi.progress import Report, no_report
from ghostpoi.publish import weighted_walk
from ghostpoi.publish.checkpoint import Checkpoint
from ghostpoi.publish.methods import AnyMethod, FreeDraw
from ghostpoi.publish.substitution import Substitution
from ghostpoi.publish.task import WALK_UNITS, Task
from ghostpoi.publish.trails import Trails
from ghostpoi.randomness import Seed
from ghostpoi.settings import Rounds

if TYPE_CHECKING:
    import torch

DRAW_VERSION = 1  # raised whenever the same input gives other draws


def publish(
    task: Task, seed: Seed, device: "torch.device | None", checkpoint: Checkpoint | None = None,
    report: Report = no_report,
) -> Substitution:  # fmt: skip
    """Run all rounds. With a checkpoint, continue after the last round stored there."""
    method = task.settings.method
    if isinstance(method, FreeDraw):
        return _draw_freely(task, method, seed, report)
    if not method.needs_torch:
        return _draw_by_weight(task, seed, report)
    from ghostpoi.publish.model_rounds import run

    if device is None:
        raise ValueError(f"{method!r} needs a device for its models")
    return run(task, seed, device, checkpoint, report)


def units(method: AnyMethod, rounds: Rounds) -> float:
    """The whole work of a run, in epochs."""
    return rounds.outer * (WALK_UNITS + rounds.inner) if method.needs_surrogate else WALK_UNITS


def _draw_freely(task: Task, method: FreeDraw, seed: Seed, report: Report) -> Substitution:
    report("substituting", 0)
    poi = method.release(task.sessions, task.vocabulary, task.trajectory_lm, seed)
    report("substituting", WALK_UNITS)
    return Substitution(poi, np.zeros(len(poi), bool))


def _draw_by_weight(task: Task, seed: Seed, report: Report) -> Substitution:
    """Draw once: rounds learn nothing from each other, and only the last one is released."""
    settings, sessions, n = task.settings, task.sessions, task.sessions.positions
    label = f"substituting, round {settings.rounds.outer}"
    report(label, 0)
    trails = Trails(
        np.repeat(np.arange(len(sessions)), sessions.length), sessions.time, sessions.poi,
        task.vocabulary.lat, task.vocabulary.lon, task.candidates,
    )  # fmt: skip
    return weighted_walk.walk(
        trails, np.zeros(n, np.int32), seed.generator("round", settings.rounds.outer).random(n), settings.speed,
        keep_clean=not settings.method.own_sets, progress=lambda done: report(label, WALK_UNITS * done / n),
    )  # fmt: skip
