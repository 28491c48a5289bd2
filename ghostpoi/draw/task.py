"""What is asked of the publisher in sessions, and what an interrupted run of rounds goes on from, without torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.draw.publication import Publication
from ghostpoi.progress import Say

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Optimizer

    from ghostpoi.models.transformer import CausalTransformer


WALK_UNITS = 3.0  # a round of scoring takes about as long as this many epochs; only for estimates of the time left


@dataclass(frozen=True)
class Task:
    """All that decides what is released, but for the seed."""

    settings: Publication
    sessions: Sessions
    vocabulary: Vocabulary
    candidates: Candidates
    trajectory_lm: "CausalTransformer | None" = None


@dataclass(frozen=True)
class Checkpoint:
    """The surrogate, its optimizer and the number of finished rounds, stored after every round."""

    path: Path
    key: str  # of the data, the settings and the seed: a checkpoint of another run is refused
    say: Say

    def store(self, surrogate: "CausalTransformer", optimizer: "Optimizer", done: int) -> None:
        from ghostpoi.models import trajectory_lm

        tensors = {f"model.{name}": weight for name, weight in surrogate.state_dict().items()}
        for number, state in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{number}.{name}": value for name, value in state.items()}
        trajectory_lm.write_tensors(self.path, tensors, {"key": self.key, "done": done})

    def load(self, surrogate: "CausalTransformer", optimizer: "Optimizer") -> int | None:
        """Restore weights and optimizer; return the number of finished rounds, None if there is nothing to resume."""
        from ghostpoi.models import trajectory_lm

        try:
            tensors, note = trajectory_lm.read_tensors(self.path, surrogate.device)
            problem = None if note.get("key") == self.key else "belongs to other data or settings"
        except FileNotFoundError:
            return None
        except trajectory_lm.Damaged as e:
            problem = f"is damaged ({e})"
        if problem:
            self.say(f"the checkpoint {self.path} {problem}; starting again from the first round")
            return None
        surrogate.load_state_dict({name: tensors[f"model.{name}"] for name in surrogate.state_dict()})
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            if name.startswith("optimizer."):
                _, number, field = name.split(".", 2)
                state.setdefault(int(number), {})[field] = value
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
        return int(str(note["done"]))
