"""The manifest of a release, from the figures of its regions."""

import json
from typing import Any

from ghostpoi.world.job import RELEASED, Job
from ghostpoi.world.joint_figures import joint_figures
from ghostpoi.world.protect_region import FIGURES, read_counts


def joint_manifest(job: Job) -> dict[str, Any]:
    """Join the manifests of all regions."""
    folders = [job.result(RELEASED, region.number) for region in job.regions]
    each = [json.loads((folder / FIGURES).read_text("utf-8")) for folder in folders]
    found, first = joint_figures(each, [read_counts(folder) for folder in folders]), each[0]
    steps = {name: sum(one["speed"][name] for one in each) for name in ("steps", "steps_over_limit")}
    joint: dict[str, Any] = first | found | {"speed": first["speed"] | steps, "data": first["data"] | found["data"]}
    return joint if len(job.regions) == 1 else joint | {"regions": _described(job)}


def _described(job: Job) -> dict[str, Any]:
    """How the venues were parted: with the clean file, anybody can do it again."""
    rule = {"column": job.region_column} if job.region_column else {"gap_km": job.settings.gap_km}
    return {
        "count": len(job.regions), **rule, "most_venues": job.settings.most_venues,
        "most_rows": job.settings.most_rows,
    }  # fmt: skip
