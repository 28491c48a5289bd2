"""Sort the columns of a file: which belong to the venue and change with it, which are kept, which are refused.

A venue column that did not change would undo the substitution. An extra column is one of these:
- constant: kept.
- constant per venue (a name, an address), or per spelling of a venue if the file gives it several positions or
  categories: it belongs to the venue and changes with it.
- constant per user: it does not depend on the venue; kept.
- otherwise it varies between check-ins at one venue. If it still reveals the venue (a noisy position, a name with
  variants, a key that contains the venue's id) or is free text, the file is refused until the publisher removes the
  column or accepts the risk with --keep.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ghostpoi.data.checkins import Checkins, Ints
from ghostpoi.data.formats import Columns
from ghostpoi.data.sessions import by_user_and_time
from ghostpoi.errors import InputError

VENUE_FIELDS = ("poi", "category", "lat", "lon")
REVEALS_VENUE = 0.5  # a column that the venue alone predicts better than this reveals the venue
MENTIONS = 0.2  # share of rows whose text or order in the file gives their venue, beyond chance
FREE_TEXT_WORDS = 3  # text of this many words on average is free text
WORD = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]{2}|\b[^\W\d_]{2,}\b"
PREFIXES = range(2, 11)  # a noisy geohash agrees in its first letters


@dataclass(frozen=True)
class VenueColumns:
    """The columns that change with the venue, and the other columns, which are kept."""

    change: list[str]
    keep: list[str]


def classify(
    table: Checkins, rows: Columns, mapping: dict[str, str], path: Path | str, keep: Sequence[str]
) -> VenueColumns:
    """Sort all columns of a file; refuse one that would reveal the venue."""
    for name in keep:
        if name not in rows.columns:
            raise InputError(f"--keep {name}: {path} has no column {name!r}; its columns are {', '.join(rows.columns)}")
    fields = {mapping[f] for f in VENUE_FIELDS}
    if clash := fields.intersection(keep):
        raise InputError(f"--keep {sorted(clash)[0]}: that column describes the venue and must change with it")
    if _order_reveals(table):
        raise InputError(f"{path}: its rows are grouped by venue, so their order reveals it; sort them by time")
    change, kept, rest = [c for c in rows.columns if c in fields], [], {}
    variant = _variants(table)
    repeated = bool((np.bincount(variant)[variant] > 1).mean() > 0.5)  # otherwise every row has its own position
    for name in rows.columns:
        if name in fields or name in (mapping["user"], mapping["time"]):
            continue
        column = rows.column(name)
        if name in keep or (code := _codes(column)).max() == 0:
            kept.append(name)
        elif _constant_within(code, table.venue) or _constant_within(code, table.category):
            change.append(name)
        elif _constant_within(code, table.user):
            kept.append(name)
        elif repeated and _constant_within(code, variant):
            change.append(name)
        else:
            rest[name] = code
    clues = [_text(rows.column(mapping[field])) for field in ("poi", "lat", "lon")]
    for name, code in rest.items():
        if complaint := _complaint(rows.column(name), code, table.venue, clues):
            raise InputError(
                f"{path}: the column {name!r} {complaint}, so it could reveal the clean venue of a substituted "
                f"row; remove it, or keep it at your own risk with --keep {name}"
            )
        kept.append(name)
    return VenueColumns(change, [name for name in rows.columns if name in kept])


def _order_reveals(table: Checkins) -> bool:
    """Whether consecutive rows share a venue more often than chance and the users' own sequences explain."""
    if len(table) < 20:
        return False
    same, switch = table.venue[1:] == table.venue[:-1], table.user[1:] != table.user[:-1]
    chance = float(((np.bincount(table.venue) / len(table)) ** 2).sum())
    if switch.sum() >= 20 and float(same[switch].mean()) - chance > MENTIONS:
        return True
    in_file, in_time = np.argsort(table.user, kind="stable"), by_user_and_time(table.user, table.time)
    stays = [(np.diff(table.venue[o]) == 0)[np.diff(table.user[o]) == 0] for o in (in_file, in_time)]
    return bool(len(stays[0]) and stays[0].mean() - stays[1].mean() > MENTIONS)


def _codes(column: pl.Series) -> Ints:
    """A number from 0 for each distinct value of a column of any type; null is a value."""
    if column.dtype == pl.Object:
        column = pl.Series([repr(value) for value in column])
    return np.unique(column.hash().to_numpy(), return_inverse=True)[1].astype(np.int32)


def _variants(table: Checkins) -> Ints:
    """A number for each distinct (POI, category, position) of the rows."""
    parts = np.stack([table.venue.astype(np.float64), table.category.astype(np.float64), table.lat, table.lon])
    order = np.lexsort(parts)
    new = np.zeros(len(order), np.int32)
    new[1:] = (parts[:, order[1:]] != parts[:, order[:-1]]).any(axis=0)
    out = np.empty(len(order), np.int32)
    out[order] = np.cumsum(new)
    return out


def _constant_within(code: Ints, group: Ints) -> bool:
    return len(np.unique(group.astype(np.int64) << 32 | code)) == len(np.unique(group))


def _complaint(column: pl.Series, code: Ints, poi: Ints, clues: list[pl.Series]) -> str | None:
    """Say how a column that varies within a venue still reveals it; None if it does not."""
    if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object):
        return f"has the type {column.dtype}, which cannot be examined"
    if any(_explained(value, poi) > REVEALS_VENUE for value in _numbers(column)):
        return "is a number that is nearly constant per venue"
    text = _text(column)
    codes = [code]
    if column.dtype == pl.String:
        codes += [_codes(text.str.slice(0, length)) for length in PREFIXES]
    if any(_agreement(c, poi) > REVEALS_VENUE for c in codes):
        return "is nearly constant per venue"
    if column.dtype == pl.String and any(_mentions(text, clue) > MENTIONS for clue in clues):
        return "contains the venue's id or position"
    said = text.filter(text.fill_null("") != "")
    words = said.str.count_matches(WORD).mean() or 0
    if float(words) >= FREE_TEXT_WORDS and said.n_unique() > 0.2 * said.len():  # type: ignore[arg-type]
        return "looks like free text"
    return None


def _text(column: pl.Series) -> pl.Series:
    return column.cast(pl.String, strict=False).str.strip_chars(' "\t\x1d')


def _numbers(column: pl.Series) -> list[NDArray[np.float64]]:
    """The column as numbers (N,), NaN where there is none; from other text, its first decimals (maybe a position)."""
    if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return [column.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()]
    text = _text(column)
    plain = text.cast(pl.Float64, strict=False)
    parts = [plain]
    if plain.null_count() * 2 > column.len():
        decimals = text.str.extract_all(r"-?\d+\.\d+")
        parts = [decimals.list.get(i, null_on_oob=True).cast(pl.Float64, strict=False) for i in range(3)]
    return [part.fill_null(np.nan).to_numpy() for part in parts]


def _mentions(text: pl.Series, clue: pl.Series) -> float:
    """The share of rows whose text contains their own clue, minus the share that contain another row's."""
    other = clue.gather(np.roll(np.arange(len(clue)), len(clue) // 2))
    frame = pl.DataFrame({"text": text, "own": clue, "other": other}).fill_null("")
    found = frame.select(pl.col("text").str.contains(pl.col(c), literal=True).mean().alias(c) for c in ("own", "other"))
    own, chance = found.row(0)
    return float(own - chance)


def _explained(value: NDArray[np.float64], group: Ints) -> float:
    """The share of the variance between groups, corrected for the number of groups (0 if the column ignores them).

    It uses ranks: a few outliers (a phone set to another time zone) would dominate the variance of the values.
    """
    value, group = _in_groups(value, group, np.isfinite(value))
    _, code, count = np.unique(value, return_inverse=True, return_counts=True)
    value = (np.cumsum(count) - count / 2)[code]
    n = np.bincount(group)
    if not len(value):
        return 0.0
    mean = np.bincount(group, value) / np.maximum(n, 1)
    total, within = float(((value - value.mean()) ** 2).sum()), float(((value - mean[group]) ** 2).sum())
    degrees = len(value) - np.count_nonzero(n)
    return 1 - (within / degrees) / (total / (len(value) - 1)) if total else 0.0


def _agreement(code: Ints, group: Ints) -> float:
    """How much better a venue's other check-ins predict a value than the whole table, 0 to 1 (like Cohen's kappa)."""
    code, group = _in_groups(code, group, np.ones(len(code), bool))
    if not len(code):
        return 0.0
    key, count = np.unique(group.astype(np.int64) << 32 | code, return_counts=True)
    size = np.bincount(group)[key >> 32]
    same = float((count * (count - 1) / (size - 1)).sum()) / len(code)  # another row of the venue agrees
    totals = np.bincount(code)
    chance = float((totals * (totals - 1)).sum()) / (len(code) * (len(code) - 1))
    return (same - chance) / (1 - chance) if chance < 1 else 0.0


def _in_groups(value: Any, group: Ints, real: NDArray[np.bool_]) -> tuple[Any, Ints]:
    """Keep the real values in groups of at least two: a venue with one check-in would explain anything."""
    real = real & (np.bincount(group, real)[group] > 1)
    return value[real], group[real]
