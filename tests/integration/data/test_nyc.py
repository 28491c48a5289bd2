"""The paper's counts on the New York data."""

from pathlib import Path
from typing import Any

import pytest
from summaries import summarise

from ghostpoi import formats
from ghostpoi.data.checkins import Checkins
from ghostpoi.settings import CandidateSettings, Settings


@pytest.fixture(scope="module")
def table(nyc: Path) -> Checkins:
    return formats.read(nyc).table


@pytest.fixture(scope="module")
def summary(table: Checkins) -> dict[str, Any]:
    return summarise(table, Settings())


def test_counts(summary: dict[str, Any]) -> None:
    assert [summary[name] for name in ("checkins", "users", "pois", "categories")] == [227_428, 1_083, 38_333, 400]
    assert summary["after_filters"] == {"checkins": 147_938, "users": 1_083, "pois": 5_135}
    assert summary["sessions"] == {"train": 10_958, "val": 937, "test": 2_359}
    assert summary["positions"]["train"] == 84_881
    assert summary["time"] == {"first": "2012-04-03T18:00:09Z", "last": "2013-02-16T02:35:36Z"}


def test_candidates(summary: dict[str, Any]) -> None:
    sets = summary["candidates"]
    assert sets["coverage"] == pytest.approx(0.860, abs=0.002)
    assert sets["mean_size"] == pytest.approx(7.3, abs=0.05)
    assert (sets["min_candidates"], sets["category_field"]) == (6, "category_id")


def test_fewer_candidates_where_widening_stops_earlier(table: Checkins) -> None:
    sets = summarise(table, Settings(candidates=CandidateSettings(min_candidates=4)))["candidates"]
    assert sets["mean_size"] == pytest.approx(6.15, abs=0.05)
    assert sets["coverage"] == pytest.approx(0.860, abs=0.002)


def test_by_name_of_the_category_more_is_covered(nyc: Path) -> None:
    table = formats.read(nyc, {"category": "category"}).table
    assert len(table.category_ids) == 251
    assert summarise(table, Settings())["candidates"]["coverage"] == pytest.approx(0.90, abs=0.01)
