"""The summary of `inspect`, for a table that is small enough to check by hand."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import checkins
from rich.console import Console
from small_city import called, sentence
from summaries import summarise

from ghostpoi.cli.output import inspection
from ghostpoi.draw.methods import METHODS
from ghostpoi.draw.publication import publication
from ghostpoi.draw.whole_table import count_sets, described_sets
from ghostpoi.settings import CandidateSettings, FilterSettings, Settings

DAY = 86_400
KM = 1 / 111.195  # degrees of latitude in a kilometre
# Two cafes 1.2 km apart, a park far away. Five days of a with three check-ins each, one day of b.
CAFE, BAR, PARK = ("cafe", "c", 0.0, 0.0), ("bar", "c", 1.2 * KM, 0.0), ("park", "g", 9.0, 9.0)


def visit(user: str, venue: tuple[str, str, float, float], time: int) -> tuple[object, ...]:
    poi, category, lat, lon = venue
    return user, poi, time, category, lat, lon


ROWS = [visit("a", venue, 2 * DAY * day + 60 * i) for day in range(5) for i, venue in enumerate((CAFE, CAFE, BAR))]
ROWS += [visit("b", venue, 60 * i) for i, venue in enumerate((PARK, PARK, PARK))]
ROWS += [visit("b", PARK, 120), visit("c", ("once", "c", 0.0, 0.0), 5)]
ROWS[3] = visit("a", ("cafe", "c", 0.001, 0.0), 2 * DAY)  # the cafe again, a little off
SETTINGS = Settings(filters=FilterSettings(2, 2, DAY, 3), candidates=CandidateSettings(min_candidates=1))


def test_every_figure() -> None:
    summary = summarise(checkins(ROWS), SETTINGS)
    speed = summary.pop("speed")
    assert json.loads(json.dumps(summary)) == {
        "checkins": 20,
        "users": 3,
        "pois": 4,
        "categories": 2,
        "duplicates": 1,
        "time": {"first": "1970-01-01T00:00:00Z", "last": "1970-01-09T00:02:00Z"},
        "pois_with_several_positions": 1,
        "filters": [
            {
                "step": "min_poi_checkins",
                "rows_before": 20,
                "rows_after": 19,
                "why": "venues with fewer than 2 check-ins",
            },
            {
                "step": "min_user_checkins",
                "rows_before": 19,
                "rows_after": 19,
                "why": "users with fewer than 2 check-ins left",
            },
            {
                "step": "min_session_length",
                "rows_before": 19,
                "rows_after": 19,
                "why": "sessions with fewer than 3 check-ins",
            },
        ],
        "after_filters": {"checkins": 19, "users": 2, "pois": 3},
        "sessions": {"train": 4, "val": 0, "test": 2},
        "positions": {"train": 12, "val": 0, "test": 7},
        "session_length": {"mean": 19 / 6, "median": 3.0, "p95": 3.75, "max": 4},
        "candidates": {
            "mean_size": pytest.approx(2 / 3),
            "coverage": 1.0,
            "widened": 1.0,
            "empty": pytest.approx(1 / 3),
            "min_candidates": 1,
            "category_field": "category",
        },
    }
    assert speed == {
        "limit_kmh": 60.0,
        "share_over": pytest.approx(5 / 13),
    }  # 1.2 km in a minute, five times of 13 steps


def test_rows_that_differ_in_anything_are_no_duplicates() -> None:
    settings = Settings(filters=FilterSettings(1, 1, DAY, 1))
    rows = [("a", "p", 0), ("a", "p", 1), ("a", "q", 0), ("b", "p", 0)]
    assert summarise(checkins(rows), settings)["duplicates"] == 0
    assert summarise(checkins(rows * 3), settings)["duplicates"] == 8


def test_one_user_and_one_check_in_are_enough() -> None:
    summary = summarise(checkins([("a", "p", 0)]), Settings(filters=FilterSettings(1, 1, DAY, 1)))
    assert summary["sessions"] == {"train": 0, "val": 0, "test": 1}
    assert summary["candidates"]["coverage"] == 0
    assert summary["speed"]["share_over"] == 0


def method(name: str) -> dict[str, object]:
    settings = replace(publication(name), filters=SETTINGS.filters, candidates=SETTINGS.candidates)
    return {"method": {"name": name, **described_sets(count_sets(checkins(ROWS), settings), settings)}}


def shown(name: str, summary: dict[str, object]) -> str:
    console = Console(file=io.StringIO(), width=200, force_terminal=False)
    inspection(console, name, summary)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_what_a_person_reads() -> None:
    text = shown("x.txt", summarise(checkins(ROWS), SETTINGS) | method("random"))
    for part in (
        "x.txt\n20 check-ins of 3 users at 4 venues in 2 categories, 1970-01-01 to 1970-01-09\n",
        "note: 1 rows repeat the user, venue and time of another row; they are kept and counted\n",
        "note: 1 venues have several positions",
        "min_poi_checkins             20          19  5.0%  venues with fewer than 2 check-ins",
        "after the first two filters: 19 check-ins, 2 users, 3 venues\n",
        "train         4         12",
        "session length: mean 3.2, median 3, 95% up to 3.75, longest 4\n",
        "candidates: 100.0% of training positions have one; 0.67 per venue on average; "
        "100.0% of venues need a wider radius, 33.3% have none (min_candidates: 1)\n",
        "80.0% of rows can be substituted with random: 78.9% in sessions, 100.0% outside; such a row draws from "
        "1.0 venues on average (category: category)\n",
        "speed: 38.5% of the clean steps inside sessions exceed 60 km/h\n",
    ):
        assert part in text


def test_names_are_shown_as_they_are() -> None:
    summary = summarise(checkins(ROWS[3:]), SETTINGS) | method("crowd")
    summary["candidates"]["category_field"] = "[red]kind[/]"
    text = shown("a[/]b[bold]:smile:\udcff.txt", summary)
    assert text.startswith("a[/]b[bold]:smile:?.txt\n")
    assert "(category: [red]kind[/])" in text


def test_the_method_s_own_sets_are_described_and_the_default_is_that_of_protect(tmp_path: Path) -> None:
    """The park's three visitors have a second park 30 km away: in a wide crowd, but beyond the paper's rule."""
    far = ("lake", "g", 9.0 + 30 * KM, 9.0)
    rows = [*ROWS, *(visit("b", far, 9 * DAY + 60 * i) for i in range(3))]
    path = tmp_path / "x.csv"
    lines = [",".join(map(str, (user, poi, kind, lat, lon, time))) for user, poi, time, kind, lat, lon in rows]
    path.write_text("\n".join(["user,poi,category,lat,lon,time", *lines]) + "\n")
    sets = ("--set", "filters.min_poi_checkins=2", "--set", "filters.min_user_checkins=2")
    wide = ("--set", "method.reach_km=40", "--set", "method.category=exact")
    for method, said in (
        (["--method", "random"], "69.6% of rows can be substituted with random: 68.2% in sessions, 100.0% outside"),
        ([*wide], "100.0% of rows can be substituted with crowd: 100.0% in sessions, 100.0% outside"),
    ):
        done = called("inspect", path, *sets, *method)
        assert done.returncode == 0, done.stderr
        assert said in " ".join(done.stdout.split())
        assert ("candidates:" in done.stdout) == (method != [*wide])
    found = json.loads(called("inspect", path, *sets, *wide, "--json").stdout)
    assert found["method"] == {
        "name": "crowd",
        "summary": METHODS["crowd"].summary,
        "own_sets": True,
        "coverage": 1.0,
        "coverage_in_sessions": 1.0,
        "coverage_outside_sessions": 1.0,
        "mean_size": 2.0,
    }
    narrow = called("inspect", path, *sets, *wide[2:], "--set", "method.reach_km=20")
    assert narrow.stdout.count("69.6% of rows") == 1
    assert json.loads(called("inspect", path, *sets, "--json").stdout)["method"]["name"] == "crowd"
    assert "did you mean crowd?" in sentence(called("inspect", path, "--method", "crowds"))


def test_a_file_in_which_nothing_can_be_substituted_is_described(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("user,poi,category,lat,lon,time\n" + "".join(f"a,p,c,1,2,{60 * i}\n" for i in range(20)))
    done = called("inspect", path)
    assert done.returncode == 0, done.stderr
    assert "0.0% of rows can be substituted with crowd" in done.stdout
