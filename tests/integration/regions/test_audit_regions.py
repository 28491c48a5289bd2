"""`audit --engine`: a release of many regions is audited region by region."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from small_city import called, scratch, sentence
from three_cities import SETS, all_rows, three_cities

from ghostpoi.audits import grid, result
from ghostpoi.audits.cache import Cache

QUICK = ("--victim", "markov", "--no-naturalness", "--adversaries", "none,habits+leak")
LOCAL = ("--engine", "local")
ACC = "acc@1"


@pytest.fixture(scope="module")
def release() -> Path:
    folder = scratch() / "three-cities-release"
    done = called("protect", three_cities(), "-o", folder, *LOCAL, *SETS, "--keep", "timezone_offset", "--seed", 3**60)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(autouse=True)
def same_manifest(release: Path) -> Iterator[None]:
    """Each test begins without a stored audit."""
    before = {name: (release / name).read_bytes() for name in ("manifest.json", "manifest.sig")}
    yield
    for name, content in before.items():
        (release / name).write_bytes(content)


def audited(release: Path, *words: object) -> dict[str, Any]:
    done = called("audit", three_cities(), release, *QUICK, *words, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def accuracies(found: dict[str, Any]) -> dict[str, list[float]]:
    victims = {"clean": found["clean"]} | found["adversaries"] | found["controls"]
    return {name: measures[ACC]["seeds"] for name, measures in victims.items()}


def test_accuracies_are_those_of_each_city_weighted_by_test_positions(
    release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(result, "rounded", lambda values, positions: list(values))
    joint = audited(release, *LOCAL, "--seeds", 2, "--no-store", "--cache", tmp_path)
    released = pl.concat([pl.read_parquet(path) for path in sorted((release / "checkins").glob("*.parquet"))])
    each = []
    for city in all_rows()["city"].unique():
        mine = all_rows()["city"] == city
        for name, rows in (("clean", all_rows()), ("released", released)):
            rows.filter(mine).write_parquet(tmp_path / f"{name}-{city}.parquet")
        files = (tmp_path / f"{name}-{city}.parquet" for name in ("clean", "released"))
        done = called("audit", *files, *QUICK[:3], "--adversaries", "none", *SETS, "--seeds", 2, "--json")
        if done.returncode:
            assert "the filters leave no" in done.stderr
        else:
            each.append(json.loads(done.stdout))
    assert len(each) > 1
    assert joint["test_positions"] == sum(one["test_positions"] for one in each)
    for name in ("clean", "none", "popularity", "stay", "markov", "markov_on_release"):
        for seed in (0, 1):
            right = sum(accuracies(one)[name][seed] * one["test_positions"] for one in each)
            assert accuracies(joint)[name][seed] == pytest.approx(right / joint["test_positions"], abs=1e-9), name
    assert joint["sessions"] == {part: sum(one["sessions"][part] for one in each) for part in joint["sessions"]}
    moved = sum(one["plausibility"]["substitution_rate"] * one["rows"]["audited"] for one in each)
    assert joint["plausibility"]["substitution_rate"] == pytest.approx(moved / joint["rows"]["audited"])
    people = [one["persons"]["unicity"]["hour"]["4"]["clean"] for one in (joint, *each)]
    assert people[0]["people"] == sum(one["people"] for one in people[1:])
    singled = sum(one["mean"] * one["people"] for one in people[1:]) / people[0]["people"]
    assert people[0]["mean"] == pytest.approx(singled, abs=0.1)  # figures of cities are rounded
    assert joint["regions"]["too_few_sessions"] == 3 - len(each)


def test_verify_and_report_accept_the_stored_audit(release: Path) -> None:
    done = called("audit", three_cities(), release, *QUICK, *LOCAL, "--seeds", 1, "--leak", 0.5)
    assert done.returncode == 0, done.stderr
    stored = json.loads((release / "manifest.json").read_text())["audit"]
    assert stored["regions"]["count"] == stored["regions"]["sampled"] == 3
    assert "audited 3 of 3 regions (100.0% of rows)" in done.stdout
    assert stored["strongest"] == "leak-only"
    assert {"random+habits+leak", "random-matched+habits+leak"} <= {*stored["controls"]}
    checks = json.loads(called("verify", release, "--against", three_cities(), *LOCAL, "--json").stdout)["checks"]
    assert {one["check"]: one["passed"] for one in checks} == dict.fromkeys((one["check"] for one in checks), True)
    assert "audit" in {one["check"] for one in checks}
    assert called("report", release).returncode == 0
    for page in ("report.html", "card.md"):
        assert "audited 3 of 3 regions (100.0% of rows)" in (release / page).read_text()
    assert "--with-clean is for a release of one region" in sentence(
        called("report", release, "--with-clean", "--private", f"{release}.private")
    )
    private = Path(f"{release}.private")
    assert not list(private.glob("tmp*"))  # what tasks left is removed


def test_a_sample_of_regions_says_so_and_does_not_replace_an_audit_of_more(release: Path) -> None:
    one = called("audit", three_cities(), release, *QUICK, *LOCAL, "--seeds", 1, "--regions", 1)
    if one.returncode:  # the first region by hash may have no test sessions
        one = called("audit", three_cities(), release, *QUICK, *LOCAL, "--seeds", 1, "--regions", 2)
    assert one.returncode == 0, one.stderr
    stored = json.loads((release / "manifest.json").read_text())["audit"]["regions"]
    share = f"{stored['share_of_rows']:.1%}"
    assert f"audited {stored['sampled']} of 3 regions ({share} of rows), chosen by a hash of their keys" in one.stdout
    assert 0 < stored["share_of_rows"] < 1
    more = called("audit", three_cities(), release, *QUICK, *LOCAL, "--seeds", 1)
    assert "replaced the stored audit, which has other settings (regions)" in more.stderr
    less = called("audit", three_cities(), release, *QUICK, *LOCAL, "--seeds", 1, "--regions", stored["sampled"])
    assert "the stored audit stays: it has other settings (regions), and this one audits fewer regions" in less.stderr
    assert json.loads((release / "manifest.json").read_text())["audit"]["regions"]["sampled"] == 3


def test_regions_with_too_few_sessions_are_counted(release: Path) -> None:
    few = ("--set", "filters.min_poi_checkins=70", "--no-store", "--seeds", 1)
    found = audited(release, *LOCAL, *few)["regions"]
    assert 0 < found["too_few_sessions"] < 3
    text = called("audit", three_cities(), release, *QUICK, *LOCAL, *few).stdout
    share = f"{found['too_few_share_of_rows']:.1%}"
    assert f"; {found['too_few_sessions']} of 3 regions ({share} of rows) have too few sessions" in text
    none = sentence(called("audit", three_cities(), release, *QUICK, *LOCAL, "--set", "filters.min_poi_checkins=5000"))
    assert "the filters leave too few sessions in all 3 audited regions; audit more with --regions" in none


def test_an_interrupted_audit_goes_on(release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train, trained = grid.train_each, list[int]()

    def interrupted(*arguments: Any) -> Iterator[Any]:
        for found in train(*arguments):
            trained.append(1)
            yield found
            if len(trained) == 3:
                raise KeyboardInterrupt

    words = ("--seeds", 1, "--cache", tmp_path / "cache", *LOCAL)
    monkeypatch.setattr(grid, "train_each", interrupted)
    done = called("audit", three_cities(), release, *QUICK, *words)
    assert done.returncode == 130
    assert "call it again to go on" in done.stderr
    kept = {path.name for path in (Cache(tmp_path / "cache").folder / "victims").glob("*.npz")}
    assert len(kept) >= 2
    found = audited(release, *words)
    every = {path.name for path in (tmp_path / "cache" / "victims").glob("*.npz")}
    assert len(trained) - 3 == len(every - kept)  # those that were kept did not train again
    assert found == audited(release, "--seeds", 1, *LOCAL, "--cache", tmp_path / "other", "--replace")


def test_what_is_refused(release: Path) -> None:
    words = ("audit", three_cities(), release, *QUICK)
    assert "--regions is for a release of many regions and needs --engine" in sentence(called(*words, "--regions", 2))
    assert "--series needs all rows at once" in sentence(called(*words, *LOCAL, "--series", release.parent))
    assert "does not fit" in sentence(called("audit", release / "checkins" / "part-00000.parquet", *words[2:], *LOCAL))
    assert "Dask; add --engine dask" in sentence(called(*words, *LOCAL, "--workers", 2))


def test_without_an_engine_a_release_of_regions_is_audited_at_once(release: Path) -> None:
    assert "regions" not in audited(release, "--seeds", 1, "--no-store")
