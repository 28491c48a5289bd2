"""Which region each row of a piece goes to, and which of its rows the release shows."""

from pathlib import Path

import numpy as np

from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.data.formats import CheckinFile, Rows
from ghostpoi.data.formats.compression import extension
from ghostpoi.data.formats.folder import FolderRows
from ghostpoi.publish.kept_rows import in_file
from ghostpoi.world.job import FRAGMENTS, RELEASED, Job

ROUTE, SHOWN = "route.npy", "shown"


def piece_name(job: Job, number: int) -> str:
    """Return the name of the rows of a piece, among those of a region."""
    return f"{number:06}{extension(job.pieces.pieces[number].path)}"


def shown_places(job: Job, number: int) -> dict[int, Longs]:
    """Return, for every region of which the release shows rows in a piece, their places in it."""
    route: Ints = np.load(job.result(FRAGMENTS, number) / ROUTE)
    found = {}
    for region in np.unique(route).tolist():
        here = np.flatnonzero(route == region)
        shown = job.result(RELEASED, region) / SHOWN / f"{piece_name(job, number)}.npy"
        here = here[np.load(shown)] if shown.exists() else here
        if len(here):
            found[region] = here
    return found


def released_pieces(file: CheckinFile, pieces: FolderRows, shown: Longs, rows: Rows) -> FolderRows:
    """Divide the released rows of a region like its rows. The release shows rows `shown` of its table."""
    numbers, part = np.unique(np.sort(pieces.part[_in_file(file, shown)]), return_inverse=True)
    names, tails = (tuple(every[number] for number in numbers) for every in (pieces.names, pieces.tails))
    return FolderRows(rows.whole if isinstance(rows, FolderRows) else rows, part, names, tails)


def write_shown(folder: Path, file: CheckinFile, pieces: FolderRows, shown: Longs) -> None:
    """If rows of a region are left out, note for every piece which are shown: rows `shown` of the region's table."""
    shown = _in_file(file, shown)
    if len(shown) == len(pieces.part):
        return
    first = np.searchsorted(pieces.part, np.arange(len(pieces.names)))
    (folder / SHOWN).mkdir()
    for number, name in enumerate(pieces.names):
        np.save(folder / SHOWN / f"{name}.npy", shown[pieces.part[shown] == number] - first[number])


def _in_file(file: CheckinFile, shown: Longs) -> Longs:
    """Return the places in a file of the rows that a release shows: these of its table, and those that lack a value."""
    if len(file.kept):
        return in_file(file, np.arange(len(file.table)), shown)[1]
    return file.present[shown] if len(file.missing) else shown
