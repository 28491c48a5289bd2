"""The rows of a file, as every format offers them: all fields without loss, to be changed and written back."""

import re
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ghostpoi.data.checkins import Floats
from ghostpoi.errors import InputError
from ghostpoi.files import make_folder, replacing
from ghostpoi.formats.geometry import HEX, wkb_points

Index = NDArray[np.int64]


class Columns(Protocol):
    """Named columns of a table, as polars data frames have them."""

    @property
    def columns(self) -> list[str]: ...

    def get_column(self, name: str) -> pl.Series:
        """Return one column."""


class Kind(NamedTuple):
    """The kind of a file: a key of `content.SUFFIXES`, and the suffix that fits best."""

    words: str
    suffix: str
    layout: str = ""  # as a phrase; "" for text and Parquet
    mime_type: str = ""


@dataclass(frozen=True)
class Dialect:
    """The layout of a text file."""

    path: Path
    delimiter: str
    columns: tuple[str, ...]
    encoding: str
    start: bytes  # byte-order mark and header line
    tail: bytes  # line ends after the last row
    quoted: bool  # fields may be quoted
    ascii: bool  # all bytes are, so that any encoding would do

    @property
    def has_header(self) -> bool:
        """Whether the first line names the columns."""
        return bool(self.start.strip(b"\xef\xbb\xbf\r\n"))


@dataclass(frozen=True, kw_only=True)
class Rows(ABC):
    """All fields of a file, without loss. What a kind of rows does not have is empty or None.

    The rows of a folder know their part. They stay in it; rows in another order are divided again.
    """

    held: Mapping[str, Any]  # the columns, of polars or pyarrow
    dialect: Dialect | None = None  # of text
    schema: Any = None  # of Parquet
    frame: Any = field(default=None, repr=False)  # of the caller, whose rows these are, held as Parquet
    parts: tuple[str, ...] = ()  # of a folder: their names, relative to it
    part: Index = field(default_factory=lambda: np.empty(0, np.int64))  # of a folder, (N,) ascending
    tails: tuple[bytes, ...] = ()  # of a folder: what ends each part, if they are text

    kind = Kind("text", ".txt")
    joins = False  # whether rows of this kind can be joined
    unit, first = "row", 1  # how messages call a row, and the number of the first one
    point = ""  # the column that the file says is its geometry
    line_ends: ClassVar[pl.Series | None] = (
        None  # of text: whether each line ends with a carriage return, (N,), if some do
    )

    @property
    def columns(self) -> list[str]:
        return list(self.held)

    def place(self, source: Any, row: int) -> str:
        """Return how messages name a row of a source."""
        return f"{source}, {self.unit} {source.before + self.first + row}"

    @property
    def can_join(self) -> bool:
        """Whether the rows can be joined with those of other files."""
        return self.joins and not self.parts

    def refuse_to_join(self, path: Path) -> None:
        """Refuse a file of a kind that cannot be part of a folder."""
        if not self.can_join:
            raise InputError(f"{path}: files of this kind cannot be parts of a folder; use CSV, TSV or Parquet")

    def __len__(self) -> int:
        return max(map(len, self.held.values()), default=0)

    def get_column(self, name: str) -> pl.Series:
        """Return one column as polars can hold it, with equal values where the file has equal values."""
        return self.held[name]

    def raw(self, name: str) -> pl.Series:
        """Return one column as it is written, quotes and spaces included."""
        return self.get_column(name)

    def in_one_form(self, columns: Sequence[str]) -> Self:
        """Write the texts of these columns in one form, and give all lines the same end."""
        rows = self
        for name in columns:
            if (column := rows.get_column(name)).dtype in (pl.String, pl.Categorical, pl.Enum):
                rows = rows.with_ids(name, plain(column.cast(pl.String)).to_numpy().astype(object))
        return rows

    def values(self, source: Any, field: str, name: str) -> pl.Series:
        """Return the column of a field of check-ins: numbers, times or text. `source` is where the rows come from."""
        return self.get_column(name)

    def copy_fields(self, columns: list[str], donor: Index) -> Self:
        """Replace these columns of every row i by those of row donor[i]."""
        return replace(self, held={**self.held, **{name: self.taken(name, donor) for name in columns}})

    def take(self, index: Index) -> Self:
        """Return these rows, in this order. If it is not that of the parts, each gets as many as it had of them."""
        part = np.sort(self.part[index]) if self.parts else self.part
        return replace(self, held={name: self.taken(name, index) for name in self.held}, part=part)

    def taken(self, name: str, index: Index) -> Any:
        """Return these rows of a column, as it is held."""
        return self.held[name].gather(pl.Series(index))

    def drop(self, columns: list[str]) -> Self:
        """Leave these columns out."""
        return replace(self, held={name: column for name, column in self.held.items() if name not in columns})

    @abstractmethod
    def largest_number(self, column: str) -> int | None:
        """Return the largest number that a column of ids can hold; None if it can hold any text."""

    @abstractmethod
    def with_ids(self, column: str, ids: NDArray[np.object_]) -> Self:
        """Replace a column of ids. It keeps its type."""

    @abstractmethod
    def write(self, out: BinaryIO) -> None:
        """Write the rows in the format of the original file."""

    def replace_ids(self, column: str, ids: NDArray[np.object_]) -> Self:
        """Replace a column of ids. Names and sizes of parts may reveal whose rows they held, so they change, too."""
        return self.with_ids(column, ids).divided_anew()

    def with_positions(self, point: str, lat: Floats, lon: Floats) -> Self:
        """Replace a column of points, in its form."""
        first = str(self.get_column(point).drop_nulls().first()).strip(' "')
        places = zip(lat.tolist(), lon.tolist(), strict=True)
        if re.match(HEX, first):
            texts = [wkb.hex() for wkb in wkb_points(lon, lat)]
        else:
            texts = [("[{1},{0}]" if first.startswith("[") else "POINT ({1} {0})").format(*place) for place in places]
        return self.replace_ids(point, np.array(texts, object))

    # What not every kind of rows has to do.

    def requote(self, columns: list[str]) -> Self:
        """Put fields of these columns that contain a stray quote into quotes. Their values stay the same."""
        return self

    def without_metadata(self) -> Self:
        """Drop notes of the file that are not needed to read its rows: they may hold clean data."""
        return self

    def with_line_end(self) -> Self:
        """Return rows of text whose last line ends as it would if others followed."""
        return self

    def framed(self, start: bytes | None = None, tail: bytes | None = None) -> Self:
        """Return rows of text whose file begins and ends so; None: as before."""
        return self

    def coded(self, name: str) -> pl.Series:
        """Return one column, Categorical if its texts are held as numbers."""
        return self.get_column(name)

    def json_path(self, column: str) -> str:
        """Return the JSONPath of a column's values; "" if the format is not JSON."""
        return ""

    @property
    def whole(self) -> Self:
        """The rows of a folder as if they were one file."""
        return self.in_parts((), self.part[:0], ())

    def in_parts(self, names: tuple[str, ...], part: Index, tails: tuple[bytes, ...]) -> Self:
        """Return the same rows, each in its part of a folder."""
        return replace(self, parts=names, part=part, tails=tails)

    def divided_anew(self) -> Self:
        """Return the same rows, in order; those of a folder in as many parts of equal size with numbers as names."""
        if not self.parts:
            return self
        count, rows, ending = len(self.parts), len(self.part), min(Path(name).suffix for name in self.parts)
        names = tuple(f"part-{number:05}{ending}" for number in range(count))
        return self.in_parts(names, np.arange(rows) * count // max(1, rows), (max(self.tails),) * count)

    def joined(self, parts: Sequence["Rows"], other: str) -> "Rows":
        """Return the rows of all parts as rows of this kind. `other`: what the types of a part differ from."""
        raise TypeError(f"rows of {type(self).__name__} cannot be joined")

    def segment(self, at: int = 0, rows: int | None = None) -> Any:
        """Return some rows as a table of Arrow, as they are held; None: all that follow."""
        raise TypeError(f"rows of {type(self).__name__} cannot be divided")

    def to_frame(self, mapping: dict[str, str]) -> Any:
        """Return a data frame. Columns of a file without types are text, except coordinates, which are numbers."""
        frame = pl.DataFrame({name: self.values(None, "", name) for name in self.columns})
        degrees = [mapping[field] for field in ("lat", "lon") if frame.schema.get(mapping.get(field, "")) == pl.String]
        return frame.with_columns(pl.col(degrees).str.replace(",", ".", literal=True).cast(pl.Float64, strict=False))

    def write_to(self, path: Path) -> None:
        """Write a file or, for the rows of a folder, every part under its name."""
        if not self.parts:
            with replacing(path) as out:
                self.write(out)
        for number, name in enumerate(self.parts):
            rows = self.whole.take(np.flatnonzero(self.part == number)).framed(tail=self.tails[number])
            make_folder((path / name).parent)
            rows.write_to(path / name)


def difference(expected: Rows, found: Rows, ignore: Container[str] = ()) -> str | None:
    """Return the first difference outside the columns to ignore, or None."""
    if expected.columns != found.columns:
        return f"the columns are {', '.join(found.columns)}, not {', '.join(expected.columns)}"
    for name in found.columns:
        if name in ignore:
            continue
        one, two = expected.coded(name), found.coded(name)
        if pl.Categorical in (one.dtype, two.dtype) and one.dtype != two.dtype:
            one, two = expected.get_column(name), found.get_column(name)
        if len(one) != len(two):
            return f"there are {len(two):,} rows, not {len(one):,}"
        if one.dtype != two.dtype:
            return f"the column {name} has type {two.dtype}, not {one.dtype}"
        if not one.equals(two):
            return f"row {int(one.ne_missing(two).arg_max() or 0) + 1} has a different {name}"
    return None


# The form of texts: what can differ between two ways to write one value, such as padding, quotes or 1 and 1.0.
NUMBER = r"^[+-]?(?:\d+(?:\.\d+)?|[1-9](?:\.\d+)?[eE][+-]?\d{1,2})$"
EXACT = Context(prec=1000)  # more digits than a number that is read
AROUND = ' "\t\r\n'
OF_TEXT = (rf"^([{AROUND}]*)", rf"([{AROUND}]*)$")
OF_NUMBERS = (  # a sign, zeros before and after the digits that count, and an exponent that the value does not need
    r"^(\+|-0[.0]*$)", r"^[+-]?(0+)\d", r"^[+-]?\d+\.\d*?(0+)$", r"([eE][+-]?)\d+$",
)  # fmt: skip


def form_of(raw: pl.Series) -> pl.Series:
    """Return what the writing of each value adds to the value, as a text, (N,); equal forms have equal texts.

    A field without a value has the usual form.
    """
    text = pl.col("t").fill_null("")
    core = text.str.strip_chars(AROUND)
    found = [text.str.extract(one) for one in OF_TEXT]
    number = core.str.contains(NUMBER)
    numeric = number & (number.filter(text != "").mean() > 0.5)  # a few words may look like numbers
    found += [pl.when(numeric).then(core.str.extract(one)) for one in OF_NUMBERS]
    found.append((core != core.str.normalize("NFC")).cast(pl.String))
    frame = raw.cast(pl.String).alias("t").to_frame()
    form = frame.select(pl.concat_str([one.fill_null("") for one in found], separator="\x1f")).to_series()
    filled = (raw.is_not_null() & (raw.cast(pl.String) != "")).fill_null(False)
    usual = form.filter(filled).mode().sort()
    return form.zip_with(filled, usual.head(1).extend_constant("", 1).head(1).new_from_index(0, len(form)))


def plain(texts: pl.Series) -> pl.Series:
    """Return texts in one form: without spaces around them, numbers in their shortest form."""
    distinct = texts.unique().drop_nulls()
    return texts.replace_strict(distinct, [shortest(text) for text in distinct.to_list()], return_dtype=pl.String)


def shortest(text: str) -> str:
    """Return a text without spaces around it, and a number in its shortest form."""
    text = unicodedata.normalize("NFC", text.strip(AROUND.replace('"', "")))
    if not re.match(NUMBER, text):
        return text
    number = format(Decimal(text).normalize(EXACT), "f")
    return "0" if number == "-0" else number
