"""Delimited text, parsed fast and kept byte for byte.

A release must preserve every byte that it does not change: quotes, line endings, a byte-order mark, spaces. So fields
are kept as raw text. If the file has quotes or carriage returns, control characters that it does not contain first
replace the delimiters and line feeds outside quotes; everything else in the file is then field text.
"""

import codecs
import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ghostpoi.data.checkins import IDS, NAME
from ghostpoi.errors import InputError
from ghostpoi.formats.fields import refuse_duplicate_names
from ghostpoi.formats.rows import Dialect, Kind, Rows, plain
from ghostpoi.formats.source import Source
from ghostpoi.options import option

UNIT, RECORD, RETURN = b"\x1f", b"\x1e", b"\x1d"  # replace a delimiter, a line feed, a carriage return
CHUNK = 1 << 24  # bytes processed at once, to bound the memory
ROWS_PER_WRITE = 1 << 18
BOM = codecs.BOM_UTF8
OLDEST = pl.CompatLevel.oldest()  # pyarrow cannot rearrange the newest text type
ZLIB = b"x"  # polars takes some texts that start with this letter for compressed data


def decode(
    source: Source, data: bytes, delimiter: str, columns: tuple[str, ...] | None = None, encoding: str | None = None,
    quotes: bool = True,
) -> "TextRows":  # fmt: skip
    """Parse the raw fields of a text. Without `columns`, its first line names them. `quotes`: fields may be quoted."""
    encoding = encoding or source.encoding or ("utf-8" if is_utf8(data) else "latin-1")
    begin, stop = first_line(data), len(data)
    while begin < stop and data[stop - 1] in b"\r\n":
        stop -= 1
    if data.find(b"\n", begin, stop) < 0 <= data.find(b"\r", begin, stop):
        raise InputError(f"{source} ends its lines with carriage returns only; save it with line feeds (\\n)")
    if columns is None:
        feed = data.find(b"\n", begin, stop)
        header = data[begin : stop if feed < 0 else feed].decode(encoding).rstrip("\r")
        try:
            columns = tuple(name.strip() for name in next(csv.reader([header], delimiter=delimiter)))
        except csv.Error as e:
            raise InputError(
                f"{source}, line 1: the header cannot be read ({e}); give a line of column names"
            ) from None
        refuse_duplicate_names(columns, f"{source}, line 1")
        begin = stop if feed < 0 else feed + 1
    start, content, tail = data[:begin], data[begin:stop], data[stop:]
    if encoding != "utf-8" and not content.isascii():
        content = content.decode(encoding).encode()
    quoted = quotes and b'"' in content
    separated = quoted or b"\r" in content
    unit, record = delimiter.encode(), b"\n"
    if separated:
        content, unit, record = _to_control_separated(source, content, delimiter, quoted), UNIT, RECORD
    dialect = Dialect(source.path, delimiter, columns, encoding, start, tail, quoted, data.isascii())
    _check_width(source, content, dialect, unit, record)
    held = _parsed(content, columns, unit, record)
    rows = TextRows(held=held.to_dict(), dialect=dialect)
    if held.height and (separated or tail.startswith(b"\r")):
        rows = _with_line_ends(held, dialect, content.count(RETURN) if separated else 0)
    _check_quoted_lines(source, rows)
    return rows


def _parsed(content: bytes, columns: tuple[str, ...], unit: bytes, record: bytes) -> pl.DataFrame:
    """Parse the raw fields of rows."""
    schema = dict.fromkeys(columns, pl.String)
    if not content:
        return pl.DataFrame(schema=schema)
    return pl.read_csv(
        BOM + content if content.startswith((BOM, ZLIB)) else content,  # polars drops one byte-order mark
        has_header=False, schema=schema, separator=unit.decode(), eol_char=record.decode(), quote_char=None,
    )  # fmt: skip


def _with_line_ends(frame: pl.DataFrame, dialect: Dialect, returns: int) -> "TextRows":
    """Return rows that know which lines end with a carriage return; there are so many RETURN."""
    last, sign, tail = frame.columns[-1], RETURN.decode(), dialect.tail
    ended = frame[last].str.ends_with(sign).fill_null(False) & (returns > 0)
    frame = frame.with_columns(pl.col(last).str.strip_suffix(sign)) if returns else frame
    if returns > ended.sum():  # others are inside fields
        frame = frame.with_columns(pl.all().str.replace_all(sign, "\r", literal=True))
    # The end of the last line is in the tail. If it has none, it would be that of the line before.
    ends = tail.startswith(b"\r") if tail else bool(ended[:-1].tail(1).any())
    ended = ended.head(frame.height - 1).extend_constant(ends, 1)
    return TextRows(held={**frame.to_dict(), RETURNS: ended}, dialect=dialect)


def first_line(data: bytes) -> int:
    """Return where the first line begins, after a byte-order mark and blank lines."""
    begin = len(BOM) if data.startswith(BOM) else 0
    while begin < len(data) and data[begin] in b"\r\n":
        begin += 1
    return begin


SURROUNDED = r'^[ \t\r"]|[ \t\r]$'  # of a field: text that is no part of its value
RETURNS = "\n"  # the column that says which lines end with a carriage return, if some do; no name is so


@dataclass(frozen=True, kw_only=True)
class TextRows(Rows):
    """Raw fields of a text file. A carriage return at the end of a line is not part of the last field."""

    dialect: Dialect
    joins, unit = True, "line"

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        tabs = self.dialect.delimiter == "\t"
        return Kind("text", (".tsv" if tabs else ".csv") if self.dialect.has_header else ".txt")

    @property
    def first(self) -> int:  # type: ignore[override]
        return self.dialect.start.count(b"\n") + 1

    def place(self, source: Source, row: int) -> str:
        """Name the line on which a row starts: fields may hold line feeds."""
        held = pl.DataFrame(self.held).head(row).select(self.columns)
        inside = held.select(pl.all().str.count_matches("\n", literal=True).sum()).fill_null(0).row(0)
        return super().place(source, row + sum(inside))

    @property
    def columns(self) -> list[str]:
        return list(self.dialect.columns)

    @property
    def line_ends(self) -> pl.Series | None:  # type: ignore[override]
        return self.held.get(RETURNS)

    def in_one_form(self, columns: Sequence[str]) -> "TextRows":
        """Quote the fields that need it. Lines end with a line feed."""
        held, special = {**self.held}, rf"[\"\n\r{re.escape(self.dialect.delimiter)}]"
        for name in columns:
            text = plain(pl.DataFrame(held).select(value(pl.col(name), self.dialect.quoted)).to_series())
            quoted = '"' + text.str.replace_all('"', '""', literal=True) + '"'
            needs = text.str.contains(special) if self.dialect.quoted else pl.repeat(False, len(text), eager=True)
            held[name] = quoted.zip_with(needs.fill_null(False), text)
        held.pop(RETURNS, None)
        tail = self.dialect.tail.replace(b"\r", b"")
        return replace(self, held=held, dialect=replace(self.dialect, tail=tail))

    def values(self, source: Source, field: str, name: str) -> pl.Series:
        """Return ids and numbers in the type that is faster; if one of them does not fit, the texts of all."""
        raw = self.held[name]
        if field in (*IDS, NAME):
            ids = raw.cast(pl.Categorical)
            if not ids.unique().cast(pl.String).str.contains(SURROUNDED).any():
                return ids
        if field in ("lat", "lon") and not source.reading.decimal:
            degrees = raw.cast(pl.Float64, strict=False)
            if not degrees.null_count():
                return degrees
        return pl.DataFrame(self.held).select(value(pl.col(name), self.dialect.quoted)).to_series()

    def largest_number(self, column: str) -> int | None:
        return None

    def with_ids(self, column: str, ids: NDArray[np.object_]) -> "TextRows":
        """Replace a column of ids. Quotes and line ends become the same: how a row is written may show whose it is."""
        quote = '"' if self.dialect.quoted and self.held[column].str.contains('"', literal=True).any() else ""
        doubled = (i.replace(quote, quote * 2) if quote else i for i in ids.tolist())
        held = {**self.held, column: pl.Series(column, [f"{quote}{i}{quote}" for i in doubled], dtype=pl.String)}
        if (ends := self.line_ends) is not None:
            held[RETURNS] = pl.repeat(2 * int(ends.sum()) > len(ends), len(ends), eager=True)
        return replace(self, held=held)

    def drop(self, columns: list[str]) -> "TextRows":
        dialect = self.dialect
        line = dialect.start.rstrip(b"\r\n").rsplit(b"\n", 1)[-1].removeprefix(BOM)
        if columns and not line:
            raise InputError(
                f"{option('drop', columns[0])}: {dialect.path} has no header line, so its format has fixed columns; "
                "convert it to CSV first"
            )
        kept, header = [name for name in dialect.columns if name not in columns], io.StringIO()
        csv.writer(header, delimiter=dialect.delimiter, lineterminator="").writerow(kept)
        start = dialect.start.replace(line, header.getvalue().encode(dialect.encoding), 1)
        new = replace(dialect, columns=tuple(kept), start=start) if columns else dialect
        return replace(super().drop(columns), dialect=new)

    def requote(self, columns: list[str]) -> "TextRows":
        if not self.dialect.quoted:
            return self
        new = (_requoted(pl.col(name)).alias(name) for name in columns)
        return replace(self, held=pl.DataFrame(self.held).with_columns(new).to_dict())

    def with_line_end(self) -> "TextRows":
        ends = self.line_ends is not None and bool(self.line_ends.tail(1).any())
        return self.framed(tail=b"\r\n" if ends else b"\n")

    def framed(self, start: bytes | None = None, tail: bytes | None = None) -> "TextRows":
        start, tail = (self.dialect.start if start is None else start), (self.dialect.tail if tail is None else tail)
        return replace(self, dialect=replace(self.dialect, start=start, tail=tail))

    def joined(self, parts: Sequence[Rows], other: str) -> "TextRows":
        texts = [part for part in parts if isinstance(part, TextRows)]
        frame = pl.concat([pl.DataFrame(part.held) for part in texts], how="diagonal")
        if RETURNS in frame.columns:
            frame = frame.with_columns(pl.col(RETURNS).fill_null(False))
        return TextRows(held=frame.to_dict(), dialect=_joined([part.dialect for part in [self, *texts]]))

    def segment(self, at: int = 0, rows: int | None = None) -> Any:
        return pl.DataFrame(self.held).slice(at, rows).to_arrow(compat_level=OLDEST)

    def write(self, out: BinaryIO) -> None:
        frame = pl.DataFrame(self.held).select(self.columns)
        if self.line_ends is not None and frame.height:
            # The end of the last line is in the dialect's tail.
            returns = self.line_ends.head(frame.height - 1).extend_constant(False, 1)
            name, last = frame.columns[-1], pl.col(frame.columns[-1])
            ended = pl.when(returns).then(last.fill_null("") + "\r").otherwise(last)
            frame = frame.with_columns(ended.alias(name))
        out.write(self.dialect.start)
        for at in range(0, frame.height, ROWS_PER_WRITE):
            text = frame.slice(at, ROWS_PER_WRITE).write_csv(
                include_header=False, separator=self.dialect.delimiter, quote_style="never", line_terminator="\n"
            )
            lines = (text or "").encode(self.dialect.encoding)
            if at + ROWS_PER_WRITE >= frame.height:
                lines = lines[:-1] + self.dialect.tail
            out.write(lines)


def _requoted(raw: pl.Expr) -> pl.Expr:
    """Quote a raw field that contains a quote but is not a well-formed quoted field. Its value stays the same."""
    text = raw.str.strip_chars(" \t\r")
    whole, inner = _between_quotes(text)
    doubled = pl.when(whole).then(inner).otherwise(text).str.replace_all('"', '""', literal=True)
    quoted = pl.lit('"') + doubled + pl.lit('"')
    stray = raw.str.contains('"', literal=True) & ~raw.str.contains(r'^"(?:[^"]|"")*"$')
    return pl.when(stray).then(quoted).otherwise(raw)


def _joined(dialects: Sequence[Dialect]) -> Dialect:
    """Return the dialect of rows of several files, as the first of them has it."""
    return replace(
        dialects[0], quoted=any(d.quoted for d in dialects), ascii=all(d.ascii for d in dialects),
        encoding=next((d.encoding for d in dialects if not d.ascii), dialects[0].encoding),
    )  # fmt: skip


def value(raw: pl.Expr, quotes: bool) -> pl.Expr:
    """Return the text of a raw field: unquoted, stripped, null where empty."""
    text = raw.str.strip_chars(" \t\r")
    if quotes:
        whole, inner = _between_quotes(text)
        text = pl.when(whole).then(inner).otherwise(text)
    return pl.when(text != "").then(text)


def _between_quotes(text: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Return whether a field is quoted as a whole, and what is between its quotes."""
    whole = text.str.starts_with('"') & text.str.ends_with('"') & (text.str.len_bytes() > 1)
    inner = text.str.strip_prefix('"').str.strip_suffix('"')
    return whole, inner.str.replace_all('""', '"', literal=True)


def is_utf8(data: bytes) -> bool:
    """Return whether a text is UTF-8."""
    if data.isascii():
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for at in range(0, len(data), CHUNK):
            decoder.decode(data[at : at + CHUNK], final=at + CHUNK >= len(data))
    except UnicodeDecodeError:
        return False
    return True


def has_controls(data: bytes) -> bool:
    """Return whether a text has a character that may have to replace others."""
    return any(character in data for character in (UNIT, RECORD, RETURN))


def _to_control_separated(source: Source, content: bytes, delimiter: str, quotes: bool) -> bytes:
    """Replace all carriage returns, and the delimiters and line feeds outside quotes, by control characters."""
    if has_controls(content):
        raise InputError(
            f"{source} contains control characters (bytes 1d to 1f) as well as quotes or carriage returns; remove them"
        )
    outside = bytes.maketrans(delimiter.encode() + b"\n\r", UNIT + RECORD + RETURN)
    inside = bytes.maketrans(b"\r", RETURN)
    if not quotes:
        return content.translate(outside)
    whole = np.frombuffer(bytearray(content), np.uint8)
    if not quotes_enclose_fields(whole, ord(delimiter)):
        return _replace_by_field(content, delimiter, outside, inside)
    outside_table, inside_table = (np.frombuffer(table, np.uint8) for table in (outside, inside))
    is_open = np.uint8(0)
    for at in range(0, len(whole), CHUNK):
        part = whole[at : at + CHUNK]
        in_quotes = np.bitwise_xor.accumulate((part == ord('"')).astype(np.uint8)) ^ is_open
        is_open = in_quotes[-1]
        part[:] = np.where(in_quotes, inside_table[part], outside_table[part])
    return whole.tobytes()


def quotes_enclose_fields(content: np.ndarray, delimiter: int) -> bool:
    """Return whether every quote opens or closes a field, or is doubled inside one."""
    at = np.flatnonzero(content == ord('"'))
    if len(at) % 2:
        return False
    edge = np.array([delimiter, ord("\n"), ord("\r"), ord('"')], np.uint8)
    before = np.isin(content[np.maximum(at[::2] - 1, 0)], edge) | (at[::2] == 0)
    after = np.isin(content[np.minimum(at[1::2] + 1, len(content) - 1)], edge) | (at[1::2] == len(content) - 1)
    return bool(before.all() and after.all())


def _replace_by_field(content: bytes, delimiter: str, outside: bytes, inside: bytes) -> bytes:
    """Replace field by field, for files with quotes that are text (e.g. 12" for inches).

    Only a field whose first and last characters are quotes is quoted.
    """
    edge = re.escape(delimiter.encode())
    quoted = re.compile(rb'(?<![^%b\n])"(?>[^"]*(?:""[^"]*)*)"(?![^%b\r\n])' % (edge, edge))
    out = bytearray(content.translate(outside))
    for match in quoted.finditer(content):
        out[match.start() : match.end()] = match.group().translate(inside)
    return bytes(out)


def _check_quoted_lines(source: Source, rows: TextRows) -> None:
    """Refuse a quoted field that holds whole rows: a stray quote opened it."""
    if not rows.dialect.quoted:
        return
    field, delimiters = pl.col(rows.columns).str, max(len(rows.columns) - 1, 1)
    holds = (field.count_matches("\n", literal=True) > 0) & (
        field.count_matches(rows.dialect.delimiter, literal=True) >= delimiters
    )
    found = pl.DataFrame(rows.held).select(holds.fill_null(False))
    if (row := found.select(pl.any_horizontal(pl.all())).to_series().arg_true()).len():
        at = int(row[0])
        name = next(name for name in found.columns if found[name][at])
        lines = 1 + rows.held[name][at].count("\n")
        raise InputError(
            f"{rows.place(source, at)}: a quoted field spans {lines} lines and contains whole rows; double the quote "
            "that opens it, or remove it"
        )


def _check_width(source: Source, content: bytes, dialect: Dialect, unit: bytes, record: bytes) -> None:
    """Refuse a file in which a row has more or fewer fields than there are columns."""
    width = len(dialect.columns)
    others = bytes(set(range(256)) - {*unit, *record})
    separators, one = content.translate(None, others) + record, unit * (width - 1) + record
    if not content or separators == one * (len(separators) // len(one)):
        return  # every row is as wide
    number = source.before + dialect.start.count(b"\n") + 1
    for row, line in enumerate(content.split(record)):
        if (fields := line.count(unit) + 1) != width:
            blank = not line.strip(b" \t\x1d")
            problem = "is blank" if blank else f"has {fields} column{'s' * (fields != 1)}, not {width}"
            named = source.reading.columns and not (row or blank)  # by the user, who may have miscounted
            remedy = f"give {fields} names with {option('columns')}" if named else "correct or remove that line"
            raise InputError(f"{source}, line {number} {problem}; {remedy}")
        number += 1 + line.count(b"\n") * (record == RECORD)
