"""What `choose` promised of its recommendation on NYC, compared with an audit: the promise was kept."""

import json

import pytest

from docs import rerun_choose as rerun

FOUND = json.loads(rerun.RESULTS.read_text("utf-8"))


def test_the_promise_was_kept_within_the_spread() -> None:
    promised, audited = FOUND["promised"], FOUND["audited"]
    assert audited["adversaries"] >= promised["adversaries"]  # the release keeps a column, which A13 uses
    assert audited["worst"]["mean"] <= promised["worst"]["mean"] + promised["worst"]["std"] + audited["worst"]["std"]
    assert audited["mean_km"] == pytest.approx(promised["mean_km"], rel=0.02)
    assert audited["flows"] == pytest.approx(promised["flows"], abs=0.01)
    assert audited["popularity"] == pytest.approx(promised["popularity"], abs=0.005)
    assert audited["left_genuine"] <= promised["left_genuine"] + 0.001


def test_a_table_by_hand() -> None:
    worst = {"mean": 0.1, "std": 0.012, "seeds": []}
    one = {"adversaries": 12, "strongest": "distilled", "worst": worst, "mean_km": 0.5, "flows": 0.6}
    one |= {"popularity": 0.02, "left_genuine": 0.0}
    accuracy = {"none": {"mean": 0.05, "std": 0.01}, "habits": {"mean": 0.06, "std": 0.02}, "distilled": worst}
    found = {"promised": one, "audited": one | {"adversaries": 14, "left_genuine": 0.011}, "accuracy": accuracy}
    lines = rerun.table(found | {"controls": {"stay": {"mean": 0.07}}}).splitlines()
    assert lines[0] == " | promised | audited"
    assert lines[2] == "adversaries | 12 | 14"
    assert lines[3] == "worst case, acc@1 | 0.100 ± 0.012 (distilled) | 0.100 ± 0.012 (distilled)"
    assert lines[-3:-1] == ["worst case without a leak |  | 0.060 ± 0.020 (habits)", "floor: stay |  | 0.070"]
    assert lines[-1] == "rows left genuine | 0.0% | 1.1%"
