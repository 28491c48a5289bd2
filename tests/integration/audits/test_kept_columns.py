"""A13: an audit shows what the columns that a release kept give away."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_city import MAP, SEED, SETS, called
from telling_city import drops, telling_csv

from ghostpoi.audits.controls import default_adversaries
from ghostpoi.data.synthetic_files import write_city

SPLIT = ("--set", "filters.train_share=0.6", "--set", "filters.val_share=0.2", "--set", "filters.min_session_length=2")
FAST = ("--victim", "markov", "--seeds", "1", "--no-naturalness", *SPLIT)
pytestmark = pytest.mark.usefixtures("one_window")


def audited(folder: Path, *more: str) -> dict[str, Any]:
    done = called("audit", telling_csv(), folder, "--leak", "0.2", *FAST, "--json", *more)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def released(folder: Path, *keep: str, category: str = "any") -> Path:
    kept = [word for name in keep for word in ("--keep", name)]
    options = ("--seed", SEED, "--set", f"method.category={category}", *MAP, *SETS, *drops(*keep), *kept)
    done = called("protect", telling_csv(), "-o", folder, "--method", "crowd", *options)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize(
    ("name", "least"), [("token", 0.95), ("prev_venue", 0.5), ("dist_prev_km", 0.5), ("terminal", 0.4)]
)
def test_a_kept_column_that_tells_is_used(name: str, least: float, tmp_path: Path) -> None:
    leak = ("--leak", "0.6") if name == "terminal" else ()  # values must be seen before they reveal it
    # Distances lead further from what A8 restores, which is little under the default.
    category = "exact" if name == "dist_prev_km" else "any"
    folder = released(tmp_path / "r", name, category=category)
    found = audited(folder, "--adversaries", "habits+leak,kept-columns", *leak)
    of = {adversary: measures["of_substituted"]["mean"] for adversary, measures in found["adversaries"].items()}
    assert of["kept-columns"] > of["habits+leak"] + 0.05
    assert of["kept-columns"] > least
    assert name in found["kept_columns"]


def test_it_belongs_to_the_default_set_if_columns_were_kept(tmp_path: Path) -> None:
    folder = released(tmp_path / "r", "token")
    missing = audited(folder, "--adversaries", "none")["not_run"]
    assert tuple(missing) == default_adversaries(columns=True)[1:]
    assert set(missing) - set(default_adversaries()) == {"kept-columns"}
    full = audited(folder)
    assert full["not_run"] == []
    assert full["strongest"] == "kept-columns"
    stored = json.loads((folder / "manifest.json").read_text())["audit"]
    assert stored["kept_columns"] == ["gender", "token", "phone"]


def test_without_columns_that_tell_it_is_no_stronger_than_what_it_extends(tmp_path: Path) -> None:
    # With a smaller leak, columns that reveal nothing may seem to by chance.
    found = audited(released(tmp_path / "r"), "--adversaries", "habits+leak,kept-columns", "--leak", "0.6")
    a8, a13 = (found["adversaries"][name]["restored"]["mean"] for name in ("habits+leak", "kept-columns"))
    assert abs(a8 - a13) < 0.05


def test_a_kept_number_beside_venues_that_stand_for_none_is_no_trouble(tmp_path: Path) -> None:
    write_city(tmp_path / "city.txt", 100, 250, 60, 3)
    rows = [line.split("\t") for line in (tmp_path / "city.txt").read_text("latin-1").splitlines()]
    dwell = np.random.default_rng(3).integers(1, 90, len(rows))
    lines = [
        f"{u},{v},{c},{lat},{lon},{time},{n}" for (u, v, c, _, lat, lon, _, time), n in zip(rows, dwell, strict=True)
    ]
    (tmp_path / "city.csv").write_text("\n".join(["user,poi,category,lat,lon,time,dwell", *lines]) + "\n")
    file, folder = tmp_path / "city.csv", tmp_path / "r"
    done = called("protect", file, "-o", folder, "--method", "random", "--seed", SEED, "--keep", "dwell")
    assert done.returncode == 0, done.stderr
    done = called("audit", file, folder, *FAST, "--cache", tmp_path / "cache", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kept_columns"] == ["dwell"]
    assert "kept-columns" in found["adversaries"]
