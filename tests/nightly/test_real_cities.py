"""Real check-ins: what is stated of learned sets in New York, and the estimate of a run in a sparse city."""

import json
from pathlib import Path

import pytest
from conftest import real_data
from small_city import SEED, SETS, called, protect

from docs import rerun_facts
from ghostpoi import formats
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.prepared import Prepared
from ghostpoi.data.sessions import build
from ghostpoi.settings import CandidateSettings, FilterSettings
from ghostpoi.study.results import NYC


def test_learned_sets_agree_with_hidden_categories_as_stated(nyc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = build(formats.read(nyc).table, FilterSettings())
    monkeypatch.setattr(rerun_facts, "THRESHOLDS", (0.55, 0.6))
    found = rerun_facts.learned_facts(
        Prepared(data.vocabulary, data.train, data.val, data.test, Candidates.anywhere(1), NYC)
    )
    assert rerun_facts.threshold_for(found) == CandidateSettings().plausibility
    assert found["0.6"]["near_precision"] == pytest.approx(0.096, abs=0.001)
    stated = json.loads(rerun_facts.RESULTS.read_text("utf-8"))[NYC]["learned"]
    for threshold, facts in found.items():
        for key in ("near_precision", "visits_none", "draws_same_category"):
            assert facts[key] == pytest.approx(stated[threshold][key])


def test_a_sparse_city_keeps_more_than_its_candidates_suggest(tmp_path: Path) -> None:
    """Real check-ins with small crowds: about nine rows in ten have one, and far fewer show another venue."""
    file = real_data("gowalla_california.csv.xz")
    small = ("--set", "method.size=4", "--set", "method.reach_km=2")
    guess = json.loads(called("protect", file, "-o", tmp_path / "r", *SETS, *small, "--dry-run", "--json").stdout)
    done = protect(file, tmp_path / "r", "--seed", SEED, *small)
    shares = done.manifest["rows"]
    assert 1 - guess["left_genuine"] > guess["substitution_rate"] + 0.1
    assert guess["substitution_rate"] == pytest.approx(done.manifest["plausibility"]["substitution_rate"], abs=0.02)
    assert guess["drawn_own"] == pytest.approx(shares["drawn_own"]["share"], abs=0.02)
