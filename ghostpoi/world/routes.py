"""Which region each row of a part goes to, and which of its rows the release shows."""

from pathlib import Path

import numpy as np

from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.data.formats import CheckinFile
from ghostpoi.data.formats.folder import FolderRows
from ghostpoi.publish.kept_rows import in_file
from ghostpoi.world.job import FRAGMENTS, RELEASED, Job

ROUTE, SHOWN = "route.npy", "shown"
ONLY = ("rows",)  # what the only part of a dataset of one file is called


def shown_places(job: Job, part: int) -> dict[int, Longs]:
    """Return, for every region with rows in a part, the places in the part of those that the release shows."""
    routes: list[Ints] = [np.load(job.result(FRAGMENTS, p.number) / ROUTE) for p in job.pieces.of_part(part)]
    route, name = np.concatenate(routes), job.pieces.names[part] if job.pieces.several else ONLY[0]
    found = {}
    for region in np.unique(route).tolist():
        here, shown = np.flatnonzero(route == region), job.result(RELEASED, region) / SHOWN / f"{name}.npy"
        found[region] = here[np.load(shown)] if shown.exists() else here
    return found


def write_shown(folder: Path, file: CheckinFile, shown: Longs) -> None:
    """If rows of a region are left out, note for every part which of them are shown: rows `shown` of its table."""
    every = len(file.table) + len(file.missing)
    if len(file.kept):
        shown = in_file(file, np.arange(len(file.table)), shown)[1]
    elif len(file.missing):
        shown = file.present[shown]
    if len(shown) == every:
        return
    rows = file.all_rows
    names = rows.names if isinstance(rows, FolderRows) else ONLY
    part = rows.part if isinstance(rows, FolderRows) else np.zeros(every, np.int64)
    first = np.searchsorted(part, np.arange(len(names)))
    for number, name in enumerate(names):
        of_part = folder / SHOWN / f"{name}.npy"
        of_part.parent.mkdir(parents=True, exist_ok=True)
        np.save(of_part, shown[part[shown] == number] - first[number])
