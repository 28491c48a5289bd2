"""Describe a dataset: the summary of `inspect` and, if it is divided, how the venues part into regions."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.inspect import Counted, added, count, summary
from ghostpoi.draw.whole_table import count_sets, described_sets
from ghostpoi.formats import Source
from ghostpoi.formats.base import Kind, misnamed
from ghostpoi.formats.fields import chosen_columns
from ghostpoi.progress import Report, Say
from ghostpoi.regions.dataset import dataset
from ghostpoi.regions.job import Job, Region, is_done, leaving, no_sessions
from ghostpoi.regions.pieces import read_piece
from ghostpoi.regions.rows import read_region
from ghostpoi.regions.scale import Scale
from ghostpoi.regions.survey import read_survey
from ghostpoi.release.private_folder import RowsRequest

USERS = "users"  # the stage that leaves the users of each region
ALL, LEFT = "all.npy", "left.npy"  # in it: hashes of ids, and of those that the filters leave
SHOWN = 5  # the largest regions, which are listed
AT_ONCE = 1_000_000  # hashes that are joined at once
Hashes = NDArray[np.uint64]


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
        counted = each[0].counted
        if not job.file:
            counted = added([one.counted for one in each], *(_distinct(job, name) for name in (ALL, LEFT)))
        missing = sum(one.missing for one in each)
        first = _first_missing(job) if missing else ""
    if not counted.lengths.sum():
        raise no_sessions(source)
    sets: Counter[str] = sum((one.sets for one in each), Counter())
    found = {
        "format": each[0].format,
        "misnamed": misnamed(source, each[0].kind),
        "columns": each[0].columns,
        "missing": {"rows": missing, "first": first},
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
    rule = {"column": job.region_column} if job.region_column else {"gap_km": job.settings.gap_km}
    return {
        "count": len(job.regions), **rule, "largest": [_sizes(region) for region in by_rows[:SHOWN]],
        "smallest": _sizes(by_rows[-1]),
    }  # fmt: skip


def _sizes(region: Region) -> dict[str, Any]:
    return {"name": region.label, "rows": region.rows, "venues": region.venues}


def describe_region(job: Job, number: int) -> Described:
    """Count what is in a region, and leave the hashes of its users."""
    file, settings, whole = read_region(job, job.regions[number]), job.request.settings, len(job.regions) == 1
    counted, left = count(file.table, settings, may_be_empty=not whole)
    sets = count_sets(file.table, settings, whole_file=whole)
    place = job.result(USERS, number)
    if not (job.file or is_done(place)):
        with leaving(place) as folder:
            users = _hashed(file.table.user_ids)
            np.save(folder / ALL, users)
            np.save(folder / LEFT, users[left])
    columns = chosen_columns(file, job.request.mapping)
    return Described(file.format, file.kind, columns, len(file.missing), counted, sets)


def _hashed(ids: Iterable[object]) -> Hashes:
    """Return 8 bytes of each id, which bounds the memory. Two of 100 million users share one with a chance of .03%."""
    digests = (blake2b(str(one).encode("utf-8", "surrogatepass"), digest_size=8).digest() for one in ids)
    return np.frombuffer(b"".join(digests), np.uint64)


def _distinct(job: Job, name: str) -> int:
    """Count the users of all regions, each once."""
    known, waiting = np.empty(0, np.uint64), list[Hashes]()
    for region in job.regions:
        waiting.append(np.load(job.result(USERS, region.number) / name))
        if sum(map(len, waiting)) > max(AT_ONCE, len(known)):
            known, waiting = np.unique(np.concatenate([known, *waiting])), []
    return len(np.unique(np.concatenate([known, *waiting])))


def _first_missing(job: Job) -> str:
    """Return where the first row is that lacks a value."""
    if job.file:
        return job.file.missing_at
    for piece in job.pieces.pieces:
        found = read_survey(job, piece.number)
        if found is not None and not found.venue.all():
            file = read_piece(job.source, piece, job.request.mapping)
            return file.missing_at if file else ""
    return ""
