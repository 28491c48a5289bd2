"""A victim that knows who is asking: habits differ, and a release keeps each user's check-ins together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ghostpoi.model import CausalTransformer
from ghostpoi.sessions import Sessions, Vocabulary
from ghostpoi.victims.base import Job, Progress, Result
from ghostpoi.victims.lines import Lines
from ghostpoi.victims.stack import Stack, look_up, repeated
from ghostpoi.victims.steps import Seen
from ghostpoi.victims.together import train_stacks
from ghostpoi.victims.transformer import initial, victim_settings


@dataclass(frozen=True)
class User:
    """Somebody trains the Transformer with an embedding of the user, added to that of every POI.

    It starts from nothing, so that a user who is not in the training sessions is read as nobody in particular.
    """

    dropout: float = 0.5  # clean NYC validation acc@1 .262, with .2 and .6 it is .256

    def train(
        self,
        jobs: Sequence[Job],
        validation: Sessions,
        test: Sessions,
        rows: int,
        protocol: str,
        device: torch.device,
        progress: Progress | None = None,
        vocabulary: Vocabulary | None = None,
    ) -> list[Result]:
        """One result per job, in their order."""
        model, training = victim_settings(protocol)
        model = replace(model, dropout=self.dropout)
        everyone = [validation, test, *(job.train for job in jobs)]
        users = 1 + max(int(sessions.user.max(initial=0)) for sessions in everyone)

        def build(some: Sequence[Job]) -> UserStack:
            return UserStack.start(initial(rows, model, some[0].seed).to(device), len(some), users)

        return train_stacks(jobs, validation, test, rows, model, training, device, build, progress)


class UserStack(Stack):
    """With one more table of weights: `user`, (M, U, d)."""

    @staticmethod
    def start(model: CausalTransformer, victims: int, users: int) -> "UserStack":
        weights = dict(model.named_parameters()) | {"user": torch.zeros(users, model.settings.dim, device=model.device)}
        return UserStack(repeated(weights, victims), model.rows, model.settings, "float32")

    def embed(self, seen: Seen, lines: Lines) -> Tensor:
        return super().embed(seen, lines) + look_up(self.weights["user"], seen.user)
