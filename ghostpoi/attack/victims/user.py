"""A victim that knows the user: habits differ, and a release keeps each user's check-ins together."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ghostpoi.attack.victims.base import Exam, Job
from ghostpoi.attack.victims.batches import USER, PackedRows
from ghostpoi.attack.victims.stacked_model import StackedModel, initial_transformer, look_up
from ghostpoi.attack.victims.stacked_victim import StackedVictim
from ghostpoi.settings import ModelSettings, Training


class UserModel(StackedModel):
    """Adds one table of weights: `user`, (M, U, d)."""

    def embed(self, inputs: Tensor, rows: PackedRows) -> Tensor:
        return super().embed(inputs, rows) + look_up(self.weights["user"], inputs[USER])


@dataclass(frozen=True)
class User(StackedVictim):
    """Adds an embedding of the user to that of every POI; it stays zero for a user without training sessions."""

    label = "User embedding"
    summary = "The Transformer with an embedding of each user."
    dropout: float = 0.5  # clean NYC validation acc@1 .262, with .2 and .6 it is .256

    def start(self, jobs: Sequence[Job], exam: Exam, model: ModelSettings, training: Training) -> StackedModel:
        everyone = [exam.validation, exam.test, *(job.train for job in jobs)]
        users = 1 + max(int(sessions.user.max(initial=0)) for sessions in everyone)
        initial = initial_transformer(exam.rows, model, jobs[0].seed).to(exam.device)
        return UserModel.of(initial, len(jobs), more={"user": torch.zeros(users, model.dim)})
