"""Rules that recognise a column as harmless: it follows from the user and the time, or numbers the rows."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, islice

import numpy as np
import polars as pl

from ghostpoi.columns.dependence import value_codes
from ghostpoi.columns.related import RelatedVenues
from ghostpoi.columns.traces import has_value, numbers
from ghostpoi.data.checkins import Bools, Checkins, Floats, Longs
from ghostpoi.formats.times import PLACE, SHORT, parse_times

FEW_VALUES = 128  # a column with at most so many values, each of which recurs, can be tested for dependence
RECURS = 20  # mean number of rows with the same value
DAY = 86_400
OFFSETS = np.arange(-14 * 4, 14 * 4 + 1) * 900  # of local times from UTC, in seconds
MOST_SECONDS = 1e12  # between two ways of counting time
MOST_OFFSETS = 8  # of one column
ALMOST_ALL = 0.999
LIKELY = 0.98  # share of a sample above which all rows are checked
SAMPLE = 500
GAPS = 4096  # rows in which gaps between check-ins are searched first
FIRST = 50  # rows that are checked before all others
ENOUGH = 20  # pairs of rows that would differ by chance
EXCEPTIONS = 0.01  # share of them that may differ, at the borders of a day
PAIRED = 20_000  # rows that are paired first
MIX, PRIME = 2_654_435_761, (1 << 31) - 1
Part = Callable[[Longs], Longs]
FRACTION = r":\d{2}\.(\d+)"  # below the second
OFFSET = r":\d{2}(?:\.\d+)?\s*([+-]\d{2}(?::?\d{2})?|Z)"  # after a time of day
NAME = rf"[\s\[(]*(?:{PLACE}|{SHORT})"
ZONE = rf":\d{{2}}(?:\.\d+)?\s*((?:[+-]\d{{2}}(?::?\d{{2}})?|Z)(?:{NAME})?|{NAME})"  # an offset, a name or both


def follows_from_time(column: pl.Series, table: Checkins, related: RelatedVenues) -> bool:
    """Return whether a column is a time, a part of the date, or the time since another check-in of the user."""
    if time_offsets(column, table.time) is not None:
        return True
    value = all_numbers(column)
    if value is not None and (_part_of_date(value, table.time) or _gap(value, table, related)):
        return True
    return all(_is_decided(part, related, related.parts_of_time) for part in _pieces(column))


def follows_from_sequence(column: pl.Series, related: RelatedVenues) -> bool:
    """Return whether a column follows from the times of the user's rows, e.g. the place in a session."""
    return all(
        _is_decided(part, related, chain(related.parts_of_time, related.parts_of_sequence)) for part in _pieces(column)
    )


def _pieces(column: pl.Series) -> Iterator[Longs]:
    """Yield numberings of the parts of a column, which decide its values: numbers in it, and what is around them."""
    filled, value = has_value(column).to_numpy(), numbers(column)
    if not filled.any():
        return
    if np.isfinite(value[filled]).all():
        whole = np.floor(np.where(filled, value, 0))
        yield value_codes(pl.Series(np.where(filled, whole, np.nan)))
        yield value_codes(pl.Series(np.round(np.where(filled, value - whole, -1), 9)))
        return
    if column.dtype.is_nested() or column.dtype in (pl.Object, pl.Binary):
        yield value_codes(column)
        return
    text = column.cast(pl.String)
    yield value_codes(text.str.replace_all(r"\d+", "0"))
    found = text.str.extract_all(r"\d+").list
    for at in range(max(found.len().fill_null(0).to_list(), default=0)):
        yield value_codes(found.get(at, null_on_oob=True))


def _is_decided(code: Longs, related: RelatedVenues, keys: Iterator[Longs]) -> bool:
    """Return whether rows of different users that agree in one of some keys agree in a code.

    The agreement must be that of so many rows that chance cannot explain it.
    """
    if not code.any():
        return True
    venue, user = related.table.venue, related.table.user
    for key in keys:
        for at in (_thinned(key), np.arange(len(key))):
            at = np.random.default_rng(0).permutation(at)  # neighbours in the file may agree for other reasons
            order = at[np.argsort(key[at], kind="stable")]
            one, two = order[:-1], order[1:]
            pair = (key[one] == key[two]) & (venue[one] != venue[two]) & (user[one] != user[two])
            share = np.bincount(code[order]) / max(1, len(order))
            expected = float(pair.sum() * (1 - (share**2).sum()))
            differ = int((code[one] != code[two])[pair].sum())
            if expected < ENOUGH or differ > EXCEPTIONS * expected:
                break
        else:
            return True
    return False


def all_numbers(column: pl.Series) -> Floats | None:
    """Return a column as numbers; None if a value is not one. The first rows of most text columns decide this."""
    if not np.isfinite(numbers(column.head(FIRST))).all():
        return None
    value = numbers(column)
    return value if np.isfinite(value).all() else None


def _thinned(key: Longs) -> Longs:
    """Return some rows, of which many agree in a key."""
    if len(key) <= PAIRED:
        return np.arange(len(key))
    if np.ptp(key) < PAIRED // 4:
        return np.random.default_rng(0).permutation(len(key))[:PAIRED]
    return np.flatnonzero(key * MIX % PRIME % (len(key) // PAIRED + 1) == 0)


def time_offsets(column: pl.Series, time: Longs) -> Longs | None:
    """Return the difference between a column of times and the times of the rows, in seconds; None if it holds others.

    A time in another unit, or of another zone, differs by one number or by a few offsets of time zones.
    """
    value = all_numbers(column)
    if value is None:
        seconds = _seconds(column)
        return None if seconds is None else _few_offsets(seconds, time)
    if np.abs(value).max() > 1e19:
        return None
    for unit in (1, 1e3, 1e6, 1e9):
        offsets = _few_offsets(value, time, divisor=unit)
        if offsets is not None and (value % unit == 0).all():  # digits below the second could encode anything
            return offsets
    longer = (_few_offsets(value, time, factor=unit) for unit in (60, 3600, DAY))
    return next((found for found in longer if found is not None), None)


def numbers_rows(column: pl.Series, related: RelatedVenues) -> bool:
    """Return whether a column counts the rows: of the file, in time order, or of each user."""
    value, table = all_numbers(column), related.table
    if value is None:
        return False
    by_user, first = related.order, related.previous_row < 0
    same = np.diff(table.user[by_user]) == 0
    if _steps_equal(np.diff(value)) or _steps_equal(np.diff(value[related.by_time])):
        return True
    return _steps_equal(np.diff(value[by_user])[same]) and len(np.unique(value[first])) == 1


def numbers_sessions(code: Longs, related: RelatedVenues) -> bool:
    """Return whether the values (N,) name stretches of a user's time: those between long gaps, or days."""
    table, order = related.table, related.order
    same = np.diff(table.user[order]) == 0
    change, gap = (np.diff(code[order]) != 0)[same], np.diff(table.time[order])[same]
    stretches = int(change.sum()) + len(table.user_ids)
    if (~change).sum() < ENOUGH or not change.any():
        return False
    if pl.Series(table.user.astype(np.int64) << 32 | code).n_unique() != stretches:  # pairs of a user and a value
        return False
    if gap[change].min() > gap[~change].max():
        return True
    days = (np.diff((table.time[order] + offset) // DAY)[same] != 0 for offset in OFFSETS[::4])
    return any(bool((day == change).all()) for day in days)


def below_second(time: pl.Series) -> Longs | None:
    """Return the digits below the second of a column of times; None if it has none."""
    value = None if time.dtype.is_temporal() else all_numbers(time)
    if value is None:
        if isinstance(time.dtype, pl.Datetime):
            return value_codes(time.dt.nanosecond())
        return value_codes(time.str.extract(FRACTION).fill_null("")) if time.dtype == pl.String else None
    size = float(np.median(np.abs(value)))
    unit = next((unit for least, unit in ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3)) if size >= least), 1.0)
    return (value % unit * 1e6 // 1).astype(np.int64)


def increases(column: pl.Series) -> bool:
    """Return whether a column holds whole numbers that increase from row to row, as the ids of a database do."""
    value = all_numbers(column)
    return value is not None and bool((value % 1 == 0).all() and (np.diff(value) > 0).all())


def has_few_values(column: pl.Series) -> bool:
    """Return whether every value recurs often enough for a test of dependence to detect what it reveals."""
    filled = column.filter(has_value(column))
    if not filled.len():
        return True
    values = int(value_codes(filled).max()) + 1
    return values <= FEW_VALUES and values * RECURS <= filled.len()


def _steps_equal(step: Floats) -> bool:
    return len(step) > 0 and bool((step == step[0]).all()) and step[0] != 0


def _few_offsets(value: Floats | Longs, time: Longs, divisor: float = 1, factor: float = 1) -> Longs | None:
    """Return the offsets of values, in another unit, from the times; None if there are more than a few."""
    for rows in (slice(FIRST), slice(None)):
        seconds = value[rows] / divisor if factor == 1 else value[rows] * factor
        difference = seconds - time[rows]
        values = pl.Series(difference).unique().to_numpy()
        whole = bool((values % 900 == 0).all()) and bool((np.abs(values) <= OFFSETS[-1]).all())
        if not ((len(values) == 1 and abs(values[0]) < MOST_SECONDS) or (len(values) <= MOST_OFFSETS and whole)):
            return None
    return difference.astype(np.int64)


def _seconds(column: pl.Series) -> Longs | None:
    """Return a column of dates and times as seconds; None if it holds something else."""
    if not (column.dtype == pl.String or column.dtype.is_temporal()) or column.dtype in (pl.Time, pl.Duration):
        return None
    for some in (column.head(FIRST), column):
        parsed = parse_times(some.str.strip_chars(' "\t\x1d') if some.dtype == pl.String else some)
        if parsed.null_count():
            return None
    return parsed.to_numpy()


def _parts(time: Longs) -> Iterator[Longs]:
    """Yield the parts of a date as calendars number them."""
    day = time // DAY
    date = day.astype("datetime64[D]")
    month, year = date.astype("datetime64[M]"), date.astype("datetime64[Y]")
    weekday = (day + 3) % 7  # Monday is 0
    yield time % DAY // 3600
    yield time % 3600 // 60
    yield time % 60
    yield time % DAY
    for first in (0, 1):
        yield weekday + first
        yield (weekday + 1) % 7 + first
        yield (month - year).astype(np.int64) + first
        yield (date - month).astype(np.int64) + first
        yield (date - year).astype(np.int64) + first
    yield (weekday >= 5).astype(np.int64)
    yield year.astype(np.int64) + 1970


def _part_of_date(value: Floats, time: Longs) -> bool:
    some = _some(len(time))
    parts = enumerate(_parts(time[some] + OFFSETS[:, None]))
    return any(_under_offsets(partial(_part, i), found == value[some], value, time) for i, found in parts)


def _part(number: int, time: Longs) -> Longs:
    return next(islice(_parts(time), number, None))


def _some(rows: int) -> Longs:
    """Return a sample of the rows."""
    return np.random.default_rng(0).permutation(rows)[:SAMPLE]


def _under_offsets(part: Part, hits: Bools, value: Floats | Longs, time: Longs) -> bool:
    """Whether a value is this part of the local time, under one offset from UTC or, with summer time, two.

    `hits` (offsets, SAMPLE) marks the rows of a sample where it is, under each offset.
    """
    for hour in (0, 4):  # a second offset, in quarters of an hour
        for i in np.flatnonzero((hits[: len(hits) - hour] | hits[hour:]).mean(axis=1) > LIKELY):
            pair = (part(time + offset) == value for offset in (OFFSETS[i], OFFSETS[i + hour]))
            if np.logical_or(*pair).mean() >= ALMOST_ALL:
                return True
    return False


def _gap(value: Floats, table: Checkins, related: RelatedVenues) -> bool:
    """Whether a number is the time since the previous or until the next check-in of the user."""

    def hits(rows: Longs, other: Longs) -> list[int]:
        """Count the rows that have the time in each form: in seconds, minutes or hours, exact or rounded."""
        gap = np.abs(table.time[rows] - table.time[other[rows]])
        exact = [gap / unit for unit in (1, 60, 3600)]
        forms = exact + [rounded(form) for form in exact for rounded in (np.floor, np.round)]
        return [int((np.abs(value[rows] - form) < 1e-6).sum()) for form in forms]

    for other in (related.previous_row, related.next_row):
        rows = np.flatnonzero(other >= 0)
        some = rows[:GAPS]
        # In most columns, the first rows already have more other values than all rows may have.
        if len(some) - max(hits(some, other)) > (1 - ALMOST_ALL) * len(rows) + 1:
            continue
        if len(rows) and max(hits(rows, other)) / len(rows) >= ALMOST_ALL:
            return True
    return False


def time_numberings(raw: pl.Series) -> list[Longs]:
    """Number the notations of the times of a file: digits below the second and, in texts, offset and spelling."""
    below = below_second(raw)
    found = [] if below is None else [below]
    if raw.dtype == pl.String:
        spelled = raw.str.replace_all(r"[A-Za-z]{2,}", "a").str.replace_all(r"\d", "0")
        found += [value_codes(spelled), value_codes(raw.str.extract(ZONE).fill_null(""))]
    return found
