"""A victim that knows the user: habits differ, and a release keeps each user's check-ins together."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ghostpoi.attack.victims.base import Exam, Job
from ghostpoi.attack.victims.stacked_model import USER, PackedRows, StackedModel, look_up
from ghostpoi.attack.victims.stacked_training import StackedVictim


class UserModel(StackedModel):
    """Adds one table of weights: `user`, (M, U, d)."""

    def initial(self, jobs: Sequence[Job], exam: Exam) -> dict[str, Tensor]:
        everyone = [exam.validation, exam.test, *(job.train for job in jobs)]
        users = 1 + max(int(sessions.user.max(initial=0)) for sessions in everyone)
        return super().initial(jobs, exam) | {"user": torch.zeros(users, self.settings.dim)}

    def embed(self, inputs: Tensor, rows: PackedRows) -> Tensor:
        return super().embed(inputs, rows) + look_up(self.weights["user"], inputs[USER])


@dataclass(frozen=True)
class User(StackedVictim):
    """Adds an embedding of the user to that of every POI; it stays zero for a user without training sessions."""

    label = "User embedding"
    summary = "The Transformer with an embedding of each user."
    model_type = UserModel
    dropout: float = 0.5  # clean NYC validation acc@1 .262, with .2 and .6 it is .256
