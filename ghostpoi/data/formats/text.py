"""Delimited text, read fast and kept to the letter.

A release must give back every byte that it did not mean to change: quotes, line endings, a byte-order mark, spaces.
So the fields are kept as raw text. Where quotes or carriage returns make a line more than "fields between delimiters",
the structural delimiters are first replaced by control characters that the file does not contain, and the rest is text.
"""

import codecs
import csv
import io
import re
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import polars as pl

from ghostpoi.data.formats.fields import refuse_duplicate_names
from ghostpoi.errors import InputError

UNIT, RECORD, RETURN = b"\x1f", b"\x1e", b"\x1d"  # stand for a delimiter, a line feed, a carriage return
CHUNK = 1 << 24
BOM = codecs.BOM_UTF8


@dataclass(frozen=True)
class Dialect:
    """How a text file is laid out."""

    path: Path
    delimiter: str
    columns: tuple[str, ...]
    encoding: str
    start: bytes  # byte-order mark and header line, as they stand in the file
    tail: bytes  # the line ends after the last row, if any
    marked: bool  # the body has control characters in place of its structure
    quoted: bool  # fields may stand in quotes


@dataclass(frozen=True)
class Body:
    """The rows as bytes for polars, and how to read them."""

    data: bytes
    dialect: Dialect

    @property
    def record(self) -> bytes:
        """What ends a row."""
        return RECORD if self.dialect.marked else b"\n"

    def frame(self, types: dict[str, type[pl.DataType] | pl.DataType] | None = None) -> pl.DataFrame:
        """The raw fields; with `types`, those columns only, and null where a value does not fit its type."""
        columns = self.dialect.columns
        schema = {c: (types or {}).get(c, pl.String) for c in columns}
        return pl.read_csv(
            BOM + self.data if self.data.startswith(BOM) else self.data,  # polars drops one
            columns=[columns.index(c) for c in types] if types else None,
            has_header=False,
            schema=schema,
            separator=UNIT.decode() if self.dialect.marked else self.dialect.delimiter,
            eol_char=self.record.decode(),
            quote_char=None,
            ignore_errors=types is not None,
        )

    def values(self, columns: list[str]) -> pl.DataFrame:
        """The fields' values as text: unquoted, stripped, null where empty."""
        frame = self.frame({c: pl.String() for c in columns})
        return frame.select(_value(pl.col(c), self.dialect.quoted).alias(c) for c in columns)

    def line(self, row: int) -> int:
        """The number of the line, from 1, on which a row starts."""
        header = self.dialect.start.count(b"\n")
        if not self.dialect.marked:
            return header + row + 1
        before = self.data.split(RECORD, row)[:row]
        return header + row + 1 + sum(r.count(b"\n") for r in before)


def open_body(
    path: Path, data: bytes, delimiter: str, columns: tuple[str, ...] | None, encoding: str | None, quotes: bool
) -> Body:
    """Lay out the bytes of a file. `columns` None: the first line names them; `quotes`: fields may be quoted."""
    encoding = encoding or ("utf-8" if _is_utf8(data) else "latin-1")
    begin, stop = len(BOM) if data.startswith(BOM) else 0, len(data)
    while begin < stop and data[begin] in b"\r\n":
        begin += 1
    while begin < stop and data[stop - 1] in b"\r\n":
        stop -= 1
    if data.find(b"\n", begin, stop) < 0 <= data.find(b"\r", begin, stop):
        raise InputError(f"{path} ends its lines with carriage returns alone; save it with line feeds (\\n)")
    if columns is None:
        feed = data.find(b"\n", begin, stop)
        if feed < 0:
            raise InputError(f"{path} holds a header line and no check-ins; give a file with at least one row of data")
        columns = _header(path, data[begin:feed].decode(encoding), delimiter)
        begin = feed + 1
    start, content, tail = data[:begin], _to_utf8(data, begin, stop, encoding), data[stop:]
    quoted = quotes and b'"' in content
    marked = quoted or b"\r" in content
    if marked:
        content = _mark(path, content, delimiter, quoted)
    body = Body(content, Dialect(path, delimiter, columns, encoding, start, tail, marked, quoted))
    _check_width(body)
    return body


def write(frame: pl.DataFrame, dialect: Dialect, out: BinaryIO) -> None:
    """Raw fields back as a file in the same dialect."""
    out.write(dialect.start)
    for at in range(0, frame.height, 1 << 18):
        text = frame.slice(at, 1 << 18).write_csv(
            include_header=False, separator=dialect.delimiter, quote_style="never", line_terminator="\n"
        )
        lines = (text or "").encode(dialect.encoding)
        if dialect.marked:
            lines = lines.replace(RETURN, b"\r")
        if at + (1 << 18) >= frame.height:
            lines = lines[:-1] + dialect.tail
        out.write(lines)


def _value(raw: pl.Expr, quotes: bool) -> pl.Expr:
    text = raw.str.strip_chars(" \t\x1d")
    if quotes:
        whole = text.str.starts_with('"') & text.str.ends_with('"') & (text.str.len_bytes() > 1)
        inner = text.str.strip_prefix('"').str.strip_suffix('"').str.replace_all('""', '"', literal=True)
        inner = inner.str.replace_all(RETURN.decode(), "\r", literal=True)
        text = pl.when(whole).then(inner).otherwise(text)
    return pl.when(text != "").then(text)


def _to_utf8(data: bytes, begin: int, stop: int, encoding: str) -> bytes:
    """A part of the data, piece by piece, since few hold a letter that is not ASCII. One-byte encodings and UTF-8."""
    if encoding == "utf-8" or data.isascii():
        return data[begin:stop]
    out = io.BytesIO()
    for at in range(begin, stop, 4096):
        piece = data[at : min(at + 4096, stop)]
        out.write(piece if piece.isascii() else piece.decode(encoding).encode())
    return out.getvalue()


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()  # piece by piece, to bound the memory
    try:
        for at in range(0, len(data), CHUNK):
            decoder.decode(data[at : at + CHUNK], final=at + CHUNK >= len(data))
    except UnicodeDecodeError:
        return False
    return True


def _header(path: Path, line: str, delimiter: str) -> tuple[str, ...]:
    try:
        names = [name.strip() for name in next(csv.reader([line.rstrip("\r")], delimiter=delimiter))]
    except csv.Error as e:
        raise InputError(f"{path}, line 1: the header cannot be read ({e}); give a line of column names") from None
    refuse_duplicate_names(names, f"{path}, line 1")
    return tuple(names)


def _mark(path: Path, content: bytes, delimiter: str, quotes: bool) -> bytes:
    """Replace structural delimiters and line feeds (those outside quotes) and all carriage returns by marks."""
    if any(mark in content for mark in (UNIT, RECORD, RETURN)):
        raise InputError(
            f"{path} holds control characters (bytes 1d to 1f) beside quotes or carriage returns; remove them"
        )
    whole = np.frombuffer(bytearray(content), np.uint8)
    if quotes and not _quotes_are_structure(whole, ord(delimiter)):
        return _mark_by_field(content, delimiter)
    inside = np.uint8(0)
    for at in range(0, len(whole), CHUNK):
        part = whole[at : at + CHUNK]
        if quotes:
            open_quotes = np.bitwise_xor.accumulate((part == ord('"')).astype(np.uint8)) ^ inside
            inside = open_quotes[-1]
            outside = open_quotes == 0
        else:
            outside = np.ones(len(part), bool)
        is_delimiter, is_feed = (part == ord(delimiter)) & outside, (part == ord("\n")) & outside
        part[part == ord("\r")] = RETURN[0]
        part[is_delimiter], part[is_feed] = UNIT[0], RECORD[0]
    return whole.tobytes()


def _quotes_are_structure(content: np.ndarray, delimiter: int) -> bool:
    """Whether every quote opens or closes a field, or is doubled inside one."""
    at = np.flatnonzero(content == ord('"'))
    if len(at) % 2:
        return False
    edge = np.array([delimiter, ord("\n"), ord("\r"), ord('"')], np.uint8)
    before = np.isin(content[np.maximum(at[::2] - 1, 0)], edge) | (at[::2] == 0)
    after = np.isin(content[np.minimum(at[1::2] + 1, len(content) - 1)], edge) | (at[1::2] == len(content) - 1)
    return bool(before.all() and after.all())


def _mark_by_field(content: bytes, delimiter: str) -> bytes:
    """The same where some quotes are text (an inch mark, say): a field is quoted from first to last character."""
    edge = re.escape(delimiter.encode())
    quoted = re.compile(rb'(?<![^%b\n])"(?>[^"]*(?:""[^"]*)*)"(?![^%b\r\n])' % (edge, edge))
    structure = bytes.maketrans(delimiter.encode() + b"\n\r", UNIT + RECORD + RETURN)
    returns = bytes.maketrans(b"\r", RETURN)
    out, end = io.BytesIO(), 0
    for match in quoted.finditer(content):
        out.write(content[end : match.start()].translate(structure))
        out.write(match.group().translate(returns))
        end = match.end()
    out.write(content[end:].translate(structure))
    return out.getvalue()


def _check_width(body: Body) -> None:
    """Every line must have as many fields as there are columns."""
    delimiter = UNIT if body.dialect.marked else body.dialect.delimiter.encode()
    record, width = body.record, len(body.dialect.columns)
    if _lines_are_even(body.data, delimiter[0], record, width - 1):
        return
    for row, line in enumerate(body.data.split(record)):
        fields = line.count(delimiter) + 1
        if fields != width:
            found = (
                "is blank" if not line.strip(b" \t\x1d") else f"has {fields} column{'s' * (fields != 1)}, not {width}"
            )
            raise InputError(f"{body.dialect.path}, line {body.line(row)} {found}; correct or remove that line")


def _lines_are_even(data: bytes, delimiter: int, record: bytes, per_line: int) -> bool:
    """Whether every line has `per_line` delimiters, by whole lines of about CHUNK bytes to bound the memory."""
    begin = 0
    while begin < len(data):
        feed = data.find(record, begin + CHUNK)
        end = len(data) if feed < 0 else feed
        part = np.frombuffer(data, np.uint8, end - begin, begin)
        at, ends = np.flatnonzero(part == delimiter), np.append(np.flatnonzero(part == record[0]), len(part))
        if len(at) != per_line * len(ends):
            return False
        # The total is right: a line's last delimiter must come before its end, the next line's first one after it.
        if per_line and not (
            (at[per_line - 1 :: per_line] < ends).all() and (at[per_line::per_line] > ends[:-1]).all()
        ):
            return False
        begin = end + 1
    return True
