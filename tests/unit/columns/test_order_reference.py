"""What the order of rows reveals is computed as plain loops compute it."""

from dataclasses import replace
from itertools import pairwise, zip_longest

import numpy as np
import polars as pl
import pytest

from ghostpoi.columns import order
from ghostpoi.columns.order import _alike, _closeness, _frontier, _ranks, _runs, _sorted, _unexplained
from ghostpoi.columns.related import RelatedVenues
from ghostpoi.data.checkins import Checkins, Longs

ROWS, VENUES, USERS = 300, 40, 5
HOUR, DAY = 3600, 86_400


def table_of(
    time: Longs, user: Longs | None = None, venue: Longs | None = None, ids: list[str] | None = None
) -> Checkins:
    """A table of these times; whatever is not given is drawn."""
    draw, rows = np.random.default_rng(5), len(time)
    user = np.sort(draw.permutation(np.arange(rows) % USERS)) if user is None else user
    venue = draw.integers(1, VENUES + 1, rows) if venue is None else venue
    venues = int(venue.max())
    lat, lon = 60 + draw.permutation(venues + 1) / 100, draw.permutation(venues + 1) / 100
    ids = ids or [f"{number}x" for number in draw.permutation(venues)]
    return Checkins(
        user.astype(np.int32), venue.astype(np.int32), (venue % 3).astype(np.int32), lat[venue], lon[venue],
        time.astype(np.int64), np.arange(user.max() + 1).astype(str).astype(object),
        np.array(["", *ids], object), np.array(list("abc"), object),
    )  # fmt: skip


def drawn_times(rows: int = ROWS, sort: bool = False) -> Longs:
    time = np.random.default_rng(6).integers(0, 90 * DAY, rows) // 7000 * 7000
    return np.sort(time) if sort else time


def test_ranks_are_those_of_numbers_if_all_are_numbers() -> None:
    assert _ranks(pl.Series(["10", "9", "9", "-1"])).tolist() == [2, 1, 1, 0]
    assert _ranks(pl.Series([2.5, -1.0, 2.5])).tolist() == [1, 0, 1]
    assert _ranks(pl.Series(["10", "9", " 'b", '"a"', None])).tolist() == [2, 3, 1, 4, 0]
    assert _ranks(pl.Series(["b", '"a"', " c ", None])).tolist() == [2, 1, 3, 0]
    assert _ranks(pl.Series([[3], [1, 2], [3]])).tolist() == [0, 1, 0]
    assert _ranks(pl.Series([b"z", b"a"])).tolist() == [1, 0]


@pytest.mark.parametrize("of_user", [True, False])
@pytest.mark.parametrize("wrong", [0, 2, 3, ROWS])
@pytest.mark.parametrize("back", [1, -1])
def test_time_explains_all_but_ties_of_a_file_in_order_of_time(of_user: bool, wrong: int, back: int) -> None:
    """Of 300 steps, or of 295 of users, two may go back."""
    time = drawn_times(ROWS, sort=True)
    user = np.repeat(np.arange(USERS), ROWS // USERS) if of_user else np.arange(ROWS) % USERS
    if of_user:
        time = np.concatenate([np.sort(time[user == one]) for one in range(USERS)])
    time = np.random.default_rng(0).permutation(time) if wrong == ROWS else time
    swap = np.flatnonzero((np.diff(time) > 0) & (np.diff(user) == 0) if of_user else np.diff(time) > 0)[3::8][:wrong]
    if wrong < ROWS:
        time = time.copy()
        time[swap], time[swap + 1] = time[swap + 1], time[swap].copy()
    found = _unexplained(RelatedVenues(table_of(back * time + 90 * DAY, user))).tolist()
    ties = [a == b and (u == v or not of_user) for (a, b), (u, v) in zip(pairwise(time), pairwise(user), strict=True)]
    assert wrong == ROWS or 0 < sum(ties) < 290
    assert found == (ties if wrong < 3 else [True] * (ROWS - 1))


@pytest.mark.parametrize("falls", [True, False])
@pytest.mark.parametrize("sort", [True, False])
def test_orders_could_hide_inside_users_blocks_of_time_and_categories(falls: bool, sort: bool) -> None:
    table = table_of(drawn_times(sort=sort), np.random.default_rng(1).permutation(np.arange(ROWS) % USERS))
    related = RelatedVenues(table)
    open_steps, found = _unexplained(related).tolist(), list(_runs(related, falls))
    time, user, category = table.time.tolist(), table.user.tolist(), table.category.tolist()
    in_file = list(pairwise(range(ROWS)))
    by_time = list(pairwise(sorted(range(ROWS), key=lambda i: (time[i], i))))
    by_user = list(pairwise(sorted(range(ROWS), key=lambda i: (user[i], time[i], i))))

    def inside(seconds: int | None, of_user: bool, steps: list[tuple[int, int]]) -> list[bool]:
        return [
            (seconds is None or time[i] // seconds == time[j] // seconds) and (not of_user or user[i] == user[j])
            for i, j in steps
        ]

    every, expected = [True] * (ROWS - 1), []
    expected += [(every, by_time, every), ([category[i] == category[j] for i, j in in_file], by_time, every)]
    shuffled = list(pairwise(np.random.default_rng(0).permutation(ROWS).tolist()))
    back = [[time[j] < time[i] for i, j in steps] for steps in (in_file, shuffled)]
    expected += [(back[0], shuffled, back[1])] * falls
    for seconds in (None, HOUR, DAY, 7 * DAY, 30 * DAY):
        expected += [
            (inside(seconds, of_user, in_file), steps, inside(seconds, of_user, steps))
            for of_user, steps in ((False, by_time), (True, by_user))
        ]
    assert len(found) == len(expected)
    for (steps, rows, usual), (in_run, pairs, of_run) in zip(found, expected, strict=True):
        assert steps.tolist() == [a and b for a, b in zip(open_steps, in_run, strict=True)]
        assert list(pairwise(rows.tolist())) == pairs
        assert usual.tolist() == of_run


def slow_sorted(step: list[int], usual: list[int], least: float) -> bool:
    def excess(steps: list[int]) -> float:
        moves = [s > 0 for s in steps if s]
        return abs(2 * sum(moves) - len(moves)) / len(moves) if moves else 0.0

    moves = sum(map(bool, step))
    return moves >= 30 and excess(step) - excess(usual) > max(least, 4 / moves**0.5)


def test_far_more_steps_rise_than_usually() -> None:
    draw, found = np.random.default_rng(2), []
    for number in range(600):
        rises, falls, equal = draw.integers(0, [40, 40, 5] if number % 3 else [2000, 1400, 5])
        step = [int(draw.integers(1, 5))] * rises + [-2] * falls + [0] * equal
        usual = draw.choice([-1, 0, 1], draw.integers(0, 60), p=[0.3, 0.1, 0.6]).tolist() if number % 2 else None
        least = float(draw.choice([0.15, 0.5]))
        expected = slow_sorted(step, usual or [], least)
        control = None if usual is None else np.array(usual, float)
        assert _sorted(np.array(step, float), control, least) == expected
        found.append(expected)
    assert 100 < sum(found) < 500
    for count, far in ((29, False), (30, True)):
        assert _sorted(np.ones(count)) == far
    for rises, far in ((572, False), (576, True), (580, True)):  # of 1000: 16 more in a hundred is 0.15 and 4 errors
        assert _sorted(np.repeat([1.0, -1.0], [rises * 3, (1000 - rises) * 3])) == far
    assert not _sorted(np.repeat([1.0, -1.0], [48, 16]))  # half of 64 are 4 errors: no more than that
    assert _sorted(np.repeat([1.0, -1.0], [49, 15]))


def test_neighbours_agree_more_often_than_in_time() -> None:
    draw, found = np.random.default_rng(3), []
    for number in range(300):
        rows = int(draw.integers(30, 60 if number % 2 else 900))
        user, key = draw.integers(0, USERS, rows), draw.integers(0, draw.integers(2, 9), rows).astype(float)
        time = draw.permutation(rows) * 100 if number % 4 else np.arange(rows) // 3  # most rows of which are ties
        for i in np.flatnonzero((draw.random(rows - 1) < draw.random()) & ((np.diff(time) == 0) | (number % 4 > 0))):
            key[i + 1] = key[i]
        related = RelatedVenues(table_of(time, user))
        other, by_time = np.diff(user) != 0, np.argsort(time, kind="stable")
        here = other & _unexplained(related)
        there = np.diff(user[by_time]) != 0
        expected = False
        if min(here.sum(), there.sum()) >= 30:
            one = sum(key[i] == key[i + 1] for i in np.flatnonzero(here)) / here.sum()
            two = sum(key[by_time[i]] == key[by_time[i + 1]] for i in np.flatnonzero(there)) / there.sum()
            expected = one - two > max(0.2, 4 / there.sum() ** 0.5)
        assert _alike(related, key) == expected
        found.append(expected)
    assert 30 < sum(found) < 270


@pytest.mark.parametrize("others", [29, 30])
def test_few_neighbours_of_different_users_prove_nothing(others: int) -> None:
    user = np.append(np.arange(others + 1) % 2, [others % 2] * 200)
    rows, table = np.arange(len(user)), table_of(np.arange(len(user)), user)
    related = RelatedVenues(replace(table, lat=rows / 1000, lon=rows / 1000))
    close, steps = _closeness(related, rows, np.ones(len(user) - 1, bool))
    assert (steps, close > 0.9) == (others, others == 30)


def test_closeness_is_the_share_of_squared_distance_that_neighbours_save() -> None:
    draw = np.random.default_rng(7)
    user, time = draw.integers(0, USERS, ROWS), draw.permutation(ROWS)
    table = table_of(time, user)
    near = np.argsort(table.lat + 0.3 * draw.random(ROWS))
    among = draw.random(ROWS - 1) < 0.7
    squares, width = [], np.cos(np.radians(np.median(table.lat)))
    for (i, j), counts in zip(pairwise(near.tolist()), among, strict=True):
        if counts and user[i] != user[j]:
            squares.append((table.lat[i] - table.lat[j]) ** 2 + (width * (table.lon[i] - table.lon[j])) ** 2)
    every = 2 * (table.lat.var() + (table.lon * width).var())
    found, steps = _closeness(RelatedVenues(table), near, among)
    assert steps == len(squares)
    assert 0.05 < found == pytest.approx(1 - np.mean(squares) / every)
    apart = np.argsort(np.abs(np.argsort(np.argsort(table.lat)) * 2 - ROWS) % 151 % 2)
    assert _closeness(RelatedVenues(table), apart, np.ones(ROWS - 1, bool))[0] >= 0
    one_place = replace(table, lat=table.lat * 0 + 5, lon=table.lon * 0)
    assert _closeness(RelatedVenues(one_place), near, among) == (0.0, len(squares))


def test_the_frontier_is_the_earliest_age_of_this_or_a_later_block() -> None:
    age = np.random.default_rng(8).random(117)
    blocks = [sorted(age[begin : begin + 20].tolist()) for begin in range(0, 100, 20)]
    low = [block[0] + 0.95 * (block[1] - block[0]) for block in blocks]  # the quantile .05 of 20: place .95
    assert _frontier(age).tolist() == pytest.approx([min(low[at:]) for at in range(5)])
    assert [len(_frontier(age[:count])) for count in (59, 60, 79, 80)] == [0, 3, 3, 4]


@pytest.mark.parametrize("by", ["row", "time", "user"])
@pytest.mark.parametrize(
    ("venues", "wrong", "numbered"), [(31, 0, True), (30, 0, False), (300, 2, True), (300, 3, False)]
)
def test_ids_may_number_the_venues_by_first_row(by: str, venues: int, wrong: int, numbered: bool) -> None:
    draw = np.random.default_rng(9)
    rows = 4 * venues
    user, time = draw.integers(0, USERS, rows), draw.permutation(rows)
    venue = np.append(draw.permutation(venues), draw.integers(0, venues, 3 * venues)) + 1
    order = {"row": np.arange(rows), "time": np.argsort(time), "user": np.lexsort((time, user))}[by]
    first = list(dict.fromkeys(venue[order].tolist()))
    ids = [""] * venues
    for place, one in enumerate(first):
        ids[one - 1] = f"{place:04}"
    for at in range(10, 10 + 20 * wrong, 20):  # each exchange is one step down
        i, j = first[at] - 1, first[at + 1] - 1
        ids[i], ids[j] = ids[j], ids[i]
    numbered = numbered and not (wrong and by == "row")  # in the file, all must rise
    assert order_by_first(table_of(time, user, venue, ids)) == numbered
    assert order_by_first(table_of(time, user, venue, [f"{int(i)}" for i in ids])) == (
        numbered and not (wrong and by == "row")
    )  # "10" before "9"
    assert not order_by_first(table_of(time, user, venue, draw.permutation(ids).tolist()))


def order_by_first(table: Checkins) -> bool:
    return order.numbered_by_first_row(RelatedVenues(table))


def slow_dated(table: Checkins) -> float:
    """The same with one row after the other, for ids that are numbers."""
    first: dict[int, int] = {}
    for venue, time in zip(table.venue.tolist(), table.time.tolist(), strict=True):
        first[venue] = min(time, first.get(venue, time))
    begin, period = int(table.time.min()), int(np.ptp(table.time))
    age = np.array([(first[venue] - begin) / period for venue in sorted(first)])
    chance, found = _frontier(np.random.default_rng(0).permutation(age)), [0.0]
    for key in (lambda i: str(table.venue_ids[i + 1]), lambda i: float(table.venue_ids[i + 1])):
        frontier = _frontier(age[sorted(range(len(age)), key=key)])
        late, usually = (sum(one > 0.1 for one in each.tolist()) for each in (frontier, chance))
        if frontier.mean() - chance.mean() > 0.01 or late - usually >= 5:
            found.append(late / len(frontier))
    return max(found)


def test_ids_date_venues_that_are_younger_than_the_file() -> None:
    draw, found = np.random.default_rng(10), []
    for number in range(60):
        venues = int(draw.integers(200, 900))
        late = venues * int(draw.integers(0, 9)) // 40
        begin = np.append(np.zeros(venues - late), np.linspace(0, draw.random(), late))
        if number % 2:
            begin = draw.permutation(begin)
        venue = np.append(np.arange(venues), draw.integers(0, venues, 2 * venues))
        time = 5000 + (1e6 * (begin[venue] + (1 - begin[venue]) * draw.random(len(venue)) ** 6)).astype(np.int64)
        table = table_of(time, venue % USERS, venue + 1, [str(n + 50) for n in range(venues)])
        found.append(order.venues_dated_by_id(RelatedVenues(table)))
        assert found[-1] == slow_dated(table)
    assert 10 < sum(share > 0 for share in found) < 50
    few = table_of(np.arange(59), np.arange(59) % 5, np.arange(59) + 1, [str(n) for n in range(59)])
    assert order.venues_dated_by_id(RelatedVenues(few)) == 0.0


@pytest.mark.parametrize(
    ("first", "last", "cut", "grouped"), [([4, 4, 3], [4, 3, 3], 0, False), ([3, 3, 3, 2], [4, 3, 3], 0, True),
                                          ([3, 3, 3, 2], [4, 3, 3], 1, True), ([3, 3, 3, 2], [4, 3, 3], 2, False)],
)  # fmt: skip
def test_rows_of_a_user_are_grouped_beyond_chance_by_more_than_a_fifth(
    first: list[int], last: list[int], cut: int, grouped: bool
) -> None:
    """A user of 21 rows stays 19 times in the file, and 15 or 14 times in time. Fewer than 20 rows prove nothing."""
    runs = [part for pair in zip_longest(first, last, fillvalue=0) for part in pair]
    in_time = np.repeat(np.arange(len(runs)) % 2 + 1, runs)[cut:]
    rows = np.argsort(in_time, kind="stable")
    table = table_of(rows * 100, rows * 0, in_time[rows])
    assert order.order_reveals(RelatedVenues(table), {}) == ("are grouped by venue" if grouped else None)


@pytest.mark.parametrize(
    ("home", "found"), [(True, "list users by the latitude of their most visited venue"), (False, None)]
)
def test_users_may_be_listed_by_where_they_are(home: bool, found: str | None) -> None:
    draw, users = np.random.default_rng(11), 60
    user, where = np.repeat(np.arange(users), 20), np.argsort(draw.random(VENUES + 1)[1:])
    line = table_of(np.arange(VENUES), np.arange(VENUES), np.arange(VENUES) + 1)
    by_lat = np.argsort(line.lat)[np.arange(users) * VENUES // users] + 1 if home else draw.permutation(60) % VENUES + 1
    venue = np.where(draw.random(1200) < 0.4, by_lat[user], where[draw.integers(0, VENUES, 1200)] + 1)
    assert order.order_reveals(RelatedVenues(table_of(draw.permutation(1200) * 500, user, venue)), {}) == found


@pytest.mark.parametrize(("by_place", "found"), [(True, "put venues near each other side by side"), (False, None)])
def test_what_is_near_in_time_may_be_near_in_space(by_place: bool, found: str | None) -> None:
    """All users move over the city together. Only rows side by side that are nearer than rows in time reveal more."""
    draw, rows = np.random.default_rng(12), 3000
    time = draw.permutation(rows) * 60
    table = table_of(
        time, draw.integers(0, USERS, rows), np.arange(rows) + 1, [f"{draw.random():.9f}x" for _ in range(rows)]
    )
    angle = 2 * np.pi * (time / time.max() + 0.02 * draw.random(rows))
    nearest = replace(table, lat=50 + np.sin(angle), lon=10 + np.cos(angle))
    if by_place:  # every other row is next to the one before
        still = draw.random((2, rows))[:, np.arange(rows) // 2 * 2]
        nearest = replace(table, lat=40 + still[0] + 1e-4 * draw.random(rows), lon=still[1])
    assert order.order_reveals(RelatedVenues(nearest), {}) == found
