"""Look for ids, names, positions, distances and hashes of venues in the values of a column.

Every share is compared with chance: the same test against the venues of other rows.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
import polars as pl

from ghostpoi.data.checkins import Bools, Floats, Longs
from ghostpoi.publish.columns.finding import Finding, beyond_chance, strongest
from ghostpoi.publish.columns.hashes import hashed_share
from ghostpoi.publish.columns.readings import readings
from ghostpoi.publish.columns.related_venues import RELATIONS, RelatedVenues

SAMPLE = 4000  # rows
SPARSE, FEW_FILLED = (
    0.2,
    20,
)  # a column is sparse if a smaller share of the rows, but at least so many rows, have a value
LONG_ID = 6  # an id of at least so many characters is recognised anywhere in a text
SHORT_NAME = 4  # shorter names are not searched
CLOSE = (2e-4, 2e-3, 1e-2)  # degrees: tolerances for a noisy coordinate
NUMBER = re.compile(r"-?\d+\.\d+")
TOKEN = re.compile(r"[^\s,;:|/\"'(){}\[\]=&?\x1f]+")
UNITS = {"km": 1.0, "m": 1e-3, "miles": 1.609344}
HASH = "is a hash of the venue"
ROUNDING = 0.01  # relative difference up to which two distances are the same


@dataclass(frozen=True)
class Sample:
    """Some rows of the table, and what a column of them could contain."""

    related: RelatedVenues
    names: list[pl.Series]  # columns that describe the venue in words
    raw_time: pl.Series
    among: Longs | None = None  # the rows to choose from; None: all

    @cached_property
    def rows(self) -> Longs:
        among = np.arange(len(self.related.table)) if self.among is None else self.among
        return np.random.default_rng(0).permutation(among)[:SAMPLE]

    def filled(self, column: pl.Series) -> "Sample":
        """Return a sample of the rows with a value if few have one: in a sample of all rows, they would be too few."""
        rows = np.flatnonzero(has_value(column).to_numpy())
        return replace(self, among=rows) if FEW_FILLED <= len(rows) < SPARSE * len(column) else self

    @cached_property
    def other(self) -> Longs:
        """Another row of the sample for every row, for the comparison with chance."""
        return np.roll(np.arange(len(self.rows)), max(1, len(self.rows) // 2))

    @cached_property
    def long_ids(self) -> set[str]:
        return {name for name in self.related.table.venue_ids[1:].tolist() if len(name) >= LONG_ID}

    @cached_property
    def name_of_venue(self) -> list[list[str]]:
        """The name of each venue in each column of names, (V+1,) each."""
        venue, first = np.unique(self.related.table.venue, return_index=True)
        out = []
        for column in self.names:
            texts = [""] * len(self.related.table.venue_ids)
            for number, text in zip(venue.tolist(), column.gather(first).to_list(), strict=True):
                texts[number] = _plain(text)
            out.append(texts)
        return out


def trace(column: pl.Series, sample: Sample) -> Finding | None:
    """Return the clearest trace of clean venues in a column, or None."""
    sample = sample.filled(column)
    values = column.gather(sample.rows)
    texts = [readings(value if isinstance(value, bytes) else text_of(value)) for value in values.to_list()]
    lowered = [text.lower() for text in texts]
    ids = [name.lower() for name in sample.related.table.venue_ids.tolist()]
    named = (
        finding
        for names in sample.name_of_venue
        for finding in _mentions(lowered, sample, names, "contains the name or address of", SHORT_NAME)
    )
    number = numbers(values)
    return (
        strongest([*_mentions(lowered, sample, ids, "contains the id of", 1), *named])
        or strongest([_any_id(texts, sample)])
        or strongest([*_positions([_numbers_in(text) for text in texts], sample), *_travel(number, sample)])
        or strongest([_visits(number, sample)])
        or strongest([Finding(hashed_share(values, sample.rows, sample.related, sample.raw_time), HASH)])
    )


def has_value(column: pl.Series) -> pl.Series:
    """Mark the rows that have a value; an empty text is none."""
    if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return column.is_not_null()
    return column.cast(pl.String).str.strip_chars(' "\t\x1d').fill_null("") != ""


def text_of(value: object) -> str:
    """Return any value as text, without the quotes of its file."""
    return "" if value is None else _unquoted(str(value))


def _unquoted(text: str) -> str:
    text = text.strip(" \t\x1d")
    return text[1:-1].replace('""', '"') if len(text) > 1 and text[0] == text[-1] == '"' else text


def _plain(text: object) -> str:
    return text_of(text).lower()


def numbers(column: pl.Series) -> Floats:
    """Return a column as numbers, NaN for other values."""
    if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object):
        return np.full(len(column), np.nan)
    if column.dtype.is_temporal():
        column = column.to_physical()
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype == pl.String:
        column = column.str.strip_chars(' "\t\x1d')
    found: Floats = column.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    return np.where(np.isfinite(found), found, np.nan)


def _mentions(texts: list[str], sample: Sample, names: list[str], verb: str, least: int) -> Iterable[Finding]:
    """Look for the name of each related venue in the texts."""
    for relation, venue in sample.related.of_rows(sample.rows).items():
        wanted = [names[v] if v and len(names[v]) >= least else "" for v in venue.tolist()]
        hit = _contains(texts, wanted)
        yield Finding(beyond_chance(hit, _contains(texts, [wanted[i] for i in sample.other])), _of(verb, relation))


def _contains(texts: list[str], wanted: list[str]) -> Bools:
    return np.array([bool(name) and name in text for text, name in zip(texts, wanted, strict=True)], bool)


def _of(verb: str, relation: str) -> str:
    return f"{verb} {RELATIONS[relation]}"


def _any_id(texts: list[str], sample: Sample) -> Finding:
    """Look for ids of any venue. Changed ids show how often chance would find one in a dense numbering."""
    known = sample.long_ids

    def found(change: Callable[[str], str]) -> Bools:
        return np.array([any(change(part) in known for part in TOKEN.findall(text)) for text in texts], bool)

    return Finding(beyond_chance(found(str), found(_next_id)), "contains ids of venues")


def _next_id(token: str) -> str:
    """Change the last character to another of its kind."""
    last = token[-1]
    return token[:-1] + ("0" if last == "9" else "a" if last in "zZfF" else chr(ord(last) + 1))


def _numbers_in(text: str) -> list[float]:
    return [float(number) for number in NUMBER.findall(text)[:16]]


def _positions(found: list[list[float]], sample: Sample) -> Iterable[Finding]:
    """Look for numbers close to a coordinate of each related venue."""
    width = max(map(len, found))
    if not width:
        return
    value = np.array([row + [np.nan] * (width - len(row)) for row in found])
    v = sample.related.table.venues
    for relation, venue in sample.related.of_rows(sample.rows).items():
        for degrees, tolerance in product((v.lat[venue], v.lon[venue]), CLOSE):
            hit, chance = (_close(value, d, tolerance) for d in (degrees, degrees[sample.other]))
            yield Finding(beyond_chance(hit, chance), _of("holds a coordinate of", relation))


def _close(value: Floats, degrees: Floats, tolerance: float) -> Bools:
    return np.asarray((np.abs(value - degrees[:, None]) < tolerance).any(axis=1))


def _travel(value: Floats, sample: Sample) -> Iterable[Finding]:
    """Look for distances and speeds of the user's steps."""
    for what, measure in sample.related.travel.items():
        km = measure[sample.rows]
        for unit in UNITS.values():
            hit, chance = (_same(value * unit, true, unit) for true in (km, km[sample.other]))
            yield Finding(beyond_chance(hit, chance), f"holds {what}")


def _same(value: Floats, true: Floats, unit: float) -> Bools:
    """Return whether two distances agree up to rounding. Short steps are left out: they agree too often by chance."""
    near = np.abs(value - true) < np.maximum(ROUNDING * np.abs(true), 1e-3 * unit)
    return near & (np.abs(true) > 0.05)


def _visits(value: Floats, sample: Sample) -> Finding:
    """Look for the number of the user's visit to the venue. First visits are left out: they are too many."""
    visit = sample.related.visit_number[sample.rows]
    hit, chance = ((value == number) & (number > 1) for number in (visit, visit[sample.other]))
    return Finding(beyond_chance(hit, chance), "holds the number of the user's visit to the venue")
