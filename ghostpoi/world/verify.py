"""Check a release against its manifest and, if given, against the dataset that it was made from, region by region."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ghostpoi.data.checkins import Checkins
from ghostpoi.data.displacement import MoveCounts
from ghostpoi.errors import InputError
from ghostpoi.formats import Source
from ghostpoi.formats.source import SizeLimit
from ghostpoi.options import option
from ghostpoi.progress import Report, Say
from ghostpoi.publish.manifest import read_data, read_manifest
from ghostpoi.publish.verify import folder_checks
from ghostpoi.publish.verify.check import Check
from ghostpoi.publish.verify.speed import counted_speed
from ghostpoi.publish.verify.users import order_check
from ghostpoi.publish.whole_table import fast_steps, prepare
from ghostpoi.world.job import Job
from ghostpoi.world.joint_figures import joint_figures
from ghostpoi.world.region_rows import read_region
from ghostpoi.world.release_pair import opened_pair
from ghostpoi.world.scale import Scale
from ghostpoi.world.withheld import without_rows

UNCOUNTED = f"not checked: it is counted by region, which takes {option('against', 'FILE')}"


@dataclass(frozen=True)
class Compared:
    """What was found in a region."""

    checks: list[Check]
    figures: dict[str, Any] | None
    moved: MoveCounts | None
    speed: dict[str, float]


def verify(
    release: Path, against: Source | None, mapping: dict[str, str], signed_by: str | None, private: Path | None,
    limit: SizeLimit | None, scale: Scale | None, say: Say, report: Report,
) -> list[Check]:  # fmt: skip
    """Run all checks. If the data do not match the manifest, their content is not checked.

    The private folder, by default RELEASE.private, undoes pseudonyms for the comparison with the clean file.
    """
    if private is not None and against is None:
        raise InputError(
            f"{option('private')} is for a comparison with the clean file; add {option('against', 'FILE')}, or leave "
            "it out"
        )
    manifest = read_manifest(release)
    checks, complaint = folder_checks(release, manifest, signed_by)
    if complaint:
        return checks
    if against is None and "regions" in manifest:
        return [*checks, Check("speed", True, UNCOUNTED)]
    if against is None:
        table = read_data(release, manifest, limit).table
        return [*checks, counted_speed(_speed(table, manifest), manifest, last=True), *order_check(table, manifest)]
    private = private or Path(f"{release}.private")
    with opened_pair(release, against, mapping, manifest, private, scale, say, report) as pair:
        if isinstance(pair, Check):
            return [*checks, pair]
        clean, written, stages = pair
        each = [*stages.regions("comparing", compare_region, clean, None, written, manifest, private).values()]
        speed = {name: sum(one.speed[name] for one in each) for name in ("steps", "steps_over_limit")}
        checks.append(counted_speed(each[0].speed | speed, manifest, last=False))
        if written.file:
            return [*checks, *order_check(written.file.table, manifest), *_with_figures(each[0], manifest)]
        return [*checks, Check("regions", True, f"{len(each):,} regions"), *_joined(clean, each, manifest)]


def compare_region(clean: Job, number: int, written: Job, manifest: dict[str, Any], private: Path) -> Compared:
    """Compare the released rows of a region with the clean ones."""
    from ghostpoi.publish.verify.against_clean import comparison  # imports much that the other checks do without

    before, whole = read_region(clean, clean.regions[number]), bool(clean.file)
    of_it = written.regions[number]
    after = read_region(written, of_it) if of_it.pieces else without_rows(before)
    if manifest["rows"]["withheld"] and not whole:
        has_candidates = prepare(before.table, clean.request.settings, whole_file=False).has_candidates
        manifest = manifest | {"rows": manifest["rows"] | {"withheld": int((~has_candidates).sum())}}
    found = comparison(before, after, manifest, private, whole)
    moved = MoveCounts.of(found.moved) if found.moved else None
    return Compared(found.checks, found.figures, moved, _speed(after.table, manifest))


def _speed(written: Checkins, manifest: dict[str, Any]) -> dict[str, float]:
    return fast_steps(written, manifest["speed"]["limit_kmh"], manifest["speed"]["min_gap_s"])


def _with_figures(found: Compared, manifest: dict[str, Any]) -> list[Check]:
    from ghostpoi.publish.verify.against_clean import figure_checks

    return [*found.checks, *(figure_checks(found.figures, manifest) if found.figures else [])]


def _joined(clean: Job, each: Sequence[Compared], manifest: dict[str, Any]) -> list[Check]:
    """Join the checks of all regions: a check passes if it passes everywhere."""
    from ghostpoi.publish.verify.against_clean import figure_checks

    checks = []
    for name in dict.fromkeys(check.name for one in each for check in one.checks):
        wrong = [
            (region, check)
            for region, one in zip(clean.regions, each, strict=True)
            for check in one.checks
            if check.name == name and not check.passed
        ]
        detail = "as it should be in all regions"
        if wrong:
            region, check = wrong[0]
            detail = f"{len(wrong):,} regions fail; region {region.number + 1} ({region.label}): {check.detail}"
        checks.append(Check(name, not wrong, detail))
    figures, moved = [one.figures for one in each], [one.moved for one in each]
    if all(figures) and all(one is not None for one in moved):
        joint = joint_figures([one for one in figures if one], [one for one in moved if one])
        checks += figure_checks(joint, manifest)
    return checks
