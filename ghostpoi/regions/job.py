"""A job: everything that a task needs to know, the folder in which tasks leave their results, and what it refuses."""

import hashlib
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from ghostpoi import stores
from ghostpoi.columns import VenueColumns
from ghostpoi.errors import EngineFailed, InputError
from ghostpoi.files import make_private_folder
from ghostpoi.formats import CheckinFile, Reading, Source
from ghostpoi.options import option
from ghostpoi.randomness import Seed
from ghostpoi.regions.pieces import Piece, Pieces
from ghostpoi.release.private_folder import RowsRequest
from ghostpoi.release.verify import Check
from ghostpoi.settings import RegionSettings
from ghostpoi.stores import here, url_of

SURVEY, FRAGMENTS, RELEASED = "survey", "fragments", "released"  # stages that leave a folder per task


@dataclass(frozen=True)
class Region:
    """A region: venues that are near each other, with all their rows."""

    number: int
    key: str  # the first of its venue ids
    label: str  # for messages
    venues: int
    rows: int
    pieces: tuple[int, ...] = ()  # that have rows in it, once they are divided


@dataclass(frozen=True)
class TestedColumns(VenueColumns):
    """What becomes of each column, and what was seen of those that are kept."""

    constant: list[str] = field(default_factory=list)  # they had one value
    of_user: list[str] = field(default_factory=list)  # they were constant per user
    on_creation: int = 0  # see `visits_on_creation`


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
    category_groups: dict[str, str] = field(default_factory=dict)  # of all files; a region may lack rows of a category
    device: str = "auto"  # where models run, as the publisher named it: machines differ
    file: CheckinFile | None = None  # all rows, if the dataset is one region in memory
    held: CheckinFile | None = None  # its only piece, if this process has read it
    checked: tuple[Check, ...] = ()  # of a release in another order than its dataset: the checks of its order

    @staticmethod
    def whole(file: CheckinFile, request: RowsRequest) -> "Job":
        """Return a dataset that is one region in memory."""
        region = Region(0, "", "", len(file.table.venue_ids) - 1, len(file.table), (0,))
        return Job(
            Path(), Pieces(file.path, False, (), ()), request, file.source, RegionSettings(), "", Seed(0), "",
            regions=(region,), file=file,
        )  # fmt: skip

    def result(self, stage: str, number: int) -> Path:
        """Return the folder that a task leaves. If it has left it elsewhere, it is fetched."""
        stores.take(folder := self.folder / stage / f"{number:06}")
        return folder

    def results(self, stage: str) -> list[Path]:
        """Return the folders that all tasks of a stage have left, in order."""
        names = stores.given(self.folder / stage) or [one.name for one in (self.folder / stage).glob("[0-9]*")]
        return [self.result(stage, int(name)) for name in sorted(names)]

    def for_workers(self) -> "Job":
        """Let workers that see no folder of this machine fetch what it reads."""
        if not url_of(self.folder):
            return self
        made = dict[Path, Path]()
        for piece in self.pieces.pieces:
            place = piece.path
            if not url_of(place):
                place = make_inside(self.folder, "input") / f"{piece.part:06}{piece.path.suffix}"
                with suppress(FileExistsError):
                    place.symlink_to(piece.path)
            if place not in made.values():
                stores.offer(place)
            made[piece.path] = place
        return self._reading(made.__getitem__)

    def on_worker(self) -> "Job":
        """Return the job as this worker has it: with its own copies, if what tasks leave is in a store."""
        if not url_of(self.folder):
            return self
        own = replace(self, folder=here(self.folder), source=replace(self.source, path=here(self.source.path)))
        make_private_folder(own.folder)
        return own._reading(here)

    def _reading(self, place: Callable[[Path], Path]) -> "Job":
        pieces = tuple(replace(piece, path=place(piece.path)) for piece in self.pieces.pieces)
        return replace(self, pieces=replace(self.pieces, pieces=pieces))

    def piece(self, number: int) -> Piece:
        """Return a piece, whose file is here."""
        piece = self.pieces.pieces[number]
        stores.fetch(piece.path)
        return piece

    def name_of(self, number: int) -> str:
        """Return how messages name a region or, below 0, all of them."""
        region = f", region {number + 1} ({self.regions[number].label})" if number >= 0 and not self.file else ""
        return f"{self.pieces.path}{region}"

    @property
    def rule(self) -> dict[str, Any]:
        """How the venues are parted into regions: by a column, or by the distance between them."""
        return {"column": self.region_column} if self.region_column else {"gap_km": self.settings.gap_km}


@contextmanager
def leaving(folder: Path) -> Iterator[Path]:
    """Yield a new folder, which gets this name when the block ends. If another worker was faster, its result stays."""
    make_inside(folder.parent.parent, folder.parent.name)
    own = folder.with_name(f".{folder.name}.{uuid4().hex}")
    own.mkdir(mode=0o700)
    try:
        yield own
        for path in own.rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)
        stores.give(own, folder)
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
    """Return whether a task has left its result."""
    return folder.is_dir()


def remove_unfinished(folder: Path) -> None:
    """Remove what killed stages and tasks left. No other process may be at work."""
    for left in (*folder.glob(".*"), *folder.glob("*/.*")):
        shutil.rmtree(left, ignore_errors=True)


def refuse(request: RowsRequest, reading: Reading, series: bool = False) -> None:
    """Refuse options that do not go with regions."""
    settings = request.settings
    needs = {
        option("series"): series, option("venues"): bool(reading.venues),
        option("cluster_points"): bool(reading.cluster_points),
        option("set", "method.category=group"): settings.method.keeps_category == "group" and not (
            request.groups or "category_group" in request.mapping
        ),
    }  # fmt: skip
    for named, asked in needs.items():
        if asked:
            raise InputError(
                f"{named} needs all rows at once, which the engine for regions avoids; leave out {option('engine')}, "
                f"{option('memory')} and the other region options"
            )


def no_sessions(source: Source) -> InputError:
    """Say that models have nothing to learn from."""
    return InputError(
        f"{source}: the filters leave no sessions in any region; lower filters.min_poi_checkins, "
        "filters.min_user_checkins or filters.min_session_length, or raise filters.session_gap_s, with "
        f"{option('set')}"
    )


def unseen(folder: Path) -> EngineFailed:
    """Say that a worker does not read and write the folder of this machine."""
    return EngineFailed(
        f"some workers cannot use {folder} of this machine; give all machines of the cluster the same folders and "
        f"user, or name a private folder in a store with {option('private', 's3://BUCKET/PATH')}"
    )


ENOUGH_ROWS = 300_000  # of all regions of a sample together


def by_hash(regions: Iterable[Region]) -> list[Region]:
    """Return regions in the order of the hashes of their keys."""
    return sorted(regions, key=lambda region: hashlib.sha256(region.key.encode()).digest())


def sample(regions: Iterable[Region], count: int | None = None) -> list[Region]:
    """Return the first `count` regions in the order of hashes; without a count, until they have enough rows."""
    order, chosen = by_hash(regions), list[Region]()
    if count is not None:
        return order[:count]
    for region in order:
        if sum(one.rows for one in chosen) < ENOUGH_ROWS:
            chosen.append(region)
    return chosen


def joint(regions: Iterable[Region]) -> list[Region]:
    """Return regions, in the order of hashes, that do not have more than enough rows together: those that still fit."""
    chosen, rows = list[Region](), 0
    for region in by_hash(regions):
        if rows + region.rows <= ENOUGH_ROWS:
            chosen.append(region)
            rows += region.rows
    return chosen


def sampled(every: Sequence[Region], chosen: Sequence[Region], used: Collection[int]) -> dict[str, Any]:
    """Say which share of a dataset a sample is, and how many of its regions have too few sessions to be `used`."""
    few = [region for region in chosen if region.number not in used]
    total, some = (sum(region.rows for region in regions) for regions in (every, chosen))
    return {
        "count": len(every), "sampled": len(chosen), "share_of_rows": round(some / total, 3),
        "too_few_sessions": len(few), "too_few_share_of_rows": round(sum(r.rows for r in few) / max(1, some), 3),
    }  # fmt: skip
