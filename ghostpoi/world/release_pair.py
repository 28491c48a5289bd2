"""A release and its clean dataset: both in memory or, if the release has many regions, divided alike."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ghostpoi.data.checkins import Ints
from ghostpoi.formats import Source
from ghostpoi.progress import Report, Say
from ghostpoi.publish.manifest import clean_source, data_source, read_clean, read_data, settings_of
from ghostpoi.publish.private_folder import RowsRequest
from ghostpoi.publish.verify.check import Check
from ghostpoi.publish.whole_table import prepare
from ghostpoi.settings import RegionSettings
from ghostpoi.world.dataset import IN_MEMORY, divided, job_of, working
from ghostpoi.world.engine import OneProcess
from ghostpoi.world.job import FRAGMENTS, RELEASED, Job, is_done, leaving
from ghostpoi.world.packs import read_group, write_pack
from ghostpoi.world.pieces import count_rows
from ghostpoi.world.region_rows import read_with_origin
from ghostpoi.world.routes import ROUTE, regions_in, with_pieces
from ghostpoi.world.scale import Scale, Stages, done_all
from ghostpoi.world.scatter import divide

ROUTES = "routes"  # the region of each row of a part of the release


@contextmanager
def opened_pair(
    release: Path, against: Source, mapping: dict[str, str], manifest: dict[str, Any], private: Path,
    scale: Scale | None, say: Say, report: Report,
) -> Iterator[tuple[Job, Job, Stages] | Check]:  # fmt: skip
    """Yield a clean dataset and its release, or the check that fails if they do not fit together.

    What tasks write is clean data, so it lies in the private folder, if that exists.
    """
    if "regions" not in manifest:
        asked = _request(manifest, mapping)
        written, clean = read_data(release, manifest, against.limit), read_clean(against, mapping, manifest)
        yield Job.whole(clean, asked), Job.whole(written, asked), Stages(OneProcess(), report, IN_MEMORY)
        return
    with working(scale or IN_MEMORY, private, say, report) as (place, stages):
        pair = _divided_pair(release, against, mapping, manifest, place, stages)
        yield pair if isinstance(pair, Check) else (*pair, stages)


def _request(manifest: dict[str, Any], mapping: dict[str, str]) -> RowsRequest:
    return RowsRequest(
        settings=settings_of(manifest), method=manifest["method"], protocol="", device=None, mapping=mapping
    )


def _divided_pair(
    release: Path, against: Source, mapping: dict[str, str], manifest: dict[str, Any], place: Path, stages: Stages
) -> tuple[Job, Job] | Check:
    """Divide a clean dataset and its release; return both, or the check that fails if they do not fit together."""
    stated, fields = manifest["regions"], manifest["columns"]["fields"]
    values = {name: stated[name] for name in ("gap_km", "most_venues", "most_rows") if name in stated}
    settings, column = RegionSettings(**values), str(stated.get("column", ""))
    source, asked = data_source(release, manifest, against.limit), _request(manifest, mapping or fields)
    clean = job_of(place / "clean", clean_source(against, manifest), asked, settings, column)
    written = job_of(place / "written", source, _request(manifest, fields), settings, column)
    if clean.pieces.names != written.pieces.names and clean.pieces.several:
        return Check("parts", False, "the release has other parts than the file")
    clean = divided(clean, stages)
    source = replace(source, encoding=clean.source.encoding)
    written = replace(written, regions=clean.regions, format=clean.format, fields=fields, source=source)
    if len(clean.regions) != stated["count"]:
        return Check("regions", False, f"the file has {len(clean.regions):,} regions, not {stated['count']:,}")
    numbers = [region.number for region in clean.regions]
    withholds = bool(manifest["rows"]["withheld"])
    fewer = withholds or bool(manifest["rows"].get("missing", {}).get("dropped"))
    if fewer:
        done_all(stages.run("testing columns", find_shown, clean, numbers, withholds), clean.name_of)
    _write_routes(clean, written, fewer)
    problems, failed = stages.run("writing", divide_release, written, range(len(written.pieces.pieces)))
    done_all((problems, failed), lambda number: str(written.pieces.pieces[number].path))
    if wrong := [problem for problem in problems.values() if problem]:
        return Check("rows", False, wrong[0])
    return clean, with_pieces(written)


def find_shown(job: Job, number: int, withholds: bool) -> None:
    """Note which rows of a region the release shows."""
    place = job.result(RELEASED, number)
    if is_done(place):
        return
    file, origin = read_with_origin(job, job.regions[number])
    shown = np.arange(len(file.table))
    if withholds:
        shown = np.flatnonzero(prepare(file.table, job.request.settings, whole_file=False).has_candidates)
    with leaving(place) as folder:
        write_pack(folder, origin.shown(file, shown))


def _write_routes(clean: Job, written: Job, fewer: bool) -> None:
    """Note the region of each row of the release: that of its clean row."""
    folder = written.folder / ROUTES
    folder.mkdir(parents=True, mode=0o700)
    for part in range(len(clean.pieces.names)):
        routes = [_shown_route(clean, piece.number, fewer) for piece in clean.pieces.of_part(part)]
        np.save(folder / f"{part:06}.npy", np.concatenate(routes))


def _shown_route(clean: Job, number: int, fewer: bool) -> Ints:
    """The region of each row of a piece that the release shows."""
    route: Ints = np.load(clean.result(FRAGMENTS, number) / ROUTE)
    if not fewer:
        return route
    shown = np.zeros(len(route), bool)
    for region in regions_in(clean, number):
        if group := read_group(clean.result(RELEASED, region), number):
            shown[group.places] = True
    return route[shown]


def divide_release(job: Job, number: int) -> str:
    """Divide a piece of the release like its clean rows; return what is wrong with its number of rows."""
    piece = job.pieces.pieces[number]
    route: Ints = np.load(job.folder / ROUTES / f"{piece.part:06}.npy", mmap_mode="r")[piece.before :]
    rows = count_rows(job.source, piece, job.request.mapping)
    last = piece == job.pieces.of_part(piece.part)[-1]
    if rows > len(route) or (last and rows < len(route)):
        return f"{job.pieces.names[piece.part]} has {rows:,} rows, where {len(route):,} are expected"
    if not is_done(job.result(FRAGMENTS, number)):
        divide(job, number, route[:rows])
    return ""
