"""Numbers that each venue counts are found from the steps between its rows, wherever they start and go round."""

import numpy as np
import polars as pl
import pytest

from ghostpoi.columns.dependence import counted
from ghostpoi.columns.related import RelatedVenues
from ghostpoi.data.checkins import Checkins, Longs

ROWS, VENUES = 3000, 40
DRAW = np.random.default_rng(3)
VENUE = DRAW.integers(1, VENUES + 1, ROWS).astype(np.int32)
TABLE = Checkins(
    DRAW.integers(0, 25, ROWS).astype(np.int32), VENUE, (VENUE % 4).astype(np.int32), VENUE / 100, VENUE / 50,
    np.arange(ROWS) * 600, np.arange(25).astype(str).astype(object), np.arange(VENUES + 1).astype(str).astype(object),
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
    found = counted(column if form != "{}.0" else column.cast(pl.Float64), RelatedVenues(TABLE), None)
    assert found is not None
    assert found.share > 0.5
    assert str(found).startswith("counts the check-ins of each venue (")


@pytest.mark.parametrize(
    "value",
    [np.arange(ROWS), np.arange(ROWS) % 100, TABLE.user, TABLE.time // 86_400, DRAW.integers(0, 100, ROWS)],
)  # fmt: skip
def test_other_numbers_are_no_counters(value: Longs) -> None:
    assert counted(pl.Series(value), RelatedVenues(TABLE), None) is None


def test_what_follows_from_a_category_that_the_release_shows_is_no_counter() -> None:
    column = pl.Series(KIND[VENUE] * 10 + np.random.default_rng(1).integers(0, 3, ROWS))
    assert counted(column, RelatedVenues(TABLE), KIND) is None
    assert counted(column, RelatedVenues(TABLE), None) is not None
    assert counted(pl.Series(count(3) % 100), RelatedVenues(TABLE), KIND) is not None


def test_a_few_rows_prove_nothing() -> None:
    few = Checkins(
        TABLE.user[:60], VENUE[:60], TABLE.category[:60], TABLE.lat[:60], TABLE.lon[:60], TABLE.time[:60],
        TABLE.user_ids, TABLE.venue_ids, TABLE.category_ids,
    )  # fmt: skip
    assert counted(pl.Series(count(1)[:60]), RelatedVenues(few), None) is None
