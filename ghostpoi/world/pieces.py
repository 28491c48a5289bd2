"""The pieces of a dataset: what a task reads at once. A piece is a file, or some row groups of a large Parquet file."""

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ghostpoi.data import formats
from ghostpoi.data.formats import CheckinFile, Rows
from ghostpoi.data.formats.compression import extension
from ghostpoi.data.formats.folder import is_folder, parts_of
from ghostpoi.data.formats.in_memory import Content, held
from ghostpoi.data.formats.table import PARQUET
from ghostpoi.errors import InputError

PIECE_ROWS = 500_000  # of a Parquet file; the division into pieces changes no result


@dataclass(frozen=True)
class Piece:
    """Rows that a task reads at once."""

    number: int  # in the order of the rows
    part: int
    path: Path
    groups: tuple[int, ...] = ()  # row groups of a Parquet file; empty: the whole file


@dataclass(frozen=True)
class Pieces:
    """All pieces of a dataset, and the parts that its release will have."""

    path: Path  # of the dataset, for messages
    several: bool  # a folder or a pattern; else one file
    names: tuple[str, ...]  # of the parts, as the release names them
    pieces: tuple[Piece, ...]

    def of_part(self, part: int) -> list[Piece]:
        """Return the pieces of a part, in order."""
        return [piece for piece in self.pieces if piece.part == part]


def find_pieces(path: Path, most_rows: int = PIECE_ROWS) -> Pieces:
    """List the pieces of a dataset. A Parquet file of more than `most_rows` rows has several."""
    several = is_folder(path)
    found = parts_of(path) if several else {f"checkins{extension(path)}": path}
    pieces: list[Piece] = []
    for part, file in enumerate(found.values()):
        for groups in _row_groups(file, most_rows):
            pieces.append(Piece(len(pieces), part, file.absolute(), groups))  # workers have other working folders
    return Pieces(path, several, tuple(found), tuple(pieces))


def _row_groups(path: Path, most_rows: int) -> list[tuple[int, ...]]:
    """Divide the row groups of a Parquet file into pieces; any other file is one piece."""
    if not path.is_file():
        raise InputError(f"{path} does not exist; check the path")
    with path.open("rb") as file:
        if file.read(len(PARQUET)) != PARQUET:
            return [()]
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_metadata(path)
    except (pa.ArrowException, OSError) as e:
        why = (str(e).splitlines() or ["it cannot be read"])[0]
        raise InputError(f"{path} is a damaged Parquet file ({why}); write it again") from None
    if metadata.num_rows <= most_rows:
        return [()]
    found: list[list[int]] = [[]]
    rows = 0
    for group in range(metadata.num_row_groups):
        size = metadata.row_group(group).num_rows
        if found[-1] and rows + size > most_rows:
            found.append([])
            rows = 0
        found[-1].append(group)
        rows += size
    return [tuple(groups) for groups in found]


def read_piece(piece: Piece, mapping: dict[str, str]) -> CheckinFile | None:
    """Read and validate a piece; None if it has no rows."""
    with _opened(piece) as path:
        return formats.read(path, mapping) if piece.groups or formats.has_rows(path) else None


def raw_rows(piece: Piece, mapping: dict[str, str]) -> Rows:
    """Read all fields of a piece. What `read_piece` has validated is not validated again, where that saves time."""
    if piece.path.suffix == ".parquet" and not piece.groups:
        from ghostpoi.data.formats.parquet import read_rows

        return read_rows(piece.path, piece.path.read_bytes())
    with _opened(piece) as path:
        return formats.read(path, mapping).all_rows


def count_rows(piece: Piece, mapping: dict[str, str]) -> int:
    """Return how many rows a piece has."""
    with piece.path.open("rb") as file:
        if file.read(len(PARQUET)) != PARQUET:
            if not formats.has_rows(piece.path):
                return 0
            rows = raw_rows(piece, mapping)
            return len(rows.get_column(rows.columns[0]))
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(piece.path)
    groups = piece.groups or range(metadata.num_row_groups)
    return sum(int(metadata.row_group(group).num_rows) for group in groups)


def rows_before(piece: Piece) -> int:
    """Return how many rows of its file come before a piece."""
    if not piece.groups:
        return 0
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(piece.path)
    return sum(int(metadata.row_group(group).num_rows) for group in range(piece.groups[0]))


def content_hash(pieces: Pieces) -> bytes:
    """Hash the names and the content of all parts."""
    digest = hashlib.sha256()
    for part, name in enumerate(pieces.names):
        with pieces.of_part(part)[0].path.open("rb") as file:
            digest.update(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {name}\n".encode())
    return digest.digest()


@contextmanager
def _opened(piece: Piece) -> Iterator[Path]:
    """Yield a path from which the rows of a piece, and no others, can be read."""
    if not piece.groups:
        yield piece.path
        return
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pq.ParquetFile(piece.path).read_row_groups(list(piece.groups)), out)
    with held(str(piece.path), Content(out.getvalue(), extension(piece.path))) as path:
        yield path
