"""Every cell of the reproduction: all studies of the paper, on every data set, under both protocols."""

from collections.abc import Sequence
from pathlib import Path

import torch

from ghostpoi.data.prepared import Prepared
from ghostpoi.progress import Say
from ghostpoi.study import plan
from ghostpoi.study.results import PROTOCOLS
from ghostpoi.study.run import Runner, run_all

STUDIES = ("main", "leak", "rounds", "weights", "entropy", "manifold")  # of the paper's tables and figures


def reproduce(data: Sequence[Prepared], device: torch.device, results: Path, workers: int, say: Say) -> list[Path]:
    """Measure all missing cells and return their files. Says after every seed what is left and how long it takes."""
    runners = [
        Runner(plan.load(study), protocol, one, device, results, say)
        for study in STUDIES for protocol in PROTOCOLS for one in data
    ]  # fmt: skip
    return list(dict.fromkeys(run_all(runners, workers=workers)))
