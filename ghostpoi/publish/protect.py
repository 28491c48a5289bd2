"""Choose the released venue of every row: by the method in sessions, by the candidate rule outside them."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ghostpoi.errors import InputError
from ghostpoi.options import option
from ghostpoi.progress import Report, Say, no_report
from ghostpoi.publish import rows_outside_sessions
from ghostpoi.publish.checkpoint import Checkpoint
from ghostpoi.publish.publication_settings import Publication
from ghostpoi.publish.rounds import publish
from ghostpoi.publish.substitution import Substitution
from ghostpoi.publish.task import Task
from ghostpoi.publish.whole_table import WholeTable
from ghostpoi.randomness import Seed

if TYPE_CHECKING:
    import torch

    from ghostpoi.models.transformer import CausalTransformer

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
    result = rows_outside_sessions.release(whole, method, released, seed, settings.speed)
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
