"""A victim that knows who is asking: habits differ, and a release keeps each user's check-ins together."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ghostpoi.attack.victims.base import Exam, Job, Result
from ghostpoi.attack.victims.lines import Lines
from ghostpoi.attack.victims.stack import Stack, look_up, repeated
from ghostpoi.attack.victims.steps import Seen
from ghostpoi.attack.victims.together import train_stacks
from ghostpoi.attack.victims.transformer import initial, other_settings
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.settings import ModelSettings


@dataclass(frozen=True)
class User:
    """Somebody trains the Transformer with an embedding of the user, added to that of every POI.

    It starts from nothing, so that a user who is not in the training sessions is read as nobody in particular.
    """

    dropout: float = 0.5  # clean NYC validation acc@1 .262, with .2 and .6 it is .256

    def train(self, jobs: Sequence[Job], exam: Exam, protocol: str) -> list[Result]:
        """One result per job, in their order."""
        everyone = [exam.validation, exam.test, *(job.train for job in jobs)]
        users = 1 + max(int(sessions.user.max(initial=0)) for sessions in everyone)

        def build(some: Sequence[Job], model: ModelSettings) -> UserStack:
            return UserStack.start(initial(exam.rows, model, some[0].seed).to(exam.device), len(some), users)

        return train_stacks(jobs, exam, *other_settings(protocol, dropout=self.dropout), build)


class UserStack(Stack):
    """With one more table of weights: `user`, (M, U, d)."""

    @staticmethod
    def start(model: CausalTransformer, victims: int, users: int) -> "UserStack":
        weights = dict(model.named_parameters()) | {"user": torch.zeros(users, model.settings.dim, device=model.device)}
        return UserStack(repeated(weights, victims), model.rows, model.settings, "float32")

    def embed(self, seen: Seen, lines: Lines) -> Tensor:
        return super().embed(seen, lines) + look_up(self.weights["user"], seen.user)
