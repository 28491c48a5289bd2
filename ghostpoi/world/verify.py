"""Check a release of many regions against the clean dataset, region by region."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ghostpoi.data.checkins import Ints
from ghostpoi.data.displacement import Moves
from ghostpoi.data.formats.size_limit import chosen_limit
from ghostpoi.progress import Report, Say
from ghostpoi.publish.manifest import clean_reading, data_reading, read_manifest, settings_of
from ghostpoi.publish.private_folder import RowsRequest
from ghostpoi.publish.verify import folder_checks
from ghostpoi.publish.verify.against_clean import comparison, figure_checks
from ghostpoi.publish.verify.check import Check
from ghostpoi.publish.whole_table import fast_steps, prepare
from ghostpoi.randomness import Seed
from ghostpoi.settings import RegionSettings
from ghostpoi.world.crossings import find_crossings
from ghostpoi.world.engine import engine_of
from ghostpoi.world.job import FRAGMENTS, RELEASED, Job, Region, is_done, leaving
from ghostpoi.world.joint_figures import joint_figures
from ghostpoi.world.pieces import count_rows, find_pieces, rows_before
from ghostpoi.world.region_rows import read_region
from ghostpoi.world.regions import find_regions
from ghostpoi.world.routes import shown_places, write_shown
from ghostpoi.world.scale import Scale, Stages, done_all
from ghostpoi.world.scatter import divide, scatter
from ghostpoi.world.survey import survey

ROUTES = "routes"  # the region of each row of a part of the release


@dataclass(frozen=True)
class Compared:
    """What was found in a region."""

    checks: list[Check]
    figures: dict[str, Any] | None
    moved: Moves | None
    speed: dict[str, float]


def verify(
    release: Path, against: Path, mapping: dict[str, str], signed_by: str | None, private: Path, scale: Scale,
    say: Say, report: Report,
) -> list[Check]:  # fmt: skip
    """Run all checks. What tasks write is clean data, so it lies in the private folder, if that exists."""
    manifest = read_manifest(release)
    checks, complaint = folder_checks(release, manifest, signed_by)
    if complaint:
        return checks
    with (
        TemporaryDirectory(dir=private if private.is_dir() else None) as place,
        engine_of(scale.engine, scale.workers, scale.scheduler, scale.memory, say) as engine,
    ):
        return [*checks, *_compare(release, against, mapping, manifest, Path(place), Stages(engine, report))]


def _compare(
    release: Path, against: Path, mapping: dict[str, str], manifest: dict[str, Any], place: Path, stages: Stages
) -> list[Check]:  # fmt: skip
    stated = manifest["regions"]
    values = {name: stated[name] for name in ("gap_km", "most_venues", "most_rows") if name in stated}
    settings, column = RegionSettings(**values), str(stated.get("column", ""))
    fields = manifest["columns"]["fields"]

    def job(name: str, path: Path, mapping: dict[str, str], reading: Any) -> Job:
        request = RowsRequest(
            settings=settings_of(manifest), method=manifest["method"], protocol="", device=None, mapping=mapping,
        )  # fmt: skip
        pieces = find_pieces(path, settings.most_rows)
        return Job(place / name, pieces, request, reading, chosen_limit(), settings, column, Seed(0), "")

    clean = job("clean", against, mapping or fields, clean_reading(against, manifest))
    written = job("written", release / manifest["data"]["file"], fields, data_reading(release, manifest))
    if clean.pieces.names != written.pieces.names and clean.pieces.several:
        return [Check("parts", False, "the release has other parts than the file")]
    done_all(stages.run("reading", survey, clean, range(len(clean.pieces.pieces))))
    clean = replace(clean, regions=find_regions(clean))
    written = replace(written, regions=clean.regions)
    if len(clean.regions) != stated["count"]:
        return [Check("regions", False, f"the file has {len(clean.regions):,} regions, not {stated['count']:,}")]
    done_all(stages.run("dividing", scatter, clean, range(len(clean.pieces.pieces))))
    find_crossings(clean)
    numbers = [region.number for region in clean.regions]
    if manifest["rows"]["withheld"] or manifest["rows"].get("missing", {}).get("dropped"):
        withholds = bool(manifest["rows"]["withheld"])
        done_all(stages.run("testing columns", find_shown, clean, numbers, withholds))
    _write_routes(clean, written)
    problems, failed = stages.run("writing", divide_release, written, range(len(written.pieces.pieces)))
    done_all((problems, failed))
    if wrong := [problem for problem in problems.values() if problem]:
        return [Check("rows", False, wrong[0])]
    written = _with_pieces(written)
    found, failed = stages.run("comparing", compare_region, clean, numbers, written, manifest)
    done_all((found, failed))
    return [Check("regions", True, f"{len(numbers):,} regions"), *_joined(clean.regions, found, manifest)]


def find_shown(job: Job, number: int, withholds: bool) -> None:
    """Note which rows of a region the release shows."""
    place = job.result(RELEASED, number)
    if is_done(place):
        return
    file = read_region(job, job.regions[number])
    shown = np.arange(len(file.table))
    if withholds:
        shown = np.flatnonzero(prepare(file.table, job.request.settings, whole_file=False).has_candidates)
    with leaving(place) as folder:
        write_shown(folder, file, shown)


def _write_routes(clean: Job, written: Job) -> None:
    """Note the region of each row of the release: that of its clean row."""
    folder = written.folder / ROUTES
    folder.mkdir(parents=True, mode=0o700)
    for part in range(len(clean.pieces.names)):
        places = shown_places(clean, part)
        row = np.concatenate([*places.values(), np.empty(0, np.int64)])
        region = np.repeat(list(places), [len(rows) for rows in places.values()]).astype(np.int32)
        np.save(folder / f"{part:06}.npy", region[np.argsort(row)])


def divide_release(job: Job, number: int) -> str:
    """Divide a piece of the release like its clean rows; return what is wrong with its number of rows."""
    piece = job.pieces.pieces[number]
    route: Ints = np.load(job.folder / ROUTES / f"{piece.part:06}.npy")[rows_before(piece) :]
    with job.reads():
        rows = count_rows(piece, job.request.mapping)
    last = piece == job.pieces.of_part(piece.part)[-1]
    if rows > len(route) or (last and rows < len(route)):
        return f"{job.pieces.names[piece.part]} has {rows:,} rows, where {len(route):,} are expected"
    if not is_done(job.result(FRAGMENTS, number)):
        divide(job, number, route[:rows])
    return ""


def compare_region(clean: Job, number: int, written: Job, manifest: dict[str, Any]) -> Compared:
    """Compare the released rows of a region with the clean ones."""
    region = clean.regions[number]
    before, after = read_region(clean, region), read_region(written, written.regions[number])
    whole = prepare(before.table, clean.request.settings, whole_file=False)
    withheld = int((~whole.has_candidates).sum()) if manifest["rows"]["withheld"] else 0
    own = manifest | {"rows": manifest["rows"] | {"withheld": withheld}}
    found = comparison(before, after, own, Path(), whole_file=False)
    stated = manifest["speed"]
    speed = fast_steps(after.table, stated["limit_kmh"], stated["min_gap_s"])
    return Compared(found.checks, found.figures, found.moved, speed)


def _with_pieces(written: Job) -> Job:
    """Let each region know the pieces of the release that have rows in it."""
    here: dict[int, list[int]] = {region.number: [] for region in written.regions}
    for piece in written.pieces.pieces:
        for path in written.result(FRAGMENTS, piece.number).glob("[0-9]*"):
            here[int(path.name[:6])].append(piece.number)
    regions = tuple(replace(region, pieces=tuple(here[region.number])) for region in written.regions)
    return replace(written, regions=regions)


def _joined(regions: Sequence[Region], found: dict[int, Compared], manifest: dict[str, Any]) -> list[Check]:
    """Join the checks of all regions: a check passes if it passes everywhere."""
    each = [found[region.number] for region in regions]
    names = dict.fromkeys(check.name for one in each for check in one.checks)
    checks = []
    for name in names:
        wrong = [
            (region, check)
            for region, one in zip(regions, each, strict=True)
            for check in one.checks
            if check.name == name and not check.passed
        ]
        detail = "as it should be in all regions"
        if wrong:
            region, check = wrong[0]
            detail = f"{len(wrong):,} regions fail; region {region.number + 1} ({region.label}): {check.detail}"
        checks.append(Check(name, not wrong, detail))
    speed = {name: sum(one.speed[name] for one in each) for name in ("steps", "steps_over_limit")}
    same = manifest["speed"] == manifest["speed"] | speed
    checks.append(Check("speed", same, f"{speed['steps_over_limit']:,} of {speed['steps']:,} steps over the limit"))
    figures, moved = [one.figures for one in each], [one.moved for one in each]
    if all(figures) and all(one is not None for one in moved):
        joint = joint_figures([one for one in figures if one], [one for one in moved if one])
        checks += figure_checks(joint, manifest)
    return checks
