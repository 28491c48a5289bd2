"""What a column adds to a prediction: the tables of the predictor, the position, and the controls."""

import numpy as np
import pytest

from ghostpoi.columns import RelatedVenues, dependence
from ghostpoi.columns.dependence import PERIODS, Units, of_rows, position_gain
from ghostpoi.data.checkins import Checkins, Longs, Venues

DRAW = np.random.default_rng(4)


def venues(lat: list[float]) -> Venues:
    return Venues(np.array([np.nan, *lat]), np.zeros(len(lat) + 1), np.zeros(len(lat) + 1, np.int32))


def units(venue: Longs, where: Venues, shown: Longs | None = None) -> Units:
    alike = np.zeros(len(venue), np.int64)
    return Units({"own": venue.astype(np.int32)}, (alike,), where, (), shown)


def test_large_tables_of_counts_hold_what_small_ones_do(monkeypatch: pytest.MonkeyPatch) -> None:
    learned, asked = (tuple(DRAW.integers(0, most, count) for most in (6, 9)) for count in (40, 300))
    asked = asked[0] + np.arange(300) % 2 * 5, asked[1]  # of groups too that nothing was learned of
    behind = DRAW.random(300)
    dense = dependence._share(learned, asked, behind)
    monkeypatch.setattr(dependence, "DENSE", 0)
    assert np.allclose(dependence._share(learned, asked, behind), dense)
    group, value = asked[0][0], asked[1][0]
    rows = learned[0] == group
    by_hand = ((learned[1][rows] == value).sum() + 5 * behind[0]) / (rows.sum() + 5)
    assert dense[0] == pytest.approx(by_hand)


def test_a_column_that_says_which_of_two_venues_it_is_explains_the_position() -> None:
    venue = DRAW.integers(1, 3, 400)
    told = units(venue, venues([40.0, 41.0]))
    assert position_gain(venue, told.venue["own"], told) > 0.9
    assert position_gain(DRAW.integers(0, 2, 400), told.venue["own"], told) == 0.0
    noisy = np.where(DRAW.random(400) < 0.5, venue, DRAW.permutation(venue))
    assert 0.1 < position_gain(noisy, told.venue["own"], told) < 0.5
    assert position_gain(venue[:60], told.venue["own"][:60], units(venue[:60], told.venues)) == 0.0  # too few


def test_where_venues_of_a_shown_kind_are_is_no_news() -> None:
    """Kind 0 is in the south, kind 1 in the north; inside both, one venue is a little farther north."""
    where, shown = venues([40.0, 40.1, 41.0, 41.1]), np.array([-1, 0, 0, 1, 1])
    venue = DRAW.integers(1, 5, 2000)
    plain, known = units(venue, where), units(venue, where, shown)
    kind, side = shown[venue], venue % 2
    assert position_gain(kind, plain.venue["own"], plain) > 0.9
    assert position_gain(kind, known.venue["own"], known) == 0.0
    assert position_gain(side, plain.venue["own"], plain) == 0.0
    assert position_gain(side, known.venue["own"], known) > 0.9


@pytest.mark.parametrize(("rows", "periods"), [(20, 3), (45, 5), (1000, PERIODS)])
def test_values_are_shuffled_inside_periods_of_ten_rows_or_more(rows: int, periods: int) -> None:
    user = np.repeat(np.arange(4, dtype=np.int32), rows)
    count, time = len(user), np.tile(np.arange(rows), 4) * 3600
    table = Checkins(
        user, np.ones(count, np.int32), np.zeros(count, np.int32), np.zeros(count), np.zeros(count), time,
        np.array(list("abcd"), object), np.array(["", "v"], object), np.array(["c"], object),
    )  # fmt: skip
    assert len(np.unique(of_rows(RelatedVenues(table), np.arange(count)).groups[3])) == 4 * periods
