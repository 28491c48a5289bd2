"""Pieces of a dataset, which a task reads at once, and packs, in which it leaves rows for others.

A piece is a file, or some of the rows of a large one. Large text files are divided where rows end into spans, which are
read like files of their own. A pack is a file of Arrow from which each numbered group of rows is read alone. A piece
leaves a group for every region, and a region one for every piece. A file for each of them would cost far more than its
rows: there are as many as pieces times regions.
"""

import io
import pickle
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ghostpoi import formats
from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.errors import InputError
from ghostpoi.files import COMPRESSED, file_hashes, joint_hash
from ghostpoi.formats import HEAD, CheckinFile, Rows, Source, recognised
from ghostpoi.formats.content import PARQUET, compression, ending, load, readable
from ghostpoi.formats.delimited import delimiter_of
from ghostpoi.formats.folder import is_folder, parts_of
from ghostpoi.formats.rows import Dialect
from ghostpoi.formats.text import first_line, has_controls, is_utf8, quotes_enclose_fields

if TYPE_CHECKING:  # pyarrow is slow to import
    import pyarrow as pa


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


PACK = "pack.arrow"
NUMBERS, COMMON = b"numbers", b"head"  # in the metadata of its schema
MANY = 1000  # rows of a group that is compressed; with fewer, that takes eight times as long as the rest
AT_ONCE = 100_000  # rows that are decoded at once, which bounds the memory
Head = Any  # what the groups have in common: the dialect of a text, or the schema of a Parquet file


@dataclass(frozen=True)
class Group:
    """The rows of a group, as they are stored, and their places in the piece."""

    places: Ints  # (N,) ascending
    stored: "pa.RecordBatch"  # without the places
    head: Head


def write_pack(folder: Path, places: Mapping[int, Ints | Longs], rows: Rows | None = None) -> None:
    """Write groups, by ascending number: the places of their rows and, one group after the other, the `rows`."""
    import pyarrow as pa

    head = None if rows is None else rows.dialect or rows.schema
    part = rows.segment if rows is not None else lambda at, size: pa.table({})
    own, end = [*places.values()], [0, *accumulate(map(len, places.values()))]
    schema = pa.schema([("place", pa.int32()), *map(_plain, part(0, 0).schema)]).with_metadata(
        {NUMBERS: np.array([*places], np.int64).tobytes(), COMMON: pickle.dumps(head)}
    )
    options = pa.ipc.IpcWriteOptions(compression="lz4" if end[-1] >= MANY * len(own) else None)
    at = 0
    with pa.ipc.new_file(str(folder / PACK), schema, options=options) as writer:
        while at < len(own):
            stop = max(at + 1, bisect_right(end, end[at] + AT_ONCE) - 1)
            columns = [pa.array(np.concatenate(own[at:stop])), *part(end[at], end[stop] - end[at]).columns]
            cast = [column.cast(kind) for column, kind in zip(columns, schema.types, strict=True)]
            [batch] = pa.Table.from_arrays(cast, schema=schema).combine_chunks().to_batches()
            for begin, until in pairwise(end[at : stop + 1]):
                writer.write_batch(batch.slice(begin - end[at], until - begin))
            at = stop


def numbers_of(folder: Path) -> list[int]:
    """Return the numbers of the groups of a pack."""
    return _opened(folder)[1].tolist()


def head_of(folder: Path) -> Head:
    """Return what all groups of a pack have in common."""
    return pickle.loads(_opened(folder)[0].schema.metadata[COMMON])


def read_groups(folder: Path, wanted: Sequence[int]) -> list[Group]:
    """Return the groups of these numbers, ascending, which the pack has."""
    file, numbers = _opened(folder)
    head = pickle.loads(file.schema.metadata[COMMON])
    batches = (file.get_batch(int(at)) for at in np.flatnonzero(np.isin(numbers, wanted)))
    return [Group(batch.column(0).to_numpy(), batch.remove_column(0), head) for batch in batches]


def _opened(folder: Path) -> tuple[Any, Longs]:
    """Open a pack; return also the numbers of its groups."""
    import pyarrow as pa

    file = pa.ipc.open_file(pa.memory_map(str(folder / PACK)))
    return file, np.frombuffer(file.schema.metadata[NUMBERS], np.int64)


def pack_by(folder: Path, number: Ints | Longs, places: Ints | Longs, rows: Rows) -> None:
    """Write rows, which are in the order of their groups, by the `number` of the group of each, (N,)."""
    numbers, begin = np.unique(number, return_index=True)
    each: list[Longs] = np.split(places, begin[1:])
    write_pack(folder, dict(zip(numbers.tolist(), each, strict=True)), rows)


def in_order(groups: Sequence[Group], name: str) -> Rows:
    """Return the rows of groups in the order of their places."""
    return rows_of(groups, name).take(np.argsort(np.concatenate([group.places for group in groups])))


def rows_of(groups: Sequence[Group], name: str) -> Rows:
    """Return the rows of groups, one after the other. `name`: how messages call them."""
    import pyarrow as pa

    from ghostpoi.formats.parquet import ParquetRows
    from ghostpoi.formats.text import TextRows

    parts = list[Rows]()
    for head, some in groupby(groups, key=lambda group: group.head):
        table = pa.Table.from_batches([group.stored for group in some]).replace_schema_metadata()
        if isinstance(head, Dialect):
            parts.append(TextRows(held=pl.DataFrame(pl.from_arrow(table)).to_dict(), dialect=head))
        else:
            columns = [c if c.type == f.type else c.cast(f.type) for f, c in zip(head, table.columns, strict=True)]
            parts.append(ParquetRows.of(pa.Table.from_arrays(columns, schema=head), Path(name)))
    return parts[0] if len(parts) == 1 else parts[0].joined(parts, "other parts")


def _plain(field: "pa.Field") -> "pa.Field":
    """Return how a column is stored. Dictionaries and views would bring the values of all groups along."""
    import pyarrow as pa

    from ghostpoi.formats.parquet import VIEWS

    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    return field.with_type(VIEWS.get(kind, kind))
