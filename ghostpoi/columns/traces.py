"""Look for ids, names, positions, distances and hashes of venues in the values of a column.

Values are decoded first: everything that base64, hex, URLs, WKB and geohashes hide, as one text. Hashes are those of a
venue's id, alone or joined with the user, the time or the position.
"""

import base64
import binascii
import contextlib
import hashlib
import re
import struct
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from itertools import permutations, product
from typing import Any
from urllib.parse import unquote_plus

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ghostpoi.columns.related import RELATIONS, Finding, RelatedVenues, beyond_chance, strongest
from ghostpoi.data.checkins import Bools, Floats, Longs

ROWS = 24
LEAST = 2  # rows whose hash must match
SEPARATORS = ("", "|", ":", ",", "-", "_", " ", "/", ";", "\t")
HASHES = (
    hashlib.md5, hashlib.sha1, hashlib.sha224, hashlib.sha256, hashlib.sha384, hashlib.sha512, hashlib.blake2b,
    hashlib.blake2s,
)  # fmt: skip
NAMESPACES = (uuid.NAMESPACE_DNS, uuid.NAMESPACE_URL, uuid.NAMESPACE_OID, uuid.NAMESPACE_X500)
DIGEST = re.compile(r"[0-9a-fA-F]{8,128}|[A-Za-z0-9+/_-]{11,88}|\d{8,}")


def _hashed(values: pl.Series, sample: "Sample") -> Finding:
    """Look for hashes of an obvious combination of the row's fields."""
    if values.dtype.is_nested() or values.dtype in (pl.Object, pl.Boolean) or values.dtype.is_float():
        return Finding(0.0, HASH)
    given = [value.hex() if isinstance(value, bytes) else str(value or "") for value in values.to_list()]
    plain = [re.sub(r"[^A-Za-z0-9+/_]", "", text) for text in given]
    chosen = [i for i, text in enumerate(plain) if DIGEST.fullmatch(text)][:ROWS]
    found = sum(_is_hash(plain[i], _texts(int(sample.rows[i]), sample.related, sample.raw_time)) for i in chosen)
    return Finding(found / len(chosen) if found >= LEAST else 0.0, HASH)


def _texts(row: int, related: RelatedVenues, raw_time: pl.Series) -> Iterator[str]:
    """Yield the texts that could have been hashed to make a key of a check-in or of a venue."""
    table = related.table
    user, time = table.user_ids[table.user[row]], int(table.time[row])
    moment = datetime.fromtimestamp(time, UTC)
    times = dict.fromkeys([str(raw_time[row]).strip(), str(time), moment.isoformat(), f"{moment:%Y-%m-%d %H:%M:%S}"])
    own, *others = (table.venue_ids[venue[row]] for venue in related.venue.values())
    place = f"{table.lat[row]}", f"{table.lon[row]}"
    parts: list[tuple[str, ...]] = [*((venue,) for venue in (own, *others) if venue), place, (user, *place)]
    parts += [(user, own), *((user, own, t) for t in times), *((own, t) for t in times)]
    for part in dict.fromkeys(parts):
        for ordered in permutations(part):
            for separator in SEPARATORS if len(part) > 1 else ("",):
                yield separator.join(ordered)


def _is_hash(value: str, texts: Iterator[str]) -> bool:
    """Return whether a value is a digest of one of the texts, or begins one."""
    start, in_base64 = f"\n{value.lower()}", not re.fullmatch(r"[0-9a-fA-F]+", value)
    return any(start in _digests(text, in_base64, value.isdigit(), len(value) == 32) for text in texts)


@lru_cache(maxsize=1 << 15)
def _digests(text: str, in_base64: bool, decimal: bool, as_uuid: bool) -> str:
    """Return the digests of a text in the forms that a value could have, in lower case, each after a line feed.

    They are kept because the same rows are compared in every column.
    """
    data = text.encode("utf-8", "replace")
    digests = [make(data, usedforsecurity=False).digest() for make in HASHES]
    digests.append(zlib.crc32(data).to_bytes(4, "big"))
    found = [digest.hex() for digest in digests]
    if in_base64:
        every = (base64.b64encode(digest, signs).decode() for digest in digests for signs in (b"+/", b"-_"))
        found += [digest.rstrip("=").lower().replace("-", "") for digest in every]
    if decimal:
        found += [str(int.from_bytes(digest[:size], "big")) for digest in digests for size in (8, None)]
    if as_uuid:
        found += [make(space, text).hex for space in NAMESPACES for make in (uuid.uuid3, uuid.uuid5)]
    return "\n".join(["", *found])


DEPTH = 3  # how often a decoded text is decoded again
JOIN = "\x1f"  # between the readings of one value
BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
HEX = re.compile(r"(?:0x|\\x)?((?:[0-9a-fA-F]{2}){4,})")
GEOHASH = re.compile(r"[0-9b-hjkmnp-z]{5,12}")
BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz"
POINT = 1  # the type of a point in WKB
HAS_SRID = 0x20000000


def readings(given: object) -> str:
    """Return a value and all that can be decoded from it, as one text."""
    value = given if isinstance(given, bytes) else text_of(given)
    found, todo = [], [value]
    for _ in range(DEPTH):
        todo = [inner for one in todo for inner in (_bytes(one) if isinstance(one, bytes) else _text(one))]
        found += [one for one in todo if isinstance(one, str) and one]
    plain = [value] if isinstance(value, str) else []
    return JOIN.join(dict.fromkeys(plain + found))


def _text(value: str) -> list[str | bytes]:
    """Decode one step of a text and of its parts."""
    out: list[str | bytes] = []
    if "%" in value or "+" in value:
        out.append(unquote_plus(value))
    if r"\u" in value:
        out.append(re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), value))
    for part in dict.fromkeys([value.strip(), *re.split(r"[^A-Za-z0-9+/_=-]+", value)[:8]]):
        if match := HEX.fullmatch(part):
            out.append(bytes.fromhex(match[1]))
        if BASE64.fullmatch(part):
            padded = part.rstrip("=") + "=" * (-len(part.rstrip("=")) % 4)
            with contextlib.suppress(binascii.Error, ValueError):
                for signs in (b"-_", None):
                    out.append(base64.b64decode(padded, altchars=signs))
        if GEOHASH.fullmatch(part) and any(c.isdigit() for c in part):
            out.append(_geohash(part))
    return out


def _bytes(value: bytes) -> list[str | bytes]:
    """Read bytes as a point, as compressed data, or as text."""
    out: list[str | bytes] = [_point(value)]
    if len(value) == 16:
        out += [_numbers(*struct.unpack(form, value)) for form in ("<dd", ">dd")]
    with contextlib.suppress(zlib.error):
        out.append(zlib.decompressobj(wbits=47).decompress(value, 10_000))
    with contextlib.suppress(UnicodeDecodeError):
        out += [text] if (text := value.decode()).isprintable() else []
    return out


def _point(value: bytes) -> str:
    """Read a point in WKB or PostGIS's EWKB, as "x y"; "" for other bytes."""
    order = "<" if value[:1] == b"\x01" else ">"
    kind = struct.unpack_from(order + "I", value, 1)[0] if len(value) >= 21 and value[0] <= 1 else 0
    at = 9 if kind & HAS_SRID else 5
    is_point = kind & 0xFF == POINT and len(value) >= at + 16
    return _numbers(*struct.unpack_from(order + "dd", value, at)) if is_point else ""


def _numbers(x: float, y: float) -> str:
    plausible = all(1e-3 < abs(v) <= 180 for v in (x, y))  # not NaN, and not bytes of something else
    return f"{x:.7f} {y:.7f}" if plausible else ""


def _geohash(code: str) -> str:
    """Return the centre of a geohash, as "latitude longitude"."""
    low, high = [-180.0, -90.0], [180.0, 90.0]
    axis = 0
    for letter in code:
        number = BASE32.index(letter)
        for bit in (16, 8, 4, 2, 1):
            middle = (low[axis] + high[axis]) / 2
            (low if number & bit else high)[axis] = middle
            axis = 1 - axis
    return f"{(low[1] + high[1]) / 2:.7f} {(low[0] + high[0]) / 2:.7f}"


SAMPLE = 4000  # rows
SPARSE, FEW_FILLED = 0.2, 20  # a column is sparse if a smaller share of the rows, but at least so many, have a value
LONG_ID = 6  # an id of at least so many characters is recognised anywhere in a text
SHORT_NAME = 4  # shorter names are not searched
CLOSE = (2e-4, 2e-3, 1e-2)  # degrees: tolerances for a noisy coordinate
NUMBER = re.compile(r"-?\d+\.\d+")
TOKEN = re.compile(r"[^\s,;:|/\"'(){}\[\]=&?\x1f]+")
UNITS = (1.0, 1e-3, 1.609344)  # km, metres, miles
HASH, VISITS = "is a hash of the venue", "holds the number of the user's visit to the venue"
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
        return (
            replace(self, among=rows) if self.among is None and FEW_FILLED <= len(rows) < SPARSE * len(column) else self
        )

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
        first = np.unique(self.related.table.venue, return_index=True)[1]
        return [["", *(text_of(text).lower() for text in column.gather(first))] for column in self.names]


def trace(column: pl.Series, sample: Sample) -> Finding | None:
    """Return the clearest trace of clean venues in a column, or None."""
    sample = sample.filled(column)
    values = column.gather(sample.rows)
    texts = [readings(value) for value in values.to_list()]
    lowered = [text.lower() for text in texts]
    ids = [name.lower() for name in sample.related.table.venue_ids.tolist()]
    named = (
        finding
        for names in sample.name_of_venue
        for finding in _mentions(lowered, sample, names, "contains the name or address of", SHORT_NAME)
    )
    number, visit = numbers(values), sample.related.visit_number[sample.rows]
    return (
        strongest([*_mentions(lowered, sample, ids, "contains the id of", 1), *named])
        or strongest([_any_id(texts, sample)])
        or strongest([*_positions(texts, sample), *_travel(number, sample)])
        or strongest([_compared(lambda n: (number == n) & (n > 1), visit, sample, VISITS)])  # first visits are many
        or strongest([_hashed(values, sample)])
    )


def has_value(column: pl.Series) -> pl.Series:
    """Mark the rows that have a value; an empty text is none."""
    if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return column.is_not_null()
    return column.cast(pl.String).str.strip_chars(' "\t\r').fill_null("") != ""


def text_of(value: object) -> str:
    """Return any value as text, without the quotes of its file."""
    text = "" if value is None else str(value).strip(" \t\r")
    return text[1:-1].replace('""', '"') if len(text) > 1 and text[0] == text[-1] == '"' else text


def numbers(column: pl.Series) -> Floats:
    """Return a column as numbers, NaN for other values."""
    if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Object):
        return np.full(len(column), np.nan)
    if column.dtype.is_temporal():
        column = column.to_physical()
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype == pl.String:
        column = column.str.strip_chars(' "\t\r')
    found: Floats = column.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    return np.where(np.isfinite(found), found, np.nan)


def _compared(matches: Callable[[Any], Bools], true: NDArray[Any], sample: Sample, reason: str) -> Finding:
    """Return how many more rows match what is true of them than what is true of another row."""
    return Finding(beyond_chance(matches(true), matches(true[sample.other])), reason)


def _mentions(texts: list[str], sample: Sample, names: list[str], verb: str, least: int) -> Iterable[Finding]:
    """Look for the name of each related venue in the texts."""

    def named(wanted: NDArray[np.object_]) -> Bools:
        return np.array([bool(name) and name in text for text, name in zip(texts, wanted, strict=True)], bool)

    for relation, venue in sample.related.venue.items():
        wanted = [names[v] if v and len(names[v]) >= least else "" for v in venue[sample.rows].tolist()]
        yield _compared(named, np.array(wanted, object), sample, f"{verb} {RELATIONS[relation]}")


def _any_id(texts: list[str], sample: Sample) -> Finding:
    """Look for ids of any venue. Changed ids show how often chance would find one in a dense numbering."""
    known, tokens = sample.long_ids, [TOKEN.findall(text) for text in texts]

    def changed(token: str) -> str:  # in the last character, to another of its kind
        last = token[-1]
        return token[:-1] + ("0" if last == "9" else "a" if last in "zZfF" else chr(ord(last) + 1))

    hit, chance = (np.array([any(made(one) in known for one in each) for each in tokens]) for made in (str, changed))
    return Finding(beyond_chance(hit, chance), "contains ids of venues")


def _positions(texts: list[str], sample: Sample) -> Iterable[Finding]:
    """Look for numbers close to a coordinate of each related venue."""
    found = [[float(number) for number in NUMBER.findall(text)[:16]] for text in texts]
    width = max(map(len, found))
    if not width:
        return
    value = np.array([row + [np.nan] * (width - len(row)) for row in found])
    v = sample.related.table.venues
    for relation, venue in sample.related.venue.items():
        for degrees, tolerance in product((v.lat[venue[sample.rows]], v.lon[venue[sample.rows]]), CLOSE):

            def close(true: Floats, within: float = tolerance) -> Bools:
                return np.asarray((np.abs(value - true[:, None]) < within).any(axis=1))

            yield _compared(close, degrees, sample, f"holds a coordinate of {RELATIONS[relation]}")


def _travel(value: Floats, sample: Sample) -> Iterable[Finding]:
    """Look for distances and speeds of the user's steps. Short steps are left out: they agree too often by chance."""
    for (what, measure), unit in product(sample.related.travel.items(), UNITS):

        def same(true: Floats, given: Floats = value * unit, rounding: float = 1e-3 * unit) -> Bools:
            near = np.abs(given - true) < np.maximum(ROUNDING * np.abs(true), rounding)
            return near & (np.abs(true) > 0.05)

        yield _compared(same, measure[sample.rows], sample, f"holds {what}")
