"""Check a release of many regions against the clean dataset, region by region."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ghostpoi.data.displacement import MoveCounts
from ghostpoi.formats import Source
from ghostpoi.progress import Report, Say
from ghostpoi.publish.manifest import read_manifest
from ghostpoi.publish.verify import folder_checks
from ghostpoi.publish.verify.against_clean import comparison, figure_checks
from ghostpoi.publish.verify.check import Check
from ghostpoi.publish.whole_table import fast_steps, prepare
from ghostpoi.world.dataset import working
from ghostpoi.world.job import Job, Region
from ghostpoi.world.joint_figures import joint_figures
from ghostpoi.world.region_rows import read_region
from ghostpoi.world.release_pair import divided_pair
from ghostpoi.world.scale import Scale, Stages, done_all
from ghostpoi.world.withheld import without_rows


@dataclass(frozen=True)
class Compared:
    """What was found in a region."""

    checks: list[Check]
    figures: dict[str, Any] | None
    moved: MoveCounts | None
    speed: dict[str, float]


def verify(
    release: Path, against: Source, mapping: dict[str, str], signed_by: str | None, private: Path, scale: Scale,
    say: Say, report: Report,
) -> list[Check]:  # fmt: skip
    """Run all checks. What tasks write is clean data, so it lies in the private folder, if that exists."""
    manifest = read_manifest(release)
    checks, complaint = folder_checks(release, manifest, signed_by)
    if complaint:
        return checks
    with working(scale, private, say, report) as (place, stages):
        return [*checks, *_compare(release, against, mapping, manifest, place, stages)]


def _compare(
    release: Path, against: Source, mapping: dict[str, str], manifest: dict[str, Any], place: Path, stages: Stages
) -> list[Check]:  # fmt: skip
    pair = divided_pair(release, against, mapping, manifest, place, stages)
    if isinstance(pair, Check):
        return [pair]
    clean, written = pair
    numbers = [region.number for region in clean.regions]
    found, failed = stages.run("comparing", compare_region, clean, numbers, written, manifest)
    done_all((found, failed), clean.name_of)
    return [Check("regions", True, f"{len(numbers):,} regions"), *_joined(clean.regions, found, manifest)]


def compare_region(clean: Job, number: int, written: Job, manifest: dict[str, Any]) -> Compared:
    """Compare the released rows of a region with the clean ones."""
    region = clean.regions[number]
    before, of_release = read_region(clean, region), written.regions[number]
    after = read_region(written, of_release) if of_release.pieces else without_rows(before)
    whole = prepare(before.table, clean.request.settings, whole_file=False)
    withheld = int((~whole.has_candidates).sum()) if manifest["rows"]["withheld"] else 0
    own = manifest | {"rows": manifest["rows"] | {"withheld": withheld}}
    found = comparison(before, after, own, Path(), whole_file=False)
    stated = manifest["speed"]
    speed = fast_steps(after.table, stated["limit_kmh"], stated["min_gap_s"])
    moved = MoveCounts.of(found.moved) if found.moved else None
    return Compared(found.checks, found.figures, moved, speed)


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
