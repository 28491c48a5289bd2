"""The rows of one region, as a table of its own: those of all pieces, in the order of the dataset."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from ghostpoi.formats import CheckinFile, Rows
from ghostpoi.formats.build import file_of_rows
from ghostpoi.regions.divide import TOGETHER, Origin, crossing_rows, groups_of
from ghostpoi.regions.job import FRAGMENTS, Job, Region
from ghostpoi.regions.packs import read_group, rows_of


def read_region(job: Job, region: Region) -> CheckinFile:
    """Read the rows of a region. They know the part of the dataset that each belongs to."""
    return job.file or read_with_origin(job, region)[0]


def read_with_origin(job: Job, region: Region) -> tuple[CheckinFile, Origin]:
    """Read the rows of a region; return also where they come from."""
    file, origin = _read(job, region.pieces, region.number, job.name_of(region.number))
    crossing = crossing_rows(job, region, origin)
    table = replace(file.table, crossing=None if crossing is None else crossing[file.present])
    rows = file.all_rows
    return replace(file, table=table, parse_rows=lambda: _by_part(job, origin, rows)), origin


def read_joint(job: Job) -> CheckinFile:
    """Read the rows of a sample of regions, as if they were one file: in their order, without parts."""
    return _read(job, range(len(job.pieces.pieces)), TOGETHER, str(job.pieces.path))[0]


def _read(job: Job, pieces: Iterable[int], number: int, named: str) -> tuple[CheckinFile, Origin]:
    """Read the groups of this number, where there is one."""
    every = ((piece, read_group(job.result(FRAGMENTS, piece), number)) for piece in pieces)
    found = {piece: group for piece, group in every if group is not None}
    origin = Origin.of({piece: group.places for piece, group in found.items()})
    rows = rows_of([*found.values()], named)
    del found  # which may be large
    file = file_of_rows(job.source.at(Path(named)), rows, job.format, job.fields)
    groups = groups_of(job) or file.table.category_groups
    return replace(file, table=replace(file.table, category_groups=groups)), origin


def _by_part(job: Job, origin: Origin, rows: Rows) -> Rows:
    """Let each row know its part. A dataset of one file has no parts."""
    if not job.pieces.several:
        return rows
    of_piece = np.array([piece.part for piece in job.pieces.pieces])
    numbers, part = np.unique(of_piece[origin.piece], return_inverse=True)
    names = tuple(job.pieces.names[number] for number in numbers)
    return rows.in_parts(names, part, (b"",) * len(names))
