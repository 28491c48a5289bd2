"""Divide one piece by region: a group of rows for every region, and one for a sample of several regions."""

from collections.abc import Sequence

import numpy as np

from ghostpoi.data.checkins import Ints
from ghostpoi.formats.text_rows import TextRows
from ghostpoi.world.job import FRAGMENTS, Job, is_done, leaving
from ghostpoi.world.packs import write_pack
from ghostpoi.world.pieces import raw_rows
from ghostpoi.world.regions import region_of_rows
from ghostpoi.world.routes import ROUTE, TOGETHER
from ghostpoi.world.sample import joint

TAIL = "tail"  # what ends the last line of a piece of text; in packs, all lines end


def scatter(job: Job, number: int) -> None:
    """Divide a piece."""
    if not is_done(job.result(FRAGMENTS, number)):
        divide(job, number, region_of_rows(job, number), [region.number for region in joint(job.regions)])


def divide(job: Job, number: int, route: Ints, sample: Sequence[int] = ()) -> None:
    """Divide a piece whose rows go to these regions, (N,). Those of a sample are left in their order, too."""
    with leaving(job.result(FRAGMENTS, number)) as folder:
        np.save(folder / ROUTE, route)
        if not len(route):
            write_pack(folder, {})
            return
        piece = job.pieces.pieces[number]
        rows = job.held.all_rows if job.held else raw_rows(job.source, piece, job.request.mapping)
        if isinstance(rows, TextRows):
            (folder / TAIL).write_bytes(rows.dialect.tail)
        order = np.argsort(route, kind="stable")
        numbers, begin = np.unique(route[order], return_index=True)
        together = np.flatnonzero(np.isin(route, sample))
        groups = {TOGETHER: together} if len(together) else {}
        groups |= dict(zip(numbers.tolist(), np.split(order, begin[1:]), strict=True))
        write_pack(folder, groups, rows.take(np.concatenate([*groups.values()])))
