"""Every cell of the reproduction: all studies of the paper, on every data set, under both protocols."""

import time
from collections.abc import Sequence
from pathlib import Path

import torch

from ghostpoi.data.prepared import Prepared
from ghostpoi.progress import Say
from ghostpoi.study import plan
from ghostpoi.study.results import PROTOCOLS
from ghostpoi.study.run import Runner

STUDIES = ("main", "leak", "rounds", "weights", "entropy", "manifold")  # of the paper's tables and figures


def reproduce(data: Sequence[Prepared], device: torch.device, results: Path, workers: int, say: Say) -> list[Path]:
    """Measure all missing cells and return their files. Each study says what is left and about how long it takes."""
    runners = [
        Runner(plan.load(study), protocol, one, device, results, say)
        for study in STUDIES for protocol in PROTOCOLS for one in data
    ]  # fmt: skip
    left, begin, done, files = [runner.left() for runner in runners], time.perf_counter(), 0, list[Path]()
    for number, runner in enumerate(runners):
        now = runner.left()  # fewer than at first, where studies share cells
        rest = now + sum(left[number + 1 :])
        estimate = f", about {(time.perf_counter() - begin) / done * rest / 60:.0f} minutes" if done else ""
        say(f"{runner.title}: {now:,} of {rest:,} measurements left{estimate}")
        files.append(runner.run(workers=workers))
        done += now
    return list(dict.fromkeys(files))
