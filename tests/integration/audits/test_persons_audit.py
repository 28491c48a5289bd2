"""Audits of persons through the command line: figures, controls, what is stored, limits, and a leak by person."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_city import called, city, release

from ghostpoi.attack.evidence import leak
from ghostpoi.audits.match import align, read_pair
from ghostpoi.audits.measures import persons as measure
from ghostpoi.audits.persons import AGAIN, PersonSettings, measured, summary
from ghostpoi.audits.request import AuditRequest
from ghostpoi.data.synthetic_files import write_city
from ghostpoi.formats import Source
from ghostpoi.randomness import Seed
from ghostpoi.settings import FilterSettings

SPLIT = ("--set", "filters.train_share=0.6", "--set", "filters.val_share=0.2")
FAST = ("--victim", "markov", "--seeds", "1", "--no-naturalness", "--leak", "0.3", *SPLIT)
pytestmark = pytest.mark.usefixtures("one_window")

TINY = ["surrogate.dim=16", "surrogate.heads=2", "rounds.outer=1", "rounds.inner=1"]
QUICK = [word for text in TINY for word in ("--set", text)]


def audited(release: Path, *more: object, file: Path | None = None) -> dict[str, Any]:
    done = called("audit", file or city(), release, *FAST, "--adversaries", "none", "--json", *more)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_release_that_keeps_users_and_times_singles_out_as_the_clean_file_does() -> None:
    found = audited(release("crowd", "txt").folder, "--no-store")["persons"]
    assert found["control"] == AGAIN
    for known in ("second", "hour", "part_place"):
        four = found["unicity"][known]["4"]
        assert four["release"] == four["clean"]
        assert four["release"]["mean"] > 4 * four["control"]["mean"]
    assert found["linkage"]["sessions"]["release"]["mean"] < found["linkage"]["sessions"]["clean"]["mean"]


def test_new_ids_of_a_next_release_are_linked_unless_they_change_with_the_session(tmp_path: Path) -> None:
    busy, found = tmp_path / "busy.txt", {}
    write_city(busy, 200, 400, 200, 3)
    for kind in ("file", "session"):
        done = called("protect", busy, "-o", tmp_path / kind, "--pseudonyms", kind, "--seed", 2**90)
        assert done.returncode == 0, done.stderr
        found[kind] = audited(tmp_path / kind, "--no-store", file=busy)["persons"]
    ids, session = (found[kind]["next_release"]["ids"] for kind in ("file", "session"))
    assert ids["release"].keys() == {"mean", "low", "high", "median", "p95", "most", "people"}
    assert ids["control"]["high"] < ids["release"]["low"]
    assert ids["release"]["high"] < ids["clean"]["low"]
    assert ids["release"]["low"] > found["file"]["linkage"]["sessions"]["release"]["high"]
    assert session["release"]["high"] < ids["release"]["low"]
    assert session["clean"] == ids["clean"]
    surest = found["file"]["next_release"]["precision_at_10"]
    assert surest["release"]["mean"] > ids["release"]["mean"]
    assert surest["control"]["high"] < surest["release"]["low"]


def test_pseudonyms_that_change_leave_less_to_single_out() -> None:
    kept, hidden = (
        audited(release("crowd", "txt", *more).folder, "--no-store")["persons"]["unicity"]["part"]["3"]["release"]
        for more in ((), ("--pseudonyms", "session"))
    )
    assert hidden["mean"] < kept["mean"]


def test_the_manifest_holds_rates_and_no_person(tmp_path: Path) -> None:
    out = tmp_path / "made"
    assert called("protect", city(), "-o", out, "--seed", 2**90).returncode == 0
    found = audited(out)
    stored = json.loads((out / "manifest.json").read_text())["audit"]
    assert '"most"' not in json.dumps(stored["persons"])
    assert '"people"' not in json.dumps(stored["persons"])
    assert '"most"' in json.dumps(found["persons"])
    rates = [one["release"]["mean"] for one in stored["persons"]["unicity"]["hour"].values()]
    assert rates == [one["release"]["mean"] for one in found["persons"]["unicity"]["hour"].values()]
    table = called("audit", city(), out, *FAST, "--adversaries", "none").stdout
    assert "singled out by 4 check-ins (hour and place)" not in table
    assert "singled out by 4 check-ins (part of day and place)" in table
    assert "control: a tenth of the people held out, protected again without them" in table
    done = called("audit", city(), out, *FAST, "--adversaries", "none", "--leak-by", "person")
    assert "replaced the stored audit, which has other settings (leak_by)" in done.stderr
    assert "leak 30.0% of the people, with all their sessions" in done.stdout


def test_a_limit_on_persons_decides(tmp_path: Path) -> None:
    limits = tmp_path / "limits.toml"
    limits.write_text("[limits]\npersons = 0.05\nlinked = 0.9\n")
    words = ("--adversaries", "none", "--no-store", "--config", limits)
    done = called("audit", city(), release("crowd", "txt").folder, *FAST, *words)
    assert done.returncode == 1
    said = " ".join(done.stdout.split())
    assert "people singled out, at most 0.05: beyond your limits" in said
    assert "people linked from release to release, at most 0.9: within your limits" in said


def test_a_release_of_another_tool_has_no_control(tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_bytes(next(release("random", "txt").folder.glob("checkins*")).read_bytes())
    found = audited(other)["persons"]
    assert found["control"] is None
    assert "control" not in found["unicity"]["hour"]["4"]
    assert found["unicity"]["hour_place"]["4"]["release"]["mean"] > 0.9
    done = called("audit", city(), other, *FAST, "--adversaries", "none")
    assert "another tool's release has no control" in done.stdout


@pytest.mark.parametrize("ratio", [0.1, 0.5])
def test_a_leak_by_person_holds_all_sessions_of_some_people(ratio: float) -> None:
    folder = release("crowd", "txt").folder
    pair = read_pair(city(), folder, {})
    request = AuditRequest(file=Source(city()), release=Source(folder), set=SPLIT[1::2])
    train = align(pair, request.settings_for(pair.manifest).filters).train
    leaked = leak(train, ratio, Seed(4), "person")
    people = np.unique(train.user[leaked])
    assert len(people) == max(1, int(ratio * len(np.unique(train.user)) + 0.5))
    assert np.array_equal(leaked, np.isin(train.user, people))
    assert not (leak(train, ratio / 2, Seed(4), "person") & ~leaked).any()
    assert not np.array_equal(leak(train, ratio, Seed(5), "person"), leaked)


def test_a_leak_is_by_session_or_by_person() -> None:
    done = called("audit", city(), release("crowd", "txt").folder, "--leak-by", "venue")
    assert (done.returncode, done.stderr.strip()) == (2, "ghostpoi: --leak-by venue: use session or person")


def test_moved_weeks_and_coarse_times_leave_less_to_single_out() -> None:
    kept, part, moved = (
        audited(release("crowd", "txt", "--pseudonyms", "session", *more).folder, "--no-store")["persons"]["unicity"]
        for more in ((), ("--times", "part-of-day"), ("--times", "shift"))
    )
    for known in ("second", "gaps_second"):
        figures = [one[known]["1"]["release"]["mean"] for one in (kept, part, moved)]
        assert figures[0] > max(figures[1:]), known
    assert part["second"]["1"]["release"] == part["part"]["1"]["release"]
    assert moved["minute"]["1"]["release"] == moved["hour"]["1"]["release"]


@pytest.mark.parametrize("way", ["series", "models"])
def test_the_control_protects_again_with_the_crowds_of_a_series_and_with_models(way: str, tmp_path: Path) -> None:
    more = ("--series", tmp_path / "series") if way == "series" else ("--method", "pgd", *QUICK)
    done = called("protect", city(), "-o", tmp_path / "r", *more)
    assert done.returncode == 0, done.stderr
    words = ("--no-store", "--cache", tmp_path / "cache")
    found = audited(tmp_path / "r", *words)["persons"]
    assert found["control"] == AGAIN
    four = found["unicity"]["hour_place"]["4"]
    assert four["control"]["mean"] < four["release"]["mean"]
    kept = [*(tmp_path / "cache" / "releases").iterdir()]
    assert bool(kept) == (way == "models")  # which take long
    assert audited(tmp_path / "r", *words)["persons"] == found


def test_resolutions_finer_than_the_shown_times_are_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all times are whole hours, who fits the second is who fits the hour."""
    made = release("random", "txt", "--times", "hour")
    pair = read_pair(Source(city()), Source(made.folder), {})
    found = summary(measured(pair, FilterSettings(), PersonSettings()))
    assert found is not None
    times, asked = found["unicity"], list[int]()
    assert times["second"]["4"]["release"] == times["minute"]["4"]["release"] == times["hour"]["4"]["release"]
    assert times["second"]["4"]["clean"]["mean"] > times["hour"]["2"]["clean"]["mean"]
    own = measure.unicity
    monkeypatch.setattr(measure, "unicity", lambda one, *more: (asked.append(one.seconds), own(one, *more))[1])
    measured(pair, FilterSettings(), PersonSettings())
    assert [asked.count(seconds) for seconds in measure.RESOLUTIONS.values()] == [8, 4, 4, 8, 8]
