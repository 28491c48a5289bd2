"""Choose the released venue of every row: by the method in sessions, by the candidate rule outside them."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Checkins, Floats, Ints, by_user_and_time
from ghostpoi.data.places import of_table
from ghostpoi.draw import walks
from ghostpoi.draw.methods import AnyMethod, FreeDraw
from ghostpoi.draw.publication import Publication
from ghostpoi.draw.task import WALK_UNITS, Checkpoint, Task
from ghostpoi.draw.walks import Substitution, Trails, walk
from ghostpoi.draw.whole_table import WholeTable
from ghostpoi.errors import InputError
from ghostpoi.options import option
from ghostpoi.progress import Report, Say, no_report
from ghostpoi.randomness import Seed
from ghostpoi.settings import Rounds, SpeedSettings

if TYPE_CHECKING:
    import torch

    from ghostpoi.models.transformer import CausalTransformer


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
    from ghostpoi.draw.model_rounds import run

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
    return walks.walk(
        trails, np.zeros(n, np.int32), seed.generator("round", settings.rounds.outer).random(n), settings.speed,
        keep_clean=not settings.method.own_sets, progress=lambda done: report(label, WALK_UNITS * done / n),
    )  # fmt: skip


def release(whole: WholeTable, method: AnyMethod, released: Ints, seed: Seed, speed: SpeedSettings) -> Substitution:
    """Release a venue for every row of `released` (N,) that is 0, as the method does it outside sessions."""
    table = whole.table
    if not isinstance(method, FreeDraw):
        return draw(table, whole.venue_sets, released, seed, speed, keep_clean=not method.own_sets)
    out, rows = released.copy(), np.flatnonzero(released == 0)
    out[rows] = method.release_outside(of_table(table), table.venue[rows], seed)
    return Substitution(out, np.zeros(len(out), bool))


def draw(
    table: Checkins, sets: Candidates, released: Ints, seed: Seed, speed: SpeedSettings, *, keep_clean: bool = True
) -> Substitution:
    """Draw a venue for every row of `released` (N,) that is 0."""
    return draw_with(table, sets, released, seed.generator("outside").random(len(table)), speed, keep_clean=keep_clean)


def draw_with(
    table: Checkins, sets: Candidates, released: Ints, uniform: Floats, speed: SpeedSettings, *, keep_clean: bool
) -> Substitution:
    """Draw a venue for every row of `released` (N,) that is 0; `uniform` (N,) is all the randomness."""
    order = by_user_and_time(table.user, table.time)  # (N,) rows
    venues = table.venues
    trails = Trails(table.user[order], table.time[order], table.venue[order], venues.lat, venues.lon, sets)
    found = walk(trails, released[order], uniform[order], speed, keep_clean=keep_clean)
    out, emptied = np.empty_like(found.poi), np.empty_like(found.mask_emptied)
    out[order], emptied[order] = found.poi, found.mask_emptied
    return Substitution(out, emptied)


LM_UNITS = 1.0  # cost of an epoch of the trajectory LM, in epochs of the surrogate


def protect_table(
    whole: WholeTable, settings: Publication, seed: Seed, device: "torch.device | None", *, cache: Path | None = None,
    checkpoint: Checkpoint | None = None, say: Say = lambda text: None, report: Report = no_report,
) -> Substitution:  # fmt: skip
    """Choose a venue for every row. The cache folder, if given, keeps the trajectory LM for later runs.

    `device` is None for a method that needs no torch; see `device_for`.
    """
    table, data, method = whole.table, whole.data, settings.method
    released, in_sessions = np.zeros(len(table), np.int32), None
    if len(data.all):
        lm = _trajectory_lm(whole, settings, device, cache, say, report) if method.needs_trajectory_lm else None
        task = Task(settings, data.all, data.vocabulary, whole.session_sets, lm)
        in_sessions = publish(task, seed, device, checkpoint, report)
        released[data.all.row] = data.vocabulary.venue[in_sessions.poi]
    report("drawing the rows outside sessions", 0)
    result = release(whole, method, released, seed, settings.speed)
    if in_sessions is not None:
        result.mask_emptied[data.all.row] = in_sessions.mask_emptied
    return result


def _trajectory_lm(
    whole: WholeTable, settings: Publication, device: "torch.device | None", cache: Path | None,
    say: Say, report: Report,
) -> "CausalTransformer":  # fmt: skip
    from ghostpoi.models import trajectory_lm

    if device is None:
        raise ValueError("the trajectory LM needs a device")
    data, rows, label = whole.data, len(whole.data.vocabulary), "training the trajectory LM"
    report(label, 0)

    def progress(epoch: int, loss: float, validation: object) -> None:
        if not math.isfinite(loss):
            raise InputError(
                f"the trajectory LM's training diverged; lower {option('set', 'lm_training.learning_rate=1e-3')}"
            )
        report(label, LM_UNITS)

    if cache is None:
        key = trajectory_lm.cache_key(data.all, rows, settings.trajectory_lm)
        seed = Seed(int(key[:32], 16))
        return trajectory_lm.pretrain(data.all, rows, settings.trajectory_lm, seed, device, progress=progress)
    return trajectory_lm.load_or_train(
        cache, data.all, rows, settings.trajectory_lm, device, say=say, progress=progress
    )
