"""Measure how much better a column predicts clean venues than the rest of the row does.

A table learned on half of the rows predicts the other half. Two targets: the venue, given its category, and its
position. The control is the same column with its values shuffled among the rows of each user. It keeps what the column
reveals about the user, whom the release names anyway. A column that is constant per user is tested on users instead:
the target is the most visited venue, and values are shuffled among all users.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from ghostpoi.columns.related import ERRORS, RELATIONS, Finding, RelatedVenues, strongest
from ghostpoi.columns.traces import NUMBER, numbers, readings, text_of
from ghostpoi.data.checkins import Bools, Floats, Ints, Longs

VENUE_GAIN = 0.02  # largest allowed gain in the share of venues that are predicted
POSITION_GAIN = 0.05  # largest allowed gain in the explained variance of the position
RANK_CORRELATION = 0.3  # largest allowed correlation with a distance or speed, beyond the control
FEWEST = 40  # predictions; fewer prove nothing
MOST_ROWS = 200_000  # further users are not tested
BINS = 64
MOST_DECODED = 20_000  # distinct values
MOST_NUMBERS = 3  # decimal numbers in a text
PREFIXES = range(2, 11)  # lengths of prefixes to test: noisy geohashes agree in their first letters
FEW_ROWS = 5  # mean rows per user below which values are shuffled among all users


@dataclass(frozen=True)
class Units:
    """What is tested, rows or users, with the venues that a value could predict."""

    venue: dict[str, Ints]  # relation -> (n,), 0 where there is none
    group: Longs  # (n,) values are shuffled inside groups
    category: Ints  # (V+1,)
    xy: Floats  # (V+1, 2)

    @cached_property
    def half(self) -> Bools:
        return np.random.default_rng(0).random(len(self.group)) < 0.5

    @cached_property
    def shuffled(self) -> Longs:
        """Another unit of the same group for every unit, (n,)."""
        n, rng = len(self.group), np.random.default_rng(1)
        order, drawn = np.argsort(self.group, kind="stable"), np.lexsort((rng.random(n), self.group))
        out = np.empty(n, np.int64)
        out[order] = drawn
        return out


def tested_rows(related: RelatedVenues, most: int) -> Longs:
    """Return the rows of as many users as the test can take, (n,)."""
    if len(related.table) <= most:
        return np.arange(len(related.table))
    counts = np.bincount(related.table.user)
    return np.flatnonzero(np.cumsum(counts)[related.table.user] <= max(most, counts[0]))


def of_rows(related: RelatedVenues, rows: Longs) -> Units:
    """Return the units of a column that varies within users."""
    table = related.table
    venue = {name: v for name, v in related.of_rows(rows).items() if name != "usual"}
    users = table.user[rows].astype(np.int64)
    alone = len(rows) < FEW_ROWS * len(np.unique(users))
    return Units(venue, np.zeros_like(users) if alone else users, *_places(related))


def of_users(related: RelatedVenues) -> Units:
    """Return the units of a column that is constant per user."""
    usual = related.usual_of_user
    return Units({"usual": usual}, np.zeros(len(usual), np.int64), *_places(related))


def _places(related: RelatedVenues) -> tuple[Ints, Floats]:
    v = related.table.venues
    xy = np.stack([v.lat, v.lon * np.cos(np.radians(np.nanmedian(v.lat)))], axis=1)
    return v.category, np.nan_to_num(xy)


def dependence(column: pl.Series, units: Units, measures: dict[str, Floats]) -> Finding | None:
    """Return the clearest dependence of venues on a column, or None. `measures` have one number per unit."""
    venues, positions, value = [], [], numbers(column)
    for code in codes(column):
        for relation, venue in units.venue.items():
            what = RELATIONS[relation]
            venues.append(Finding(venue_gain(code, venue, units), f"predicts {what}", "more venues predicted"))
            gain = position_gain(code, venue, units)
            positions.append(Finding(gain, f"predicts the position of {what}", "of the variance"))
    gains = ((what, correlation_gain(value, true, units)) for what, true in measures.items())
    correlated = [Finding(gain, f"is correlated with {what}", "rank correlation") for what, gain in gains]
    return strongest(venues) or strongest(positions) or strongest(correlated)


def codes(column: pl.Series) -> Iterable[Longs]:
    """Yield numberings of a column's values: the values, prefixes of text, ranges of numbers in it."""
    values = value_codes(column)
    yield values
    plain = numbers(column)
    if np.isfinite(plain).mean() > 0.5:
        yield _bins(plain)
        return
    first = np.unique(values, return_index=True)[1]
    distinct = column.gather(first).to_list()
    decode = readings if len(distinct) <= MOST_DECODED else text_of
    texts = pl.Series([decode(v if isinstance(v, bytes) else text_of(v)) for v in distinct], dtype=pl.String)
    for length in PREFIXES:
        prefix = value_codes(texts.str.slice(0, length))
        if prefix.max() + 1 < len(distinct):  # else this prefix and longer ones are as distinct as the values
            yield prefix[values]
    decimals = texts.str.extract_all(NUMBER.pattern).list
    for at in range(MOST_NUMBERS):
        part = decimals.get(at, null_on_oob=True).cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
        if np.isfinite(part).any():
            yield _bins(part[values])


def value_codes(column: pl.Series) -> Longs:
    """Number the distinct values of a column of any type from 0; null is a value."""
    if column.dtype == pl.Object or column.dtype.is_nested():
        column = pl.Series([repr(value) for value in column])
    hashes = column.hash().alias("hash").to_frame()
    number = hashes.unique().sort("hash").with_row_index("number")
    return hashes.join(number, on="hash", how="left", maintain_order="left")["number"].to_numpy().astype(np.int64)


def venue_gain(code: Longs, venue: Ints, units: Units) -> float:
    """Return how many more venues a table of values predicts than one of shuffled values; 0 if not clearly more."""
    real = venue > 0
    category = units.category[venue].astype(np.int64)
    scores = []
    for values in (code, code[units.shuffled]):
        key = np.unique(category << 32 | values, return_inverse=True)[1]
        learn, test = real & units.half, real & ~units.half
        guess = _most_common(key[learn], venue[learn], int(key.max()) + 1)
        fallback = _most_common(category[learn], venue[learn], len(units.category) + 1)
        answer = np.where(guess[key[test]] > 0, guess[key[test]], fallback[category[test]])
        scores.append(answer == venue[test])
    if len(scores[0]) < FEWEST:
        return 0.0
    gain = float(scores[0].mean() - scores[1].mean())
    error = float(np.sqrt((scores[0] != scores[1]).mean() / len(scores[0])))
    return gain if gain > max(VENUE_GAIN, ERRORS * error) else 0.0


def _most_common(key: Longs, venue: Ints, size: int) -> Ints:
    """Return the most common venue of each key, (size,); 0 for a key that does not occur."""
    pair, count = np.unique(key << 32 | venue, return_counts=True)
    order = np.argsort(count, kind="stable")
    out = np.zeros(size, np.int32)
    out[pair[order] >> 32] = pair[order] & 0xFFFFFFFF  # the last assignment, the largest count, wins
    return out


def position_gain(code: Longs, venue: Ints, units: Units) -> float:
    """Return how much more of the variance of positions values explain than shuffled ones; 0 if not clearly more."""
    real = venue > 0
    learn, test = real & units.half, real & ~units.half
    if learn.sum() < FEWEST or test.sum() < FEWEST:
        return 0.0
    xy = units.xy[venue]
    centre = xy[learn].mean(axis=0)
    total = ((xy[test] - centre) ** 2).sum(axis=1)
    if not total.sum():
        return 0.0
    errors = []
    for values in (code, code[units.shuffled]):
        size = int(values.max()) + 1
        n = np.bincount(values[learn], minlength=size)
        mean = np.stack(
            [(np.bincount(values[learn], xy[learn, i] - centre[i], minlength=size)) / (n + 1) for i in (0, 1)], axis=1
        )
        errors.append(((xy[test] - centre - mean[values[test]]) ** 2).sum(axis=1))
    better = (errors[1] - errors[0]) / total.mean()
    gain, error = float(better.mean()), float(better.std() / np.sqrt(len(better)))
    return gain if gain > max(POSITION_GAIN, ERRORS * error) else 0.0


def correlation_gain(value: Floats, true: Floats, units: Units) -> float:
    """Return the rank correlation of a number with a distance, beyond that of shuffled numbers; 0 if it is small."""
    real = np.isfinite(value) & np.isfinite(true)
    if real.sum() < FEWEST:
        return 0.0
    mixed = np.where(np.isfinite(value[units.shuffled]), value[units.shuffled], np.nanmedian(value))
    found = [abs(_rank_correlation(v[real], true[real])) for v in (value, mixed)]
    gain = found[0] - found[1]
    return gain if gain > max(RANK_CORRELATION, ERRORS / np.sqrt(real.sum())) else 0.0


def _rank_correlation(one: Floats, two: Floats) -> float:
    ranks = [np.unique(v, return_inverse=True, return_counts=True) for v in (one, two)]
    middle = [(np.cumsum(count) - count / 2)[code] for _, code, count in ranks]
    if any(np.ptp(r) == 0 for r in middle):
        return 0.0
    matrix: Floats = np.corrcoef(middle[0], middle[1])
    return float(matrix[0, 1])


def _bins(value: Floats) -> Longs:
    """Number the ranges of values by rank, so that outliers do not matter; values that are not numbers come last."""
    real = np.isfinite(value)
    out = np.full(len(value), BINS, np.int64)
    if real.any():
        edges = np.quantile(value[real], np.linspace(0, 1, BINS + 1)[1:-1])
        out[real] = np.searchsorted(edges, value[real], side="right")
    return out
