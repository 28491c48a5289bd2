"""What an interrupted run of rounds goes on from. Importing it does not import torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ghostpoi.progress import Say

if TYPE_CHECKING:
    from torch import Tensor
    from torch.optim import Optimizer

    from ghostpoi.models.transformer import CausalTransformer


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
