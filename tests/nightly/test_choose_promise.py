"""What `choose` promises of its recommendation, a release with these settings keeps."""

import json
import shlex
from pathlib import Path

import pytest
from small_city import SEED, called

from ghostpoi.data.synthetic_files import write_city

FILTERS = ("--set", "filters.min_poi_checkins=5")


def test_the_recommendation_keeps_what_it_promised(tmp_path: Path) -> None:
    city, release = tmp_path / "city.txt", tmp_path / "release"
    write_city(city, 150, 400, 60, 5)
    done = called("choose", city, "-o", tmp_path / "page.html", "--cache", tmp_path / "cache", *FILTERS, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    best = found["recommended"]
    assert best in found["tried"]
    assert best["complete"]
    assert best["missed"] == []
    assert best["mean_km"] <= 2
    assert best["flows"] >= 0.4
    words = shlex.split(best["command"])
    assert words[:4] == ["ghostpoi", "protect", str(city), "-o"]
    done = called("protect", city, "-o", release, *words[5:], "--seed", SEED)
    assert done.returncode == 0, done.stderr
    done = called("audit", city, release, "--no-naturalness", "--json")
    assert done.returncode == 0, done.stderr
    audit = json.loads(done.stdout)
    assert audit["not_run"] == []
    assert audit["plausibility"]["mean_km"] == pytest.approx(best["mean_km"], rel=0.1)
    assert audit["utility"]["flows"]["common_part"] == pytest.approx(best["flows"], abs=0.03)
    assert audit["utility"]["popularity"]["poi_js"] == pytest.approx(best["popularity"], abs=0.02)
    # The same figure, of another draw. An interval is over test steps: the mean of one draw may lie outside another's.
    for leak, promised in best["gives_away"].items():
        kept = audit["gives_away"][leak]
        assert kept["low"] <= promised["high"], leak
        assert promised["low"] <= kept["high"], leak
        assert kept["verdict"] == promised["verdict"] == "gives away nothing measurable", (leak, kept, promised)
