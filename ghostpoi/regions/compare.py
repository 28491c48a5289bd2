"""Check a release of many regions against the clean dataset, region by region."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ghostpoi.data.checkins import Checkins, Ints, Longs
from ghostpoi.draw.whole_table import fast_steps, prepare
from ghostpoi.errors import InputError
from ghostpoi.files import make_private_folder
from ghostpoi.formats import Source
from ghostpoi.formats.source import SizeLimit
from ghostpoi.options import option
from ghostpoi.progress import Report
from ghostpoi.regions.dataset import Stages, divided, job_of, working
from ghostpoi.regions.divide import ROUTE, divide, read_region, read_with_origin, regions_in, with_pieces
from ghostpoi.regions.engine import Engine, Scale
from ghostpoi.regions.job import FRAGMENTS, RELEASED, Job, is_done, leaving
from ghostpoi.regions.pieces import raw_rows, read_groups, write_pack
from ghostpoi.regions.protect import new_names, origins, sizes_of, table_of, without_rows
from ghostpoi.release import manifest as manifests
from ghostpoi.release import verify as checked
from ghostpoi.release.identity import read_map
from ghostpoi.release.plan import joint_speed, stated
from ghostpoi.release.private_folder import RowsRequest
from ghostpoi.release.verify import Check
from ghostpoi.settings import RegionSettings

if TYPE_CHECKING:
    from ghostpoi.release.compare import Comparison

ROUTES = "routes"  # the region of each row of a part of the release


@contextmanager
def opened_pair(
    release: Path, against: Source, mapping: dict[str, str], manifest: dict[str, Any], private: Path,
    scale: Scale | None, report: Report,
) -> Iterator[tuple[Job, Job, Stages] | Check]:  # fmt: skip
    """Yield a clean dataset and its release, or the check that fails if they do not fit together.

    What tasks write is clean data, so it lies in the private folder, if that exists.
    """
    if "regions" not in manifest:
        asked = _request(manifest, mapping)
        written = manifests.read_data(release, manifest, against.limit)
        clean = manifests.read_clean(against, mapping, manifest)
        yield Job.whole(clean, asked), Job.whole(written, asked), Stages(Engine(), report, Scale())
        return
    with working(scale or Scale(), private, report) as (place, stages):
        pair = _divided_pair(release, against, mapping, manifest, private, place, stages)
        yield pair if isinstance(pair, Check) else (*pair, stages)


def _request(manifest: dict[str, Any], mapping: dict[str, str]) -> RowsRequest:
    return RowsRequest(settings=manifests.settings_of(manifest), method=manifest["method"], mapping=mapping)


def _divided_pair(
    release: Path, against: Source, mapping: dict[str, str], manifest: dict[str, Any], private: Path, place: Path,
    stages: Stages,
) -> tuple[Job, Job] | Check:  # fmt: skip
    """Divide a clean dataset and its release; return both, or the check that fails if they do not fit together."""
    rule, fields = manifest["regions"], manifest["columns"]["fields"]
    values = {name: rule[name] for name in ("gap_km", "most_venues", "most_rows") if name in rule}
    scale = Scale(settings=RegionSettings(**values), region_column=str(rule.get("column", "")))
    source, asked = manifests.data_source(release, manifest, against.limit), _request(manifest, mapping or fields)
    clean = job_of(place / "clean", manifests.clean_source(against, manifest), asked, scale)
    written = job_of(place / "written", source, _request(manifest, fields), scale)
    reorders = asked.settings.reorders
    names = new_names(clean.pieces) if reorders else clean.pieces.names
    several = clean.pieces.several
    if several != written.pieces.several or (several and names != written.pieces.names):
        return Check("parts", False, "the release has other parts than the file")
    clean = divided(clean, stages)
    if len(clean.regions) != rule["count"]:
        return Check("regions", False, f"the file has {len(clean.regions):,} regions, not {rule['count']:,}")
    fewer = bool(manifest["rows"]["withheld"] or manifest["rows"].get("missing", {}).get("dropped"))
    if fewer:
        numbers, withhold = range(len(clean.regions)), manifests.withholds(manifest)
        stages.run("testing columns", find_shown, clean, numbers, clean.name_of, withhold)
    place_of_row = None
    if reorders:
        place_of_row, checks = _clean_places(clean, written, manifest, private, fewer)
        if place_of_row is None:
            return checks[-1]
        written = replace(written, checked=checks)
    source = replace(source, encoding=clean.source.encoding)
    written = replace(written, regions=clean.regions, format=clean.format, fields=fields, source=source)
    if stages.engine.has_workers:
        written = written.for_workers()
    make_private_folder(written.folder)
    for part, both in enumerate(_routes(clean, written, place_of_row, fewer)):
        with leaving(written.result(ROUTES, part)) as folder:
            np.save(folder / ROUTE, both.astype(np.int32))
    every = range(len(written.pieces.pieces))
    problems = stages.run("writing", divide_release, written, every, written.pieces.name_of)
    if wrong := [problem for problem in problems.values() if problem]:
        return Check("rows", False, wrong[0])
    return clean, with_pieces(written)


def _clean_places(
    clean: Job, written: Job, manifest: dict[str, Any], private: Path, fewer: bool
) -> tuple[Longs | None, tuple[Check, ...]]:
    """Return the place of each row of a release in the dataset without the rows left out, and the checks of its order.

    If its rows are not those of the dataset, return the check that fails.
    """
    table, known = table_of(written.source, written.pieces, written.request.mapping), read_map(private)
    shown = origins(clean)[0] if fewer else np.arange(sum(one.rows for one in clean.regions))
    if len(table) != len(known.row) or len(table) != len(shown):
        return None, (Check("rows", False, f"the release has {len(table):,} rows, where {len(shown):,} are expected"),)
    before = table_of(clean.source, clean.pieces, clean.fields)
    mapped = checked.map_check(known, before, shown, table, written.request.settings)
    place = np.searchsorted(shown, known.row) if mapped.passed else None
    return place, (*checked.order_check(table, manifest), mapped)


def _routes(clean: Job, written: Job, place: Longs | None, fewer: bool) -> Iterator[Ints | Longs]:
    """Yield the region of each row of each part of a release, and its place among the clean rows, (2, M)."""
    routes = (_shown_route(clean, part, fewer) for part in range(len(clean.pieces.names)))
    if place is None:
        yield from (np.stack([route, np.arange(len(route))]) for route in routes)
        return
    ends: Longs = np.cumsum(np.array(sizes_of(len(place), len(written.pieces.names))))[:-1]
    yield from np.split(np.stack([np.concatenate([*routes])[place], place]), ends, axis=1)


def find_shown(job: Job, number: int, withhold: bool) -> None:
    """Note which rows of a region the release shows."""
    place = job.result(RELEASED, number)
    if is_done(place):
        return
    file, origin = read_with_origin(job, job.regions[number])
    shown = prepare(file.table, job.request.settings, whole_file=False).shown(withhold)
    with leaving(place) as folder:
        write_pack(folder, origin.shown(file, shown))


def _shown_route(clean: Job, part: int, fewer: bool) -> Ints:
    """The region of each row of a part that the release shows."""
    found = []
    for piece in clean.pieces.of_part(part):
        found.append(np.load(clean.result(FRAGMENTS, piece.number) / ROUTE))
        if fewer:
            shown = np.zeros(len(found[-1]), bool)
            for region in regions_in(clean, piece.number):
                for group in read_groups(clean.result(RELEASED, region), [piece.number]):
                    shown[group.places] = True
            found[-1] = found[-1][shown]
    return np.concatenate(found)


def divide_release(job: Job, number: int) -> str:
    """Divide a piece of the release like its clean rows; return what is wrong with its number of rows."""
    piece = job.piece(number)
    route, place = np.load(job.result(ROUTES, piece.part) / ROUTE, mmap_mode="r")[:, piece.before :]
    rows = raw_rows(job.source, piece, job.request.mapping)
    count = 0 if rows is None else len(rows)
    last = piece == job.pieces.of_part(piece.part)[-1]
    if count > len(route) or (last and count < len(route)):
        return f"{job.pieces.names[piece.part]} has {count:,} rows, where {len(route):,} are expected"
    if not is_done(job.result(FRAGMENTS, number)):
        divide(job, number, route[:count], rows, place[:count])
    return ""


UNCOUNTED = f"not checked: it is counted by region, which takes {option('against', 'FILE')}"


def verify(
    release: Path, against: Source | None, mapping: dict[str, str], signed_by: str | None, private: Path | None,
    limit: SizeLimit | None, scale: Scale | None, report: Report,
) -> list[Check]:  # fmt: skip
    """Run all checks. If the data do not match the manifest, their content is not checked.

    The private folder, by default RELEASE.private, undoes pseudonyms for the comparison with the clean file.
    """
    if private is not None and against is None:
        raise InputError(
            f"{option('private')} is for a comparison with the clean file; add {option('against', 'FILE')}, or leave "
            "it out"
        )
    manifest = manifests.read_manifest(release)
    checks, complaint = checked.folder_checks(release, manifest, signed_by, limit)
    if complaint:
        return checks
    if against is None and "regions" in manifest:
        return [*checks, checked.stated_check(release, manifest, None), Check("speed", True, UNCOUNTED)]
    from ghostpoi.release.compare import counted_speed, figure_checks  # imports much that the other checks do without

    if against is None:
        file = manifests.read_data(release, manifest, limit)
        table, checks = file.table, [*checks, checked.stated_check(release, manifest, file)]
        checks.append(counted_speed(_speed(table, manifest), manifest, last=True))
        homes = checked.hidden_check(checked.shown_homes(table, manifest))
        return [*checks, homes, *checked.order_check(table, manifest)]
    private = private or Path(f"{release}.private")
    with opened_pair(release, against, mapping, manifest, private, scale, report) as pair:
        if isinstance(pair, Check):
            return [*checks, pair]
        clean, written, stages = pair
        checks.append(checked.stated_check(release, manifest, written.file))
        each = [*stages.regions("comparing", compare_region, clean, None, written, manifest, private).values()]
        checks.append(counted_speed(joint_speed([one.speed for one in each]), manifest, last=False))
        if written.file:
            checks += [*checked.order_check(written.file.table, manifest), *each[0].checks]
        else:
            checks += [*written.checked, Check("regions", True, f"{len(each):,} regions"), *_joined(clean, each)]
        found = [one.figures for one in each if one.figures]
        return [*checks, *(figure_checks(stated(found), manifest) if len(found) == len(each) else [])]


def compare_region(clean: Job, number: int, written: Job, manifest: dict[str, Any], private: Path) -> "Comparison":
    """Compare the released rows of a region with the clean ones."""
    from ghostpoi.release.compare import comparison

    before, whole = read_region(clean, clean.regions[number]), bool(clean.file)
    of_it = written.regions[number]
    after = read_region(written, of_it) if of_it.pieces else without_rows(before, manifest["columns"]["dropped"])
    return replace(comparison(before, after, manifest, private, whole), speed=_speed(after.table, manifest))


def _speed(written: Checkins, manifest: dict[str, Any]) -> dict[str, float]:
    return fast_steps(written, manifest["speed"]["limit_kmh"], manifest["speed"]["min_gap_s"])


def _joined(clean: Job, each: Sequence["Comparison"]) -> list[Check]:
    """Join the checks of all regions: a check passes if it passes everywhere."""
    checks = []
    every = [(region, check) for region, one in zip(clean.regions, each, strict=True) for check in one.checks]
    for name in dict.fromkeys(check.name for _, check in every):
        wrong = [(region, check) for region, check in every if check.name == name and not check.passed]
        detail = "as it should be in all regions"
        if wrong:
            region, check = wrong[0]
            detail = f"{len(wrong):,} regions fail; region {region.number + 1} ({region.label}): {check.detail}"
        checks.append(Check(name, not wrong, detail))
    return checks
