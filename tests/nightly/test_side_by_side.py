"""What worker processes compute side by side is what one process computes."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ring_model import ROWS, SEED, ring_walks
from round_city import CLEAN, POIS, run, text

from ghostpoi.attack.victims import base as victims_base
from ghostpoi.attack.victims.base import Exam, Job
from ghostpoi.attack.victims.neural import Transformer
from ghostpoi.audits import choose as choosing
from ghostpoi.audits.cache import Cache
from ghostpoi.audits.choose import Asked, Wishes, choose
from ghostpoi.data import prepared
from ghostpoi.data.synthetic_files import write_city
from ghostpoi.draw.publication import publication
from ghostpoi.formats import Source
from ghostpoi.release.private_folder import RowsRequest
from ghostpoi.settings import ModelSettings, Training, override
from ghostpoi.study import plan, prepare_file
from ghostpoi.study import run as study_run

CPU = torch.device("cpu")


def test_victims_of_an_audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, release = tmp_path / "clean.csv", tmp_path / "release.csv"
    file.write_text(text(CLEAN))
    release.write_text(text([(u, (p + 5) % POIS, t) for u, p, t in CLEAN]))
    one = run(file, release, adversaries=("none",))
    monkeypatch.setattr(victims_base, "WORTHWHILE", 0)
    torch.set_num_threads(2)
    two = run(file, release, adversaries=("none",), cache=tmp_path / "other")
    assert two["clean"] == one["clean"]
    assert two["controls"] == one["controls"]


def test_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    victim = Transformer(ModelSettings(16, 2, 2, 24, 10, 0.0), Training(batch_sessions=8, learning_rate=0.01, epochs=2))
    jobs = [Job(f"victim {m}", ring_walks([3, 12, 5, 2, 7, 4, 25, 1, 3, 9] * 4, m), SEED) for m in range(3)]
    heard: list[float] = []
    exam = Exam(ring_walks([5, 14, 3] * 8, 7), ring_walks([6, 2, 22] * 4, 8), ROWS, CPU)
    exam = replace(exam, progress=lambda label, n: heard.append(n))
    torch.set_num_threads(2)
    alone = dict(victims_base.train_each(victim, jobs, exam, "strong"))
    monkeypatch.setattr(victims_base, "WORTHWHILE", 0)
    parallel = dict(victims_base.train_each(victim, jobs, exam, "strong"))
    for n in range(len(jobs)):
        a, b = alone[n], parallel[n]
        assert (a.name, a.validation, a.epochs) == (b.name, pytest.approx(b.validation), b.epochs)
        assert np.array_equal(a.ranks, b.ranks)
    assert sum(heard) == pytest.approx(2 * len(jobs))


def test_trials_of_choose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_city(tmp_path / "city.txt", 150, 400, 60, 5)

    def found(name: str) -> Any:
        wishes, settings = Wishes(keep_category="exact"), override(publication("crowd"), ["filters.min_poi_checkins=5"])
        rows = RowsRequest(settings=settings, method="crowd", protocol="strong", device=None, mapping={})
        asked = Asked(rows=rows, wishes=wishes, seeds=1, cache=Cache(tmp_path / name))
        return choose(Source(tmp_path / "city.txt"), asked, None, None, lambda text: None, lambda label, units: None)

    alone = found("alone")
    monkeypatch.setattr(choosing, "WORTHWHILE", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    opened, pool = list[int](), choosing.process_pool

    def counted(workers: int) -> Any:
        opened.append(workers)
        return pool(workers)

    monkeypatch.setattr(choosing, "process_pool", counted)
    assert found("workers") == alone
    assert set(opened) == {2}


def test_cells_of_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = ModelSettings(dim=16, heads=2, tied=True), Training(epochs=1)
    for module in (study_run, victims_base):
        monkeypatch.setattr(module, "victim_settings", lambda protocol: small)
    write_city(tmp_path / "city.csv", 40, 80, 40, 0)
    prepared.save(tmp_path / "city.npz", prepare_file(tmp_path / "city.csv"))
    lm = "lm.dim=16 lm.heads=2 lm_training.epochs=1"
    (tmp_path / "tiny.toml").write_text(
        f'title = "tiny"\nmethods = ["crowd {lm}"]\nadversaries = ["none", "frequency"]\nleak = [0.1]\nseeds = 2\n'
    )

    def cells(results: str, workers: int) -> list[Any]:
        study, data = plan.load(str(tmp_path / "tiny.toml")), prepared.load(tmp_path / "city.npz")
        runner = study_run.Runner(study, "paper", data, CPU, tmp_path / results, lambda text: None)
        if workers > 1:
            runner.run(victims=False, workers=workers)
            work = tmp_path / results / ".work"
            assert len(list((work / "releases").iterdir())) == 4
            assert len(list((work / "restorations").iterdir())) == 2 * 2 * 3  # with leak-mixed
        return [_without_clocks(json.loads(line)) for line in runner.run().read_text().splitlines()]

    assert cells("workers", 2) == cells("alone", 1)


def _without_clocks(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_clocks(v) for k, v in value.items() if not k.endswith("seconds")}
    return value
