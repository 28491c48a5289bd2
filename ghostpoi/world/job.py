"""A job: everything that a task needs to know, and the folder in which tasks leave their results."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from ghostpoi.formats import CheckinFile, Source
from ghostpoi.publish.columns import VenueColumns
from ghostpoi.publish.private_folder import RowsRequest
from ghostpoi.randomness import Seed
from ghostpoi.settings import RegionSettings
from ghostpoi.world.pieces import Pieces

SURVEY, FRAGMENTS, RELEASED = "survey", "fragments", "released"  # stages that leave a folder per task


@dataclass(frozen=True)
class Region:
    """A region: venues that are near each other, with all their rows."""

    number: int
    key: str  # the first of its venue ids, by which draws are told apart
    label: str  # for messages
    venues: int
    rows: int
    pieces: tuple[int, ...] = ()  # that have rows in it, once they are divided


@dataclass(frozen=True)
class TestedColumns(VenueColumns):
    """What becomes of each column, and what was seen of those that are kept."""

    constant: list[str] = field(default_factory=list)  # they had one value
    of_user: list[str] = field(default_factory=list)  # they were constant per user


@dataclass(frozen=True)
class Job:
    """What all tasks of a run share. It is private: it holds the seed."""

    folder: Path
    pieces: Pieces
    request: RowsRequest
    source: Source  # the dataset; once all files were read, it says how text with accents is encoded
    settings: RegionSettings
    region_column: str  # the column that names regions; "": they follow from distances
    seed: Seed
    key: str  # of the run, for checkpoints
    regions: tuple[Region, ...] = ()
    columns: TestedColumns | None = None
    format: str = ""  # of all files, once they were read
    fields: dict[str, str] = field(default_factory=dict)  # and the column of each field
    device: str = "auto"  # where models run, as the publisher named it: machines differ
    file: CheckinFile | None = None  # all rows, if the dataset is one region in memory
    held: CheckinFile | None = None  # its only piece, if this process has read it

    @staticmethod
    def whole(file: CheckinFile, request: RowsRequest) -> "Job":
        """Return a dataset that is one region in memory."""
        region = Region(0, "", "", len(file.table.venue_ids) - 1, len(file.table), (0,))
        return Job(
            Path(), Pieces(file.path, False, (), ()), request, file.source, RegionSettings(), "", Seed(0), "",
            regions=(region,), file=file,
        )  # fmt: skip

    def result(self, stage: str, number: int) -> Path:
        """Return the folder that a task leaves."""
        return self.folder / stage / f"{number:06}"

    def name_of(self, number: int) -> str:
        """Return how messages name a region or, below 0, all of them."""
        region = f", region {number + 1} ({self.regions[number].label})" if number >= 0 and not self.file else ""
        return f"{self.pieces.path}{region}"

    def seed_of(self, region: Region) -> Seed:
        """Return the seed of a region. The only region of a dataset has the seed of the release."""
        return self.seed if len(self.regions) == 1 else Seed(self.seed.derive("region", region.key))


@contextmanager
def leaving(folder: Path) -> Iterator[Path]:
    """Yield a new folder, which gets this name when the block ends. If another worker was faster, its result stays."""
    make_inside(folder.parent.parent, folder.parent.name)
    own = folder.with_name(f".{folder.name}.{uuid4().hex}")
    own.mkdir(mode=0o700)
    try:
        yield own
        try:
            os.rename(own, folder)
        except OSError:
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(own, ignore_errors=True)


def make_inside(folder: Path, *names: str) -> Path:
    """Create private folders inside each other. The first exists: no task brings back the folder of an ended run."""
    for name in names:
        folder = folder / name
        folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def is_done(folder: Path) -> bool:
    """Tell whether a task has left its result."""
    return folder.is_dir()


def remove_unfinished(folder: Path) -> None:
    """Remove what killed stages and tasks left. No other process may be at work."""
    for left in (*folder.glob(".*"), *folder.glob("*/.*")):
        shutil.rmtree(left, ignore_errors=True)
