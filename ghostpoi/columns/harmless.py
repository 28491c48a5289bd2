"""Rules that recognise a column as harmless: it follows from the user and the time, or numbers the rows.

Where a release has other times than the file, a column is harmless if it follows from the released time as it followed
from the clean one, such as a date next to times that are cut to the hour (`shows_time`). Otherwise it must not follow
the order of the clean times, nor predict them.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, product

import numpy as np
import polars as pl

from ghostpoi.columns.dependence import shuffled_inside, value_codes
from ghostpoi.columns.related import ERRORS, RelatedVenues, parts_of_date
from ghostpoi.columns.traces import has_value, numbers
from ghostpoi.data.checkins import Checkins, Floats, Longs
from ghostpoi.formats.times import PLACE, SHORT, parse_times

FEW_VALUES = 128  # a column with at most so many values, each of which recurs, can be tested for dependence
RECURS = 20  # mean number of rows with the same value
HOUR, DAY = 3600, 86_400
OFFSETS = np.arange(-14 * 4, 14 * 4 + 1) * 900  # of local times from UTC, in seconds
MOST_SECONDS = 1e12  # between two ways of counting time
MOST_OFFSETS = 8  # of one column
ALMOST_ALL = 0.999
LIKELY = 0.98  # share of a sample above which all rows are checked
SAMPLE = 500
UNITS = (1, 60, HOUR, DAY)  # seconds
GAPS = 4096  # rows in which gaps between check-ins are searched first
FIRST = 50  # rows that are checked before all others
ENOUGH = 20  # pairs of rows that would differ by chance
EXCEPTIONS = 0.01  # share of them that may differ, at the borders of a day
PAIRED = 20_000  # rows that are paired first
MIX, PRIME = 2_654_435_761, (1 << 31) - 1
FRACTION = r":\d{2}\.(\d+)"  # below the second
OFFSET = r":\d{2}(?:\.\d+)?\s*([+-]\d{2}(?::?\d{2})?|Z)"  # after a time of day
NAME = rf"[\s\[(]*(?:{PLACE}|{SHORT})"
ZONE = rf":\d{{2}}(?:\.\d+)?\s*((?:[+-]\d{{2}}(?::?\d{{2}})?|Z)(?:{NAME})?|{NAME})"  # an offset, a name or both


def follows_from_time(column: pl.Series, related: RelatedVenues) -> bool:
    """Return whether a column is a time, a part of the date, or the time since another check-in of the user."""
    value, time = all_numbers(column), related.table.time
    if time_offsets(column, time) is not None or (value is not None and _part_of_date(value, time)):
        return True
    if _gap(numbers(column), related):
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
        if not (column.dtype == pl.String or column.dtype.is_temporal()) or column.dtype in (pl.Time, pl.Duration):
            return None
        for some in (column.head(FIRST), column):
            parsed = parse_times(some.str.strip_chars(' "\t\r') if some.dtype == pl.String else some)
            if parsed.null_count():
                return None
        return _few_offsets(parsed.to_numpy(), time)
    if np.abs(value).max() > 1e19:
        return None
    for unit in (1, 1e3, 1e6, 1e9):
        offsets = _few_offsets(value, time, divisor=unit)
        if offsets is not None and (value % unit == 0).all():  # digits below the second could encode anything
            return offsets
    longer = (_few_offsets(value, time, factor=unit) for unit in (60, HOUR, DAY))
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
        difference = value[rows] * factor / divisor - time[rows]
        values = pl.Series(difference).unique().to_numpy()
        whole = bool((values % 900 == 0).all()) and bool((np.abs(values) <= OFFSETS[-1]).all())
        if not ((len(values) == 1 and abs(values[0]) < MOST_SECONDS) or (len(values) <= MOST_OFFSETS and whole)):
            return None
    return difference.astype(np.int64)


def _part_of_date(value: Floats, time: Longs) -> bool:
    """Return whether a number is a part of the local time, under one offset from UTC or, with summer time, two."""
    some = np.random.default_rng(0).permutation(len(time))[:SAMPLE]
    for number, part in enumerate(parts_of_date(time[some] + OFFSETS[:, None])):
        hits = part == value[some]  # (offsets, SAMPLE)
        for hour in (0, 4):  # a second offset, in quarters of an hour
            for i in np.flatnonzero((hits[: len(hits) - hour] | hits[hour:]).mean(axis=1) > LIKELY):
                pair = (parts_of_date(time + offset)[number] == value for offset in (OFFSETS[i], OFFSETS[i + hour]))
                if np.logical_or(*pair).mean() >= ALMOST_ALL:
                    return True
    return False


def _gap(value: Floats, related: RelatedVenues) -> bool:
    """Return whether a number is the time since the previous or until the next check-in of the user, in any unit."""

    def hits(rows: Longs, pause: Longs) -> int:
        """Count the rows that have the time in the form that most rows have: exact, cut or rounded."""
        count = 0
        for unit, digits in product(UNITS, (1, 10, 100)):
            true, given = pause[rows] / unit * digits, value[rows] * digits
            whole, apart = np.abs(given - np.rint(given)) < 1e-6, given - true
            forms = (np.abs(apart) < 1e-6, whole & (apart > -1) & (apart < 1e-6), whole & (np.abs(apart) < 0.5 + 1e-6))
            count = max(count, *(int(form.sum()) for form in forms))
        return count

    for name, other in (("previous", related.previous_row), ("next", related.next_row)):
        rows = np.flatnonzero(other >= 0)
        some = rows[:GAPS]
        # In most columns, the first rows already have more other values than all rows may have.
        if len(some) - hits(some, related.pauses[name]) > (1 - ALMOST_ALL) * len(rows) + 1:
            continue
        if len(rows) and hits(rows, related.pauses[name]) / len(rows) >= ALMOST_ALL:
            return True
    return False


def time_numberings(raw: pl.Series) -> list[Longs]:
    """Number the notations of the times of a file: digits below the second and, in texts, offset and spelling."""
    value, found = None if raw.dtype.is_temporal() else all_numbers(raw), []
    if value is not None:
        size = float(np.median(np.abs(value)))
        unit = next((unit for least, unit in ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3)) if size >= least), 1.0)
        found.append((value % unit * 1e6 // 1).astype(np.int64))
    elif isinstance(raw.dtype, pl.Datetime):
        found.append(value_codes(raw.dt.nanosecond()))
    if raw.dtype == pl.String:
        below = [] if found else [raw.str.extract(FRACTION).fill_null("")]
        spelled = raw.str.replace_all(r"[A-Za-z]{2,}", "a").str.replace_all(r"\d", "0")
        found += map(value_codes, [*below, spelled, raw.str.extract(ZONE).fill_null("")])
    return found


FEWEST = 30  # pairs of rows
RISING = 0.1  # largest allowed excess of pairs in which time and value rise together
EXPLAINED = 0.01  # largest allowed share of the variance of hidden times that values explain beyond chance
OFTEN = 5  # rows of a value
PAIRS = 20_000


def shows_time(column: pl.Series, table: Checkins, shown: Longs) -> str | None:
    """Return how a column shows the clean times of a table that is released with times `shown`, (N,), or None."""
    code = value_codes(column)
    if not code.max():
        return None
    before, after = (RelatedVenues(one) for one in (table, replace(table, time=shown)))
    if follows_from_time(column, before) and not follows_from_time(column, after):
        return "repeats the time"
    number = all_numbers(column)
    value = column.cast(pl.String).rank("dense").fill_null(0).to_numpy() if number is None else number
    if any(_rises(value.astype(float), table.time, pairs) for pairs in _pairs(table, shown)):
        return "follows the order of the clean times"
    hidden = table.time - shown
    if (np.abs(hidden) >= DAY).any():  # sessions moved; one row of a user's day is as good as all
        rows = np.unique(np.stack([table.user, table.time // DAY]), axis=1, return_index=True)[1]
        code, shown, hidden = code[rows], shown[rows], table.time[rows] // (7 * DAY)
    hours = (shown // HOUR % 24, shown // HOUR % (7 * 24))
    return "predicts the clean time" if any(_explains(code, hidden, hour) for hour in hours) else None


def _pairs(table: Checkins, shown: Longs) -> list[tuple[Longs, Longs]]:
    """Return pairs of rows whose order the released times hide: of all rows, and of the rows of each user."""
    draw, found = np.random.default_rng(0), []
    everybody = np.zeros(len(table), np.int64)
    for group in (everybody, table.user):
        if (np.abs(table.time - shown) >= DAY).any():  # sessions moved: any two days
            one, two = (np.lexsort((draw.random(len(group)), group)) for _ in range(2))
            hides = np.abs(table.time[one] - table.time[two]) >= DAY
        else:
            order = np.lexsort((table.time, group))
            one, two = order[:-1], order[1:]
            hides = shown[one] == shown[two]
        at = np.flatnonzero(hides & (group[one] == group[two]) & (table.time[one] != table.time[two]))
        at = draw.permutation(at)[:PAIRS]
        found.append((one[at], two[at]))
    return found


def _rises(value: Floats, time: Longs, pairs: tuple[Longs, Longs]) -> bool:
    """Return whether values rise with the time in far more pairs than they fall, or the reverse."""
    sign = np.sign(value[pairs[1]] - value[pairs[0]]) * np.sign(time[pairs[1]] - time[pairs[0]])
    sign = sign[np.isfinite(sign)]
    if np.count_nonzero(sign) < FEWEST:
        return False
    days = len(np.unique(time[np.concatenate(pairs)] // DAY))  # rows of one day are no further evidence
    return bool(abs(sign.mean()) > max(RISING, ERRORS / np.sqrt(days)))


def _explains(code: Longs, hidden: Longs, hour: Longs) -> bool:
    """Return whether values, at each hour, explain the hidden part of the time beyond chance.

    Next to UTC times, a local hour shows whether clocks were on summer time.
    """
    often = np.flatnonzero(np.bincount(code)[code] >= OFTEN)
    if len(often) < FEWEST:
        return False
    code, hour, hidden = code[often], hour[often], hidden[often]
    rest = hidden - _mean(hour, hidden)
    total = float((rest**2).sum())
    if not total:
        return False
    own, chance = (float((_mean(hour * (int(code.max()) + 1) + one, rest) ** 2).sum()) / total
                   for one in (code, code[shuffled_inside(hour, 0)]))  # fmt: skip
    error = np.sqrt(2 * len(np.unique(hour * (int(code.max()) + 1) + code))) / len(code)
    return bool(own - chance > max(EXPLAINED, ERRORS * error))


def _mean(group: Longs, value: Longs | Floats) -> Floats:
    """Return the mean of the values in each row's group, (N,)."""
    number = np.unique(group, return_inverse=True)[1]
    return (np.bincount(number, value) / np.bincount(number))[number]
