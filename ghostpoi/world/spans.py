"""Large text files, divided where rows end into spans that are read like files of their own."""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ghostpoi.formats import HEAD, Source, recognised
from ghostpoi.formats.compression import compression
from ghostpoi.formats.tables import delimiter_of
from ghostpoi.formats.text import first_line, has_controls, is_utf8, quotes_enclose_fields

BYTES_PER_ROW = 128  # more than most rows have
MOST_LINES = 1000  # of one row; if it seems to have more, a stray quote opens it
QUOTE, FEED = ord('"'), ord("\n")


@dataclass(frozen=True)
class Span:
    """Whole rows of a text file. To be read, they follow the first `head` bytes of the file, which hold its header."""

    format: str
    head: int
    begin: int
    end: int
    rows: int  # of the file that come before
    lines: int

    def read(self, path: Path) -> bytes:
        """Read the rows as a file of their own."""
        with path.open("rb") as file:
            start = file.read(self.head)
            file.seek(self.begin)
            return start + file.read(self.end - self.begin)


def find_spans(source: Source, most_rows: int) -> list[Span]:
    """Divide a large text file into spans of about `most_rows` rows.

    Return none if the file is small, or if spans could be read otherwise than the file: if it is compressed or no table
    of text, has blank lines or control characters, is not UTF-8, or has quotes that do not enclose fields.
    """
    size = most_rows * BYTES_PER_ROW
    if source.path.stat().st_size <= size:
        return []
    with source.path.open("rb") as file:
        start, names = file.read(HEAD), source.reading.column_names
        if compression(start):
            return []
        format, head = recognised(source, start), first_line(start)
        if format not in ("table", "snap", "tsmc2014"):
            return []
        if format == "table" and not names:
            head = start.find(b"\n", head) + 1
            if not head:
                return []
        file.seek(head)
        delimiter = delimiter_of(source, start, names) if format == "table" else None
        return _Division(source, file, format, head, delimiter).spans(size)


@dataclass(frozen=True)
class _Division:
    source: Source
    file: io.BufferedReader
    format: str
    head: int
    delimiter: str | None  # None: fields cannot be quoted

    def spans(self, size: int) -> list[Span]:
        found, begin, rows, lines = list[Span](), self.head, 0, 0
        while data := self.file.read(size):
            whole = self._whole_rows(data)
            if whole is None or not self._reads_alone(whole):
                return []
            found.append(Span(self.format, self.head, begin, begin + len(whole), rows, lines))
            begin, rows, lines = begin + len(whole), rows + self._rows(whole), lines + whole.count(b"\n")
        return found

    def _whole_rows(self, data: bytes) -> bytes | None:
        """Read on to the end of a row; None if it seems not to end."""
        parts = [data] if data.endswith(b"\n") else [data, self.file.readline()]
        quotes = sum(part.count(b'"') for part in parts)
        for _ in range(MOST_LINES):
            if self.delimiter is None or quotes % 2 == 0:
                return b"".join(parts)
            parts.append(self.file.readline())
            quotes += parts[-1].count(b'"')
        return None

    def _reads_alone(self, data: bytes) -> bool:
        """Tell whether rows mean the same without the rest of the file."""
        ends = len(data) - len(data.rstrip(b"\r\n"))
        last = not self.file.peek(1)
        if data[0] in b"\r\n" or (not last and ends > (2 if data.endswith(b"\r\n") else 1)):
            return False  # blank lines, of which the reader of the whole file complains
        if has_controls(data):
            return False
        if self.format != "tsmc2014" and not is_utf8(data):  # which is always read as latin-1
            return False
        if self.delimiter is None:
            return True
        names = self.source.reading.column_names
        if names and delimiter_of(self.source, data, names) != self.delimiter:
            return False
        return b'"' not in data or quotes_enclose_fields(np.frombuffer(data, np.uint8), ord(self.delimiter))

    def _rows(self, data: bytes) -> int:
        if self.delimiter is None or b'"' not in data:
            return data.count(b"\n")
        content = np.frombuffer(data, np.uint8)
        in_quotes = np.bitwise_xor.accumulate(content == QUOTE)
        return int(np.count_nonzero((content == FEED) & ~in_quotes))
