"""Pairs of rows and their steps are what plain loops give."""

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from ghostpoi.columns import pairs
from ghostpoi.columns.pairs import COUNTS, OWN, VenuePairs, _likelier
from ghostpoi.columns.related import Finding, RelatedVenues, beyond_chance
from ghostpoi.data.checkins import Bools, Checkins, Longs

ROWS, VENUES, USERS = 400, 6, 5
HOURS = {
    OWN: None,
    "follows from the clean venue and the hour": "hour",
    "follows from the clean venue and the user": "user",
}
ABOVE, BELOW = "follows from the venue of the row above", "follows from the venue of the row below"


def table_of(rows: int, seed: int = 1, venues: int = VENUES, users: int = USERS) -> Checkins:
    draw = np.random.default_rng(seed)
    hours = draw.integers(60, 180, rows) * 60 + 7 * (draw.random(rows) < 0.5)
    time = 15_600 * 86_400 + draw.permutation(rows) // 4 * 86_400 + hours  # the rows are in no order
    venue = draw.integers(1, venues + 1, rows).astype(np.int32)
    return Checkins(
        draw.integers(0, users, rows).astype(np.int32), venue, venue * 0, venue / 100, venue / 50, time,
        np.arange(users).astype(str).astype(object), np.arange(venues + 1).astype(str).astype(object),
        np.array(["c"], object),
    )  # fmt: skip


TABLE = table_of(ROWS)
SHOWN = np.arange(31) % 2
PLACES = np.argsort(TABLE.time)


@pytest.mark.parametrize("shown", [None, SHOWN])
@pytest.mark.parametrize("what", [*HOURS, ABOVE, BELOW])
def test_a_pair_is_followed_in_its_group_and_its_control_is_near(what: str, shown: Longs | None) -> None:
    table, rows_in_all = table_of(1500, 2, 30, 30), 1500
    places = np.argsort(table.time, kind="stable").tolist()
    venue, user, hour = table.venue.tolist(), table.user.tolist(), (table.time // 3600 % 24).tolist()
    if what in (ABOVE, BELOW):
        venue = [0, *venue[:-1]] if what == ABOVE else [*venue[1:], 0]
    of_user = HOURS.get(what) == "user"
    shared = [(hour[i] if HOURS.get(what) else 0, user[i] if of_user else 0) for i in range(rows_in_all)]
    group = [(venue[i], {"hour": hour[i], "user": user[i]}.get(str(HOURS.get(what)))) for i in range(rows_in_all)]
    kind = [(shared[i], 0 if shown is None else shown[table.venue[i]]) for i in range(rows_in_all)]
    alike = {k: [i for i in places if kind[i] == k] for k in set(kind)}

    def fits(one: int, two: int, three: int) -> bool:
        people = table.time[one] < table.time[three] if of_user else user[one] not in (user[two], user[three])
        return bool(venue[three] != venue[two] and people)

    allowed: dict[tuple[int, int], list[int | None]] = {}
    for one_group in set(group):
        rows = [i for i in places if group[i] == one_group]
        for one, two in pairwise(rows):
            line, at = alike[kind[two]], alike[kind[two]].index(two)
            far = [at + away * (-1 if of_user else 1) for away in (1, 2, 3, 4)]
            near = [line[place] if 0 <= place < len(line) else None for place in far]
            allowed[one, two] = [i if i is not None and fits(one, two, i) else None for i in near]
    found = VenuePairs(RelatedVenues(table), shown)._groups[what]
    away = [allowed[one, two].index(three) for one, two, three in found.T.tolist()]
    assert set(away) == {0, 1, 2, 3}  # any of the four next
    seen = {(one, two) for one, two, _ in found.T.tolist()}
    assert len(seen) == len(away)
    edge = len(table) // 20  # a row drawn past the end of the file is replaced by the last one
    never, always = ({p for p, rows in allowed.items() if test(rows)} for test in (
        lambda rows: all(i is None for i in rows), lambda rows: None not in rows,
    ))  # fmt: skip
    assert not seen & never
    assert len(always - seen) == 0 < len(always) < len(seen) <= len(allowed) - len(never) + edge


def test_only_so_many_pairs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    every = VenuePairs(RelatedVenues(TABLE))._groups[OWN]
    monkeypatch.setattr(pairs, "MOST", 50)
    some = VenuePairs(RelatedVenues(TABLE))._groups[OWN]
    assert some.shape == (3, 50)
    assert some.T.tolist() == every.T.tolist()[:50] != sorted(every.T.tolist())[:50]


def test_clocks_are_those_that_anybody_can_read() -> None:
    related = RelatedVenues(TABLE)
    dates = [datetime.fromtimestamp(t, UTC) for t in TABLE.time.tolist()]
    read: list[Callable[[datetime], int]] = [
        lambda d: d.hour, lambda d: d.minute, lambda d: d.second, lambda d: d.hour * 3600 + d.minute * 60 + d.second,
        lambda d: d.weekday(), lambda d: d.isoweekday() % 7, lambda d: d.month - 1, lambda d: d.day - 1,
        lambda d: d.timetuple().tm_yday - 1, lambda d: d.hour * 60 + d.minute,
        *(lambda d, unit=unit: int(d.timestamp()) // unit for unit in (1, 60, 3600, 86_400)),
    ]  # fmt: skip
    found = VenuePairs(related)._clocks
    both = "follows from the clean venue and the "
    assert [what for what, _ in found] == [
        f"{both}row number",
        f"{both}number of the user's row",
        *[f"{both}time"] * 14,
    ]
    assert found[0][1].tolist() == list(range(ROWS))
    assert found[1][1].tolist() == [
        sum(u == user and t < time for u, t in zip(TABLE.user, TABLE.time, strict=True))
        for user, time in zip(TABLE.user, TABLE.time, strict=True)
    ]
    for one, (_, clock) in zip(read, found[2:], strict=True):
        assert clock.tolist() == list(map(one, dates))


@pytest.mark.parametrize(("largest", "exact"), [(255, True), (256, False), (9, True)])
@pytest.mark.parametrize("text", [False, True])
def test_steps_are_counted_each_by_itself_or_in_ranges(largest: int, exact: bool, text: bool) -> None:
    value = 7 + np.append([0, largest], np.random.default_rng(0).integers(0, largest + 1, ROWS - 2))
    column = pl.Series([f"x3-{v:04}b" for v in value] if text else value)
    found = list(VenuePairs(RelatedVenues(TABLE))._steps(column))
    one, two, three = VenuePairs(RelatedVenues(TABLE))._groups[OWN]
    size, rows = largest + 1, np.stack([two, three])
    if not exact:
        assert all(steps.max() < 64 for _, *forms in found for steps in forms)
        assert len(np.unique(found[0][1])) > 50
        return
    assert found[0][0] == COUNTS
    assert found[0][1].tolist() == ((value[rows] - value[one]) % size).tolist()
    clocks = VenuePairs(RelatedVenues(TABLE))._clocks
    assert [what for what, *_ in found[1:]] == [what for what, _ in clocks for _ in "+-"]
    forms = iter(found[1:])
    for _, clock in clocks:
        for sign in (1, -1):
            _, own, of_pair = next(forms)
            assert own.tolist() == ((value[rows] - value[one] - sign * (clock[rows] - clock[one])) % size).tolist()
            assert of_pair.tolist() == ((value[rows] - value[one] - sign * (clock[two] - clock[one])) % size).tolist()


def test_numbers_with_fractions_are_counted_in_ranges_and_a_clock_that_stands_is_left_out() -> None:
    related, value = RelatedVenues(TABLE), np.random.default_rng(0).integers(0, 40, ROWS)
    rows = VenuePairs(related)._groups[OWN]
    exact = ((value[rows[1:]] - value[rows[:1]]) % 40).tolist()
    assert next(VenuePairs(related)._steps(pl.Series(value + 0.0)))[1].tolist() == exact
    one_half = value + 0.5 * (np.arange(ROWS) == rows[1, 0])
    assert next(VenuePairs(related)._steps(pl.Series(one_half)))[1].tolist() != exact
    hourly = Checkins(
        TABLE.user, TABLE.venue, TABLE.category, TABLE.lat, TABLE.lon, PLACES * 3600, TABLE.user_ids, TABLE.venue_ids,
        TABLE.category_ids,
    )  # fmt: skip
    names = [what for what, *_ in VenuePairs(RelatedVenues(hourly))._steps(pl.Series(value))]
    assert names.count("follows from the clean venue and the time") == 2 * (14 - 3)  # no minutes, seconds, months


def test_rows_without_a_number_are_left_out() -> None:
    value = np.random.default_rng(0).integers(0, 9, ROWS).astype(float)
    value[::3] = np.nan
    one, two, three = VenuePairs(RelatedVenues(TABLE))._groups[OWN]
    real = [i for i in range(len(one)) if all(row % 3 for row in (one[i], two[i], three[i]))]
    steps = next(VenuePairs(RelatedVenues(TABLE))._steps(pl.Series(value)))[1]
    assert 40 < len(real) == steps.shape[1]
    for pairs_left in (39, 40):
        some = np.full(ROWS, np.nan)
        for at in range(len(one)):
            some[[one[at], two[at], three[at]]] = 1.0
            if np.isfinite(some[VenuePairs(RelatedVenues(TABLE))._groups[OWN]]).all(axis=0).sum() >= pairs_left:
                break
        left = np.isfinite(some[VenuePairs(RelatedVenues(TABLE))._groups[OWN]]).all(axis=0).sum()
        assert bool(list(VenuePairs(RelatedVenues(TABLE))._steps(pl.Series(some)))) == (left >= 40)


def slow_likelier(steps: Longs) -> float:
    taught = np.random.default_rng(0).random(steps.shape[1]) < 0.5
    pair, control = (row[taught].tolist() for row in steps)
    likely = {step for step in pair if pair.count(step) > control.count(step)}
    hit, chance = (np.array([step in likely for step in row[~taught].tolist()]) for row in steps)
    return beyond_chance(hit, chance)


def test_steps_that_are_likelier_for_pairs_are_counted_in_the_other_half() -> None:
    draw, found = np.random.default_rng(3), []
    for number in range(60):
        steps = np.stack(
            [np.where(draw.random(300) < number / 60, 2, draw.integers(0, 9, 300)), draw.integers(0, 9, 300)]
        )
        assert _likelier(steps) == slow_likelier(steps)
        found.append(_likelier(steps))
    assert found[0] == 0 < found[-1]


@pytest.mark.parametrize(("count", "share"), [(39, 0.0), (40, 1.0)])
def test_few_pairs_prove_nothing(count: int, share: float) -> None:
    steps = np.stack([np.ones(count, np.int64), np.zeros(count, np.int64)])
    assert _likelier(steps) == share


@pytest.mark.parametrize(("both", "found"), [(199, False), (200, True)])
@pytest.mark.parametrize(("one", "two"), [(2.0, 0.5), (0.5, 2.0), (1.0, 1.0)])
def test_two_columns_must_agree_together_twice_as_often_as_each_alone_makes_likely(
    one: float, two: float, both: int, found: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 2000 controls, both agree in 99; one by one they agree in 399 or more, and so many times that in pairs."""
    monkeypatch.setattr(pairs, "FEW", 2000)
    made, rows = VenuePairs(RelatedVenues(TABLE)), np.arange(3 * 2300).reshape(3, 2300)
    made.__dict__["_groups"] = {OWN: rows}

    def agrees(together: int, each: int, after: int) -> Bools:
        place = np.arange(2300)
        return (place < together) | (place >= after) & (place < after + each - together) | (place >= 2000)

    counts = {1.0: (999, 999), 2.0: (399, 799), 0.5: (799, 399)}
    codes, after = [], 200
    for ratio in (one, two):
        control, pair = counts[ratio]
        differs = [~agrees(both, pair, after), ~agrees(99, control, after)]
        codes.append(np.concatenate([np.zeros(2300, np.int64), *differs]).astype(np.int64))
        after += 900
    assert made.together(*codes) == ((both - 99) / 2000 if found else 0.0)


def test_two_columns_that_agree_alone_and_those_that_agree_together() -> None:
    table = table_of(900, 1, 3)
    made, draw = VenuePairs(RelatedVenues(table)), np.random.default_rng(1)
    one = draw.integers(0, 6, len(table))
    first, second, control = made._groups[OWN]
    two = one ^ table.venue
    hits = [(one[first] == one[rows]) & (two[first] == two[rows]) for rows in (second, control)]
    assert made.together(one, two) == pytest.approx(hits[0].mean() - hits[1].mean()) != 0
    assert made.together(one, one) == 0.0


def test_the_first_finding_above_the_allowed_share_is_told() -> None:
    made, own = VenuePairs(RelatedVenues(TABLE)), TABLE.venue.astype(np.int64)
    assert made.finding(pl.Series(own.astype(str)).cast(pl.String)) == Finding(1.0, OWN)
    noise = np.random.default_rng(5)
    for share in np.linspace(0, 1, 21):
        code = np.where(noise.random(ROWS) < share, own, noise.integers(10, 16, ROWS))
        texts = pl.Series([chr(97 + v) for v in code])  # no numbers, so no steps but those of values
        agree = {what: (code[rows[1:]] != code[rows[:1]]).astype(int) for what, rows in made._groups.items()}
        every = [Finding(slow_likelier(steps), what) for what, steps in agree.items()]
        assert made.finding(texts) == next((one for one in every if one.share > 0.15), None)


@pytest.mark.parametrize(("share", "told"), [(0.15, False), (0.16, True)])
def test_a_share_up_to_the_largest_allowed_is_no_finding(
    share: float, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairs, "_likelier", lambda steps: share)
    found = VenuePairs(RelatedVenues(TABLE)).finding(pl.Series(np.arange(ROWS)))
    assert found == (Finding(share, OWN) if told else None)
