"""The rows of one region, as a table of its own: the fragments of all pieces, in the order of the dataset."""

import os
from collections.abc import Mapping
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
from ghostpoi.world.job import FRAGMENTS, JOINT, Job, Region
from ghostpoi.world.regions import groups_of
from ghostpoi.world.routes import piece_name


def read_region(job: Job, region: Region) -> CheckinFile:
    """Read the rows of a region. They know the part of the dataset that each belongs to."""
    return read_pieces(job, region)[0]


def read_pieces(job: Job, region: Region) -> tuple[CheckinFile, FolderRows]:
    """Read the rows of a region; return them also by the piece that each belongs to."""
    named = f"{job.pieces.path}, region {region.number + 1} ({region.label})"
    file, rows = _read(job, dict.fromkeys(region.pieces, f"{region.number:06}"), named)
    crossing = crossing_rows(job, region)
    table = replace(file.table, crossing=None if crossing is None else crossing[file.present])
    return replace(file, table=table, parse_rows=lambda: _by_part(job, region, rows)), rows


def read_joint(job: Job) -> CheckinFile:
    """Read the rows of a sample of regions, as if they were one file: in their order, without parts."""
    file, rows = _read(job, {piece.number: JOINT for piece in job.pieces.pieces}, str(job.pieces.path))
    return replace(file, parse_rows=lambda: rows.whole)


def _read(job: Job, fragments: Mapping[int, str], named: str) -> tuple[CheckinFile, FolderRows]:
    """Read one fragment of each piece, where there is one."""
    with TemporaryDirectory(dir=job.folder) as place, job.reads():
        for number, name in fragments.items():
            fragment = job.result(FRAGMENTS, number) / f"{name}{extension(job.pieces.pieces[number].path)}"
            if fragment.exists():
                os.link(fragment, Path(place) / piece_name(job, number))
        try:
            file = formats.read(Path(place), job.request.mapping, job.format)
            rows = file.all_rows  # parsed while the fragments are there
        except InputError as e:
            raise InputError(str(e).replace(place, named)) from None
    if not isinstance(rows, FolderRows):
        raise TypeError("the rows of a region come from fragments")
    groups = groups_of(job) or file.table.category_groups
    table = replace(file.table, name=named, category_groups=groups)
    return replace(file, path=Path(named), table=table), rows


def _by_part(job: Job, region: Region, rows: FolderRows) -> Rows:
    """Let each row know its part, where `rows` know their piece. A dataset of one file has no parts."""
    if not job.pieces.several:
        return rows.whole
    part = np.array([job.pieces.pieces[number].part for number in region.pieces])
    numbers, new = np.unique(part, return_inverse=True)
    first = np.searchsorted(part, numbers)
    return replace(
        rows, part=new[rows.part], names=tuple(job.pieces.names[number] for number in numbers),
        tails=tuple(rows.tails[at] for at in first),
    )  # fmt: skip
