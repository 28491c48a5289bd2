"""Protect one region: draw a venue for every row, and leave the rows in groups, piece by piece."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np

from ghostpoi.data.displacement import MoveCounts, moves
from ghostpoi.formats import CheckinFile, Rows
from ghostpoi.formats.folder import FolderRows
from ghostpoi.formats.text_rows import TextRows
from ghostpoi.publish.checkpoint import Checkpoint
from ghostpoi.publish.device_choice import device_for
from ghostpoi.publish.protect import protect_table
from ghostpoi.publish.release import described_data, in_memory, write_data, write_pairs
from ghostpoi.publish.released_rows import plan, release_rows
from ghostpoi.world.columns import check_columns
from ghostpoi.world.job import RELEASED, Job, Region, is_done, leaving, make_inside
from ghostpoi.world.packs import write_pack
from ghostpoi.world.region_rows import read_with_origin
from ghostpoi.world.routes import Origin
from ghostpoi.world.withheld import without_rows

FIGURES, MOVES, PAIRS = "figures.json", "moves.npz", "pairs.npz"


def protect_region(job: Job, number: int) -> None:
    """Protect a region."""
    region, place = job.regions[number], job.result(RELEASED, number)
    if is_done(place):
        return
    if job.columns is None:
        raise ValueError("the columns are not tested yet")
    file, origin = read_with_origin(job, region)
    if len(job.regions) > 1:
        check_columns(job, file, job.columns)
    # Models and checkpoints, which are of use until the region is done.
    work = make_inside(job.folder, "work", f"{number:06}")
    with leaving(place) as folder:
        _protect(folder, work, job, region, file, origin)
    shutil.rmtree(work, ignore_errors=True)  # another worker may do the same task, and be done


def _protect(folder: Path, work: Path, job: Job, region: Region, file: CheckinFile, origin: Origin) -> None:
    request, seed, quiet = job.request, job.seed_of(region), lambda text: None
    columns = job.columns if len(job.regions) > 1 else None  # a single region was tested as a whole, and is again
    planned = plan(request, file, quiet, columns=columns)
    checkpoint = Checkpoint(work / "checkpoint.safetensors", f"{job.key} {region.key}", quiet)
    device = device_for(job.device, request.settings)
    venues = protect_table(planned.whole, request.settings, seed, device, cache=work, checkpoint=checkpoint)
    released = release_rows(planned, venues, seed)
    whole = released.rows.whole if isinstance(released.rows, FolderRows) else released.rows
    withheld = not len(released.shown) and not len(file.kept)
    released_rows = replace(released, rows=_ended(whole))
    written = without_rows(file) if withheld else write_data(in_memory(file), file, released_rows)
    described = described_data(request, file, released, written)
    write_pack(folder, origin.shown(file, released.shown), None if withheld else written.all_rows)
    write_pairs(folder / PAIRS, released)
    table = released.whole.table
    np.savez(folder / MOVES, **vars(MoveCounts.of(moves(table.venues, table.venue, venues.poi))))
    (folder / FIGURES).write_text(json.dumps(released.manifest | described), "utf-8")


def _ended(rows: Rows) -> Rows:
    return rows.with_line_end() if isinstance(rows, TextRows) else rows


def read_counts(folder: Path) -> MoveCounts:
    """Read how far the rows of a region were moved."""
    with np.load(folder / MOVES, allow_pickle=False) as found:
        return MoveCounts(**{name: value if value.ndim else value.item() for name, value in found.items()})
