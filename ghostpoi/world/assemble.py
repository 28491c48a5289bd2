"""Put one part of the release together, piece by piece, from the regions that have rows in it."""

import io
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ghostpoi.data import formats
from ghostpoi.data.formats import Rows
from ghostpoi.data.formats.compression import extension
from ghostpoi.data.formats.in_memory import Content, held
from ghostpoi.data.formats.joined_rows import joined_rows
from ghostpoi.data.formats.rows import TextRows
from ghostpoi.errors import InputError
from ghostpoi.files import replacing
from ghostpoi.publish.row_comparison import difference
from ghostpoi.world.job import FRAGMENTS, RELEASED, Job
from ghostpoi.world.protect_region import ROWS
from ghostpoi.world.routes import piece_name, shown_places
from ghostpoi.world.scatter import TAIL


def assemble(job: Job, part: int, folder: Path) -> int:
    """Write a part into the folder of the release; return how many rows it has."""
    shown = {piece.number: _count(job, piece.number) for piece in job.pieces.of_part(part)}
    path = folder / job.pieces.names[part]
    path.parent.mkdir(parents=True, exist_ok=True)
    numbers = [number for number, rows in shown.items() if rows]
    pieces = _pieces(job, part, numbers) if numbers else iter([_none(job)])
    with replacing(path) as out:
        _write(pieces, out)
    return sum(shown.values())


def _count(job: Job, number: int) -> int:
    return sum(len(rows) for rows in shown_places(job, number).values())


def _pieces(job: Job, part: int, numbers: list[int]) -> Iterator[Rows]:
    """Yield the released rows of each piece, in the order of the dataset."""
    name, like = job.pieces.names[part], None
    for number in numbers:
        places = shown_places(job, number)
        fragments = [_rows(job, job.result(RELEASED, region) / ROWS / piece_name(job, number)) for region in places]
        like = like or fragments[0]
        rows = joined_rows(fragments, like, name).take(np.argsort(np.concatenate([*places.values()])))
        if isinstance(rows, TextRows):
            rows = rows.with_line_end()
            if number == numbers[-1]:
                tail = (job.result(FRAGMENTS, job.pieces.of_part(part)[-1].number) / TAIL).read_bytes()
                rows = replace(rows, dialect=replace(rows.dialect, tail=tail))
        yield _checked(job, name, rows)


def _write(pieces: Iterator[Rows], out: BinaryIO) -> None:
    """Write rows one after the other, as if they were one file."""
    first = next(pieces)
    if isinstance(first, TextRows):
        first.write(out)
        for more in pieces:
            if isinstance(more, TextRows):
                replace(more, dialect=replace(more.dialect, start=b"")).write(out)
        return
    from ghostpoi.data.formats.parquet import ParquetRows, write_tables  # pyarrow is slow to import

    if not isinstance(first, ParquetRows):
        raise TypeError(f"rows of {type(first).__name__} cannot be written in pieces")
    tables = (rows.table for rows in chain([first], pieces) if isinstance(rows, ParquetRows))
    write_tables(tables, first.schema, out)


def _checked(job: Job, name: str, rows: Rows) -> Rows:
    """Return rows that read back the same when they are written."""
    rows.write(out := io.BytesIO())
    with job.reads(), held(name, Content(out.getvalue(), extension(Path(name)))) as path:
        found = formats.read(path, job.request.mapping, job.format).all_rows
    if problem := difference(rows, found):
        raise InputError(f"{name} cannot be released: what was written does not read back the same ({problem})")
    return rows


def _none(job: Job) -> Rows:
    """Return no rows, with the columns of the others."""
    folders = (job.result(RELEASED, region.number) / ROWS for region in job.regions)
    written = (path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file())
    rows = _rows(job, next(written))
    empty = rows.take(np.empty(0, np.int64))
    return replace(empty, dialect=replace(empty.dialect, tail=b"")) if isinstance(empty, TextRows) else empty


def _rows(job: Job, path: Path) -> Rows:
    """Read all fields of a file that a task wrote."""
    if path.suffix == ".parquet":
        from ghostpoi.data.formats.parquet import read_rows

        return read_rows(path, path.read_bytes())
    with job.reads():
        return formats.read(path, job.request.mapping, job.format).all_rows
