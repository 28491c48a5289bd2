"""A series of releases: crowds and draws stay the same from month to month, so twelve reveal no more than one."""

import csv
import json
import random
import stat
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from monthly_city import (
    AUDIT,
    MONTHS,
    audited,
    clean_rows,
    day,
    days,
    month,
    release_in,
    released_rows,
    rows,
    written,
    year,
)
from small_city import Release, called

import ghostpoi
from ghostpoi.data.checkins import Checkins
from ghostpoi.draw.catalogue import Catalogue, join
from ghostpoi.draw.methods.base import LEARNED_GROUPS
from ghostpoi.draw.methods.crowd import Crowd
from ghostpoi.settings import HideSettings

NEW_IDS = ("--pseudonyms", "file")


def test_twelve_months_of_a_series_tell_no_more_than_one() -> None:
    found = audited("series", "--set", "method.category=any")
    assert len(found["releases"]) == MONTHS
    for measure in ("restored", "pinned"):
        alone, together, gain = (found[measure][name] for name in ("alone", "together", "gain"))
        assert abs(gain["mean"]) <= alone["std"] + 0.002
        assert together["mean"] <= alone["mean"] + alone["std"] + 0.002
        assert not gain["clear"]
    assert found["verdict"].startswith("Gives away nothing measurable beyond one release (12 releases): ")


def test_a_month_too_small_for_a_victim_still_gets_the_verdict() -> None:
    folder = year("series", "--set", "method.category=any")
    few = ("--set", "filters.train_share=0.01")  # nobody has 100 sessions
    words = ("--series", folder, "--victim", "markov", "--seeds", 1, *few)
    done = called("audit", month(MONTHS - 1), folder.parent / "month-11", *words)
    verdict, refusal = done.stderr.splitlines()
    assert done.returncode == 2
    assert verdict.startswith("several releases: Gives away nothing measurable beyond one release (12 releases): ")
    assert "the filters leave no" in refusal


def test_without_a_series_twelve_months_give_habits_away() -> None:
    found = audited("alone", "--set", "method.category=any")
    assert found["pinned"]["gain"]["mean"] > 0.15
    assert found["restored"]["gain"]["mean"] > 0.1
    assert min(found["pinned"]["gain"]["seeds"]) > found["pinned"]["alone"]["std"]
    assert found["verdict"].startswith("Gives away more than one release (12 releases): ")
    assert found["verdict"].endswith(" Make releases of the same people with protect --series.")


def test_new_user_ids_of_every_release_are_linked_by_visits(tmp_path: Path) -> None:
    for number in range(2):
        release_in(tmp_path / "series", days(180 * number, 180 * number + 180), tmp_path / f"{number}", *NEW_IDS)
    done = called("audit", days(180, 360), tmp_path / "1", "--series", tmp_path / "series", *AUDIT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["series"]
    ids = found["linkage"]["ids"]
    assert (found["recurring_visits"], found["pinned"]) == (0, None)
    assert ids["control"]["high"] < ids["release"]["mean"] <= ids["clean"]["mean"]
    assert found["verdict"].startswith(
        f"No visit recurs under the same user id (2 releases). By visits alone, {ids['release']['mean']:.0%} of the "
        "user ids of a release are assigned to the right person of the one before"
    )


def test_releases_show_venues_that_their_month_never_visits() -> None:
    """Otherwise the venues of each release, intersected, would give habits away like crowds that change."""
    folder = year("series", "--set", "method.category=any").parent
    for number in range(1, MONTHS):
        visited = {row["venue_id"] for row in clean_rows(month(number))}
        shown = {row["venue_id"] for row in released_rows_of(folder / f"month-{number:02}")}
        assert shown - visited


def released_rows_of(folder: Path) -> list[dict[str, str]]:
    return clean_rows(folder / "checkins.csv")


def test_every_release_of_a_series_verifies() -> None:
    folder = year("series", "--set", "method.category=any").parent
    for number in (0, 5, 11):
        done = called("verify", folder / f"month-{number:02}", "--against", month(number), "--json")
        assert done.returncode == 0, done.stdout
        assert len(json.loads(done.stdout)["checks"]) == 15
    manifest = json.loads((folder / "month-05" / "manifest.json").read_text())
    assert manifest["series"] == {"number": 6, "repeated": 0}
    assert manifest["rows"]["in_sessions"]["rows"] == 0


def test_show_and_verify_tell_what_was_released() -> None:
    folder = year("series", "--set", "method.category=any")
    found = json.loads(called("series", "show", folder, "--json").stdout)
    assert [one["status"] for one in found["releases"]] == ["complete"] * MONTHS
    assert [one["rows"] for one in found["releases"]] == [len(clean_rows(month(n))) for n in range(MONTHS)]
    assert found["rows"] == len(rows())
    assert found["venues"] == sum(one["new_venues"] for one in found["releases"])
    assert found["venues"] == len({row["venue_id"] for row in rows()})
    assert "seed" not in json.dumps(found)
    shown = called("series", "show", folder).stdout
    assert f"{len(rows()):,} rows released" in shown
    assert shown.count("complete") == MONTHS
    done = called("series", "verify", folder, "--json")
    assert done.returncode == 0
    assert len(json.loads(done.stdout)["checks"]) == 3 + MONTHS
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_crowds_and_weights_of_known_venues_never_change() -> None:
    folder = year("series", "--set", "method.category=any").parent
    first, last = (
        Catalogue.empty().load_more(folder / f"month-{n:02}.private" / "series-venues.npz") for n in (0, MONTHS - 1)
    )
    assert 0 < len(first) < len(last)
    for name in ("ids", "lat", "lon", "visits", "crowd", "member"):
        assert (getattr(first, name) == getattr(last, name)[: len(first)]).all()
    drawn = {number: set(last.ids[members]) for number, members in last.members().items()}
    assert all(set(first.ids[members]) == drawn[number] for number, members in first.members().items())
    assert not last.member.all()  # some later venues are guests


@pytest.mark.parametrize("limit", [60, 0.2])
def test_the_same_rows_get_the_same_draws(limit: float, tmp_path: Path) -> None:
    """The second file repeats two weeks, and draws only the others.

    A low speed limit makes a draw depend on the check-in before, which the second file may lack.
    """
    series, speed = tmp_path / "series", ("--set", f"speed.limit_kmh={limit}")
    first = release_in(series, days(0, 30), tmp_path / "first", *speed)
    more = release_in(series, days(15, 45), tmp_path / "more", *speed)
    again = {id_of(clean): shown for clean, shown in zip(clean_rows(first.file), released_rows(first), strict=True)}
    repeated = [
        (shown, again[id_of(clean)])
        for clean, shown in zip(clean_rows(more.file), released_rows(more), strict=True)
        if id_of(clean) in again
    ]
    assert len(repeated) > 300
    assert all(one == two for one, two in repeated)
    assert more.manifest["series"] == {"number": 2, "repeated": len(repeated)}
    assert f"release 2 of its series; {len(repeated)} rows repeat earlier draws" in more.done.stdout
    assert called("verify", more.folder, "--against", more.file).returncode == 0
    alone = called("protect", more.file, "-o", tmp_path / "alone")
    assert alone.returncode == 0
    other = zip(clean_rows(more.file), clean_rows(tmp_path / "alone" / "checkins.csv"), strict=True)
    assert any(again.get(id_of(clean), shown) != shown for clean, shown in other)


def id_of(row: dict[str, str]) -> tuple[str, str, str]:
    return row["user"], row["utc_time"], row["venue_id"]


def test_a_release_made_again_elsewhere_is_the_same(tmp_path: Path) -> None:
    series = tmp_path / "series"
    one, two = (release_in(series, days(0, 20), tmp_path / name) for name in ("one", "two"))
    assert one.data.read_bytes() == two.data.read_bytes()
    assert two.manifest["series"]["repeated"] == len(clean_rows(one.file))
    found = json.loads(called("series", "show", series, "--json").stdout)
    assert found["rows"] == len(clean_rows(one.file))


@pytest.mark.parametrize("method", ["crowd", "k-anonymous", "randomised-response"])
def test_a_month_of_one_row_works(method: str, tmp_path: Path) -> None:
    series = tmp_path / "series"
    release_in(series, days(0, 20), tmp_path / "first", "--method", method)
    row = next(row for row in rows() if day(row) >= 20)
    tiny = release_in(series, written(tmp_path / "tiny.csv", [row]), tmp_path / "second", "--method", method)
    assert len(released_rows(tiny)) == 1
    assert tiny.manifest["rows"]["left_genuine"]["rows"] == 0
    assert called("verify", tiny.folder, "--against", tiny.file).returncode == 0
    check_no_figure_tells_a_row(tiny)


def check_no_figure_tells_a_row(made: Release) -> None:
    """Neither the manifest nor a page says how far rows moved, or how many drew their own venue."""
    rows = made.manifest["rows"]
    assert made.manifest["plausibility"] is None
    assert {*rows["in_sessions"], *rows["outside_sessions"]} == {"rows", "no_candidate"}
    assert "drawn_own" not in rows
    assert "how many drew their own venue is not stated, since it would reveal single rows" in made.done.stdout
    assert repr(ghostpoi.Release(made.manifest, None)).endswith(f" rows, {made.manifest['method']})")
    done = called("report", made.folder)
    assert done.returncode == 0, done.stderr
    card = (made.folder / "card.md").read_text()
    assert "other figures are left out: they would reveal the venues of single rows" in card
    assert " km" not in card.split("## Plausibility")[0].split("## What was substituted")[0].split("## How it")[0]
    assert "Most venues were replaced" in (made.folder / "croissant.json").read_text()


def test_a_series_says_that_its_groups_were_learned(tmp_path: Path) -> None:
    words = ("--set", "method.category=group", "--set", "method.draw=even")
    for number, (begin, end) in enumerate([(0, 20), (20, 40)]):
        made = release_in(tmp_path / "series", days(begin, end), tmp_path / f"{number}", *words)
        assert made.manifest["disclosure"]["aggregates"] == [LEARNED_GROUPS]


def test_the_category_of_a_venue_that_is_never_drawn_is_not_listed(tmp_path: Path) -> None:
    def grouped(name: str, chosen: list[dict[str, str]]) -> Path:
        with (tmp_path / name).open("w", newline="") as file:
            out = csv.DictWriter(file, [*rows()[0], "kind"], lineterminator="\n")
            out.writeheader()
            out.writerows({**row, "kind": "all"} for row in chosen)
        return tmp_path / name

    words = ("--set", "method.category=group", "--map", "category_group=kind")
    first = release_in(
        tmp_path / "series", grouped("1.csv", [row for row in rows() if day(row) < 20]), tmp_path / "1", *words
    )
    late = next(row for row in rows() if day(row) >= 20) | {
        "venue_id": "new", "category_id": "rare-clinic", "category": "Rare Clinic",
    }  # fmt: skip
    second = release_in(tmp_path / "series", grouped("2.csv", [late]), tmp_path / "2", *words)
    listed = second.manifest["disclosure"]["category_groups"]
    assert listed == first.manifest["disclosure"]["category_groups"]
    assert listed
    assert b"rare" not in (second.folder / "manifest.json").read_bytes().lower()


def test_a_late_row_is_not_told_by_the_figures_of_two_releases(tmp_path: Path) -> None:
    series = tmp_path / "series"
    early = [row for row in rows() if day(row) < 20]
    first = release_in(series, written(tmp_path / "first.csv", early), tmp_path / "first")
    assert first.manifest["plausibility"]["mean_km"] > 0
    late = next(row for row in rows() if day(row) >= 20)
    check_no_figure_tells_a_row(release_in(series, written(tmp_path / "next.csv", [*early, late]), tmp_path / "next"))


def test_the_months_of_a_series_may_be_parquet(tmp_path: Path) -> None:
    import polars as pl

    for number, (begin, end) in enumerate([(0, 15), (15, 30), (10, 32)]):
        file = tmp_path / f"{number}.parquet"
        frame = pl.read_csv(days(begin, end), schema_overrides={"user": pl.Int32})
        frame.with_columns(pl.col("category").cast(pl.Categorical)).write_parquet(file)
        done = release_in(tmp_path / "series", file, tmp_path / f"release-{number}")
        assert called("verify", done.folder, "--against", file).returncode == 0
    assert done.manifest["series"]["repeated"] > 0


def test_pseudonyms_never_return_except_for_the_same_rows(tmp_path: Path) -> None:
    series = tmp_path / "series"
    spans = [(0, 20), (20, 40), (30, 50)]
    made = [
        release_in(series, days(*span), tmp_path / f"release-{n}", "--pseudonyms", "session")
        for n, span in enumerate(spans)
    ]
    users = [{row["user"] for row in released_rows(one)} for one in made]
    assert not users[0] & users[1]
    assert users[1] & users[2]
    at: dict[str, set[str]] = defaultdict(set)
    for row in released_rows(made[1]):
        at[row["utc_time"]].add(row["user"])
    both = [row for row in released_rows(made[2]) if row["utc_time"] in at]
    assert len(both) > 100
    assert all(row["user"] in at[row["utc_time"]] for row in both)
    for one in made:
        assert called("verify", one.folder, "--against", one.file).returncode == 0


spans = st.tuples(st.integers(0, 80), st.integers(10, 30)).map(lambda span: (span[0], sum(span)))


places = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=40)


def table_of(venues: list[tuple[int, int]], first: int, people: int = 1) -> Checkins:
    """One visit to each venue, on a grid of about 500 m."""
    count = len(venues)
    lat, lon = (np.array([xy[k] for xy in venues], float) * 0.005 for k in range(2))
    one = np.zeros(count, np.int32)
    user, users = np.arange(count, dtype=np.int32) % people, np.array([f"u{n}" for n in range(people)], object)
    return Checkins(
        user, np.arange(1, count + 1, dtype=np.int32), one, lat, lon, np.arange(count) * 3600, users,
        np.array(["", *(f"v{first + n:03}" for n in range(count))], object), np.array(["c"], object),
    )  # fmt: skip


def test_few_new_venues_are_guests_and_many_form_a_crowd() -> None:
    """A place of four, then two guests; four together; two far away; one alone, to whom another comes."""
    near, far, alone = [(0, n) for n in range(4)], [(40, 0), (40, 1)], [(0, 60)]
    method = Crowd(size=4, reach_km=5.0)
    first = join(Catalogue.empty(), table_of(near, 0), method, HideSettings())
    assert first.crowd.tolist() == [1] * 4
    few = join(first, table_of([(1, 0), (1, 3), *far, *alone], 4, people=2), method, HideSettings())
    assert few.crowd.tolist()[4:6] == [1, 1]
    assert few.member.tolist()[4:6] == [False, False]
    assert few.crowd[6] == few.crowd[7] > 1
    assert (few.crowd[8], few.member[8]) == (0, True)
    lone = join(first, table_of([*far, *alone], 4), method, HideSettings())  # a crowd would show one person's visits
    assert lone.crowd.tolist()[4:] == [1, 1, 0]
    assert lone.member.tolist()[4:] == [False, False, True]
    several = [(2, n) for n in range(4)] + [(0, 61)]
    many = join(few, table_of(several, 9, people=4), method, HideSettings())
    assert len(set(many.crowd[9:13].tolist()) - set(few.crowd.tolist())) == 1
    assert many.member[9:13].all()
    assert many.crowd[8] == many.crowd[13] > 0
    assert {len(members) for members in many.members().values()} == {2, 4}
    mine = join(
        few, table_of(several, 9, people=3), method, HideSettings()
    )  # a crowd would show where three people went
    assert not mine.member[9:13].any()
    assert set(mine.crowd[9:13].tolist()) <= set(few.crowd.tolist())


@given(st.lists(places, min_size=2, max_size=4))
def test_new_venues_join_without_changing_crowds(months: list[list[tuple[int, int]]]) -> None:
    method, known, first = Crowd(size=4, reach_km=5.0), Catalogue.empty(), 0
    for venues in months:
        before, known = known, join(known, table_of(venues, first), method, HideSettings())
        first += len(venues)
        assert len(known) == first
        old = before.crowd > 0
        assert (known.crowd[: len(before)][old] == before.crowd[old]).all()
        assert (known.member[: len(before)][old] == before.member[old]).all()
        after = known.members()
        assert all((after[number] == members).all() for number, members in before.members().items())
        assert all(len(members) > 1 for members in after.values())
        assert set(known.crowd[known.crowd > 0].tolist()) == set(after)  # a guest has a host


@pytest.mark.parametrize(("people", "formed"), [(1, 0), (12, 1)])
def test_new_venues_that_one_person_visits_form_no_crowd(people: int, formed: int, tmp_path: Path) -> None:
    """A crowd of them would show that this person went to one of them."""
    first, size = days(0, 20), ("--set", "method.size=8")
    release_in(tmp_path / "series", first, tmp_path / "first", *size)
    before = shown(tmp_path / "series")
    own = sorted({row["user"] for row in clean_rows(first)})[:people]
    park = next(row for row in rows() if row["category"] == "Park")
    kind = {name: park[name] for name in ("category_id", "category")}
    far, draw = list[dict[str, str]](), random.Random(5)
    for at, user in enumerate(own):
        for n, venue in enumerate(draw.sample(range(12), 12)):
            place = {"venue_id": f"far{venue:021}", "latitude": f"{60 + venue / 1000:.6f}", "longitude": "-73.900000"}
            row = rows()[40 * n + at]
            time = row["utc_time"][:17] + f"{(int(row['utc_time'][17:19]) + 7) % 60:02}" + row["utc_time"][19:]
            far.append(row | kind | place | {"user": user, "utc_time": time})
    second = written(tmp_path / "second.csv", sorted([*clean_rows(first), *far], key=day))
    release_in(tmp_path / "series", second, tmp_path / "second", *size)
    after = shown(tmp_path / "series")
    assert after["venues"] == before["venues"] + 12
    assert after["crowds"] == before["crowds"] + formed


def shown(series: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(called("series", "show", series, "--json").stdout)
    return found
