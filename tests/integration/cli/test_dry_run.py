"""The estimate of `protect --dry-run` against the real run: shares, not times."""

import json
import re
from pathlib import Path

import pytest
from conftest import checkins
from small_city import SETS, called, city, release, sentence, settings

from ghostpoi.draw.whole_table import prepare
from ghostpoi.release import make

CLOSE = 0.05  # two draws of the small city's thousand rows differ by 0.02 (a standard deviation) by chance


@pytest.mark.parametrize("method", ["random", "crowd", "ghost"])
@pytest.mark.parametrize("more", [(), ("--set", "speed.limit_kmh=2")])
def test_the_expected_shares_are_those_of_a_run(method: str, more: tuple[str, ...], tmp_path: Path) -> None:
    done = called("protect", city(), "-o", tmp_path / "r", "--method", method, *SETS, *more, "--dry-run", "--json")
    guess, manifest = json.loads(done.stdout), release(method, "txt", *more).manifest
    rows = manifest["rows"]
    assert guess["substitution_rate"] == pytest.approx(manifest["plausibility"]["substitution_rate"], abs=CLOSE)
    assert guess["left_genuine"] == pytest.approx(rows["left_genuine"]["share"], abs=CLOSE)
    assert 0 <= guess["drawn_own"] == pytest.approx(rows["drawn_own"]["share"], abs=CLOSE)
    assert guess["substitution_rate"] + guess["left_genuine"] + guess["drawn_own"] == pytest.approx(1)
    moved = manifest["plausibility"]
    assert guess["mean_km"] == pytest.approx(moved["mean_km"], rel=0.15)
    assert guess["p95_km"] == pytest.approx(moved["p95_km"], rel=0.25)
    assert guess["beyond_1km"] == pytest.approx(moved["beyond_1km"], abs=CLOSE)
    inside = rows["in_sessions"]
    assert guess["substitution_rate_in_sessions"] == pytest.approx(inside["substituted"] / inside["rows"], abs=CLOSE)


def test_every_step_of_a_run_is_counted(tmp_path: Path) -> None:
    steps = {"starting", "reading and testing columns", "finding candidates", "substituting", "writing"}
    for method, more in (("crowd", set()), ("ghost", {"training"})):
        command = ("protect", city(), "-o", tmp_path / "r", "--method", method, *SETS, "--dry-run")
        assert json.loads(called(*command, "--json").stdout)["steps"].keys() == steps | more
        first = called(*command).stdout.splitlines()[0]
        assert all(step in first for step in steps | more)
        text = called(*command).stdout
        assert re.search(r"^moves them by about \d\.\d\d km on average, 95% within \d\.\d\d km$", text, re.MULTILINE)
    assert not list(tmp_path.iterdir())


def test_a_column_that_a_run_refuses_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = [f"u{k % 3},v{k % 7},c,{1 + 0.001 * (k % 7)},2,{1_333_400_000 + 1800 * k},n{k % 7} {k}" for k in range(70)]
    path.write_text("\n".join(["user,poi,category,lat,lon,time,note", *rows]) + "\n")
    loose = [word for name in ("poi", "user") for word in ("--set", f"filters.min_{name}_checkins=1")]
    command = ("protect", path, "-o", tmp_path / "r", *loose)
    said = sentence(called(*command, "--dry-run"))
    assert said == sentence(called(*command))
    assert "--keep note" in said
    assert called(*command, "--keep", "note", "--dry-run").returncode == 0


def test_a_sample_has_enough_rows_and_a_session() -> None:
    rows = [("a", f"v{k % 2}", 60 * k) for k in range(30)]  # the only session
    rows += [(f"b{k}", f"v{k % 2}", 0) for k in range(100)]
    whole = prepare(checkins(rows), settings("random"))
    for least in (1, 40, 130, 1000):
        users = make._sample(whole, least)
        assert users[0]
        assert users[whole.table.user].sum() >= min(least, 130)
    assert not make._sample(whole, 1).all()
