"""The pieces of a dataset: what a task reads at once. A piece is a file, or some of the rows of a large one.

Large text files are divided where rows end into spans, which are read like files of their own.
"""

import io
from bisect import bisect_left
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ghostpoi import formats
from ghostpoi.errors import InputError
from ghostpoi.files import COMPRESSED, file_hashes, joint_hash
from ghostpoi.formats import HEAD, CheckinFile, Rows, Source, recognised
from ghostpoi.formats.content import PARQUET, compression, ending, load, readable
from ghostpoi.formats.delimited import delimiter_of
from ghostpoi.formats.folder import is_folder, parts_of
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
        """Return whether rows mean the same without the rest of the file."""
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


PIECE_ROWS = 500_000  # of a large file; the division into pieces changes no result


@dataclass(frozen=True)
class Piece:
    """Rows that a task reads at once."""

    number: int  # in the order of the rows
    part: int
    path: Path
    groups: tuple[int, ...] = ()  # row groups of a Parquet file; empty: all
    span: Span | None = None  # of a text file; None: the whole file
    before: int = 0  # rows of the file that come before


@dataclass(frozen=True)
class Pieces:
    """All pieces of a dataset, and the parts that its release will have."""

    path: Path  # of the dataset, for messages
    several: bool  # a folder or a pattern; else one file
    names: tuple[str, ...]  # of the parts, as the release names them
    pieces: tuple[Piece, ...]

    def of_part(self, part: int) -> list[Piece]:
        """Return the pieces of a part, in order."""
        begin, end = (bisect_left(self.pieces, number, key=lambda piece: piece.part) for number in (part, part + 1))
        return list(self.pieces[begin:end])

    def name_of(self, number: int) -> str:
        """Return how messages name a piece."""
        return str(self.pieces[number].path)


def find_pieces(source: Source, most_rows: int = PIECE_ROWS) -> Pieces:
    """List the pieces of a dataset. A file of more than `most_rows` rows has several, if it can be divided."""
    several, path = is_folder(source), source.path
    found = parts_of(path) if several else {f"checkins{_ending(source)}": path}
    pieces: list[Piece] = []
    for part, file in enumerate(found.values()):
        whole = Piece(0, part, file.absolute())  # workers have other working folders
        for piece in (_divided(source, whole, most_rows) if not source.reading.order else []) or [whole]:
            pieces.append(replace(piece, number=len(pieces)))
    return Pieces(Path(source.named or path), several, tuple(found), tuple(pieces))


def _ending(source: Source) -> str:
    """Return the extension of the release. The name of a compressed file may have none."""
    path = source.path
    if source.extension or path.suffix.lower() not in COMPRESSED or not path.is_file():
        return source.extension
    return ending(source, formats.decoded(source, load(source))[1].kind)


def _divided(source: Source, whole: Piece, most_rows: int) -> list[Piece]:
    """Divide a large file; return no pieces if it cannot be divided, or is not large."""
    if not whole.path.is_file():
        raise InputError(f"{whole.path} does not exist; check the path")
    if is_parquet(whole.path):
        return _row_groups(whole, most_rows)
    return [replace(whole, span=span, before=span.rows) for span in find_spans(source.at(whole.path), most_rows)]


def _row_groups(whole: Piece, most_rows: int) -> list[Piece]:
    """Divide the row groups of a Parquet file."""
    path = whole.path
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(path)
    except (pa.ArrowException, OSError) as e:
        why = (str(e).splitlines() or ["it cannot be read"])[0]
        raise InputError(f"{path} is a damaged Parquet file ({why}); write it again") from None
    if metadata.num_rows <= most_rows:
        return []
    found, rows, before = [whole], 0, 0
    for group in range(metadata.num_row_groups):
        size = metadata.row_group(group).num_rows
        if found[-1].groups and rows + size > most_rows:
            found.append(replace(whole, before=before))
            rows = 0
        found[-1] = replace(found[-1], groups=(*found[-1].groups, group))
        rows, before = rows + size, before + size
    return found


def read_piece(dataset: Source, piece: Piece, mapping: dict[str, str]) -> CheckinFile | None:
    """Read and validate a piece; None if it has no rows."""
    source, format, rows = _decoded(dataset, piece)
    return formats.file_of(formats.with_venues(source, mapping), format, rows, mapping) if len(rows) else None


def raw_rows(dataset: Source, piece: Piece, mapping: dict[str, str]) -> Rows | None:
    """Read all fields of a piece, which was validated before; None if it has no rows."""
    if (reading := dataset.reading).order or reading.normalise or reading.cluster_points:  # which change the rows
        file = read_piece(dataset, piece, mapping)
        return file.all_rows if file else None
    rows = _decoded(dataset, piece)[2]
    return rows if len(rows) else None


def _decoded(dataset: Source, piece: Piece) -> tuple[Source, str, Rows]:
    """Return how to read a piece, its format and all its fields."""
    source, format = dataset.at(piece.path), None
    if piece.groups:
        from ghostpoi.formats.parquet import read_groups

        return replace(source, before=piece.before), "table", read_groups(source, piece.groups)
    if piece.span:
        source, format = source.holding(piece.span.read(piece.path), before=piece.span.lines), piece.span.format
    return source, *formats.decoded(source, load(source), format)


def parquet_rows(piece: Piece) -> int:
    """Return how many rows a piece of a Parquet file has."""
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(piece.path)
    groups = piece.groups or range(metadata.num_row_groups)
    return sum(int(metadata.row_group(group).num_rows) for group in groups)


def content_hash(pieces: Pieces) -> bytes:
    """Hash the names and the content of all parts."""
    paths = {name: pieces.of_part(part)[0].path for part, name in enumerate(pieces.names)}
    return bytes.fromhex(joint_hash({name: file_hashes(path)[""] for name, path in paths.items()}))


def is_parquet(path: Path) -> bool:
    """Return whether a file is Parquet."""
    with readable(path), path.open("rb") as file:
        return file.read(len(PARQUET)) == PARQUET
