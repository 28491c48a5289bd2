"""Which columns of a file a venue decides. They change together with it: a stale one would undo the substitution.

An extra column falls into one of these kinds:
- constant, or constant per user: not about the venue; kept.
- constant per venue (a name, an address), or per spelling of a venue where a file gives it several positions or
  categories: part of the venue; changes with it.
- otherwise it varies between check-ins of one venue. If it still tells much about the venue (a noisy position, a name
  with variants) or is free text, the file is refused until the publisher removes it or takes the risk with --keep.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from ghostpoi.checkins import Checkins, Ints
from ghostpoi.errors import InputError
from ghostpoi.formats.source import Columns

VENUE_FIELDS = ("poi", "category", "lat", "lon")
TELLS_VENUE = 0.5  # of what could be known about the column, known from the venue alone: over this it is a trace
WORDS = 3  # text of this many words on average is free text


@dataclass(frozen=True)
class VenueColumns:
    """The columns that change with a venue, and those kept that vary otherwise."""

    change: list[str]
    keep: list[str]


def classify(
    table: Checkins, rows: Columns, mapping: dict[str, str], path: Path | str, keep: list[str]
) -> VenueColumns:
    """Sort all columns of a file; refuse one that would betray the venue."""
    for name in keep:
        if name not in rows.columns:
            raise InputError(f"--keep {name}: {path} has no column {name!r}; its columns are {', '.join(rows.columns)}")
    fields = {mapping[f] for f in VENUE_FIELDS}
    if clash := fields.intersection(keep):
        raise InputError(f"--keep {sorted(clash)[0]}: that column is the venue itself and must change with it")
    change, kept = [c for c in rows.columns if c in fields], []
    variant = _variants(table)
    for name in rows.columns:
        if name in fields or name in (mapping["user"], mapping["time"]):
            continue
        column = rows.column(name)
        code = column.cast(pl.String, strict=False).fill_null("\0null").rank("dense").to_numpy().astype(np.int32)
        if name in keep or code.max() == code.min() or _constant_within(code, table.user):
            kept.append(name)
        elif _constant_within(code, variant):
            change.append(name)
        else:
            complaint = _betrays(column, code, table.poi)
            if complaint:
                raise InputError(
                    f"{path}: the column {name!r} {complaint}, so it could give away the clean venue of a substituted row; "
                    f"remove it, or keep it at your own risk with --keep {name}"
                )
            kept.append(name)
    return VenueColumns(change, kept)


def _variants(table: Checkins) -> Ints:
    """A number for each distinct (POI, category, position) of the rows."""
    parts = np.stack([table.poi.astype(np.float64), table.category.astype(np.float64), table.lat, table.lon])
    order = np.lexsort(parts)
    new = np.zeros(len(order), np.int32)
    new[1:] = (parts[:, order[1:]] != parts[:, order[:-1]]).any(axis=0)
    out = np.empty(len(order), np.int32)
    out[order] = np.cumsum(new)
    return out


def _constant_within(code: Ints, group: Ints) -> bool:
    low = np.full(int(group.max()) + 1, np.iinfo(np.int32).max)
    high = np.full(int(group.max()) + 1, -1)
    np.minimum.at(low, group, code)
    np.maximum.at(high, group, code)
    return bool((low == high)[group].all())


def _betrays(column: pl.Series, code: Ints, poi: Ints) -> str | None:
    """Why a column that varies within a venue still tells about it; None if it does not."""
    often = np.bincount(poi)[poi] > 1  # a venue with one check-in would explain anything
    if not often.any():
        return None
    number = (
        column.cast(pl.Float64, strict=False)
        if column.dtype != pl.String
        else column.str.strip_chars().cast(pl.Float64, strict=False)
    )
    if number.null_count() == 0 and len(np.unique(code)) > 2 * np.sqrt(len(code)):
        value = number.to_numpy()[often]
        if _explained(value, poi[often]) > TELLS_VENUE:
            return "is a number close to constant per venue"
    elif _agreement(code[often], poi[often]) > TELLS_VENUE:
        return "is nearly constant per venue"
    if number.null_count() == column.len() and column.dtype == pl.String:
        words = column.drop_nulls().str.count_matches(r"[^\W\d_]{2,}").mean() or 0
        distinct = len(np.unique(code)) / len(code)
        if float(words) >= WORDS and distinct > 0.2:  # type: ignore[arg-type]
            return "looks like free text"
    return None


def _explained(value: np.ndarray, group: Ints) -> float:
    """The share of the variance between groups, corrected for the groups' number (0 for a column that ignores them)."""
    n = np.bincount(group)
    used = n > 0
    mean = np.bincount(group, value)[used] / n[used]
    total = float(((value - value.mean()) ** 2).sum())
    within = float(((value - mean[np.cumsum(used)[group] - 1]) ** 2).sum())
    degrees = len(value) - int(used.sum())
    if total == 0 or degrees <= 0:
        return 0.0
    return 1 - (within / degrees) / (total / (len(value) - 1))


def _agreement(code: Ints, group: Ints) -> float:
    """How much better the venue's other check-ins guess a value than the whole table does, 0 to 1 (as Cohen's kappa)."""
    key, count = np.unique(group.astype(np.int64) << 32 | code, return_counts=True)
    size = np.bincount(group)[(key >> 32).astype(np.int64)]
    same = float((count * (count - 1) / np.maximum(size - 1, 1)).sum()) / len(code)  # another row of the venue agrees
    _, totals = np.unique(code, return_counts=True)
    chance = float((totals * (totals - 1)).sum()) / (len(code) * max(1, len(code) - 1))
    return (same - chance) / (1 - chance) if chance < 1 else 0.0
