"""Test whether the order of the rows reveals clean venues. Order is a column that a release keeps."""

from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl

from ghostpoi.columns.related import ERRORS, RelatedVenues
from ghostpoi.columns.traces import numbers
from ghostpoi.data.checkins import Bools, Floats, Ints, Longs, stable_order

ABOVE_CHANCE = 0.2  # largest allowed share of neighbouring rows, beyond chance, with the same venue
RISING = 0.15  # largest allowed excess of rising over falling steps
CLEARLY_RISING = 0.5  # the same, for what follows the time of day in any order, such as the category
CLOSER = 0.15  # largest allowed loss of squared distance between neighbouring rows
IN_TIME = 0.99  # share of steps in time order from which a file counts as sorted by time
BLOCK = 20  # venues
EARLY = 0.1  # share of the period of the file
DATED = 0.01  # mean frontier, beyond chance and as a share of the period, from which ids are called dated
LATE = 5  # blocks beyond EARLY, more than by chance, from which ids are called dated too
FEWEST = 30  # steps
BLOCKS = (3600, 86_400, 7 * 86_400, 30 * 86_400)  # seconds in which rows could be sorted by something else


def order_reveals(related: RelatedVenues, hidden: Mapping[str, pl.Series]) -> str | None:
    """Return how the order of the rows depends on their venues, or None. `hidden` columns change with the venue."""
    table = related.table
    if len(table) < 20:
        return None
    stays = [
        (np.diff(table.venue[order]) == 0)[np.diff(table.user[order]) == 0]
        for order in (stable_order(table.user), related.order)
    ]
    one_user = bool(len(stays[0]) and stays[0].mean() - stays[1].mean() > ABOVE_CHANCE)
    if one_user or _alike(related, table.venue):
        return "are grouped by venue"
    numbered = numbered_by_first_row(related)  # such ids rise in any order; a separate warning covers them
    of_venues = {n: key for n, key in _keys(related).items() if not (numbered and n.startswith("venue"))}
    of_rows = {name: key[table.venue].astype(np.float64) for name, key in of_venues.items()}
    of_rows |= {f"the column {name!r}": _ranks(column) for name, column in hidden.items()}
    for name, key in of_rows.items():
        least = RISING if name in of_venues else CLEARLY_RISING
        runs = _runs(related, falls=name in of_venues)
        if any(_sorted(np.diff(key)[steps], np.diff(key[order])[usual], least) for steps, order, usual in runs):
            return f"are sorted by {name} inside groups"
        if name not in of_venues and _alike(related, key):
            return f"are grouped by {name}"
    for name, key in of_venues.items():
        if _sorted(np.diff(key[related.usual_of_user])):  # users are numbered by first appearance
            return f"list users by the {name} of their most visited venue"
    found, steps = _closeness(related, np.arange(len(table)), _unexplained(related))
    usual, _ = _closeness(related, related.by_time, np.ones(len(table) - 1, bool))
    close = found - usual > max(CLOSER, ERRORS / np.sqrt(max(1, steps)))
    return "put venues near each other side by side" if close else None


def _ranks(column: pl.Series) -> Floats:
    """Return the ranks of numbers, or of texts, in the order in which a file could be sorted."""
    value = numbers(column)
    if not np.isfinite(value).all():
        odd = column.dtype.is_nested() or column.dtype in (pl.Object, pl.Binary)
        texts = pl.Series(map(repr, column)) if odd else column.cast(pl.String).fill_null("")
        value = texts.str.strip_chars(' "').rank("dense").to_numpy()
    return np.unique(value, return_inverse=True)[1].astype(np.float64)


def _alike(related: RelatedVenues, key: Floats | Ints) -> bool:
    """Return whether neighbours in the file, of different users, agree in a key more often than neighbours in time."""
    shares: list[float] = []
    for order in (np.arange(len(key)), related.by_time):
        among = np.diff(related.table.user[order]) != 0
        among &= _unexplained(related) if not shares else True
        if among.sum() < FEWEST:
            return False
        shares.append(float((np.diff(key[order]) == 0)[among].mean()))
    return bool(shares[0] - shares[1] > max(ABOVE_CHANCE, ERRORS / np.sqrt(among.sum())))


def _keys(related: RelatedVenues) -> dict[str, Floats]:
    """The keys by which a file could have been sorted, (V+1,) each."""
    ids = pl.Series(related.table.venue_ids[1:].tolist(), dtype=pl.String)
    venues, number = related.table.venues, ids.cast(pl.Float64, strict=False)
    keys = {"venue id": np.append(0.0, ids.rank("dense").to_numpy()), "latitude": venues.lat, "longitude": venues.lon}
    return keys if number.null_count() else keys | {"venue number": np.append(0.0, number.to_numpy())}


def _unexplained(related: RelatedVenues) -> Bools:
    """Mark the row-to-row steps, (N-1,), that time does not explain: ties, or all if the file has another order."""
    table = related.table
    gap, same_user = np.diff(table.time), np.diff(table.user) == 0
    by_user = same_user if same_user.sum() == len(table) - len(table.user_ids) else np.ones(len(gap), bool)
    in_time = any((direction[by_user] >= 0).mean() > IN_TIME for direction in (gap, -gap) if by_user.any())
    return (gap == 0) & by_user if in_time else np.ones(len(gap), bool)


def _runs(related: RelatedVenues, falls: bool) -> Iterable[tuple[Bools, Longs, Bools]]:
    """Yield the steps inside which an order could hide, (N-1,) each, with those of an order by time that are like them.

    People leave home in the morning: a key may rise in the course of a day. `falls`: also steps back in time.
    """
    table, unexplained = related.table, _unexplained(related)
    in_file, by_user, by_time = np.arange(len(table)), related.order, related.by_time
    every = np.ones(len(unexplained), bool)
    yield unexplained, by_time, every
    yield unexplained & (np.diff(table.category) == 0), by_time, every
    if falls:  # new venues may have higher ids, so ids fall with the time in any order
        shuffled = np.random.default_rng(0).permutation(in_file)
        yield unexplained & (np.diff(table.time) < 0), shuffled, np.diff(table.time[shuffled]) < 0
    for seconds in (None, *BLOCKS):

        def same(order: Longs, of_user: bool, seconds: int | None = seconds) -> Bools:
            block = np.diff(table.time[order] // seconds) == 0 if seconds else np.ones(len(order) - 1, bool)
            return block & (np.diff(table.user[order]) == 0) if of_user else block

        yield unexplained & same(in_file, False), by_time, same(by_time, False)
        yield unexplained & same(in_file, True), by_user, same(by_user, True)


def _sorted(step: Floats, usual: Floats | None = None, least: float = RISING) -> bool:
    """Return whether far more steps rise than fall, or the reverse, than usually."""
    moves, control = (np.sign(one[one != 0]) for one in (step, np.zeros(0) if usual is None else usual))
    excess = abs(float(moves.mean())) - (abs(float(control.mean())) if len(control) else 0.0) if len(moves) else 0.0
    return len(moves) >= FEWEST and excess > max(least, ERRORS / np.sqrt(len(moves)))


def _closeness(related: RelatedVenues, order: Longs, among: Bools) -> tuple[float, int]:
    """Return how much smaller squared distances between neighbours are than those between any two rows, from 0 to 1.

    Also return the number of neighbours, of which few may be close by chance.
    """
    table = related.table
    switch = among & (np.diff(table.user[order]) != 0)
    steps = int(switch.sum())
    if steps < FEWEST:
        return 0.0, steps
    width = np.cos(np.radians(np.median(table.lat)))
    xy = [axis[order] for axis in (table.lat, table.lon * width)]
    total = 2 * sum(float(axis.var()) for axis in xy)
    between = sum(float((np.diff(axis)[switch] ** 2).mean()) for axis in xy)
    return (max(0.0, 1 - between / total) if total else 0.0), steps


def numbered_by_first_row(related: RelatedVenues) -> bool:
    """Return whether ids were given to venues in the order in which they first appear.

    In the file, all must rise: rows sorted by id inside weeks rise but for the first of each week.
    """
    table, n = related.table, len(related.table)
    keys = [key[1:] for name, key in _keys(related).items() if name.startswith("venue")]
    for order, least in ((np.arange(n), 1.0), (related.by_time, IN_TIME), (related.order, IN_TIME)):
        first = np.full(len(table.venue_ids), n)
        first[table.venue[order[::-1]]] = np.arange(n - 1, -1, -1)  # the last assignment, the first row, wins
        by_first = np.argsort(first[1:])
        if len(by_first) > FEWEST and any((np.diff(key[by_first]) > 0).mean() >= least for key in keys):
            return True
    return False


def venues_dated_by_id(related: RelatedVenues) -> float:
    """Return the share of venues whose id reveals that nobody visited them in the first tenth of the period.

    Many services number venues as they are created. A venue cannot have been visited before a venue with a lower id
    existed, so a released venue that is too young reveals a substituted row. 0 if random ids would do the same.
    """
    table = related.table
    first = np.full(len(table.venue_ids), table.time.max())
    latest_first = related.by_time[::-1]
    first[table.venue[latest_first]] = table.time[latest_first]  # the last assignment, the earliest time, wins
    age = (first[1:] - table.time.min()) / max(int(np.ptp(table.time)), 1)
    keys = [key[1:] for name, key in _keys(related).items() if name.startswith("venue")]
    chance = _frontier(np.random.default_rng(0).permutation(age))
    frontiers = [found for key in keys if (found := _frontier(age[np.argsort(key, kind="stable")])).size]
    if not frontiers:
        return 0.0
    # The venues of a short file were mostly created before it, so a few late blocks hardly raise the mean.
    least, late = chance.mean() + DATED, (chance > EARLY).sum() + LATE
    later = [found > EARLY for found in frontiers if found.mean() > least or (found > EARLY).sum() >= late]
    return max((float(one.mean()) for one in later), default=0.0)


def _frontier(age: Floats) -> Floats:
    """Return, for blocks of venues in some order, the earliest first visit to the venues of this or a later block.

    A low quantile stands for the earliest, because some times in a file are wrong. Empty if there are too few venues.
    """
    blocks = len(age) // BLOCK
    if blocks < 3:
        return np.zeros(0)
    early = np.quantile(age[: blocks * BLOCK].reshape(blocks, BLOCK), 0.05, axis=1)
    return np.minimum.accumulate(early[::-1])[::-1]
