"""Measure how much better a column predicts clean venues than what a release shows anyway.

A release shows the user, the time and roughly the place: which few dozen neighbours a venue is one of. A predictor
weighs how common each of them is, how often it is visited at such times and after such pauses, and how often it, its
category and its block have the value of each column. It learns tables on most rows and weights on some others; the
share of venues that it names is counted on the rest. Positions, and what the user does, such as how far the step was,
are predicted from the mean of each value, learned on half of the rows.

The control is the same column with its values shuffled among the rows of each user, which keeps what it reveals about
the user, whom the release names anyway, or among rows of the same hour and pause. A column that is constant per user is
tested on users instead: the target is the most visited venue.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from ghostpoi.columns.related import ERRORS, RELATIONS, Finding, RelatedVenues, beyond_chance, strongest
from ghostpoi.columns.traces import NUMBER, numbers, readings, text_of
from ghostpoi.data.checkins import Bools, Floats, Ints, Longs, Venues

VENUE_GAIN = 0.02  # largest allowed gain in the share of venues that are predicted
POSITION_GAIN = 0.05  # largest allowed gain in the explained variance of the position
RANK_CORRELATION = 0.3  # largest allowed correlation with a distance, speed or habit, beyond the control
FEWEST = 40  # predictions; fewer prove nothing
MOST_ROWS = 200_000  # further users are not tested
BINS = 64
PERIODS = 16  # of the time of a file
SHUFFLED = 10  # mean rows of a user and a period, at least
RECURS = 2  # mean rows with a value, below which rows teach nothing about others
MOST_DECODED = 20_000  # distinct values
MOST_NUMBERS = 3  # decimal numbers in a text
PREFIXES = range(2, 11)  # lengths of prefixes to test: noisy geohashes agree in their first letters
TOKEN = r"[0-9A-Za-z]+"
TOKENS = (0, 1, 2, -1)  # places of a text that may hold an id or a zone
FEW_ROWS = 5  # mean rows per user below which values are shuffled among all users
PAUSES = (1, 900, 3600, 3 * 3600, 8 * 3600, 86_400, 3 * 86_400)  # seconds: limits of classes of pauses

# Of the predictor:
AREA, BLOCK = 48, 6  # venues
FIT, TEST = 1500, 4500  # rows, at most; at least as many are learned from
PRIOR = 5.0  # rows that a table counts as much as the table behind it
DENSE = 1 << 24  # cells of a table of counts; larger ones are searched
STEPS = 5  # of Newton's method
RIDGE = 2.0


def _flat(venues: Venues) -> Floats:
    """Return the positions of venues on a plane, (V+1, 2)."""
    lat, lon = venues.lat, venues.lon
    return np.nan_to_num(np.stack([lat, lon * np.cos(np.radians(np.nanmedian(lat)))], axis=1))


def areas(venues: Venues, most: int, shown: Longs | None = None) -> Longs:
    """Number areas of up to `most` neighbouring venues, (V+1,). `shown`: what venues of an area have in common."""
    xy = _flat(venues)
    found = np.zeros(len(xy), np.int64)
    label = found if shown is None else shown
    order = 1 + np.argsort(label[1:], kind="stable")
    todo = np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
    count = 0
    while todo:
        part = todo.pop()
        if len(part) <= most:
            count += 1
            found[part] = count
            continue
        axis, half = np.ptp(xy[part], axis=0).argmax(), len(part) // 2
        by_axis = np.argpartition(xy[part, axis], half)
        todo += [part[by_axis[:half]], part[by_axis[half:]]]
    return found


def _members(area: Longs) -> Longs:
    """The venues of each area, (A+1, C), 0 where there are no more."""
    order = np.argsort(area[1:], kind="stable") + 1
    size = np.bincount(area[1:])
    out = np.zeros((len(size), int(size.max(initial=1))), np.int64)
    begin = np.cumsum(size) - size
    out[area[order], np.arange(len(order)) - begin[area[order]]] = order
    return out


def _share(learned: tuple[Longs, Longs], asked: tuple[Longs, Longs], behind: Floats) -> Floats:
    """Return the share of the rows of some groups that have some values, drawn towards what is `behind` it.

    `learned` holds the groups and the values of the rows that are learned from.
    """
    values, size = (int(one.max(initial=0)) + 1 for one in (learned[1], learned[0]))
    known = (asked[0] < size) & (asked[1] < values)
    key, wanted = learned[0] * values + learned[1], np.where(known, asked[0] * values + asked[1], 0)
    if size * values <= DENSE:
        count = np.bincount(key, minlength=size * values)[wanted]
    else:
        keys, number = np.unique(key, return_counts=True)
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        count = np.where(keys[at] == wanted, number[at], 0)
    total = np.bincount(learned[0], minlength=size)[np.where(known, asked[0], 0)]
    return (np.where(known, count, 0) + PRIOR * behind) / (np.where(known, total, 0) + PRIOR)


class Predictor:
    """Predicts the venues of some rows, (n,), 0 where there is none, from what is `known` of them: codes, (n,) each."""

    def __init__(self, venues: Venues, venue: Ints, known: Sequence[Longs] = (), shown: Longs | None = None) -> None:
        self.venue = venue.astype(np.int64)
        self.category = venues.category.astype(np.int64) + 1
        area, self._block = areas(venues, AREA, shown), areas(venues, BLOCK, shown)
        real = np.random.default_rng(0).permutation(np.flatnonzero(venue))
        fit, test = min(FIT, len(real) // 5), min(TEST, 3 * len(real) // 10)
        self._some, self._learn = real[: fit + test], real[fit + test :]
        self._fit = slice(0, fit)
        self._test = slice(fit, fit + test)
        members = _members(area)
        self._choice = members[area[self.venue[self._some]]]  # (m, C)
        self._true = (self._choice == self.venue[self._some][:, None]).argmax(axis=1)
        common = np.bincount(self.venue[self._learn], minlength=len(area))[self._choice]
        features = [np.log(common + 0.5), *(one for code in known for one in self.features(code)[:2])]
        self._base = self._score(features)
        self.named = self.named_with([])

    def features(self, code: Longs) -> list[Floats]:
        """Return how much likelier each venue, its category and its block make the values of a column, (m, C) each."""
        learn, venue, here = self._learn, self._choice, code[self._some][:, None]
        count = np.bincount(code[learn], minlength=int(code.max(initial=0)) + 1)
        share = ((count + 1) / (count.sum() + len(count)))[here]

        def of(group: Longs, behind: Floats) -> Floats:
            return _share((group[self.venue[learn]], code[learn]), (group[venue], here), behind)

        by_category = of(self.category, share)
        by_venue = of(np.arange(len(self.category)), by_category)
        return [np.log(one / share) for one in (by_venue, by_category, of(self._block, share))]

    def named_with(self, features: list[Floats]) -> Bools:
        """Mark the test rows whose venue is the likeliest."""
        score = self._score([np.where(self._choice > 0, self._base, 0), *features]) if features else self._base
        return score[self._test].argmax(axis=1) == self._true[self._test]

    def _score(self, features: list[Floats]) -> Floats:
        """Return the sum of features, weighed so that the venues of the fitted rows are likeliest, (m, C).

        The first weight begins at 1.
        """
        value = np.stack([one[self._fit] for one in features], axis=2)  # (f, C, K)
        absent, true = self._choice[self._fit] == 0, self._true[self._fit]
        start = np.eye(1, len(features))[0]
        weights: Floats = start
        rows = np.arange(len(value))
        for _ in range(STEPS):
            score = np.where(absent, -np.inf, value @ weights)
            chance = np.exp(score - score.max(axis=1, keepdims=True, initial=-1e9))
            chance /= chance.sum(axis=1, keepdims=True)
            mean = np.einsum("fc,fck->fk", chance, value)
            slope = (value[rows, true] - mean).sum(axis=0) - RIDGE * (weights - start)
            flat = value.reshape(-1, len(weights))
            bend = (flat * chance.reshape(-1, 1)).T @ flat - mean.T @ mean + RIDGE * np.eye(len(weights))
            weights = weights + np.clip(np.linalg.solve(bend, slope), -2, 2)
        total: Floats = sum(weight * one for weight, one in zip(weights, features, strict=True))
        return np.where(self._choice > 0, total, -np.inf)


def clear_gain(named: Bools, control: Bools) -> float:
    """Return how many more rows are named than by a control; 0 if not clearly more."""
    if len(named) < FEWEST:
        return 0.0
    gain = float(named.mean() - control.mean())
    error = float(np.sqrt((named != control).mean() / len(named)))
    return gain if gain > max(VENUE_GAIN, ERRORS * error) else 0.0


def shuffled_inside(group: Longs, seed: int) -> Longs:
    """Return a random row of the same group for every row, each row once, (N,)."""
    out = np.empty(len(group), np.int64)
    out[np.argsort(group, kind="stable")] = np.lexsort((np.random.default_rng(seed).random(len(group)), group))
    return out


@dataclass(frozen=True)
class Units:
    """What is tested, rows or users, with the venues that a value could predict, and what a release shows of them."""

    venue: dict[str, Ints]  # relation -> (n,), 0 where there is none
    groups: tuple[Longs, ...]  # (n,) each: values are shuffled inside groups
    venues: Venues
    known: tuple[Longs, ...] = ()  # (n,) each
    shown: Longs | None = None  # (V+1,) what a substitute has in common with the clean venue

    @cached_property
    def half(self) -> Bools:
        return np.random.default_rng(0).random(len(self.groups[0])) < 0.5

    @cached_property
    def shuffled(self) -> tuple[Longs, ...]:
        """Another unit of the same group for every unit, (n,), for each grouping."""
        return tuple(shuffled_inside(group, seed) for seed, group in enumerate(self.groups, 1))

    @cached_property
    def predictor(self) -> dict[str, Predictor]:
        return {name: Predictor(self.venues, v, self.known, self.shown) for name, v in self.venue.items()}

    def named(self, each: Sequence[Longs], relation: str) -> Bools:
        """Mark the tested units whose venue is predicted from codes, (n,) each."""
        predictor = self.predictor[relation]
        most = None if len(each) == 1 else 1
        return predictor.named_with([one for code in each for one in predictor.features(code)[:most]])

    @cached_property
    def xy(self) -> Floats:
        return _flat(self.venues)


def tested_rows(related: RelatedVenues, most: int) -> Longs:
    """Return the rows of as many users as the test can take, (n,)."""
    counts = np.bincount(related.table.user)
    return np.flatnonzero(np.cumsum(counts)[related.table.user] <= max(most, counts[0]))


def of_rows(related: RelatedVenues, rows: Longs, shown: Longs | None = None) -> Units:
    """Return the units of a column that varies within users."""
    table = related.table
    venue = {name: v[rows] for name, v in related.venue.items() if name != "usual"}
    user, time = table.user[rows].astype(np.int64), table.time[rows]
    alone = len(rows) < FEW_ROWS * len(np.unique(user))
    hour, weekday, period = time // 3600 % 24, (time // 86_400 + 3) % 7, _period(time)
    pauses = [np.digitize(pause[rows], PAUSES) for pause in related.pauses.values()]
    alike = (hour * 8 + pauses[0]) * 8 + pauses[1]
    place = np.log2(related.place_of_row[rows] + 1).astype(np.int64) * PERIODS + period
    periods = min(PERIODS, len(rows) // (SHUFFLED * (len(np.unique(user)))) + 1)
    groups = (np.zeros_like(user) if alone else user, alike, place, user * PERIODS + _period(time, periods))
    visible = [] if shown is None else [shown[table.venue[rows]] + 1]
    return Units(venue, groups, table.venues, (hour, weekday, period, *pauses, *visible), shown)


def _period(time: Longs, periods: int = PERIODS) -> Longs:
    return (time - time.min()) * periods // (int(np.ptp(time)) + 1)


def of_users(related: RelatedVenues, shown: Longs | None = None) -> Units:
    """Return the units of a column that is constant per user."""
    usual = related.usual_of_user
    return Units({"usual": usual}, (np.zeros(len(usual), np.int64),), related.table.venues, (), shown)


def dependence(numberings: Iterable[Longs], units: Units, measures: dict[str, Floats]) -> Finding | None:
    """Return the clearest dependence of venues on numberings of a column, or None. `measures` have a number per unit.

    All relations are tested for the first numbering, which is that of the values, and the first relation for others.
    """
    venues, positions, found = [], [], []
    recurring = (code for code in numberings if 0 < code.max() < len(code) / RECURS)
    for number, code in enumerate(recurring):
        for relation in list(units.venue)[: None if number == 0 else 1]:
            what, venue = RELATIONS[relation], units.venue[relation]
            gain = venue_gain([code], relation, units)
            venues.append(Finding(gain, f"predicts {what}", "more venues predicted"))
            explained = position_gain(code, venue, units)
            positions.append(Finding(explained, f"predicts the position of {what}", "of the variance"))
        for what, true in measures.items():
            found.append(Finding(measure_gain(code, true, units), f"is correlated with {what}", "rank correlation"))
    return strongest(venues) or strongest(positions) or strongest(found)


def codes(column: pl.Series, parts: bool = False) -> Iterable[Longs]:
    """Yield numberings of a column's values: the values, prefixes and parts of text, ranges of numbers in it.

    With `parts`, the values themselves are left out.
    """
    values, plain = value_codes(column), numbers(column)
    if np.isfinite(plain).mean() > 0.5:
        if values.max() >= BINS:
            yield bins(plain)
        if not parts:
            yield values
        return
    if not parts:
        yield values
    first = np.unique(values, return_index=True)[1]
    distinct = column.gather(first).to_list()
    decode = readings if len(distinct) <= MOST_DECODED else text_of
    texts = pl.Series([decode(v if isinstance(v, bytes) else text_of(v)) for v in distinct], dtype=pl.String)
    prefixes = (value_codes(texts.str.slice(0, length)) for length in PREFIXES if not parts)
    for one in (*tokens(texts), *prefixes):
        if one.max() < len(distinct) - 1:  # else it is as distinct as the values
            yield one[values]
    decimals = texts.str.extract_all(NUMBER.pattern).list
    for at in range(MOST_NUMBERS):
        part = decimals.get(at, null_on_oob=True).cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
        if np.isfinite(part).any():
            yield bins(part[values])


def tokens(texts: pl.Series) -> Iterable[Longs]:
    """Yield numberings of the parts of texts that may hold an id or a zone, or name the user."""
    found = texts.fill_null("").str.extract_all(TOKEN).list
    return (value_codes(found.get(at, null_on_oob=True).fill_null("")) for at in TOKENS)


def value_codes(column: pl.Series) -> Longs:
    """Number the distinct values of a column of any type from 0; null is a value."""
    if column.dtype == pl.Object or column.dtype.is_nested():
        column = pl.Series([repr(value) for value in column])
    hashes = column.hash().alias("hash").to_frame()
    number = hashes.unique().sort("hash").with_row_index("number")
    return hashes.join(number, on="hash", how="left", maintain_order="left")["number"].to_numpy().astype(np.int64)


def agreement(code: Longs, group: Ints | Longs, shuffled: Sequence[Longs]) -> float:
    """Return how many more pairs of rows of a group have one value than shuffled values do; 0 if not clearly more."""
    order = np.argsort(group, kind="stable")
    pair = np.diff(group[order]) == 0
    hit, *chance = ((np.diff(values[order]) == 0)[pair] for values in (code, *(code[rows] for rows in shuffled)))
    return min(beyond_chance(hit, one) for one in chance)


def venue_gain(each: list[Longs], relation: str, units: Units) -> float:
    """Return how many more venues codes predict than shuffled ones do; 0 if not clearly more."""
    with_values, best = units.named(each, relation), units.predictor[relation].named
    for rows in units.shuffled:
        if not clear_gain(with_values, best):
            return 0.0
        control = units.named([code[rows] for code in each], relation)
        best = control if control.mean() > best.mean() else best
    return clear_gain(with_values, best)


def position_gain(code: Longs, venue: Ints, units: Units) -> float:
    """Return how much more of the variance of positions values explain than shuffled ones; 0 if not clearly more."""
    learn, test = (venue > 0) & units.half, (venue > 0) & ~units.half
    if min(learn.sum(), test.sum()) < FEWEST:
        return 0.0
    away = units.xy[venue] - units.xy[venue][learn].mean(axis=0)
    if units.shown is not None:  # the release shows it, and so where such venues are
        shown = units.shown[venue] + 1
        away -= np.stack([_means(shown, axis, learn)[shown] for axis in away.T], axis=1)
    total = float((away[test] ** 2).sum(axis=1).mean())
    if not total:
        return 0.0

    def errors(values: Longs) -> Floats:
        guess = np.stack([_means(values, axis, learn) for axis in away.T], axis=1)
        return ((away[test] - guess[values[test]]) ** 2).sum(axis=1)

    found, least = errors(code), np.inf
    for rows in units.shuffled:
        better = (errors(code[rows]) - found) / total
        gain, error = float(better.mean()), float(better.std() / np.sqrt(len(better)))
        if gain <= max(POSITION_GAIN, ERRORS * error):
            return 0.0
        least = min(least, gain)
    return least


def measure_gain(code: Longs, true: Floats, units: Units) -> float:
    """Return the rank correlation of a number with its mean per value, beyond that of shuffled values; 0 if small."""
    real = np.isfinite(true)
    learn, test = real & units.half, real & ~units.half
    if min(learn.sum(), test.sum()) < FEWEST:
        return 0.0
    rank, centred = pl.Series(true[real]).rank().to_numpy() / real.sum(), np.zeros(len(true))
    centred[real] = rank - rank.mean()

    def correlation(values: Longs) -> float:
        guess = _means(values, centred, learn)[values[test]]
        return float(np.corrcoef(guess, centred[test])[0, 1]) if np.ptp(guess) and np.ptp(centred[test]) else 0.0

    gain = found = correlation(code)
    enough = max(RANK_CORRELATION, ERRORS / np.sqrt(test.sum()))
    for rows in units.shuffled:
        if gain <= enough:
            return 0.0
        gain = min(gain, found - abs(correlation(code[rows])))
    return gain if gain > enough else 0.0


def _means(code: Longs, target: Floats, learn: Bools) -> Floats:
    """Return the mean of a target for every value, in the rows to learn from, drawn towards 0."""
    size = int(code.max()) + 1
    return np.bincount(code[learn], target[learn], size) / (np.bincount(code[learn], minlength=size) + 1)


def bins(value: Floats) -> Longs:
    """Number the ranges of values by rank, so that outliers do not matter; values that are not numbers come last."""
    real = np.isfinite(value)
    out = np.full(len(value), BINS, np.int64)
    if real.any():
        edges = np.quantile(value[real], np.linspace(0, 1, BINS + 1)[1:-1])
        out[real] = np.searchsorted(edges, value[real], side="right")
    return out
