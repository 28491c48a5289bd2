"""Choose the released venue of every row: by the method in sessions, by the candidate rule outside them."""

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ghostpoi.data.checkins import Ints
from ghostpoi.data.places import of_table
from ghostpoi.draw import walks
from ghostpoi.draw.methods import AnyMethod, FreeDraw
from ghostpoi.draw.noise import ByContent, ByPosition, Noise
from ghostpoi.draw.publication import WALK_UNITS, Checkpoint, Publication, Task
from ghostpoi.draw.walks import Substitution, Trails, walk
from ghostpoi.draw.whole_table import WholeTable, venue_order
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
    report: Report = no_report, noise: Noise | None = None,
) -> Substitution:  # fmt: skip
    """Run all rounds. With a checkpoint, continue after the last round stored there.

    `noise` decides all draws; without it, they go by position.
    """
    method, noise = task.settings.method, noise or ByPosition(seed, task.sessions.positions)
    if isinstance(method, FreeDraw):
        return _draw_freely(task, method, noise, report)
    if not method.needs_torch:
        return _draw_by_weight(task, noise, report)
    from ghostpoi.draw.model_walk import run

    if device is None:
        raise ValueError(f"{method!r} needs a device for its models")
    return run(task, seed, device, checkpoint, report, noise)


def units(method: AnyMethod, rounds: Rounds) -> float:
    """The whole work of a run, in epochs."""
    return rounds.outer * (WALK_UNITS + rounds.inner) if method.needs_surrogate else WALK_UNITS


def _draw_freely(task: Task, method: FreeDraw, noise: Noise, report: Report) -> Substitution:
    report("substituting", 0)
    poi = method.release(task.sessions, task.vocabulary, task.trajectory_lm, noise)
    report("substituting", WALK_UNITS)
    shown = task.candidates.shown_for(task.vocabulary.lat, task.vocabulary.lon)
    return Substitution(shown[poi], np.zeros(len(poi), bool))


def _draw_by_weight(task: Task, noise: Noise, report: Report) -> Substitution:
    """Draw once: rounds learn nothing from each other, and only the last one is released."""
    settings, sessions, n = task.settings, task.sessions, task.sessions.positions
    label = f"substituting, round {settings.rounds.outer}"
    report(label, 0)
    trails = Trails(
        np.repeat(np.arange(len(sessions)), sessions.length), sessions.time, sessions.poi,
        task.vocabulary.lat, task.vocabulary.lon, task.candidates,
    )  # fmt: skip
    return walks.walk(
        trails, np.zeros(n, np.int32), noise.uniform("round", settings.rounds.outer), settings.speed,
        keep_clean=not settings.method.own_sets, progress=lambda done: report(label, WALK_UNITS * done / n),
    )  # fmt: skip


def release(
    whole: WholeTable, method: AnyMethod, released: Ints, noise: ByContent, speed: SpeedSettings
) -> Substitution:
    """Release a venue for every row of `released` (N,) that is 0, as the method does it outside sessions."""
    if not isinstance(method, FreeDraw):
        return draw(whole, released, noise, speed, keep_clean=not method.own_sets)
    out, rows = released.copy(), whole.order.leading
    rows, venues = rows[released[rows] == 0], venue_order(whole.table.venue_ids)
    anchor = np.argsort(venues)[whole.table.venue[rows]].astype(np.int32)
    places = of_table(whole.table)
    places = replace(places, visits=np.where(whole.hidden, 0, places.visits)).take(venues)
    shown = replace(whole.venue_sets, hidden=whole.hidden[venues]).shown_for(places.lat, places.lon)
    out[rows] = venues[shown[method.release_outside(places, anchor, noise.take(rows))]]
    return _for_all(whole, released, Substitution(out, np.zeros(len(out), bool)))


def draw(
    whole: WholeTable, released: Ints, noise: ByContent, speed: SpeedSettings, *, keep_clean: bool
) -> Substitution:
    """Draw a venue for every row of `released` (N,) that is 0, by the weights of its set."""
    row = whole.order.leading
    found = walk(whole.trails, released[row], noise.take(row).uniform("outside"), speed, keep_clean=keep_clean)
    out, emptied = released.copy(), np.zeros(len(released), bool)
    out[row], emptied[row] = found.poi, found.mask_emptied
    return _for_all(whole, released, Substitution(out, emptied))


def _for_all(whole: WholeTable, decided: Ints, found: Substitution) -> Substitution:
    """Let rows that take another row's release follow it, but for those that were decided before."""
    every = found.take(whole.order.first)
    return replace(every, poi=np.where(decided > 0, decided, every.poi))


LM_UNITS = 1.0  # cost of an epoch of the trajectory LM, in epochs of the surrogate


def protect_table(
    whole: WholeTable, settings: Publication, seed: Seed, device: "torch.device | None", *, cache: Path | None = None,
    checkpoint: Checkpoint | None = None, say: Say = lambda text: None, report: Report = no_report,
) -> Substitution:  # fmt: skip
    """Choose a venue for every row. The cache folder, if given, keeps the trajectory LM for later runs.

    `device` is None for a method that needs no torch; see `device_for`.
    """
    method, sessions, noise = settings.method, whole.drawn_sessions, whole.noise(seed)
    released, emptied = np.zeros(len(whole.table), np.int32), np.zeros(len(whole.table), bool)
    if len(sessions):
        lm = _trajectory_lm(whole, settings, device, cache, say, report) if method.needs_trajectory_lm else None
        task = Task(settings, sessions, whole.data.vocabulary, whole.session_sets, lm)
        found = publish(task, seed, device, checkpoint, report, noise.take(sessions.row))
        released[sessions.row] = whole.data.vocabulary.venue[found.poi]
        emptied[sessions.row] = found.mask_emptied
    report("drawing the rows outside sessions", 0)
    result = release(whole, method, released, noise, settings.speed)
    return replace(result, mask_emptied=result.mask_emptied | emptied[whole.order.first])


def _trajectory_lm(
    whole: WholeTable, settings: Publication, device: "torch.device | None", cache: Path | None,
    say: Say, report: Report,
) -> "CausalTransformer":  # fmt: skip
    from ghostpoi.models import trajectory_lm

    if device is None:
        raise ValueError("the trajectory LM needs a device")
    data, rows, label = whole.data, len(whole.data.vocabulary), "training the trajectory LM"
    report(label, 0)

    def progress(loss: float) -> None:
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
