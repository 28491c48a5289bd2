"""Divide one piece by region: a fragment for every region that it has rows in, and a sample of several regions."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ghostpoi.data.checkins import Ints
from ghostpoi.data.formats import Rows
from ghostpoi.data.formats.compression import extension
from ghostpoi.data.formats.rows import TextRows
from ghostpoi.world.job import FRAGMENTS, JOINT, Job, is_done, leaving
from ghostpoi.world.pieces import raw_rows
from ghostpoi.world.regions import region_of_rows
from ghostpoi.world.routes import ROUTE
from ghostpoi.world.sample import joint

TAIL = "tail"  # what ends the last line of a piece of text; in fragments, all lines end


def scatter(job: Job, number: int) -> None:
    """Divide a piece."""
    if not is_done(job.result(FRAGMENTS, number)):
        divide(job, number, region_of_rows(job, number), [region.number for region in joint(job.regions)])


def divide(job: Job, number: int, route: Ints, sample: Sequence[int] = ()) -> None:
    """Divide a piece whose rows go to these regions, (N,). Those of a sample are left in their order, too."""
    piece = job.pieces.pieces[number]
    with leaving(job.result(FRAGMENTS, number)) as folder:
        np.save(folder / ROUTE, route)
        if not len(route):
            return
        with job.reads():
            rows = raw_rows(piece, job.request.mapping)
        if isinstance(rows, TextRows):
            (folder / TAIL).write_bytes(rows.dialect.tail)
        order = np.argsort(route, kind="stable")
        numbers, begin = np.unique(route[order], return_index=True)
        for region, index in zip(numbers.tolist(), np.split(order, begin[1:]), strict=True):
            _write(folder / f"{region:06}{extension(piece.path)}", rows.take(index))
        if len(index := np.flatnonzero(np.isin(route, sample))):
            _write(folder / f"{JOINT}{extension(piece.path)}", rows.take(index))


def _write(path: Path, rows: Rows) -> None:
    with path.open("wb") as out:
        (rows.with_line_end() if isinstance(rows, TextRows) else rows).write(out)
