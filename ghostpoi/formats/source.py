"""A source: where rows come from, and how to read them where the file does not say; and a file that was read.

The options of a command apply to every file that it reads, except to a release, which states its own in its manifest.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
import polars as pl

from ghostpoi import files
from ghostpoi.data.checkins import Checkins, Longs
from ghostpoi.errors import InputError
from ghostpoi.files import COMPRESSED
from ghostpoi.formats.rows import Kind, Rows
from ghostpoi.formats.times import is_zone
from ghostpoi.options import option, with_urls

USUAL = 4 * 10**9  # bytes; the largest public check-in files have about 2 GB, and parsing takes six times the text
MAX_RATIO = 200  # real tables shrink to a tenth; bombs shrink to a hundredth and less
SMALL = 64 * 10**6  # bytes that may be read whatever their ratio
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}

# A form has directives that the parser knows, and all of a date: the year, and month and day, or the day of the year.
FORM = re.compile(
    r"(?=.*%[YyFD])(?=.*%([FDj]|[mbB].*%[de]|[de].*%[mbB]))(?:[^%]|%(?:[YymdebBajHIklMSpPTRFDz%]|\.f|#z))+"
)
DISTANCE = re.compile(r"(\d+(?:\.\d+)?) ?(m|km)")
VENUE = "venue"  # a field of tables of venues: the id
POINT = "point"  # an optional field, in place of lat and lon: positions as WKT points or pairs, longitude first
POSITIONS = "positions"  # in place of a distance: every position is a venue, as in a release made with --cluster-points


class SizeLimit(NamedTuple):
    """A number of bytes. A limit that the user chose also lifts the limit on the ratio."""

    size: int
    chosen: bool = False


def usual_limit() -> SizeLimit:
    """Return the limit without --max-size: 4 GB, or an eighth of the memory if that is less."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not every system can say
        return SizeLimit(USUAL)
    return SizeLimit(min(USUAL, memory // 8))


@dataclass(frozen=True)
class Reading:
    """What the publisher states about a file. The fields are named as the options are."""

    columns: str = ""  # names of the columns of a text file without a header, separated by commas
    decimal: str = ""  # the sign before the decimals of coordinates, if it is not a point
    time_format: str = ""  # the form of all times, with the directives of strptime
    missing: str = ""  # what to do with rows that lack a value: keep, drop or refuse (the default)
    timezone: str = ""  # the zone of times without an offset, if it is not UTC
    cluster_points: str = ""  # how far apart the points of one stay may be, e.g. 100m: venues come from clusters
    order: str = ""  # that of the rows, if it is not their own: time
    normalise: str = ""  # columns to write in one form, separated by commas
    venues: str = ""  # the path of a table of venues; in a manifest, the name of the file next to the data

    def __post_init__(self) -> None:
        names, points = self.column_names, self.cluster_points
        shown = {f.name: option(f.name, getattr(self, f.name), shown=repr) for f in fields(self)}
        checks = (
            (names is not None and (not all(names) or max(Counter(names).values()) > 1),
             f"{shown['columns']}: name every column once, separated by commas, e.g. user,time,lat,lon,poi"),
            (self.missing not in ("", "keep", "drop", "refuse"),
             f"{option('missing', self.missing)}: use keep, drop or refuse"),
            (self.order not in ("", "time"),
             f"{option('order', self.order)}: use time, or leave it out"),
            (self.decimal not in ("", ","),
             f"{shown['decimal']}: the sign can be a comma only; leave it out for points"),
            (self.time_format and not FORM.fullmatch(self.time_format),
             f"{shown['time_format']}: give the form of a date and a time with directives of strptime, "
             "e.g. '%d/%m/%Y %H:%M'"),
            (self.timezone and not is_zone(self.timezone),
             f"{shown['timezone']}: unknown time zone; give a name such as America/New_York"),
            (points and points != POSITIONS and not 1 <= self.radius_m <= 5000,
             f"{option('cluster_points', points)}: give a distance from 1m to 5km, e.g. 100m"),
            (points and self.venues,
             f"{option('cluster_points')} makes venues, and {option('venues')} lists them; give one of them"),
            (points and self.missing == "keep",
             f"{option('missing', 'keep')} would release raw points, which {option('cluster_points')} hides; "
             f"use {option('missing', 'drop')}"),
        )  # fmt: skip
        if complaint := next((text for wrong, text in checks if wrong), ""):
            raise InputError(complaint)

    @property
    def radius_m(self) -> float:
        """The distance of --cluster-points in metres; 0 if it is none."""
        found = DISTANCE.fullmatch(self.cluster_points)
        return float(found[1]) * (1000 if found[2] == "km" else 1) if found else 0.0

    @property
    def column_names(self) -> tuple[str, ...] | None:
        return tuple(name.strip() for name in self.columns.split(",")) if self.columns else None

    @property
    def stated(self) -> dict[str, str]:
        """What differs from the default, as the manifest records it."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) != f.default}

    def in_folder(self, folder: Path) -> "Reading":
        """Return the same for a file whose table of venues lies in this folder."""
        path = Path(self.venues)
        name = path.stem if path.suffix.lower() in COMPRESSED else path.name
        return replace(self, venues=str(folder / name)) if self.venues else self

    def of_release(self, folder: Path) -> "Reading":
        """Return how to read the release, in this folder, of a file that was read so."""
        return replace(self.in_folder(folder), cluster_points=POSITIONS if self.cluster_points else "")

    @staticmethod
    def of(stated: Mapping[str, Any]) -> "Reading":
        """Return what a manifest records; refuse what no version of ghostpoi writes."""
        known = {f.name for f in fields(Reading)}
        if strange := [name for name in stated if name not in known]:
            raise InputError(f"data.reading.{strange[0]} of the manifest is unknown; read it with the newest ghostpoi")
        return Reading(**stated)


@dataclass(frozen=True)
class VenueTable:
    """A table of venues, which gives check-ins their position and category."""

    path: Path
    mapping: dict[str, str]  # field -> column
    fields: pl.DataFrame = field(repr=False)  # a row per venue: poi and what describes it, as text
    rows: Rows = field(repr=False)
    sha256: bytes = field(repr=False)
    where: Callable[[int], str] = field(repr=False)  # names the place of a row

    def place_of(self, field: str, poi: object) -> str | None:
        """Name where the table gives this field of a venue; None if it does not."""
        if not {field, *[POINT] * (field in ("lat", "lon"))} & self.mapping.keys():
            return None
        return self.where(self.fields["poi"].to_list().index(str(poi).strip()))


URL = re.compile(r"postgres(?:ql)?://", re.IGNORECASE)
SECRET = re.compile(r"([?&])password=([^&]*)(&?)")


@dataclass(frozen=True)
class Query:
    """What to read from a database, and where that is."""

    place: str = field(repr=False)  # the URL of a server, which may hold a password, or the path of a file
    table: str = ""
    sql: str = ""  # in place of a table
    order_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.table) == bool(self.sql):
            asked = "give one of them" if self.table else "name what to read"
            raise InputError(
                f"{shown_place(self.place)} is a database; {asked}: {option('table', 'NAME')} or "
                f"{option('query', 'SELECT ...', shown=repr)}"
            )

    def __str__(self) -> str:
        what = f"table {self.table}" if self.table else "the query"
        return f"{what} of {shown_place(self.place)}"

    @property
    def stated(self) -> dict[str, str]:
        """What is asked for, by the names of options."""
        return {"table": self.table, "query": self.sql, "order_by": ",".join(self.order_by)}

    @property
    def relation(self) -> str:
        """What follows FROM."""
        what = f"({self.sql.strip().rstrip(';')})" if self.sql else quoted(self.table)
        return f"{what} AS asked"


def is_url(place: str) -> bool:
    """Return whether a place is the URL of a server, not a path."""
    return URL.match(place) is not None


def shown_place(place: str) -> str:
    """Return how messages name a database: without user, password and parameters, whatever signs they hold."""
    return URL.sub("", place).rsplit("@", 1)[-1].partition("?")[0] if URL.match(place) else place


def without_password(url: str) -> tuple[str, str]:
    """Return a URL without its password, and the password; "" if it has none."""
    if not is_url(url):
        return url, ""
    if found := SECRET.search(url):
        return url[: found.start()] + (found[1] if found[3] else "") + url[found.end() :], unquote(found[2])
    start, sign, rest = url.rpartition("@")
    name, colon, secret = start.partition("://")[2].partition(":")
    return (f"{start.partition('://')[0]}://{name}{sign}{rest}", unquote(secret)) if colon else (url, "")


def quoted(name: str, whole: bool = False) -> str:
    """Return a name in the quotes of SQL, by default with that of its schema before a point."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in ([name] if whole else name.split(".")))


@dataclass(frozen=True)
class Source:
    """A file, a folder, a pattern of names, a query of a database, or content in memory; and how to read it."""

    path: Path  # of content in memory: how messages call it
    reading: Reading = field(default_factory=Reading)
    limit: SizeLimit | None = None  # None: the usual one
    encoding: str | None = None  # of text whose format does not say; None: as its content shows
    content: bytes | None = field(default=None, repr=False)  # what a file would hold
    suffix: str = ""  # of content: the extension that a file would have
    before: int = 0  # lines, or rows without lines, of a larger file that come before
    beside: Mapping[str, bytes] = field(default_factory=dict, repr=False)  # what files in memory hold, by name
    frame: Any = field(default=None, repr=False)  # of the caller, whose rows the content holds
    venues: VenueTable | None = field(default=None, repr=False)  # that is joined, once it is read
    query: Query | None = field(default=None, repr=False)  # of a database, until its rows are at hand
    named: str = ""  # how messages call it, if not by its path

    def __str__(self) -> str:
        return self.named or str(self.path)

    @property
    def place(self) -> str:
        """How a call names it: by its path, or by the URL of its database without the password."""
        return without_password(self.query.place)[0] if self.query else with_urls(str(self.path))

    @property
    def in_memory(self) -> bool:
        return self.content is not None

    @property
    def extension(self) -> str:
        """The extension without that of the compression: .txt for data.txt.xz."""
        return self.suffix if self.in_memory else files.extension(self.path)

    @property
    def raw_bytes(self) -> bytes:
        """All bytes, not decompressed."""
        return self.path.read_bytes() if self.content is None else self.content

    @property
    def elsewhere(self) -> dict[str, str]:
        """The fields, with their columns, that come from the table of venues."""
        return self.venues.mapping if self.venues else {}

    @property
    def size_limit(self) -> SizeLimit:
        """The limit that applies."""
        return self.limit or usual_limit()

    @staticmethod
    def of(source: "Source | Path") -> "Source":
        """Return a source, or a file with nothing stated about it."""
        return source if isinstance(source, Source) else Source(source)

    def at(self, path: Path) -> "Source":
        """Return how to read another file in the same way."""
        named = self.named if path == self.path else ""
        return Source(path, self.reading, self.limit, self.encoding, venues=self.venues, named=named)

    def of_release(self, path: Path) -> "Source":
        """Return how to read the release of this file, once it is written to this path."""
        return replace(self.at(path), reading=self.reading.of_release(path.parent))

    def holding(self, content: bytes, before: int = 0) -> "Source":
        """Return how to read content, as if it were in this file."""
        return replace(self, content=content, suffix=self.extension, before=before)

    def check_size(self, size: int, packed: int | None = None) -> None:
        """Refuse content of this size. `packed` is the size of the compressed file that it came from."""
        limit = self.size_limit
        if size > limit.size:
            verb = "is larger than" if packed is None else "expands to more than"
            raise InputError(
                f"{self} {verb} {shown(limit.size)}; allow more with {option('max_size', shown(4 * limit.size))}"
            )
        if packed is not None and not limit.chosen and size > max(SMALL, MAX_RATIO * packed):
            raise InputError(
                f"{self} expands to more than {MAX_RATIO} times its size, as a decompression bomb does; if that is "
                f"right, read it with {option('max_size', shown(limit.size))}"
            )


@dataclass(frozen=True)
class CheckinFile:
    """A file that was read and decompressed."""

    source: Source
    format: str
    mapping: dict[str, str]  # field -> column
    table: Checkins
    sha256: bytes = field(repr=False)  # of the decompressed content; never published, because it identifies clean data
    all_rows: Rows = field(repr=False)  # of the file
    missing: Longs = field(default_factory=lambda: np.empty(0, np.int64), repr=False)  # not in the table
    missing_at: str = field(default="", repr=False)  # where the first of them are

    @property
    def path(self) -> Path:
        """How messages call it."""
        return Path(str(self.source))

    @property
    def reading(self) -> Reading:
        """What the publisher stated about it."""
        return self.source.reading

    @property
    def venues(self) -> VenueTable | None:
        """The table that positions and categories come from."""
        return self.source.venues

    @property
    def kind(self) -> Kind:
        return self.all_rows.kind

    @cached_property
    def rows(self) -> Rows:
        """All fields of the rows of the table."""
        return self.all_rows.take(self.present) if len(self.missing) else self.all_rows

    @property
    def present(self) -> Longs:
        """The rows of the file that are in the table: those that lack no value."""
        return np.delete(np.arange(len(self.table) + len(self.missing)), self.missing)

    @property
    def kept(self) -> Longs:
        """The rows that lack a value and stay as they are."""
        return self.missing if self.reading.missing == "keep" else self.missing[:0]

    @property
    def counted(self) -> dict[str, int]:
        """How many rows lack a value, by what becomes of them."""
        name = {"keep": "kept", "drop": "dropped"}.get(self.reading.missing, "")
        return {name: len(self.missing)} if len(self.missing) else {}


@dataclass(frozen=True)
class Format:
    """A file format. The documentation shows its summary."""

    summary: str
    recognises: Callable[[bytes], bool]  # whether a file has this format, by its first decompressed bytes
    decode: Callable[[Source, bytes], Rows]  # all fields, from the decompressed content; there may be no rows
    fields: Mapping[str, str] = field(default_factory=dict)  # the columns of fields, if they are always the same


def limit_of(text: str | None) -> SizeLimit | None:
    """Return the limit that --max-size states, e.g. "20GB"; None for the usual one."""
    return None if text is None else SizeLimit(bytes_of(text, "max_size"), chosen=True)


def bytes_of(text: str, name: str) -> int:
    """Return the size that an option names, e.g. 20GB, in bytes."""
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?) ?([KMGT]I?)?B?", text.strip().upper())
    size = int(float(match[1]) * UNITS[match[2] or ""]) if match else 0
    if size <= 0:
        given, example = option(name, text, shown=repr), option(name, "20GB")
        raise InputError(f"{given} is not a size; give a number with a unit, e.g. {example}")
    return size


def shown(size: int) -> str:
    """Return a size as --max-size takes it, e.g. 4GB."""
    unit = next((unit for unit in ("T", "G", "M", "K") if size >= UNITS[unit]), "")
    return f"{size / UNITS[unit]:.3g}{unit}B" if unit else f"{size}B"
