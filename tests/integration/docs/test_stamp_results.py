"""Cells of an older run are measured again, compared and stamped; a study then has nothing left to measure."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from docs_scripts import script

from ghostpoi.data import prepared
from ghostpoi.data.synthetic_files import write_city
from ghostpoi.study import plan, prepare_file, run

LM = "lm.dim=16 lm.heads=2 lm_training.epochs=1"
STUDY = f"""
methods = ["random {LM}"]
adversaries = ["none", "frequency"]
victims = ["markov"]
seeds = 2
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with prepared data and the results of a study under both protocols, as they were before stages."""
    monkeypatch.setattr(plan, "FOLDER", tmp_path)
    (tmp_path / "tiny.toml").write_text(STUDY)
    write_city(tmp_path / "city.csv", 40, 80, 40, 0)
    prepared.save(tmp_path / "city.npz", prepare_file(tmp_path / "city.csv"))
    for runner in runners(tmp_path):
        file = runner.run()
        old = [{key: v for key, v in cell.items() if key not in ("stages", "content")} for cell in cells_of(file)]
        file.write_text("".join(f"{json.dumps(cell | {'fingerprint': '0'})}\n" for cell in old))
    return tmp_path


def runners(folder: Path) -> list[run.Runner]:
    data, cpu = prepared.load(folder / "city.npz"), torch.device("cpu")
    return [run.Runner(plan.load("tiny"), p, data, cpu, folder / "results", print) for p in ("strong", "paper")]


def cells_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def called(step: str, folder: Path, *more: object) -> int:
    words = [step, folder / "city.npz", "--results", folder / "results", "--into", folder / "again", *more]
    stamp: ModuleType = script("stamp_results")
    code: int = stamp.main([str(word) for word in words])
    return code


def test_cells_that_agree_are_stamped(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sum(runner.left() for runner in runners(folder)) > 0
    assert called("measure", folder, "--cells", 8, "--seeds", 2, "--device", "cpu") == 0
    assert called("compare", folder, "-o", folder / "agreement.json") == 0
    assert "8 of 8 cells agree; hardware: CPU" in capsys.readouterr().out
    found = json.loads((folder / "agreement.json").read_text())
    assert all(one["identical"] == one["numbers"] and one["headlines"] for one in found)
    assert called("stamp", folder) == 0
    assert sum(runner.left() for runner in runners(folder)) == 0
    assert not any("fingerprint" in cell for file in (folder / "results").glob("*.jsonl") for cell in cells_of(file))


def test_a_cell_that_differs_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "results" / "tiny-paper.jsonl"
    cells = cells_of(file)
    for cell in cells:
        if cell["kind"] == "accuracy":
            cell["measures"]["all"]["acc@1"] = [0.9, 0.91]
    file.write_text("".join(f"{json.dumps(cell)}\n" for cell in cells))
    called("measure", folder, "--cells", 100, "--device", "cpu")
    assert called("compare", folder) == 1
    told = capsys.readouterr().out
    assert "DIFFERS tiny, paper, accuracy city clean clean markov" in told
    assert "agrees  tiny, strong, accuracy city clean clean markov" in told


def test_cells_that_no_plan_asks_for_are_dropped(folder: Path) -> None:
    file = folder / "results" / "tiny-paper.jsonl"
    cells = cells_of(file)
    old = next(cell for cell in cells if cell["kind"] == "release")
    with file.open("a") as out:
        out.write(json.dumps(old | {"settings": "other"}) + "\n")
    called("stamp", folder)
    assert len(cells_of(file)) == len(cells)
