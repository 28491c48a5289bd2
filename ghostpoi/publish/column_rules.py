"""Classify the columns of a file: those that change with the venue, those that are kept, those that are refused.

A column of the venue that did not change would undo the substitution. The rules for extra columns, in this order:
- A constant column is kept.
- A column that is constant per venue (a name, an address) changes with the venue.
- A column that is constant per user does not depend on the venue and is kept.
- A column that is constant per variant of a venue, if the file gives venues several positions or categories, changes
  with the venue.
- Any other column varies between check-ins at one venue. If it still reveals the venue (a noisy position, a name with
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
REVEALS_VENUE = 0.5  # a column reveals the venue if the venue predicts it better than this
ABOVE_CHANCE = 0.2  # largest allowed share of rows, beyond chance, whose text or place in the file gives the venue
FREE_TEXT_WORDS = 3  # mean number of words from which text counts as free text
WORD = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]{2}|\b[^\W\d_]{2,}\b"
PREFIXES = range(2, 11)  # lengths of prefixes to compare: noisy geohashes agree in their first letters


@dataclass(frozen=True)
class VenueColumns:
    """The columns that change with the venue, and those that are kept."""

    change: list[str]
    keep: list[str]


def classify(
    table: Checkins, rows: Columns, mapping: dict[str, str], path: Path | str, keep: Sequence[str]
) -> VenueColumns:
    """Classify all columns of a file; refuse one that would reveal the venue."""
    for name in keep:
        if name not in rows.columns:
            raise InputError(f"--keep {name}: {path} has no column {name!r}; its columns are {', '.join(rows.columns)}")
    fields = {mapping[f] for f in VENUE_FIELDS}
    if clash := fields.intersection(keep):
        raise InputError(
            f"--keep {sorted(clash)[0]}: this column describes the venue and must change; remove the option"
        )
    if _order_reveals(table):
        raise InputError(f"{path}: its rows are grouped by venue, so their order reveals it; sort them by time")
    change, kept, varying = [c for c in rows.columns if c in fields], [], {}
    position = {"category": table.category, "lat": table.lat, "lon": table.lon}
    variant = _codes(pl.DataFrame({"venue": table.venue, **position}).hash_rows())
    repeated = bool((np.bincount(variant)[variant] > 1).mean() > 0.5)  # False if most rows have their own position
    for name in rows.columns:
        if name in fields or name in (mapping["user"], mapping["time"]):
            continue
        column = rows.get_column(name)
        if name in keep or (code := _codes(column)).max() == 0:
            kept.append(name)
        elif _constant_within(code, table.venue) or _constant_within(code, table.category):
            change.append(name)
        elif _constant_within(code, table.user):
            kept.append(name)
        elif repeated and _constant_within(code, variant):
            change.append(name)
        else:
            varying[name] = code
    identifiers = [_text(rows.get_column(mapping[field])) for field in ("poi", "lat", "lon")]
    for name, code in varying.items():
        if complaint := _complaint(rows.get_column(name), code, table.venue, identifiers):
            raise InputError(
                f"{path}: the column {name!r} {complaint}, so it could reveal the clean venue of a substituted "
                f"row; remove it, or keep it at your own risk with --keep {name}"
            )
        kept.append(name)
    return VenueColumns(change, [name for name in rows.columns if name in kept])


def _order_reveals(table: Checkins) -> bool:
    """Tell whether consecutive rows share a venue more often than chance and the users' sequences explain."""
    if len(table) < 20:
        return False
    same, switch = table.venue[1:] == table.venue[:-1], table.user[1:] != table.user[:-1]
    chance = float(((np.bincount(table.venue) / len(table)) ** 2).sum())
    if switch.sum() >= 20 and float(same[switch].mean()) - chance > ABOVE_CHANCE:
        return True
    in_file, in_time = np.argsort(table.user, kind="stable"), by_user_and_time(table.user, table.time)
    stays = [(np.diff(table.venue[o]) == 0)[np.diff(table.user[o]) == 0] for o in (in_file, in_time)]
    return bool(len(stays[0]) and stays[0].mean() - stays[1].mean() > ABOVE_CHANCE)


def _codes(column: pl.Series) -> Ints:
    """Number the distinct values of a column of any type from 0; null is a value."""
    if column.dtype == pl.Object:
        column = pl.Series([repr(value) for value in column])
    return np.unique(column.hash().to_numpy(), return_inverse=True)[1].astype(np.int32)


def _constant_within(code: Ints, group: Ints) -> bool:
    return len(np.unique(group.astype(np.int64) << 32 | code)) == len(np.unique(group))


def _complaint(column: pl.Series, code: Ints, venue: Ints, identifiers: list[pl.Series]) -> str | None:
    """Return how a column that varies within venues still reveals the venue, or None."""
    if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object):
        return f"has the type {column.dtype}, which cannot be examined"
    if any(_explained(value, venue) > REVEALS_VENUE for value in _numbers(column)):
        return "is a number that is nearly constant per venue"
    text = _text(column)
    codes = [code]
    if column.dtype == pl.String:
        codes += [_codes(text.str.slice(0, length)) for length in PREFIXES]
    if any(_agreement(c, venue) > REVEALS_VENUE for c in codes):
        return "is nearly constant per venue"
    if column.dtype == pl.String and any(_mentions(text, own) > ABOVE_CHANCE for own in identifiers):
        return "contains the venue's id or position"
    filled = text.filter(text.fill_null("") != "")
    words = filled.str.count_matches(WORD).mean() or 0
    if float(words) >= FREE_TEXT_WORDS and filled.n_unique() > 0.2 * filled.len():  # type: ignore[arg-type]
        return "looks like free text"
    return None


def _text(column: pl.Series) -> pl.Series:
    return column.cast(pl.String, strict=False).str.strip_chars(' "\t\x1d')


def _numbers(column: pl.Series) -> list[NDArray[np.float64]]:
    """Return the column as numbers (N,) with NaN for the rest. Other text gives its first three decimal numbers."""
    if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return [column.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()]
    text = _text(column)
    plain = text.cast(pl.Float64, strict=False)
    parts = [plain]
    if plain.null_count() * 2 > column.len():
        decimals = text.str.extract_all(r"-?\d+\.\d+")
        parts = [decimals.list.get(i, null_on_oob=True).cast(pl.Float64, strict=False) for i in range(3)]
    return [part.fill_null(np.nan).to_numpy() for part in parts]


def _mentions(text: pl.Series, own: pl.Series) -> float:
    """Return the share of rows whose text contains their own identifier, minus the share that contain another's."""
    other = own.gather(np.roll(np.arange(len(own)), len(own) // 2))
    frame = pl.DataFrame({"text": text, "own": own, "other": other}).fill_null("")
    found = frame.select(pl.col("text").str.contains(pl.col(c), literal=True).mean().alias(c) for c in ("own", "other"))
    found_own, chance = found.row(0)
    return float(found_own - chance)


def _explained(value: NDArray[np.float64], group: Ints) -> float:
    """Return the share of the variance that the groups explain, corrected for their number (0: they explain nothing).

    It uses ranks, because a few outliers (a phone set to another time zone) would dominate the variance of the values.
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
    """Return how much better than the whole table a venue's other check-ins predict a value (as Cohen's kappa)."""
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
    """Keep the real values in groups of two or more: a venue with one check-in would explain any value."""
    real = real & (np.bincount(group, real)[group] > 1)
    return value[real], group[real]
