"""A new adversary is one small class and one line in a dict: then audit, report, study, help and docs know it."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import small_city
from docs_scripts import script
from small_city import called

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Ints, Seed

QUICK = [
    "--victim",
    "transformer",
    "--set",
    "filters.val_share=0.2",
    "--set",
    "filters.train_share=0.6",
    "--set",
    "training.epochs=1",
    "--set",
    "victim.dim=16",
    "--set",
    "victim.heads=2",
    "--no-naturalness",
]


@dataclass(frozen=True)
class Neighbour(Adversary):
    """It shifts every released POI by one, so its recovered share is easy to predict."""

    number = 99
    title = "next number"
    holds = "the release alone"
    does = "adds one to every released venue's number"
    uses_leak = False

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        return (evidence.released.poi % (evidence.rows - 1) + 1).astype(np.int32)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ADVERSARIES.builtin, "neighbour", Neighbour())


def test_audit_and_report_know_it(tmp_path: Path) -> None:
    made = small_city.protect(small_city.city(), tmp_path / "release", "--method", "random", "--seed", small_city.SEED)
    words = ("audit", made.file, made.folder, "--adversaries", "neighbour", "--seeds", 1, *QUICK)
    done = called(*words, "--json", "--report")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["adversaries"]) == {"none", "neighbour"}
    assert found["adversaries"]["neighbour"]["restored"]["mean"] < 0.05
    assert "A99 next number" in called(*words).stdout
    page = (made.folder / "report.html").read_text()
    assert "A99 next number" in page
    assert "A99" in (made.folder / "card.md").read_text()


def test_studies_and_tables_know_it(tmp_path: Path) -> None:
    study, results, data = tmp_path / "mine.toml", tmp_path / "results", tmp_path / "city.npz"
    study.write_text('methods = ["random"]\nadversaries = ["none", "neighbour"]\nseeds = 1\nvictims = ["markov"]\n')
    assert called("prepare", small_city.city(), "-o", data, "--set", "filters.min_poi_checkins=5").returncode == 0
    done = called("study", "run", study, "--data", data, "--results", results, "--device", "cpu", "--tables")
    assert done.returncode == 0, done.stderr
    assert "A99 next number" in done.stdout
    cells = [json.loads(line) for line in (results / "mine-strong.jsonl").read_text().splitlines()]
    assert {cell.get("adversary") for cell in cells} >= {"neighbour", "none", "leak-only", "leak-mixed", "clean"}


def test_help_and_docs_know_it() -> None:
    assert "A99 next number: adds one to every released venue's number" in called("plugins").stdout
    page = script("generate_reference").plugins()
    assert "|A99|`neighbour`|the release alone|adds one to every released venue's number||" in page


def test_an_adversary_that_restores_nothing_is_refused() -> None:
    with pytest.raises(TypeError, match="Idle must implement restore or restore_and_measure"):
        type("Idle", (Adversary,), {"number": 98, "title": "idle", "holds": "nothing", "does": "nothing"})
