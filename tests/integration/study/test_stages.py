"""Stages have versions: a changed output asks for a new version, and moved code keeps every stored cell."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from stage_outputs import RECORDED, Stage, here, problem, stages

from ghostpoi.attack import evidence
from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.adversaries.lookups import Frequency
from ghostpoi.attack.victims import VICTIMS
from ghostpoi.draw.methods import METHODS
from ghostpoi.study import plan
from ghostpoi.study.cells import is_current, missing_cells
from ghostpoi.study.plan import PROTOCOLS, STUDIES
from ghostpoi.study.results import GOWALLA, NYC, TOKYO
from ghostpoi.study.store import Cell, Store

RESULTS = ROOT / "results"
STALE = """
from pathlib import Path
from ghostpoi.study.cells import is_current
from ghostpoi.study.store import Store
import ghostpoi
print(ghostpoi.__file__)
cells = [cell for protocol in ("strong", "paper") for cell in Store(Path(RESULTS), protocol).cells()]
print(len(cells), sum(not is_current(cell) for cell in cells))
"""


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text())
    return found


def cells() -> list[Cell]:
    return [cell for protocol in PROTOCOLS for cell in Store(RESULTS, protocol).cells()]


@pytest.mark.parametrize(("name", "stage"), stages().items(), ids=stages())
def test_an_output_changes_with_the_version(name: str, stage: Stage, recorded: dict[str, Any]) -> None:
    if stage.models and any(recorded[key] != value for key, value in here().items()):
        pytest.skip(f"recorded with torch {recorded['torch']} on {recorded['cpu']}; other kernels round differently")
    assert (said := problem(name, stage, recorded)) is None, said


def test_every_stage_of_a_stored_cell_is_recorded(recorded: dict[str, Any]) -> None:
    named = {name for cell in cells() for name in cell["stages"]}
    plugins = {f"{kind}/{name}" for kind, family in FAMILIES.items() for name in family}
    assert named | plugins <= recorded["stages"].keys()


FAMILIES = {"method": METHODS.builtin, "adversary": ADVERSARIES.builtin, "victim": VICTIMS.builtin}


def test_a_stage_that_returns_something_else_is_told_to_raise_its_version(
    recorded: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "adversary/frequency"
    assert problem(name, stages()[name], recorded) is None
    monkeypatch.setattr(Frequency, "restore_and_measure", lambda self, known, seed, device: (known.released.poi, {}))
    said = problem(name, stages()[name], recorded)
    assert said == (
        "the output of adversary/frequency changed: raise its version, or of evidence if the change lies there, "
        "and run python tests/support/stage_outputs.py"
    )
    monkeypatch.setattr(Frequency, "version", 2)
    assert "no output of version 2 of adversary/frequency is recorded" in str(problem(name, stages()[name], recorded))
    stale = [cell for cell in cells() if not is_current(cell)]
    assert {cell["adversary"] for cell in stale} == {"frequency"}  # and these are measured again


def test_a_renamed_module_keeps_every_stored_cell(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "ghostpoi", tmp_path / "ghostpoi", ignore=shutil.ignore_patterns("__pycache__"))
    old = evidence.__name__
    new = old.rpartition(".")[0] + ".what_is_known"
    path = tmp_path / Path(*old.split(".")).with_suffix(".py")
    path.rename(path.with_stem("what_is_known"))
    changed = 0
    for file in (tmp_path / "ghostpoi").rglob("*.py"):
        text = file.read_text("utf-8")
        changed += old in text
        file.write_text(text.replace(old, new), "utf-8")
    assert changed > 10
    done = subprocess.run(
        [sys.executable, "-c", STALE.replace("RESULTS", repr(str(RESULTS)))], capture_output=True, text=True,
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(tmp_path)}, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(tmp_path / "ghostpoi" / "__init__.py"), str(len(cells())), "0"]


def test_every_stored_cell_has_the_settings_of_today_and_one_content_per_city() -> None:
    for protocol in PROTOCOLS:
        for cell in Store(RESULTS, protocol).cells():
            wanted = "" if cell["method"] == "clean" else plan.Variant(cell["method"]).settings_hash(protocol)
            assert cell["settings"] == wanted, (cell["study"], cell["method"])
    assert len({(cell["data"], cell["content"]) for cell in cells()}) == len({cell["data"] for cell in cells()}) == 3


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("study", STUDIES)
def test_nothing_of_the_reproduction_is_left_to_measure(study: str, protocol: str) -> None:
    stored = Store(RESULTS, protocol).cells(study)
    for city in (NYC, GOWALLA, *([TOKYO] if (study, protocol) == ("main", "strong") else [])):
        content = next(cell["content"] for cell in stored if cell["data"] == city)
        assert missing_cells(plan.load(study).on(city), protocol, city, content, stored) == []
        assert missing_cells(plan.load(study).on(city), protocol, city, "other data", stored)
