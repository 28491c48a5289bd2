"""Which region each row of a piece goes to, and from where the rows of a region come."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.formats import CheckinFile
from ghostpoi.publish.kept_rows import in_file
from ghostpoi.world.job import FRAGMENTS, Job
from ghostpoi.world.packs import numbers_of

ROUTE = "route.npy"  # beside the pack of a piece: the region of each row
TOGETHER = -1  # in the pack of a piece: the number of the rows of a sample of regions, in their order


@dataclass(frozen=True)
class Origin:
    """From where the rows of a region come, (N,): in the order of the dataset."""

    piece: Ints
    place: Ints  # in the piece

    @staticmethod
    def of(places: Mapping[int, Ints]) -> "Origin":
        """Join the places in each piece."""
        sizes = [len(own) for own in places.values()]
        return Origin(np.repeat(np.array([*places], np.int32), sizes), np.concatenate([*places.values()]))

    def shown(self, file: CheckinFile, rows: Longs) -> dict[int, Ints]:
        """Return the places in each piece that a release shows: these rows of the table, and those it keeps."""
        row = in_file(file, np.arange(len(file.table)), rows)[1] if len(file.kept) else file.present[rows]
        pieces, begin = np.unique(self.piece[row], return_index=True)
        return dict(zip(pieces.tolist(), np.split(self.place[row], begin[1:]), strict=True)) if len(row) else {}


def regions_in(job: Job, piece: int) -> list[int]:
    """Return the regions that a piece has rows in."""
    return [number for number in numbers_of(job.result(FRAGMENTS, piece)) if number != TOGETHER]


def with_pieces(job: Job) -> Job:
    """Let each region know the pieces that have rows in it."""
    here: dict[int, list[int]] = {region.number: [] for region in job.regions}
    for piece in job.pieces.pieces:
        for region in regions_in(job, piece.number):
            here[region].append(piece.number)
    return replace(job, regions=tuple(replace(one, pieces=tuple(here[one.number])) for one in job.regions))
