"""The audit of a release of many regions: every region is audited like a release of its own, then all are joined.

A region has its own sessions, adversaries, victims and leak. To keep the audit affordable, a sample of regions is
audited. Finished victims are kept in the cache, so an interrupted audit goes on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ghostpoi.data import sessions
from ghostpoi.errors import InputError
from ghostpoi.evaluate.audit import grid_of, measured
from ghostpoi.evaluate.audit_request import (
    RELEASE,
    AuditRequest,
    AuditSettings,
    audit_settings,
    check_request,
    random_controls,
)
from ghostpoi.evaluate.audit_result import Measured, result
from ghostpoi.evaluate.default_set import completed
from ghostpoi.evaluate.joint_audit import joined
from ghostpoi.evaluate.measures.accuracy_gaps import strongest
from ghostpoi.evaluate.restoration import Contest
from ghostpoi.evaluate.rounding import rounded
from ghostpoi.evaluate.row_matching import align, pair_of
from ghostpoi.evaluate.stored_audit import check_writable, store
from ghostpoi.options import option
from ghostpoi.progress import Report, Say, no_report
from ghostpoi.publish.manifest import complaint_about, read_manifest, with_groups
from ghostpoi.publish.verify.check import Check
from ghostpoi.world.dataset import working
from ghostpoi.world.job import Job, Region
from ghostpoi.world.region_rows import read_region
from ghostpoi.world.release_pair import divided_pair
from ghostpoi.world.sample import sample, sampled
from ghostpoi.world.scale import Scale, Stages, done_all


@dataclass(frozen=True)
class Asked:
    """What every region is audited with."""

    request: AuditRequest
    chosen: AuditSettings
    manifest: dict[str, Any]
    contests: tuple[Contest, ...]


def audit_regions(
    request: AuditRequest, scale: Scale, count: int | None, say: Say, report: Report
) -> dict[str, Any]:  # fmt: skip
    """Audit `count` regions of a release, by default as many as have enough rows, and store the joint result."""
    check_request(request)
    manifest = read_manifest(request.release.path)
    if complaint := complaint_about(request.release.path, manifest):
        raise InputError(f"{request.release}: {complaint}; make the release again with protect")
    chosen = audit_settings(request, manifest)
    if request.store:
        check_writable(request.release.path)
    adversaries = completed(request.adversaries, bool(manifest["columns"].get("kept")), pseudonyms=False)
    request = replace(request, adversaries=adversaries)
    with working(scale, request.private_folder, say, report) as (place, stages):
        pair = divided_pair(request.release.path, request.file, request.mapping, manifest, place, stages)
        if isinstance(pair, Check):
            raise InputError(f"{request.release} does not fit {request.file}: {pair.detail}; give the file it shows")
        regions = sample(pair[0].regions, count)
        each = _measured(request, chosen, manifest, pair, regions, stages)
    if not each:
        raise InputError(
            f"{request.release}: the filters leave too few sessions in all {len(regions):,} audited regions; audit "
            f"more with {option('regions')}, or lower filters.min_poi_checkins or filters.min_session_length with "
            f"{option('set')}"
        )
    together = joined(list(each.values()))
    found = result(request, chosen, manifest, together) | {
        "release_sha256": str(manifest["data"]["sha256"]),
        "regions": sampled(pair[0].regions, regions, each),
    }
    made = store(request.release.path, request.private_folder, found, say, request.replace) if request.store else found
    return made | {"rows": {"audited": together.released, "kept_genuine": together.kept}}


def _measured(
    request: AuditRequest, chosen: AuditSettings, manifest: dict[str, Any], pair: tuple[Job, Job],
    regions: Sequence[Region], stages: Stages,
) -> dict[int, Measured]:  # fmt: skip
    """Measure the regions that have enough sessions, by their numbers."""
    clean, written = pair
    random = random_controls(manifest)
    numbers, sizes = [region.number for region in regions], [region.rows for region in regions]
    gpu = request.device.type == "cuda"

    def run(label: str, contests: Sequence[Contest], numbers: Sequence[int], sizes: Sequence[int]) -> dict[int, Any]:
        asked = Asked(request, chosen, manifest, tuple(contests))
        found, failed = stages.run(label, audit_region, clean, numbers, written, asked, on_gpu=gpu, sizes=sizes)
        done_all((found, failed), clean.name_of)
        return {number: found[number] for number in numbers if found[number] is not None}

    found: dict[int, Measured] = run("auditing", request.contests(random), numbers, sizes)
    if not found:
        return {}
    # Which adversary is the strongest is known when all regions are joined; only then do its controls run.
    together = joined(list(found.values()))
    accuracy = {
        name: rounded(together.contests[request.contest(RELEASE, name)]["all"]["acc@1"], together.counts.test)
        for name in request.adversaries
    }
    more = [request.contest(control, strongest(accuracy)) for control in random]
    if not set(more) <= set(together.contests):
        rows = {region.number: region.rows for region in regions}
        further = run("auditing controls", more, [*found], [rows[number] for number in found])
        found = {n: replace(one, contests=one.contests | further[n].contests) for n, one in found.items()}
    return found


def audit_region(clean: Job, number: int, written: Job, asked: Asked) -> Measured | None:
    """Audit a region; None if it has too few sessions."""
    request, chosen = asked.request, asked.chosen
    if not written.regions[number].pieces:  # all its rows are withheld
        return None
    before, after = read_region(clean, clean.regions[number]), read_region(written, written.regions[number])
    before = replace(before, table=with_groups(before.table, asked.manifest))
    names = before.path, Path(after.table.name)
    pair = pair_of(before, after, names, asked.manifest, "", whole_file=False)
    split = sessions.build(pair.released, chosen.filters, may_be_empty=True)
    if not all((len(split.train), len(split.val), len(split.test), split.test.positions - len(split.test))):
        return None
    data = align(pair, chosen.filters)
    grid = grid_of(request, chosen, pair, data, no_report)
    contests = {
        contest: cell["measures"] for contest, cell in zip(asked.contests, grid.cells(asked.contests), strict=True)
    }
    return replace(measured(request, chosen, pair, data, grid, contests, lambda text: None), kept=len(after.kept))
