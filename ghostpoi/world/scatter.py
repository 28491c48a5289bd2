"""Divide one piece by region: a fragment for every region that it has rows in, and a sample of several regions."""

from collections.abc import Sequence

import numpy as np

from ghostpoi.data.checkins import Ints
from ghostpoi.data.formats.compression import extension
from ghostpoi.world.job import FRAGMENTS, JOINT, Job, is_done, leaving
from ghostpoi.world.pieces import raw_rows
from ghostpoi.world.regions import region_of_rows
from ghostpoi.world.routes import ROUTE
from ghostpoi.world.sample import joint


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
        order = np.argsort(route, kind="stable")
        numbers, begin = np.unique(route[order], return_index=True)
        for region, index in zip(numbers.tolist(), np.split(order, begin[1:]), strict=True):
            with (folder / f"{region:06}{extension(piece.path)}").open("wb") as out:
                rows.take(index).write(out)
        if len(index := np.flatnonzero(np.isin(route, sample))):
            with (folder / f"{JOINT}{extension(piece.path)}").open("wb") as out:
                rows.take(index).write(out)
