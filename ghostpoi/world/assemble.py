"""Put one part of the release together from the regions that have rows in it, in the order of the dataset."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from ghostpoi.data import formats
from ghostpoi.data.formats import Rows
from ghostpoi.data.formats.joined_rows import joined_rows
from ghostpoi.data.formats.rows import TextRows
from ghostpoi.errors import InputError
from ghostpoi.files import replacing
from ghostpoi.publish.row_comparison import difference
from ghostpoi.world.job import RELEASED, Job
from ghostpoi.world.protect_region import ROWS, rows_name
from ghostpoi.world.routes import shown_places


def assemble(job: Job, part: int, folder: Path) -> int:
    """Write a part into the folder of the release; return how many rows it has."""
    name, several = job.pieces.names[part], job.pieces.several
    places = {region: rows for region, rows in shown_places(job, part).items() if len(rows)}
    released = [job.result(RELEASED, region) / rows_name(job) for region in places]
    fragments = [_rows(job, one / name if several else one) for one in released]
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    order = np.argsort(np.concatenate([*places.values(), np.empty(0, np.int64)]))
    rows = joined_rows(fragments, fragments[0], name).take(order) if fragments else _none(job)
    with replacing(path) as out:
        rows.write(out)
    if fragments and (problem := difference(rows, _rows(job, path))):
        raise InputError(f"{name} cannot be released: what was written does not read back the same ({problem})")
    return len(order)


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
        return formats.read(path, job.request.mapping).all_rows
