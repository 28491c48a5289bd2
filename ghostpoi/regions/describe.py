"""Describe a dataset: the summary of `inspect` and, if it is divided, how the venues part into regions."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from ghostpoi.data.inspect import Counted, added, count, summary
from ghostpoi.draw.whole_table import count_sets, described_sets
from ghostpoi.formats import Source
from ghostpoi.formats.base import Kind, misnamed
from ghostpoi.formats.fields import chosen_columns
from ghostpoi.progress import Report, Say
from ghostpoi.regions.dataset import dataset
from ghostpoi.regions.divide import read_region
from ghostpoi.regions.job import Job, is_done, leaving, no_sessions
from ghostpoi.regions.scale import Scale
from ghostpoi.regions.survey import Keys, keys, surveys_of
from ghostpoi.release.private_folder import RowsRequest

USERS = "users"  # the stage that leaves the users of each region
ALL, LEFT = "all.npy", "left.npy"  # in it: hashes of ids, and of those that the filters leave
SHOWN = 5  # the largest regions, which are listed
AT_ONCE = 1_000_000  # hashes that are joined at once


@dataclass(frozen=True)
class Described:
    """What was found in a region."""

    format: str
    kind: Kind
    columns: dict[str, dict[str, str]]
    missing: int
    counted: Counted
    sets: Counter[str]


def inspect(source: Source, request: RowsRequest, scale: Scale | None, say: Say, report: Report) -> dict[str, Any]:
    """Return the summary of a dataset. Of a dataset with one region, it is that of the whole table."""
    with dataset(source, request, scale, None, say, report) as (job, stages):
        each = [*stages.regions("describing", describe_region, job).values()]
        if job.file:
            counted, first = each[0].counted, job.file.missing_at
        else:
            counted = added([one.counted for one in each], *(_distinct(job, name) for name in (ALL, LEFT)))
            first = next((one.missing for one in surveys_of(job).values() if one.missing), "")
    if not counted.lengths.sum():
        raise no_sessions(source)
    sets: Counter[str] = sum((one.sets for one in each), Counter())
    found = {
        "format": each[0].format,
        "misnamed": misnamed(source, each[0].kind),
        "columns": each[0].columns,
        "missing": {"rows": sum(one.missing for one in each), "first": first},
        **summary(counted, request.settings),
        "method": {"name": request.method, **described_sets(sets, request.settings)},
    }
    if scale is None:
        return found
    without = sum(not one.counted.lengths.sum() for one in each)
    return found | {"regions": described_regions(job) | {"without_sessions": without}}


def described_regions(job: Job) -> dict[str, Any]:
    """Return how many regions there are, by which rule, and the largest and the smallest."""
    by_rows = sorted(job.regions, key=lambda region: (-region.rows, region.number))
    sizes = [{"name": region.label, "rows": region.rows, "venues": region.venues} for region in by_rows]
    return {"count": len(sizes), **job.rule, "largest": sizes[:SHOWN], "smallest": sizes[-1]}


def describe_region(job: Job, number: int) -> Described:
    """Count what is in a region, and leave the hashes of its users."""
    file, settings, whole = read_region(job, job.regions[number]), job.request.settings, len(job.regions) == 1
    counted, left = count(file.table, settings, may_be_empty=not whole)
    sets = count_sets(file.table, settings, whole_file=whole)
    place = job.result(USERS, number)
    if not (job.file or is_done(place)):
        with leaving(place) as folder:
            users = keys(file.table.user_ids)
            np.save(folder / ALL, users)
            np.save(folder / LEFT, users[left])
    columns = chosen_columns(file, job.request.mapping)
    return Described(file.format, file.kind, columns, len(file.missing), counted, sets)


def _distinct(job: Job, name: str) -> int:
    """Count the users of all regions, each once."""
    known, waiting = np.empty(0, np.uint64), list[Keys]()
    for region in job.regions:
        waiting.append(np.load(job.result(USERS, region.number) / name))
        if sum(map(len, waiting)) > max(AT_ONCE, len(known)):
            known, waiting = np.unique(np.concatenate([known, *waiting])), []
    return len(np.unique(np.concatenate([known, *waiting])))
