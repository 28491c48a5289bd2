"""Columns as exports have them: what follows from clean venues is refused, what does not is kept."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from small_city import SETS, called, scratch, sentence

from benchmarks.city import City, Make
from benchmarks.harmless import HARMLESS
from benchmarks.leaky import LEAKY
from ghostpoi import formats
from ghostpoi.data.synthetic import make_city
from ghostpoi.data.synthetic_files import city_frame


@cache
def frame() -> pl.DataFrame:
    """A city of 12,300 rows without a category of venues that the default would show."""
    return city_frame(make_city(160, 300, 120, 3), 3).drop("timezone_offset", "category")


@cache
def city() -> City:
    path = scratch() / "plain.csv"
    frame().write_csv(path)
    return City(formats.read(path).table, 1)


def with_columns(path: Path, makers: dict[str, Make]) -> Path:
    seeded = City(city().table, 1)  # whatever other tests have drawn
    frame().with_columns(pl.Series(n, make(seeded), strict=False) for n, make in makers.items()).write_csv(path)
    return path


def protect(path: Path, *more: str) -> str:
    return sentence(called("protect", path, "-o", path.parent / "r", "--dry-run", *SETS, *more))


REASONS = {
    "purpose_keyword": "predicts the clean venue", "expense_type": "predicts the clean venue",
    "came_from": "predicts the user's previous venue", "next_purpose": "predicts the user's next venue",
    "trip_id": "predicts the clean venue", "row_code": "predicts the clean venue",
    "logged_at": "predicts the clean venue", "visited_filter": "is similar for users who visit the same venues",
    "visit_vector": "is similar for users who visit the same venues",
    "radius_km": "is correlated with the radius of the user's visits",
    "number_of_venues": "is correlated with the number of the user's venues",
    "first_time": "is correlated with whether the user is at the venue for the first time",
}  # fmt: skip


def test_what_follows_from_the_visits_is_refused(tmp_path: Path) -> None:
    text = protect(with_columns(tmp_path / "x.csv", {name: LEAKY[name] for name in REASONS}))
    assert text.startswith(f"{tmp_path / 'x.csv'}: 12 columns could reveal clean venues: ")
    assert [name for name, reason in REASONS.items() if f" {name!r} {reason} (" not in text] == []


@pytest.mark.parametrize("name", ["check_digits", "meter", "stamp_sum", "day_code", "code_of_line_above", "happy_hour"])
def test_what_the_venue_decides_together_with_something_else_is_refused(name: str, tmp_path: Path) -> None:
    text = protect(with_columns(tmp_path / "x.csv", {name: LEAKY[name]}))
    assert re.search(f"the column {name!r} (follows from the|predicts the|counts the check-ins of each) .*venue", text)


def test_what_the_venue_decides_together_with_the_user_is_refused(tmp_path: Path) -> None:
    """Each venue has another half of the users: neither the venue nor the user says anything alone."""
    text = protect(with_columns(tmp_path / "x.csv", {"member": lambda c: c.numbers(c.user * 512 + c.venue, 2)}))
    assert "the column 'member' follows from the clean venue and the user (" in text


def test_two_columns_that_reveal_venues_only_together_are_refused(tmp_path: Path) -> None:
    share = np.random.default_rng(3).integers(0, 16, len(city()))
    path = with_columns(tmp_path / "x.csv", {"a": lambda c: share, "b": lambda c: share ^ c.numbers(c.venue, 16)})
    text = protect(path)
    assert "2 columns could reveal clean venues: 'a' predicts the clean venue together with the others" in text
    assert "more pairs of a venue's rows agree" in text
    assert called("protect", path, "-o", tmp_path / "r", "--dry-run", "--drop", "a", *SETS).returncode == 0


@pytest.mark.parametrize("most", [1, 4, 20])  # steps of the counter: with visits outside the file
def test_numbers_that_each_venue_counts_are_refused(most: int, tmp_path: Path) -> None:
    def tickets(c: City) -> list[str]:
        step, order = c.draw.integers(1, most + 1, len(c)), np.lexsort((c.table.time, c.venue))
        total = np.empty(len(c), np.int64)
        total[order] = np.cumsum(step[order])
        return [f"{number % 100:02d}" for number in (total + c.numbers(c.venue, 100)).tolist()]

    text = protect(with_columns(tmp_path / "x.csv", {"ticket": tickets}))
    assert re.search(r"the column 'ticket' (counts the check-ins of each venue|predicts the clean venue) \(", text)


def test_a_column_that_follows_the_category_is_refused_unless_the_release_shows_the_category(tmp_path: Path) -> None:
    path = with_columns(tmp_path / "x.csv", {"trip_purpose": LEAKY["trip_purpose"]})
    assert "'trip_purpose' predicts the clean venue" in protect(path)
    done = called("protect", path, "-o", tmp_path / "r", "--dry-run", "--method", "random", *SETS)
    assert done.returncode == 0, done.stderr


def test_weak_columns_are_tested_together(tmp_path: Path) -> None:
    """Each of twelve answers has its own frequency in each venue: one says little, all of them much."""

    def answer(c: City) -> list[bool]:
        often = 0.5 + 0.13 * c.draw.choice([-1, 1], int(c.venue.max()) + 1)
        return (c.draw.random(len(c)) < often[c.venue]).tolist()

    path = with_columns(tmp_path / "x.csv", {f"answer_{n}": answer for n in range(12)})
    text = protect(path)
    assert "columns could reveal clean venues: 'answer_" in text
    assert "predicts the clean venue together with the others named here (" in text
    one = frame().with_columns(pl.Series("one", answer(City(city().table, 5))))
    one.write_csv(tmp_path / "one.csv")
    assert called("protect", tmp_path / "one.csv", "-o", tmp_path / "r", "--dry-run", *SETS).returncode == 0


FOLLOW = (
    "hh_mm", "hh_mm_ss", "am_pm", "decimal_hour", "hour_of_week", "part_of_day", "weekend", "iso_week", "date_eu",
    "date_us", "days_since_start", "position_in_session", "minutes_since_last", "hours_since_last", "session_6h",
    "battery",
)  # fmt: skip


def test_what_follows_from_the_time_or_the_own_sequence_is_kept(tmp_path: Path) -> None:
    path = with_columns(tmp_path / "x.csv", {name: HARMLESS[name] for name in FOLLOW})
    done = called("protect", path, "-o", tmp_path / "r", "--dry-run", *SETS)
    assert done.returncode == 0, done.stderr


def test_dates_and_times_of_parquet_are_kept(tmp_path: Path) -> None:
    time = pl.col("utc_time").str.to_datetime("%a %b %d %H:%M:%S %z %Y")
    makers = {name: HARMLESS[name] for name in ("date32", "time32", "battery")}
    columns = [pl.Series(name, make(city())) for name, make in makers.items()]
    frame().with_columns(time, *columns).write_parquet(tmp_path / "x.parquet")
    assert frame().with_columns(*columns).schema["time32"] == pl.Time
    done = called("protect", tmp_path / "x.parquet", "-o", tmp_path / "r", "--dry-run", *SETS)
    assert done.returncode == 0, done.stderr


def test_the_makers_are_seeded() -> None:
    one, two = (City(city().table, 2) for _ in range(2))
    assert np.array_equal(LEAKY["trip_purpose"](one), LEAKY["trip_purpose"](two))
