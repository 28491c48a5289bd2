"""What a column predicts is computed as plain loops and a general optimiser compute it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize

from ghostpoi.columns import dependence
from ghostpoi.columns.dependence import Predictor, Units, agreement, areas, bins, clear_gain, codes, value_codes
from ghostpoi.columns.related import Finding, RelatedVenues, beyond_chance
from ghostpoi.data.checkins import Bools, Checkins, Floats, Longs, Venues

DAY = 86_400
PAUSES = (1, 900, 3600, 3 * 3600, 8 * 3600, DAY, 3 * DAY)


def venues_of(count: int, seed: int = 1, categories: int = 3) -> Venues:
    """Venues near 60 degrees north, so that a degree of longitude is half as long as one of latitude."""
    draw = np.random.default_rng(seed)
    lat, lon = 60 + draw.random(count) - 0.5, 3 * draw.random(count)
    category = draw.integers(0, categories, count).astype(np.int32)
    return Venues(np.append(np.nan, lat), np.append(np.nan, lon), np.append(np.int32(-1), category))


def test_positions_are_on_a_plane() -> None:
    venues = Venues(np.array([np.nan, 60.0, 59.0, 61.0]), np.array([np.nan, 2.0, -4.0, 0.0]), np.array([-1, 0, 0, 0]))
    np.testing.assert_allclose(dependence._flat(venues), [[0, 0], [60, 1], [59, -2], [61, 0]], atol=1e-9)


def slow_areas(xy: Floats, venues: list[int], most: int) -> list[set[int]]:
    """Halve the venues along the longer side until each part is small enough."""
    if len(venues) <= most:
        return [set(venues)]
    sides = [max(xy[v][axis] for v in venues) - min(xy[v][axis] for v in venues) for axis in (0, 1)]
    axis = int(sides[1] > sides[0])
    line, half = sorted(venues, key=lambda v: xy[v][axis]), len(venues) // 2
    return slow_areas(xy, line[:half], most) + slow_areas(xy, line[half:], most)


@pytest.mark.parametrize(("count", "most"), [(1, 6), (6, 6), (7, 6), (100, 6), (100, 48), (97, 10)])
@pytest.mark.parametrize("groups", [0, 3])
def test_areas_are_halves_of_halves(count: int, most: int, groups: int) -> None:
    venues = venues_of(count)
    shown = None if groups == 0 else np.append(0, np.arange(count) % groups)
    label = np.zeros(count + 1) if shown is None else shown
    parts = [[v for v in range(1, count + 1) if label[v] == group] for group in sorted(set(label[1:].tolist()))]
    found = areas(venues, most, shown)
    expected = [area for part in parts for area in slow_areas(dependence._flat(venues), part, most)]
    assert found[0] == 0
    assert sorted(set(found[1:].tolist())) == list(range(1, len(expected) + 1))
    assert sorted(sorted(np.flatnonzero(found == one)) for one in set(found[1:])) == sorted(map(sorted, expected))


def test_members_are_the_venues_of_each_area() -> None:
    assert dependence._members(np.array([0, 2, 1, 2, 2, 4])).tolist() == [
        [0] * 3,
        [2, 0, 0],
        [1, 3, 4],
        [0] * 3,
        [5, 0, 0],
    ]
    assert dependence._members(np.array([0])).shape == (0, 1)


@pytest.mark.parametrize("dense", [True, False])
def test_a_share_is_drawn_towards_what_is_behind_it(dense: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependence, "DENSE", 20 if dense else 19)  # 4 groups of 5 values
    draw = np.random.default_rng(0)
    group, value = np.append(draw.integers(1, 3, 40), [3, 1]), np.append(draw.integers(1, 4, 40), [0, 4])
    asked = draw.integers(0, 6, (2, 80, 2))
    asked[:, 0] = [[0, 3], [7, 1]]
    behind = draw.random((80, 2))
    found = dependence._share((group, value), (asked[0], asked[1]), behind)
    for at in np.ndindex(80, 2):
        rows = group == asked[0][at]
        both, known = (rows & (value == asked[1][at])).sum(), asked[0][at] < 4 and asked[1][at] < 5
        total = rows.sum() if known else 0  # a value that was never seen says nothing
        assert found[at] == pytest.approx((both + 5 * behind[at]) / (total + 5))


def rows_of(count: int, venues: int, seed: int = 2) -> tuple[Longs, Longs]:
    """The venue of each row, 0 for some, and a code that follows it roughly."""
    draw = np.random.default_rng(seed)
    venue = np.minimum(draw.geometric(0.05, count), venues)
    code = np.where(draw.random(count) < 0.8, venue * 7 % 11, draw.integers(0, 11, count))
    return np.where(draw.random(count) < 0.1, 0, venue), code


def test_a_predictor_weighs_what_is_known_so_that_true_venues_are_likeliest() -> None:
    """The weights are those of a ridge regression around (1, 0, ...), found by a general optimiser."""
    venues, (venue, code) = venues_of(90), rows_of(1200, 90)
    hour = np.where(np.arange(1200) % 3 == 0, venue % 5, np.arange(1200) % 5)
    labels = np.append(-1, np.arange(90) % 2)
    made = Predictor(venues, venue, [hour], labels)
    real = np.random.default_rng(0).permutation(np.flatnonzero(venue))
    n = len(real)
    fit, test, learn = real[: n // 5], real[n // 5 : n // 5 + 3 * n // 10], real[n // 5 + 3 * n // 10 :]
    near, blocks = areas(venues, 48, labels), areas(venues, 6, labels)
    category = np.append(0, venues.category[1:] + 1)

    def choice(row: int) -> list[int]:
        return [v for v in range(1, 91) if near[v] == near[venue[row]]]

    def features(column: Longs) -> dict[int, list[list[float]]]:
        """For each row that is not learned from, what its choice of venues says about the column."""
        levels = (np.arange(91), category, blocks)
        both = [Counter(zip(level[venue[learn]].tolist(), column[learn].tolist(), strict=True)) for level in levels]
        total = [Counter(level[venue[learn]].tolist()) for level in levels]
        found: dict[int, list[list[float]]] = {}
        for row in (*fit.tolist(), *test.tolist()):
            value, found[row] = int(column[row]), []
            plain = ((column[learn] == value).sum() + 1) / (len(learn) + column.max() + 1)
            for v in choice(row):
                at, share = [int(level[v]) for level in levels], [plain] * 3
                for which, behind in ((1, 1), (0, 1), (2, 2)):  # behind a venue is its category
                    share[which] = (both[which][at[which], value] + 5 * share[behind]) / (total[which][at[which]] + 5)
                found[row].append([float(np.log(one / plain)) for one in share])
        return found

    common = np.bincount(venue[learn], minlength=91)

    of_hour, of_code = features(hour), features(code)

    def known(row: int) -> Floats:
        return np.array([[np.log(common[v] + 0.5), *f[:2]] for v, f in zip(choice(row), of_hour[row], strict=True)])

    def weights(values: list[Floats]) -> Floats:
        true = [choice(row).index(venue[row]) for row in fit.tolist()]
        start = np.eye(1, values[0].shape[1])[0]

        def loss(w: Floats) -> float:
            scores = [value @ w for value in values]
            likely = sum(score[at] - np.logaddexp.reduce(score) for score, at in zip(scores, true, strict=True))
            return float(((w - start) ** 2).sum() - likely)

        found: Floats = minimize(loss, start, method="BFGS", options={"gtol": 1e-4}).x
        return found

    fitted = [known(row) for row in fit.tolist()]
    base = weights(fitted)
    scores = {row: known(row) @ base for row in (*fit.tolist(), *test.tolist())}
    assert made.named.tolist() == [choice(row)[int(scores[row].argmax())] == venue[row] for row in test.tolist()]
    for row, found in zip((*fit.tolist(), *test.tolist()), made._base, strict=True):
        assert found[: len(scores[row])] == pytest.approx(scores[row], abs=2e-3)
    extra = {row: np.column_stack([scores[row], of_code[row]]) for row in scores}
    more = weights([extra[row] for row in fit.tolist()])
    named = made.named_with(made.features(code))
    expected = [choice(row)[int((extra[row] @ more).argmax())] == venue[row] for row in test.tolist()]
    assert named.tolist() == expected
    assert named.mean() > made.named.mean() + 0.1


def test_most_rows_teach_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dependence, "FIT", 30)
    monkeypatch.setattr(dependence, "TEST", 50)
    venues, (venue, code) = venues_of(20), rows_of(400, 20)
    few, many = Predictor(venues, venue[:110]), Predictor(venues, venue)
    assert len(few.named) == 3 * (venue[:110] > 0).sum() // 10 < 50 == len(many.named)
    assert [len(one) for one in many.features(code)] == [80] * 3


@pytest.mark.parametrize(("count", "more", "gain"), [
    (39, 39, 0.0), (40, 40, 1.0), (40, 15, 0.0), (40, 17, 17 / 40), (10**6, 20_000, 0.0),
    (10**6, 20_001, 0.020001),
])  # fmt: skip
def test_a_gain_must_be_clear(count: int, more: int, gain: float) -> None:
    named, control = np.arange(count) < more, np.zeros(count, bool)
    assert clear_gain(named, control) == pytest.approx(gain)
    assert clear_gain(control, named) == 0.0


def test_differences_that_cancel_out_count_as_errors() -> None:
    named = np.repeat([True, False, False], [300, 200, 500])
    control = np.repeat([False, True, False], [300, 200, 500])
    assert clear_gain(named, control) == pytest.approx(0.1)
    assert clear_gain(named[::2], control[::2]) == 0.0  # 4 errors are .126


def test_rows_are_shuffled_inside_their_groups() -> None:
    group = np.random.default_rng(0).integers(0, 7, 500)
    found = dependence.shuffled_inside(group, 3)
    assert sorted(found.tolist()) == list(range(500))
    assert (group[found] == group).all()
    assert (found == np.arange(500)).mean() < 0.05
    assert (
        found.tolist() == dependence.shuffled_inside(group, 3).tolist() != dependence.shuffled_inside(group, 4).tolist()
    )


def table_of(time: Longs, user: Longs, venue: Longs | None = None) -> Checkins:
    draw = np.random.default_rng(9)
    venue = draw.integers(1, 9, len(time)) if venue is None else venue
    lat, lon = draw.random((2, int(venue.max()) + 1))
    return Checkins(
        user.astype(np.int32), venue.astype(np.int32), (venue % 2).astype(np.int32), lat[venue], lon[venue],
        time.astype(np.int64), np.arange(user.max() + 1).astype(str).astype(object),
        np.arange(venue.max() + 1).astype(str).astype(object), np.array(list("ab"), object),
    )  # fmt: skip


def test_as_many_users_are_tested_as_fit() -> None:
    user = np.array([0, 1, 0, 2, 1, 0, 2, 2])
    related = RelatedVenues(table_of(np.arange(8), user))
    assert dependence.tested_rows(related, 8).tolist() == list(range(8))
    assert dependence.tested_rows(related, 7).tolist() == dependence.tested_rows(related, 5).tolist() == [0, 1, 2, 4, 5]
    assert (
        dependence.tested_rows(related, 4).tolist() == dependence.tested_rows(related, 1).tolist() == [0, 2, 5]
    )  # one user at least


def number(*parts: Longs | Sequence[object]) -> list[int]:
    """Number equal rows of several columns by first appearance, whatever their own numbers are."""
    seen: dict[tuple[object, ...], int] = {}
    return [seen.setdefault(row, len(seen)) for row in zip(*map(list, parts), strict=True)]


@pytest.mark.parametrize(("rows", "users", "alone", "periods"), [
    (1200, 40, False, 4), (199, 40, True, 1), (200, 40, False, 1), (400, 40, False, 2), (1600, 4, False, 16),
])  # fmt: skip
def test_values_are_shuffled_among_rows_that_are_alike(rows: int, users: int, alone: bool, periods: int) -> None:
    draw = np.random.default_rng(3)
    user, time = (
        np.repeat(draw.permutation(np.arange(rows // 2 + 1) % users), 2)[:rows],
        15_000 * DAY + draw.integers(0, 60 * DAY, rows),
    )
    time[1::2] = time[::2][: rows // 2] + draw.choice(
        [0, 1, 899, 900, 3599, 3600, 10_800, 28_800, DAY, 3 * DAY], rows // 2
    )
    related = RelatedVenues(table_of(time, user))
    units = dependence.of_rows(related, np.arange(rows))
    dates = [datetime.fromtimestamp(t, UTC) for t in time.tolist()]
    hour, weekday = [d.hour for d in dates], [d.weekday() for d in dates]
    order = sorted(range(rows), key=lambda i: (user[i], time[i], i))
    place, pauses = [0] * rows, [[0] * rows, [0] * rows]
    for before, after in pairwise(order):
        if user[before] == user[after]:
            place[after] = place[before] + 1
            pauses[0][after] = pauses[1][before] = int(time[after] - time[before])
    classes = [[sum(pause >= limit for limit in PAUSES) for pause in one] for one in pauses]
    begin, length = int(time.min()), int(np.ptp(time)) + 1
    period = {count: [(t - begin) * count // length for t in time.tolist()] for count in (16, periods)}
    doubling = [(one + 1).bit_length() - 1 for one in place]
    expected = [
        number([0] * rows) if alone else number(user), number(hour, *classes), number(doubling, period[16]),
        number(user, period[periods]),
    ]  # fmt: skip
    assert [number(group) for group in units.groups] == expected
    assert [number(known) for known in units.known] == [number(one) for one in (hour, weekday, period[16], *classes)]
    assert {name: venue.tolist() for name, venue in units.venue.items()} == {
        name: related.venue[name].tolist() for name in ("own", "previous", "next")
    }
    assert units.shown is None
    shown = np.append(-1, np.arange(8) % 3)
    some = np.arange(0, rows, 3)
    told = dependence.of_rows(related, some, shown)
    assert told.known[-1].tolist() == (shown[related.table.venue[some]] + 1).tolist()
    assert told.shown is shown
    assert [number(known) for known in told.known[:2]] == [number(one[::3]) for one in (hour, weekday)]


def test_users_are_compared_by_their_most_visited_venue() -> None:
    related = RelatedVenues(
        table_of(np.arange(9), np.array([0, 0, 0, 1, 1, 1, 2, 2, 2]), np.array([4, 4, 1, 2, 3, 3, 5, 5, 5]))
    )
    units = dependence.of_users(related)
    assert {name: venue.tolist() for name, venue in units.venue.items()} == {"usual": [4, 3, 5]}
    assert [group.tolist() for group in units.groups] == [[0, 0, 0]]
    assert sorted(units.shuffled[0].tolist()) == [0, 1, 2]


def units_of(venue: Longs, groups: tuple[Longs, ...], shown: Longs | None = None, venues: int = 30) -> Units:
    return Units({"own": venue.astype(np.int32)}, groups, venues_of(venues), (), shown)


def slow_means(code: Longs, target: Floats, learn: Bools) -> Floats:
    """The mean of each row's value."""
    means = {c: target[learn & (code == c)].sum() / ((learn & (code == c)).sum() + 1) for c in set(code.tolist())}
    return np.array([means[c] for c in code.tolist()])


def test_means_are_drawn_towards_0() -> None:
    code, target = np.array([0, 2, 2, 0, 2]), np.array([3.0, 4.0, 8.0, 50.0, 60.0])
    assert dependence._means(code, target, np.array([True, True, True, False, False])).tolist() == [1.5, 0.0, 4.0]


def slow_position_gain(code: Longs, venue: Longs, units: Units) -> float:
    half = np.random.default_rng(0).random(len(venue)) < 0.5
    learn, test = (venue > 0) & half, (venue > 0) & ~half
    if learn.sum() < 40 or test.sum() < 40:
        return 0.0
    away = [axis[venue] - axis[venue][learn].mean() for axis in dependence._flat(units.venues).T]
    if units.shown is not None:
        label = units.shown[venue]
        away = [axis - slow_means(label, axis, learn) for axis in away]
    total = sum(float((axis[test] ** 2).mean()) for axis in away)

    def errors(values: Longs) -> Floats:
        guess = [slow_means(values, axis, learn) for axis in away]
        return sum((axis - one)[test] ** 2 for axis, one in zip(away, guess, strict=True))  # type: ignore[return-value]

    gains = []
    for rows in units.shuffled:
        better = (errors(code[rows]) - errors(code)) / total
        gains.append(better.mean())
        if better.mean() <= max(0.05, 4 * better.std() / len(better) ** 0.5):
            return 0.0
    return float(min(gains))


def test_positions_are_explained_beyond_shuffled_values() -> None:
    draw, found = np.random.default_rng(4), []
    for turn in range(60):
        rows = int(draw.choice([70, 90, 400, 900]))
        venue = draw.integers(0, 31, rows)
        code = np.where(draw.random(rows) < draw.random(), venue, draw.integers(0, 31, rows))
        shown = np.append(-1, np.arange(30) % 3) if turn % 2 else None
        units = units_of(venue, (np.zeros(rows, np.int64), draw.integers(0, 5, rows)), shown)
        gain = dependence.position_gain(code, venue, units)
        assert gain == pytest.approx(slow_position_gain(code, venue, units))
        found.append(gain > 0)
    assert 15 < sum(found) < 50


def test_nothing_is_explained_of_few_rows_or_of_one_place() -> None:
    half = np.random.default_rng(0).random(200) < 0.5
    first, rest = np.flatnonzero(half), np.flatnonzero(~half)
    for learn, test, told in ((40, 40, True), (39, 40, False), (40, 39, False)):
        venue = np.zeros(200, np.int64)
        rows = np.append(first[:learn], rest[:test])
        venue[rows] = 1 + np.arange(len(rows)) % 2
        units = units_of(venue, (np.zeros(200, np.int64),))
        assert (dependence.position_gain(venue, venue, units) > 0) == told
        measure = np.where(venue > 0, venue + np.arange(200) / 999, np.nan)
        assert (dependence.measure_gain(venue, measure, units) > 0) == told
        assert dependence.position_gain(venue, venue // 2 * 2 - venue // 2, units) == 0.0
    one = np.ones(200, np.int64)
    assert dependence.position_gain(np.arange(200) % 2, one, units_of(one, (one,))) == 0.0


def slow_measure_gain(code: Longs, true: Floats, units: Units) -> float:
    half, real = np.random.default_rng(0).random(len(true)) < 0.5, np.isfinite(true)
    learn, test = real & half, real & ~half
    if learn.sum() < 40 or test.sum() < 40:
        return 0.0
    rank = np.full(len(true), np.nan)
    for i in np.flatnonzero(real):
        rank[i] = ((true[real] < true[i]).sum() + (true[real] <= true[i]).sum() + 1) / 2 / real.sum()
    centred = np.where(real, rank - np.nanmean(rank), 0)

    def correlation(values: Longs) -> float:
        guess = slow_means(values, centred, learn)[test]
        return float(np.corrcoef(guess, centred[test])[0, 1]) if guess.std() and centred[test].std() else 0.0

    least = max(0.3, 4 / test.sum() ** 0.5)
    gains = [correlation(code), *(correlation(code) - abs(correlation(code[rows])) for rows in units.shuffled)]
    return min(gains) if min(gains) > least else 0.0


def test_a_measure_is_correlated_beyond_shuffled_values() -> None:
    draw, found = np.random.default_rng(6), []
    for turn in range(150):
        rows = int(draw.choice([100, 300, 900]))
        code = draw.integers(0, 6, rows)
        true = (
            np.where(draw.random(rows) < draw.random() ** 0.5, code, draw.integers(0, 6, rows)) + draw.random(rows) / 9
        )
        true[draw.random(rows) < 0.1] = np.nan
        group = code // 3 if turn % 3 == 0 else draw.integers(0, 5, rows)
        units = units_of(np.ones(rows, np.int64), (np.zeros(rows, np.int64), group))
        gain = dependence.measure_gain(code, true, units)
        assert gain == pytest.approx(slow_measure_gain(code, true, units))
        found.append(gain > 0)
    assert 20 < sum(found) < 130
    ones = np.ones(100)
    units = units_of(np.ones(100, np.int64), (np.zeros(100, np.int64),))
    assert (
        dependence.measure_gain(np.arange(100) % 2, ones, units)
        == dependence.measure_gain(np.zeros(100, np.int64), np.arange(100.0), units)
        == 0
    )


def test_agreement_is_the_least_beyond_each_shuffling() -> None:
    draw, group = np.random.default_rng(7), np.random.default_rng(8).integers(0, 20, 400)
    code = np.where(draw.random(400) < 0.7, group % 5, draw.integers(0, 5, 400))
    shuffled = [draw.permutation(400), dependence.shuffled_inside(group % 3, 1)]
    pairs = [
        (i, j)
        for one in range(20)
        for i, j in zip(*(np.flatnonzero(group == one)[cut] for cut in (slice(None, -1), slice(1, None))), strict=True)
    ]

    def hits(values: Longs) -> np.ndarray:
        return np.array([values[i] == values[j] for i, j in pairs])

    expected = min(beyond_chance(hits(code), hits(code[rows])) for rows in shuffled)
    assert agreement(code, group, shuffled) == expected > 0.05


def test_venues_are_predicted_better_than_by_any_shuffling() -> None:
    venue, code = rows_of(2500, 30)
    draw = np.random.default_rng(1)
    units = units_of(venue, (np.zeros(2500, np.int64), draw.integers(0, 9, 2500), venue // 2))
    plain, told = units.predictor["own"].named, units.named([code], "own")
    controls = [units.named([code[rows]], "own") for rows in units.shuffled]
    best = max([plain, *controls], key=lambda named: named.mean())
    assert not np.array_equal(best, plain)
    assert dependence.venue_gain([code], "own", units) == clear_gain(told, best) == told.mean() - best.mean() > 0.02
    assert dependence.venue_gain([draw.integers(0, 9, 2500)], "own", units) == 0.0
    one = replace(units, groups=(venue,))  # shuffled among rows of one venue, a column says the same
    assert dependence.venue_gain([code], "own", one) < 0.02
    predictor, other = units.predictor["own"], draw.integers(0, 4, 2500)
    both = [predictor.features(code)[0], predictor.features(other)[0]]  # of several columns, only what venues say
    assert units.named([code, other], "own").tolist() == predictor.named_with(both).tolist()
    assert told.tolist() == predictor.named_with(predictor.features(code)).tolist()


def test_ranges_hold_equally_many_values_and_what_is_no_number_comes_last() -> None:
    value = np.random.default_rng(0).normal(size=6400) ** 3
    assert np.bincount(bins(value)).tolist() == [100] * 64
    assert (np.diff(bins(np.sort(value))) >= 0).all()
    assert bins(np.array([np.nan, 5.0, np.inf, 7.0])).tolist() == [64, 0, 64, 63]
    assert bins(np.array([np.nan])).tolist() == [64]
    assert bins(np.array([1.0, 2.0, 2.0, 3.0])).tolist() == [0, 42, 42, 63]


def test_numberings_are_those_of_values_tokens_prefixes_and_numbers() -> None:
    texts = [f"u{i % 7}.5-zone{i % 11}.5x {i * 37 % 100}.5 9.{i % 3}" for i in range(400)]
    found = [number(one) for one in codes(pl.Series(texts))]
    parts = [text.replace("-", " ").replace(".", " ").split() for text in texts]
    assert found[0] == number(texts)
    tokens = [number([part[at] for part in parts]) for at in (0, 1, 2, -1)]
    prefixes = [number([text[:length] for text in texts]) for length in range(2, 11)]
    assert sorted(found[1:14]) == sorted([*tokens, *prefixes])
    assert [max(one) for one in found[14:]] == [6, 10, 63]
    without = [number(one) for one in codes(pl.Series(texts), parts=True)]
    assert without[:4] == found[1:5]
    assert without[4:] == found[14:]
    lone = list(codes(pl.Series([chr(97 + i % 26) + chr(97 + i // 26) for i in range(300)])))
    assert [one.max() > 0 for one in lone] == [
        True,
        False,
        False,
    ]  # prefixes of two letters are as distinct as the values


def test_numberings_of_numbers_are_ranges_and_values() -> None:
    few, many = pl.Series(np.arange(100) % 64), pl.Series(np.arange(200) % 65)
    assert [number(one) for one in codes(few)] == [number(np.arange(100) % 64)]
    ranges, values = codes(many)
    assert ranges.tolist() == bins(np.arange(200) % 65).tolist()
    assert number(values) == number(np.arange(200) % 65)
    assert [one.tolist() for one in codes(many, parts=True)] == [ranges.tolist()]
    assert not list(codes(few, parts=True))
    half = pl.Series(["1", "2", "x", "y"] * 9)  # half of them are no numbers: they are texts
    assert number(next(iter(codes(half)))) == number(value_codes(half))
    assert len(list(codes(pl.Series(["1", "2", "3", "y"] * 9)))) == 1


def test_the_clearest_dependence_is_told_of_values_first() -> None:
    venue, code = rows_of(2500, 30)
    draw = np.random.default_rng(1)
    noise, measure = draw.integers(0, 9, 2500), {"the distance": code + draw.random(2500)}
    units = units_of(venue, (np.zeros(2500, np.int64),))
    gain = dependence.venue_gain([code], "own", units)

    def told(*numberings: Longs, **measures: Floats) -> Finding | None:
        return dependence.dependence(numberings, units, measures)

    assert told(noise, code, **measure) == Finding(gain, "predicts the clean venue", "more venues predicted")
    assert told(noise, np.zeros(2500, np.int64), np.arange(2500) % 1250) is None
    where = dependence._flat(units.venues)[:, 1].argsort().argsort()[venue] // 5
    only = units_of(np.where(venue > 0, venue, 0), (np.zeros(2500, np.int64), where))
    assert dependence.dependence([where], only, {}) is None
    far = replace(units, venue={"own": np.zeros(2500, np.int32)})
    found = dependence.dependence([noise, code], far, measure)
    share = dependence.measure_gain(code, measure["the distance"], far)
    assert found == Finding(share, "is correlated with the distance", "rank correlation")
    twice = Units(
        {"own": draw.integers(1, 31, 2500).astype(np.int32), "next": venue.astype(np.int32)}, units.groups, units.venues
    )
    assert str(dependence.dependence([code, noise], twice, {})).startswith("predicts the user's next venue")
    assert dependence.dependence([noise, code], twice, {}) is None  # other numberings: the first relation alone


def test_values_that_hardly_recur_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr(dependence, "venue_gain", lambda each, *rest: seen.append(int(each[0].max())) or 0.0)
    monkeypatch.setattr(dependence, "position_gain", lambda *rest: 0.0)
    units = units_of(np.ones(200, np.int64), (np.zeros(200, np.int64),))
    numberings: list[Longs] = [np.arange(200) % size for size in (1, 2, 100, 101, 200)]
    assert dependence.dependence(numberings, units, {}) is None
    assert seen == [1, 99]
