"""verify computes again what it can, and does not cry wolf."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sample_releases import copied, put_manifest
from small_city import SEED, SETS, called, city, protect, release, scratch

from ghostpoi.data.synthetic_files import write_city
from ghostpoi.release.manifest import PRIVATE_MARK

Manifest = dict[str, Any]


def failures(folder: Path, *more: object) -> dict[str, str]:
    """The checks that fail, with what they say."""
    done = called("verify", folder, *more, "--json")
    failed = {c["check"]: c["detail"] for c in json.loads(done.stdout)["checks"] if not c["passed"]}
    assert done.returncode == bool(failed)
    return failed


def set_to(value: Any, *path: str) -> Callable[[Manifest], None]:
    def change(manifest: Manifest) -> None:
        for key in path[:-1]:
            manifest = manifest[key]
        manifest[path[-1]] = value

    return change


FIGURES = {
    ("plausibility", "mean_km"): "plausibility",
    ("plausibility", "category_match"): "plausibility",
    ("plausibility", "substitution_rate"): "plausibility",
    ("rows", "in_sessions", "rows"): "counts",
    ("rows", "in_sessions", "no_candidate"): "counts",
    ("rows", "in_sessions", "kept_by_speed"): "counts",
    ("rows", "outside_sessions", "kept_by_method"): "counts",
    ("rows", "outside_sessions", "slowest_taken"): "counts",
    ("data", "rows"): "counts",
}


@pytest.mark.parametrize("path", FIGURES, ids=".".join)
def test_a_figure_that_does_not_follow_from_the_release_fails(path: tuple[str, ...], tmp_path: Path) -> None:
    made = release("random", "txt", "--set", "speed.limit_kmh=2")
    manifest, value = made.manifest, made.manifest
    for key in path:
        value = value[key]
    folder = copied(made, tmp_path)
    put_manifest(folder, manifest)
    assert failures(folder, "--against", city()) == {}
    set_to(77, *path)(manifest)
    put_manifest(folder, manifest)
    found = failures(folder, "--against", city())
    assert found.pop(FIGURES[path]) == f"{'.'.join(path)} is {value}, 77 in the manifest"
    assert set(found) <= {"manifest"}  # without the file, one can see that the rows do not add up


CROWDS_WITH_FAR_VENUES = ("--set", "method.size=4", "--set", "method.reach_km=3")


@pytest.mark.parametrize("method", ["crowd", "random", "ghost", "ts-ue"])
@pytest.mark.parametrize("empty", ["strict", "ignore"])
def test_every_count_is_found_again_where_the_speed_limit_matters(method: str, empty: str) -> None:
    more = CROWDS_WITH_FAR_VENUES if method == "crowd" else ()
    made = release(method, "txt", "--set", "speed.limit_kmh=2", "--set", f"speed.empty={empty}", *more)
    assert made.manifest["speed"]["steps_over_limit"] > 50
    assert made.manifest["rows"]["in_sessions"]["slowest_taken"] > 0
    assert failures(made.folder, "--against", city()) == {}


def test_a_release_without_the_speed_rule_fails(tmp_path: Path) -> None:
    """The release of a publisher without a limit, with a manifest that counts its violations under one."""
    made = protect(city(), tmp_path / "r", "--method", "random", "--seed", SEED, "--set", "speed.limit_kmh=1000")
    honest = release("random", "txt", "--set", "speed.limit_kmh=2")
    manifest = made.manifest
    manifest["settings"]["speed"]["limit_kmh"] = 2.0
    assert list(failures(made.folder)) == []
    put_manifest(made.folder, manifest)
    assert list(failures(made.folder)) == ["speed"]  # not the limit of the settings
    from ghostpoi import formats
    from ghostpoi.draw.whole_table import fast_steps

    manifest["speed"] = fast_steps(formats.read(made.data).table, 2.0, 60.0)
    put_manifest(made.folder, manifest)
    assert failures(made.folder) == {}  # the manifest alone cannot show it
    failed = failures(made.folder, "--against", city())
    assert set(failed) == {"speed rule", "counts"}
    assert failed["speed rule"].endswith(" steps over the limit though a candidate was within it")
    assert failures(honest.folder, "--against", city()) == {}


def test_without_the_clean_file_the_speed_line_says_what_it_did_not_check() -> None:
    done = called("verify", release("random").folder)
    said = "as counted in the manifest; whether they are allowed takes --against FILE"
    assert said in " ".join(done.stdout.split())
    assert "takes --against" not in called("verify", release("random").folder, "--against", city()).stdout


@cache
def sparse_city() -> Path:
    path = scratch() / "sparse.txt"
    write_city(path, 60, 400, 40, 11)
    return path


def test_a_donor_may_be_withheld(tmp_path: Path) -> None:
    """A rare venue is released as a common one, whose own rows have no candidate among common venues."""
    more = ("--set", "filters.min_poi_checkins=12", "--no-candidate", "withhold", "--seed", SEED)
    made = protect(sparse_city(), tmp_path / "r", "--method", "random", *more)
    assert made.manifest["rows"]["withheld"] > 0
    assert failures(made.folder, "--against", sparse_city()) == {}


def test_a_name_like_the_private_marker_is_no_private_page(tmp_path: Path) -> None:
    lines = [f"user,poi,category,lat,lon,time,{PRIVATE_MARK}"]
    for k in range(60):
        v = (k * 7) % 6
        name = f"<body class={PRIVATE_MARK}>" if v == 1 else PRIVATE_MARK
        time = 1_600_000_000 + 1800 * k
        lines.append(f"{PRIVATE_MARK}{k % 3},{PRIVATE_MARK}{v},{PRIVATE_MARK},{40 + v / 1000},-74.0,{time},{name} {v}")
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    loose = [f"filters.{name}=1" for name in ("min_poi_checkins", "min_user_checkins", "min_session_length")]
    sets = [word for text in loose for word in ("--set", text)]
    made = protect(tmp_path / "x.csv", tmp_path / PRIVATE_MARK, *sets)
    assert called("report", made.folder).returncode == 0
    assert PRIVATE_MARK in (made.folder / "report.html").read_text()
    assert PRIVATE_MARK in (made.folder / "card.md").read_text()
    assert failures(made.folder) == {}
    assert called("report", made.folder, "--private", made.private, "--with-clean").returncode == 0
    (made.private / "report.html").rename(made.folder / "report.html")
    said = failures(made.folder)["nothing private"]
    assert said == "found report.html with clean data; remove it before you publish the release"


def test_leftovers_of_a_killed_run_are_named_and_then_removed(tmp_path: Path) -> None:
    made = protect(city(), tmp_path / "r", "--method", "random", "--seed", SEED)
    (tmp_path / ".r.0123abcd.partial").mkdir()
    (tmp_path / ".r.0123abcd.partial" / "checkins.txt").write_text("another draw")
    (made.folder / ".report.html.abc.partial").write_text("half a page")
    said = failures(made.folder)["nothing private"]
    assert said.startswith("found .report.html.abc.partial, .r.0123abcd.partial next to the release; remove it")
    assert called("report", made.folder).returncode == 0
    assert sorted(p.name for p in made.folder.iterdir()) == [
        "card.md", "checkins.txt", "croissant.json", "manifest.json", "manifest.sig", "report.html",
    ]  # fmt: skip
    again = called("protect", city(), "-o", made.folder, "--method", "random", "--seed", SEED, *SETS, "--force")
    assert again.returncode == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r", "r.private"]
    assert failures(made.folder) == {}
