"""What steps between rows of a venue reveal: counters, sums with a clock, and two columns that agree."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from ghostpoi.columns.pairs import VenuePairs
from ghostpoi.columns.related import RelatedVenues
from ghostpoi.data.checkins import Checkins, Longs

ROWS, VENUES = 3000, 40
DRAW = np.random.default_rng(3)
VENUE = DRAW.integers(1, VENUES + 1, ROWS).astype(np.int32)
TIME = np.cumsum(DRAW.integers(1, 1200, ROWS))
TABLE = Checkins(
    DRAW.integers(0, 25, ROWS).astype(np.int32), VENUE, (VENUE % 4).astype(np.int32), VENUE / 100, VENUE / 50,
    TIME, np.arange(25).astype(str).astype(object), np.arange(VENUES + 1).astype(str).astype(object),
    np.array(list("abcd"), object),
)  # fmt: skip
KIND = (np.arange(VENUES + 1) % 4).astype(np.int64)


def count(most: int) -> Longs:
    """Number the rows of each venue by steps from 1 to `most`, from any start."""
    draw = np.random.default_rng(5)
    order, total = np.argsort(VENUE, kind="stable"), np.empty(ROWS, np.int64)
    total[order] = np.cumsum(draw.integers(1, most + 1, ROWS))
    return total + draw.integers(0, 1000, VENUES + 1)[VENUE]


@pytest.mark.parametrize("most", [1, 5, 30])
@pytest.mark.parametrize("round_at", [100, 10**6])
@pytest.mark.parametrize("form", ["{}", "no. {:06d}", "{}.0"])
def test_a_counter_is_found(most: int, round_at: int, form: str) -> None:
    column = pl.Series([form.format(number % round_at) for number in count(most).tolist()])
    found = VenuePairs(RelatedVenues(TABLE), None).finding(column if form != "{}.0" else column.cast(pl.Float64))
    assert found is not None
    assert found.share > 0.5
    assert str(found).startswith("counts the check-ins of each venue (")


@pytest.mark.parametrize(
    "value",
    [np.arange(ROWS), np.arange(ROWS) % 100, TABLE.user, TABLE.time // 86_400, DRAW.integers(0, 100, ROWS)],
)  # fmt: skip
def test_other_numbers_are_no_counters(value: Longs) -> None:
    assert VenuePairs(RelatedVenues(TABLE), None).finding(pl.Series(value)) is None


def test_what_follows_from_a_category_that_the_release_shows_is_no_counter() -> None:
    column = pl.Series(KIND[VENUE] * 10 + np.random.default_rng(1).integers(0, 3, ROWS))
    assert VenuePairs(RelatedVenues(TABLE), KIND).finding(column) is None
    assert VenuePairs(RelatedVenues(TABLE), None).finding(column) is not None
    assert VenuePairs(RelatedVenues(TABLE), KIND).finding(pl.Series(count(3) % 100)) is not None


NUMBER = DRAW.integers(0, 10_000, VENUES + 1)
BY_HOUR = DRAW.integers(0, 2, (VENUES + 1, 24))
BY_USER = np.random.default_rng(6).integers(0, 2, (VENUES + 1, 25))
HOUR = TABLE.time // 3600 % 24
WITH_CLOCKS = {
    "follows from the clean venue and the row number": (NUMBER[VENUE] + np.arange(ROWS)) % 97,
    "follows from the clean venue and the number of the user's row":
        (NUMBER[VENUE] - RelatedVenues(TABLE).place_of_row) % 40,
    "follows from the clean venue and the time": (NUMBER[VENUE] + TABLE.time // 60) % 60,
    "follows from the clean venue and the hour": BY_HOUR[VENUE, HOUR],
    "follows from the clean venue and the user": BY_USER[VENUE, TABLE.user],
    "follows from the venue of the row above": NUMBER[np.append(0, VENUE[:-1])] % 40,
    "follows from the venue of the row below": NUMBER[np.append(VENUE[1:], 0)] % 40,
    "counts the check-ins of each venue": 2 * DRAW.integers(0, 50, ROWS) + NUMBER[VENUE] % 2,
    "predicts the clean venue": NUMBER[VENUE] % 7 + 100 * DRAW.integers(0, 2, ROWS),
}  # fmt: skip


@pytest.mark.parametrize("reason", WITH_CLOCKS)
def test_what_a_venue_decides_together_with_a_clock_is_found(reason: str) -> None:
    found = VenuePairs(RelatedVenues(TABLE)).finding(pl.Series(WITH_CLOCKS[reason]))
    assert found is not None
    assert found.reason in (
        reason,
        "counts the check-ins of each venue",
    )  # steps of the row number may look like counts
    assert found.share > 0.2


@pytest.mark.parametrize("clock", [np.arange(ROWS), TABLE.time // 3600, HOUR, RelatedVenues(TABLE).place_of_row])
@pytest.mark.parametrize("noise", [1, 3])
@pytest.mark.parametrize("size", [7, 97, 10**6])
def test_a_clock_alone_is_harmless(clock: Longs, noise: int, size: int) -> None:
    value = (clock + np.random.default_rng(2).integers(0, noise, ROWS)) % size
    assert VenuePairs(RelatedVenues(TABLE)).finding(pl.Series(value)) is None


@pytest.mark.parametrize("days", [1, 3, 10])
def test_what_changes_slowly_is_harmless_although_users_come_back(days: int) -> None:
    """Each user is at one venue for some days, then at another; the value is the user's and changes now and then."""
    day, draw = TABLE.time // 86_400, np.random.default_rng(7)
    elsewhere = np.where(draw.random(ROWS) < 0.2, draw.integers(0, 30, ROWS), 0)
    table = replace(TABLE, venue=((day // days + TABLE.user) % 2 + elsewhere + 1).astype(np.int32))
    value = pl.Series(BY_USER[(day // 2) % VENUES, TABLE.user])
    assert VenuePairs(RelatedVenues(table)).finding(value) is None


def test_what_follows_the_hour_is_harmless_although_users_are_at_one_venue_at_night() -> None:
    draw = np.random.default_rng(8)
    night, elsewhere = HOUR < 12, np.where(draw.random(ROWS) < 0.2, draw.integers(0, 15, ROWS), 0)
    table = replace(TABLE, venue=(2 * ((night + TABLE.user) % 2 + elsewhere) + 1).astype(np.int32))
    value = pl.Series(night ^ (draw.random(ROWS) < 0.1))
    assert VenuePairs(RelatedVenues(table)).finding(value) is None


@pytest.mark.parametrize("sign", [1, -1])
def test_a_clock_may_be_added_or_subtracted(sign: int) -> None:
    value = pl.Series((NUMBER[VENUE] + sign * (TIME // 60)) % 60)
    assert str(VenuePairs(RelatedVenues(TABLE)).finding(value)).startswith(
        "follows from the clean venue and the time ("
    )


@pytest.mark.parametrize(("size", "found"), [(256, True), (258, False)])
def test_up_to_256_numbers_each_step_counts_by_itself(size: int, found: bool) -> None:
    """One bit of the number is the venue's: ranges of steps hide it."""
    value = 2 * np.random.default_rng(9).integers(0, size // 2, ROWS) + NUMBER[VENUE] % 2
    value[:2] = 0, size - 1
    assert (VenuePairs(RelatedVenues(TABLE)).finding(pl.Series(value)) is not None) == found


def test_two_columns_may_agree_together_at_one_venue_only() -> None:
    """Of the pairs at two venues, none agrees in both."""
    draw = np.random.default_rng(0)
    one = draw.integers(0, 70, ROWS)
    pairs, two = VenuePairs(RelatedVenues(TABLE)), (one + draw.integers(0, 70, VENUES + 1)[VENUE]) % 70
    rows = pairs._groups["predicts the clean venue"]
    assert not ((one[rows[0]] == one[rows[2]]) & (two[rows[0]] == two[rows[2]])).any()
    assert pairs.together(one, two) > 0.01


def test_two_columns_that_agree_only_together_are_found() -> None:
    pairs, one = VenuePairs(RelatedVenues(TABLE)), DRAW.integers(0, 16, ROWS)
    assert pairs.together(one, one ^ (NUMBER[VENUE] % 16)) > 0.03
    assert pairs.together(one, DRAW.integers(0, 16, ROWS)) == 0.0
    assert pairs.together(VENUE % 4 + 4 * one, VENUE % 4) == 0.0  # each alone agrees as often


def test_a_few_rows_prove_nothing() -> None:
    few = Checkins(
        TABLE.user[:60], VENUE[:60], TABLE.category[:60], TABLE.lat[:60], TABLE.lon[:60], TABLE.time[:60],
        TABLE.user_ids, TABLE.venue_ids, TABLE.category_ids,
    )  # fmt: skip
    assert VenuePairs(RelatedVenues(few), None).finding(pl.Series(count(1)[:60])) is None
