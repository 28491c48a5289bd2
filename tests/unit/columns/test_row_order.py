"""The order of the rows is a column, too: an order that depends on the venues is refused."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from small_city import MAP, SETS, called, rich_frame, sentence

from ghostpoi.columns import RelatedVenues
from ghostpoi.columns.order import order_reveals, venues_dated_by_id
from ghostpoi.data.checkins import Checkins, Floats, Longs

DAY = pl.col("time").dt.date()
WEEK, HOUR = pl.col("time").dt.truncate("1w"), pl.col("time").dt.truncate("6h")


def written(path: Path, *by: pl.Expr | str, descending: bool = False) -> Path:
    frame = rich_frame().drop("checkin")
    time = pl.col("timestamp").str.to_datetime("%a %b %d %H:%M:%S %z %Y")
    frame.with_columns(time=time).sort(*by, descending=descending, maintain_order=True).drop("time").write_csv(path)
    return path


COMPLAINT = (
    "(are grouped by venue|are (sorted|grouped) by (venue id|latitude|longitude|the column '(catid|title|address)')"
    "( inside groups)?|put venues near each other .+)"
)


@pytest.mark.parametrize(
    "by",
    [
        ["spot"], ["Who", "spot"], [DAY, "spot"], [DAY, "lat"], [DAY, "lng"], ["Who", DAY, "lat"],
        [DAY, "catid", "time"], [WEEK, "catid"], [DAY, "title"], ["Who", WEEK, "catid"], [HOUR, "catid"],
        [pl.col("time").dt.truncate("30d"), pl.col("lat").round(2), "timestamp"],
    ],
)  # fmt: skip
def test_an_order_that_depends_on_venues_is_refused(by: list[pl.Expr | str], tmp_path: Path) -> None:
    path = written(tmp_path / "city.csv", *by)
    text = sentence(called("protect", path, "-o", tmp_path / "r", *MAP, *SETS))
    remedy = "so their order reveals clean venues; sort them by time with --order time"
    assert re.fullmatch(f"{path}: its rows {COMPLAINT}, {remedy}", text)
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("by", [["time"], ["Who", "time"], ["gender", "time"], [DAY, "Who"]])
def test_other_orders_are_fine(by: list[pl.Expr | str], descending: bool, tmp_path: Path) -> None:
    path = written(tmp_path / "city.csv", *by, descending=descending)
    done = called("protect", path, "-o", tmp_path / "r", "--method", "random", *MAP, *SETS)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr


@pytest.mark.parametrize("by", [["time"], ["Who", "time"]])
def test_ids_in_the_order_of_first_visits_give_a_warning(by: list[str], tmp_path: Path) -> None:
    path = written(tmp_path / "city.csv", *by)
    frame = pl.read_csv(path)
    number = {spot: i for i, spot in enumerate(frame["spot"].unique(maintain_order=True))}
    frame.with_columns(spot=pl.Series([number[s] for s in frame["spot"]])).write_csv(path)
    done = called("protect", path, "-o", tmp_path / "r", "--method", "random", *MAP, *SETS)
    assert done.returncode == 0
    assert ("warning: venue ids increase with the first visit" in done.stderr) == (by == ["time"])
    assert ("warning: venue ids follow the order of the venues' first rows" in done.stderr) == (by != ["time"])
    assert done.stderr.splitlines()[0].endswith("; replace them in the file by random ids, which no option does")


@pytest.mark.parametrize(("ties", "reveals"), [(40, False), (1500, True)])
def test_a_few_rows_may_be_close_by_chance(ties: int, reveals: bool) -> None:
    """A third of the rows that share their time with the row before are next door to it."""
    draw, n = np.random.default_rng(1), 4000
    lat, lon = draw.random(n), draw.random(n)
    second = 2 * np.arange(ties) + 1
    time = np.arange(n) * 60
    time[second] = time[second - 1]
    close = second[::3]
    lat[close], lon[close] = lat[close - 1] + 1e-6, lon[close - 1]
    ids = np.array([f"{x:.12f}" for x in draw.random(n)], object)
    table = Checkins(
        np.arange(n, dtype=np.int32) % 7, np.arange(1, n + 1, dtype=np.int32), np.zeros(n, np.int32), lat, lon, time,
        np.array(list("abcdefg"), object), np.append("", ids), np.array(["bar"], object),
    )  # fmt: skip
    assert (order_reveals(RelatedVenues(table), {}) is not None) == reveals


@pytest.mark.parametrize(("order", "found"), [("by venue", "are grouped by venue"), ("at random", None)])
def test_a_popular_venue_follows_itself_by_chance(order: str, found: str | None) -> None:
    """Two thirds of the rows are at one venue, so two rows in a row share it at random in half of all cases."""
    draw = np.random.default_rng(3)
    count = 900
    venue = np.where(draw.random(count) < 0.65, 1, draw.integers(2, 8, count)).astype(np.int32)
    rows = np.argsort(venue, kind="stable") if order == "by venue" else np.arange(count)
    user, time = draw.integers(0, 30, count).astype(np.int32), draw.permutation(count).astype(np.int64) * 977
    places = draw.permutation(8) / 100
    table = Checkins(
        user[rows], venue[rows], np.zeros(count, np.int32), 40 + places[venue[rows]], places[venue[rows]] - 74,
        time[rows], np.arange(30).astype(str).astype(object),
        np.array(["", *(f"{v * 7919 % 101:03}x" for v in range(1, 8))], object), np.array(["c"], object),
    )  # fmt: skip
    assert order_reveals(RelatedVenues(table), {}) == found


@pytest.mark.parametrize(("order", "found"), [("at random", None), ("by venue", "grouped"), ("by week", "grouped")])
def test_rows_in_random_order_are_fine_although_new_venues_have_higher_ids(order: str, found: str | None) -> None:
    """Each venue is visited from its own day on; `by week`: the last week first, and inside weeks by venue."""
    draw, count = np.random.default_rng(6), 4000
    venue = draw.integers(0, 400, count)
    time = ((venue + draw.random(count) * 400) * 43_200).astype(np.int64)
    rows = {
        "at random": draw.permutation(count), "by venue": np.lexsort((time, venue)),
        "by week": np.lexsort((time, venue, -(time // 604_800))),
    }[order]  # fmt: skip
    places, zero = draw.random((2, 400)), np.zeros(count, np.int32)
    table = Checkins(
        draw.integers(0, 60, count).astype(np.int32), (venue[rows] + 1).astype(np.int32), zero, *places[:, venue[rows]],
        time[rows], np.arange(60).astype(str).astype(object),
        np.append("", np.arange(1000, 1400)).astype(str).astype(object), np.array(["c"], object),
    )  # fmt: skip
    said = order_reveals(RelatedVenues(table), {})
    assert said is None if found is None else "grouped" in str(said) or "sorted" in str(said)


@pytest.mark.parametrize(("weeks", "numbered", "reveals"), [(1, False, True), (-1, False, True), (-1, True, False)])
def test_rows_sorted_by_id_inside_weeks_are_not_taken_for_ids_by_first_row(
    weeks: int, numbered: bool, reveals: bool
) -> None:
    """Most of 6,000 venues are visited once, so that ids rise with the first row but for one step a week."""
    draw, count = np.random.default_rng(7), 7000
    venue, week = np.unique(draw.integers(0, 6000, count), return_inverse=True)[1], draw.integers(0, 10, count)
    rows = np.lexsort((draw.random(count) if numbered else venue, weeks * week))
    venue, time = venue[rows], (week[rows] * 604_800 + draw.integers(0, 604_800, count)).astype(np.int64)
    place, zero = draw.random((2, 6000)), np.zeros(count, np.int32)
    ids = np.arange(10_000, 10_001 + venue.max())
    if numbered:
        ids[np.argsort(np.unique(venue, return_index=True)[1])] = np.sort(ids)
    table = Checkins(
        draw.integers(0, 60, count).astype(np.int32), (venue + 1).astype(np.int32), zero, *place[:, venue], time,
        np.arange(60).astype(str).astype(object), np.append("", ids.astype(str)).astype(object),
        np.array(["c"], object),
    )  # fmt: skip
    assert (order_reveals(RelatedVenues(table), {}) is not None) == reveals


@pytest.mark.parametrize(
    ("size", "by_column", "by_venue"),
    [(3, None, "are sorted by venue id inside groups"),
     (8, "are sorted by the column 'kind' inside groups", "are sorted by venue id inside groups")],
)  # fmt: skip
def test_a_column_may_rise_more_often_than_ids(size: int, by_column: str | None, by_venue: str) -> None:
    """Rows in no order of time, in runs of `size` that rise: of three rows, two steps rise and one falls."""
    draw, count = np.random.default_rng(5), 900
    runs, other = np.arange(count) % size, draw.integers(0, size, count)

    def found(venue: Longs, column: Longs) -> str | None:
        places = draw.permutation(size) / 100
        table = Checkins(
            draw.integers(0, 30, count).astype(np.int32), (venue + 1).astype(np.int32), np.zeros(count, np.int32),
            places[venue], places[venue], draw.permutation(count) * 977, np.arange(30).astype(str).astype(object),
            np.array(["", *"abcdefgh"[:size]], object), np.array(["c"], object),
        )  # fmt: skip
        return order_reveals(RelatedVenues(table), {"kind": pl.Series(column)})

    assert found(other, runs) == by_column
    assert found(runs, other) == by_venue


@pytest.mark.parametrize("new", [0, 240])
def test_few_new_venues_of_a_short_file_are_found(new: int) -> None:
    """Of 12,000 numbered venues, the last few were created evenly in the period; the others are visited at any time."""
    draw, count = np.random.default_rng(4), 12_000
    start = np.zeros(count)
    start[count - new :] = np.linspace(0, 1, new, endpoint=False)
    venue = draw.permutation(np.tile(np.arange(count), 3))
    time = ((start[venue] + (1 - start[venue]) * draw.random(len(venue)) ** 2) * 1_800_000).astype(np.int64)
    zero = np.zeros(len(venue))
    table = Checkins(
        (venue % 7).astype(np.int32), (venue + 1).astype(np.int32), zero.astype(np.int32), zero, zero, time,
        np.array(list("abcdefg"), object), np.append("", np.arange(1, count + 1).astype(str)).astype(object),
        np.array(["bar"], object),
    )  # fmt: skip
    found = venues_dated_by_id(RelatedVenues(table))
    assert (0.01 < found < 0.02) if new else found == 0


def plain_table(venue: Longs, time: Longs, place: Floats) -> Checkins:
    """Rows of 40 users in turn, at venues with numbers as ids; `place` (2, V) are positions."""
    known, number = np.unique(venue, return_inverse=True)
    ids = np.append("", (known + 1000).astype(str)).astype(object)
    return Checkins(
        (np.arange(len(venue)) * 7 % 40).astype(np.int32), (number + 1).astype(np.int32),
        np.zeros(len(venue), np.int32),
        *place[:, venue], time, np.arange(40).astype(str).astype(object), ids, np.array(["c"], object),
    )  # fmt: skip


def test_few_venues_with_ids_in_the_order_of_their_creation_are_found() -> None:
    """Of 100 venues, half were created in the period: too few blocks to count, but enough for their mean."""
    draw, count = np.random.default_rng(8), 3000
    start = np.maximum(0, np.arange(100) / 50 - 1)
    venue = draw.integers(0, 100, count)
    time = ((start[venue] + (1 - start[venue]) * draw.random(count) ** 2) * 1_800_000).astype(np.int64)
    table = plain_table(venue, time, draw.random((2, 100)))
    assert venues_dated_by_id(RelatedVenues(table)) > 0.1
    assert venues_dated_by_id(RelatedVenues(replace(table, time=draw.permutation(time)))) == 0


@pytest.mark.parametrize("block", [3600, 86_400, 7 * 86_400, 30 * 86_400])
@pytest.mark.parametrize("by_id", [False, True])
@pytest.mark.parametrize("direction", [1, -1])
def test_rows_sorted_by_id_are_found_although_most_blocks_have_one_row(block: int, by_id: bool, direction: int) -> None:
    """Of the steps, one in ten stays inside a block; rows lie at both ends of it, so another division mixes them."""
    draw, count = np.random.default_rng(9), 6000
    at = np.sort(draw.integers(0, 9 * count, count)) + 1_300_000_000 // block
    venue, side = draw.integers(0, 3000, count), draw.integers(0, 2, count)
    time = at * block + np.where(side == 1, block - 60, 0) + draw.integers(0, 60, count)
    rows = np.lexsort((venue if by_id else draw.random(count), direction * at))
    found = order_reveals(RelatedVenues(plain_table(venue[rows], time[rows], draw.random((2, 3000)))), {})
    assert found == ("are sorted by venue id inside groups" if by_id else None)


@pytest.mark.parametrize(("by_day", "reveals"), [(True, False), (False, True)])
def test_neighbours_may_be_near_if_they_are_so_in_time(by_day: bool, reveals: bool) -> None:
    """All are in another part of the city each day, or rows of another part follow each other in the file."""
    draw, count = np.random.default_rng(10), 4000
    number = np.sort(draw.integers(0, 40, count))
    day, part = (number, number) if by_day else (draw.integers(0, 40, count), number)
    place = np.repeat(draw.random((2, 40)), 25, axis=1) + draw.normal(0, 0.01, (2, 1000))
    order = draw.permutation(1000)
    venue, time = order[part * 25 + draw.integers(0, 25, count)], day * 86_400 + draw.integers(0, 86_400, count)
    found = order_reveals(RelatedVenues(plain_table(venue, time, place[:, np.argsort(order)])), {})
    assert found == ("put venues near each other side by side" if reveals else None)
