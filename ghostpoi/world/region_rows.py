"""The rows of one region, as a table of its own: the fragments of all pieces, in the order of the dataset."""

import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ghostpoi.data import formats
from ghostpoi.data.formats import CheckinFile, Rows
from ghostpoi.data.formats.compression import extension
from ghostpoi.data.formats.folder import FolderRows
from ghostpoi.errors import InputError
from ghostpoi.world.crossings import crossing_rows
from ghostpoi.world.job import FRAGMENTS, Job, Region


def read_region(job: Job, region: Region) -> CheckinFile:
    """Read the rows of a region. They know the part of the dataset that each belongs to."""
    named = f"{job.pieces.path}, region {region.number + 1} ({region.label})"
    with TemporaryDirectory(dir=job.folder) as place, job.reads():
        for number in region.pieces:
            source = job.pieces.pieces[number]
            name = f"{region.number:06}{extension(source.path)}"
            os.link(job.result(FRAGMENTS, number) / name, Path(place) / f"{number:06}{extension(source.path)}")
        try:
            file = formats.read(Path(place), job.request.mapping)
            rows = file.all_rows  # parsed while the fragments are there
        except InputError as e:
            raise InputError(str(e).replace(place, named)) from None
    crossing = crossing_rows(job, region)
    table = replace(file.table, name=named, crossing=None if crossing is None else crossing[file.present])
    return replace(file, path=Path(named), table=table, parse_rows=lambda: _by_part(job, region, rows))


def _by_part(job: Job, region: Region, rows: Rows) -> Rows:
    """Let each row know its part, where `rows` know their piece. A dataset of one file has no parts."""
    if not isinstance(rows, FolderRows):
        raise TypeError("the rows of a region come from fragments")
    if not job.pieces.several:
        return rows.whole
    part = np.array([job.pieces.pieces[number].part for number in region.pieces])
    numbers, new = np.unique(part, return_inverse=True)
    first = np.searchsorted(part, numbers)
    return replace(
        rows, part=new[rows.part], names=tuple(job.pieces.names[number] for number in numbers),
        tails=tuple(rows.tails[at] for at in first),
    )  # fmt: skip
