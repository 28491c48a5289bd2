"""Put one part of the release together, piece by piece, from the regions that have rows in it."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ghostpoi.files import replacing
from ghostpoi.formats import Rows
from ghostpoi.formats.text import Dialect
from ghostpoi.formats.text_rows import TextRows
from ghostpoi.world.job import FRAGMENTS, RELEASED, Job
from ghostpoi.world.packs import Group, Head, head_of, numbers_of, read_group, rows_of
from ghostpoi.world.refusals import unseen
from ghostpoi.world.routes import regions_in
from ghostpoi.world.scatter import TAIL


def assemble(job: Job, part: int, folder: Path) -> None:
    """Write a part into the folder of the release."""
    if not folder.is_dir():
        raise unseen(folder)
    name, pieces = job.pieces.names[part], job.pieces.of_part(part)
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    each = (_groups(job, piece.number) for piece in pieces)
    rows = (_rows(name, groups) for groups in each if groups)
    with replacing(path) as out:
        if isinstance(head := _head(job), Dialect):
            _write_text(rows, head.start, job.result(FRAGMENTS, pieces[-1].number) / TAIL, out)
        else:
            _write_tables(rows, head, out)


def _head(job: Job) -> Head:
    """Return what a part begins with if it has no rows."""
    folders = (job.result(RELEASED, region.number) for region in job.regions)
    return head_of(next(folder for folder in folders if numbers_of(folder)))


def _groups(job: Job, piece: int) -> list[Group]:
    """Return the released rows of a piece, region by region."""
    found = (read_group(job.result(RELEASED, region), piece) for region in regions_in(job, piece))
    return [group for group in found if group is not None]


def _rows(name: str, groups: list[Group]) -> Rows:
    """Return the released rows of a piece in the order of the dataset. Each region has read its own back."""
    rows = rows_of(groups, name)
    places = np.concatenate([group.places for group in groups])
    order = np.argsort(places)
    if not np.diff(places[order]).all():
        raise ValueError("two regions hold the same row")
    return rows.take(order)


def _write_text(pieces: Iterator[Rows], start: bytes, tail: Path, out: BinaryIO) -> None:
    """Write lines one after the other, as if they were one file. The last one ends as that of the clean file does."""
    end = None
    for rows in pieces:
        if isinstance(rows, TextRows):
            ended = rows.with_line_end().dialect
            begin = ended.start if end is None else end
            replace(rows, dialect=replace(ended, start=begin, tail=b"")).write(out)
            end = ended.tail
    out.write(start if end is None else tail.read_bytes())


def _write_tables(pieces: Iterator[Rows], schema: Any, out: BinaryIO) -> None:
    """Write tables one after the other, as if they were one file."""
    from ghostpoi.formats.parquet import ParquetRows, write_tables  # pyarrow is slow to import

    first = next(pieces, None)
    found = (rows for rows in chain([first], pieces) if isinstance(rows, ParquetRows))
    write_tables((rows.table for rows in found), first.schema if isinstance(first, ParquetRows) else schema, out)
