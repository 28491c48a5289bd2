"""Studies start their processes side by side, and hand them data that no pipe holds."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ghostpoi.study.workers import Portion, prepared

PATIENCE_S = 600  # a process that starts alone fails the test; one that starts late on a busy machine does not


@dataclass
class Greeter:
    """A maker that comes to life in a process when it has seen that another process is there, too."""

    folder: Path

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        (self.folder / f"process {os.getpid()}").touch()
        end = time.monotonic() + PATIENCE_S
        while len([*self.folder.glob("process*")]) < 2:
            if time.monotonic() > end:
                return (self.folder / "alone").touch()
            time.sleep(0.01)

    def published(self, method: str, seed: int) -> None:
        (self.folder / f"{method} {seed}").touch()


@dataclass
class Heavy(Greeter):
    """It carries more data than a pipe holds."""

    data: bytes = bytes(1 << 20)


def test_processes_start_side_by_side(tmp_path: Path) -> None:
    asked = Portion(0, [0], [("pgd", 0), ("random", 0)], [])
    assert list(prepared([Greeter(tmp_path), Heavy(tmp_path)], iter([asked]), 2)) == [asked]  # type: ignore[list-item]
    found = sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith("process"))
    assert found == ["pgd 0", "random 0"]
