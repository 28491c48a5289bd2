"""Describe a dataset: the summary of `inspect` and, if it is divided, how the venues part into regions.

It is computed from counts that add up, so the regions of a dataset are counted one by one.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import polars as pl

from ghostpoi.data import sessions
from ghostpoi.data.candidates import candidate_sets
from ghostpoi.data.checkins import Checkins, Ints, Longs, duplicates
from ghostpoi.data.geo import over_limit
from ghostpoi.data.places import of_table, with_use
from ghostpoi.data.sessions import FilterStep
from ghostpoi.draw.whole_table import count_sets, described_sets
from ghostpoi.formats import Source
from ghostpoi.formats.content import misnamed
from ghostpoi.formats.fields import chosen_columns
from ghostpoi.progress import Report
from ghostpoi.regions.dataset import dataset
from ghostpoi.regions.divide import keys, read_region, surveys_of
from ghostpoi.regions.engine import Scale
from ghostpoi.regions.job import Job, is_done, leaving, no_sessions
from ghostpoi.release.plan import added
from ghostpoi.release.private_folder import RowsRequest
from ghostpoi.settings import Settings

PARTS = ("train", "val", "test")


@dataclass(frozen=True)
class Counted:
    """The counts of a table or of one region of a dataset."""

    n: dict[str, Any]  # a tree of numbers, which add up
    time: tuple[int, int]  # of the first and the last check-in
    categories: frozenset[str]
    category_field: str
    steps: tuple[FilterStep, ...]


def count(table: Checkins, settings: Settings, may_be_empty: bool = False) -> tuple[Counted, Ints]:
    """Count what a table contains; also return the users that pass the filters. In a region, there may be none."""
    data = sessions.build(table, settings.filters, may_be_empty)
    vocabulary, poi, speed = data.vocabulary, data.all.poi, settings.speed
    places, rule = of_table(table), settings.candidates
    places = with_use(places, table) if rule.category == "learned" else places
    sets = candidate_sets(places.take(vocabulary.venue), rule)
    steps = over_limit(vocabulary.lat[poi], vocabulary.lon[poi], data.all.time, speed.limit_kmh, speed.min_gap_s)
    fast = steps[np.diff(data.all.session_of()) == 0]  # inside sessions
    venues, venue = table.venues, table.venue
    elsewhere = (table.lat != venues.lat[venue]) | (table.lon != venues.lon[venue])
    left = np.unique(table.user[data.kept])
    n: dict[str, Any] = {
        "users": len(table.user_ids), "users_left": len(left), "lengths": dict(Counter(data.all.length.tolist())),
        "steps": {one.step: {"rows_before": one.rows_before, "rows_after": one.rows_after} for one in data.steps},
        "checkins": len(table), "pois": len(table.venue_ids) - 1, "duplicates": duplicates(table),
        "several_positions": len(np.unique(venue[elsewhere])),
        "checkins_left": int(data.kept.sum()), "pois_left": len(vocabulary) - 1,
        "candidates": int(sets.size[1:].sum()), "empty": int((sets.size[1:] == 0).sum()),
        "widened": int((sets.radius_km[1:] > settings.candidates.radius_km).sum()),
        "covered": int((sets.size[data.train.poi] > 0).sum()), "covered_anywhere": int((sets.size[poi] > 0).sum()),
        "moves": len(fast), "fast_moves": int(fast.sum()),
        "sessions": {name: len(getattr(data, name)) for name in PARTS},
        "positions": {name: getattr(data, name).positions for name in PARTS},
    }  # fmt: skip
    categories, time = frozenset(map(str, table.category_ids)), (int(table.time.min()), int(table.time.max()))
    return Counted(n, time, categories, table.category_field, data.steps), left


def joined(each: Sequence[Counted]) -> Counted:
    """Add up the counts of regions. Users count in each of theirs."""
    first, last = zip(*(one.time for one in each), strict=True)
    n, time = reduce(added, (one.n for one in each)), (min(first), max(last))
    return replace(each[0], n=n, time=time, categories=frozenset().union(*(one.categories for one in each)))


def summary(c: Counted, settings: Settings) -> dict[str, Any]:
    """Return the summary of what was counted."""
    n, first, last = c.n, *(f"{np.datetime64(t, 's')}Z" for t in c.time)
    positions, lengths = n["positions"], np.zeros(max(c.n["lengths"], default=0) + 1, np.int64)
    lengths[[*n["lengths"]]] = [*n["lengths"].values()]
    venues = max(1, n["pois_left"])
    # A short file may have no training session, because a user's only session goes to the test part.
    covered = ("covered", positions["train"]) if positions["train"] else ("covered_anywhere", sum(positions.values()))
    return {
        "checkins": n["checkins"], "users": n["users"], "pois": n["pois"],
        "categories": len(c.categories) if c.category_field else 0, "duplicates": n["duplicates"],
        "time": {"first": first, "last": last}, "pois_with_several_positions": n["several_positions"],
        "filters": [asdict(step) | n["steps"][step.step] for step in c.steps],
        "after_filters": {"checkins": n["checkins_left"], "users": n["users_left"], "pois": n["pois_left"]},
        "sessions": n["sessions"],
        "positions": positions,
        "session_length": {
            "mean": sum(positions.values()) / int(lengths.sum()), "median": _quantile(lengths, 0.5),
            "p95": _quantile(lengths, 0.95), "max": len(lengths) - 1,
        },
        "candidates": {
            "mean_size": n["candidates"] / venues, "coverage": n[covered[0]] / covered[1],
            "widened": n["widened"] / venues, "empty": n["empty"] / venues,
            "min_candidates": settings.candidates.min_candidates, "category_field": c.category_field,
        },
        "speed": {"limit_kmh": settings.speed.limit_kmh, "share_over": n["fast_moves"] / max(1, n["moves"])},
    }  # fmt: skip


def _quantile(lengths: Longs, share: float) -> float:
    """Return an interpolated quantile from counts of lengths, because there may be billions of sessions."""
    place, until = share * (int(lengths.sum()) - 1), np.cumsum(lengths)
    low, high = (int(np.searchsorted(until, at, side="right")) for at in (int(place), int(np.ceil(place))))
    return low + (high - low) * (place - int(place))


USERS = "users"  # the stage that leaves the users of each region
KEYS = "keys.parquet"  # in it: hashes of ids, and whether the filters leave them
SHOWN = 5  # the largest regions, which are listed


def inspect(source: Source, request: RowsRequest, scale: Scale | None, report: Report) -> dict[str, Any]:
    """Return the summary of a dataset. Of a dataset with one region, it is that of the whole table."""
    with dataset(source, request, scale, None, report) as (job, stages):
        each, sets, abouts = zip(*stages.regions("describing", describe_region, job).values(), strict=True)
        if job.file:
            counted, first = each[0], job.file.missing_at
        else:
            users = pl.scan_parquet([one / KEYS for one in job.results(USERS)])
            distinct = users.select(every=pl.col("key").n_unique(), left=pl.col("key").filter("left").n_unique())
            every, left = distinct.collect(engine="streaming").row(0)  # a user may be in several
            counted = joined(each)
            counted.n.update(users=every, users_left=left)
            first = next((one.missing for one in surveys_of(job).values() if one.missing), "")
    if not counted.n["lengths"]:
        raise no_sessions(source)
    found = abouts[0] | {
        "misnamed": misnamed(source, abouts[0]["misnamed"]),
        "missing": {"rows": sum(about["missing"] for about in abouts), "first": first},
        **summary(counted, request.settings),
        "method": {"name": request.method, **described_sets(sum(sets, Counter()), request.settings)},
    }  # fmt: skip
    if scale is None:
        return found
    without = sum(not one.n["lengths"] for one in each)
    by_rows = sorted(job.regions, key=lambda region: (-region.rows, region.number))
    sizes = [{"name": region.label, "rows": region.rows, "venues": region.venues} for region in by_rows]
    regions = {"count": len(sizes), **job.rule, "largest": sizes[:SHOWN], "smallest": sizes[-1]}
    return found | {"regions": regions | {"without_sessions": without}}


def describe_region(job: Job, number: int) -> tuple[Counted, Counter[str], dict[str, Any]]:
    """Count what is in a region, and leave the hashes of its users; return also how its rows were read."""
    file, settings, whole = read_region(job, job.regions[number]), job.request.settings, len(job.regions) == 1
    counted, left = count(file.table, settings, may_be_empty=not whole)
    sets = count_sets(file.table, settings, whole_file=whole)
    place = job.result(USERS, number)
    if not (job.file or is_done(place)):
        with leaving(place) as folder:
            passes = np.isin(np.arange(len(file.table.user_ids)), left)
            pl.DataFrame({"key": keys(file.table.user_ids), "left": passes}).write_parquet(folder / KEYS)
    columns, missing = chosen_columns(file, job.request.mapping), len(file.missing)
    return counted, sets, {"format": file.format, "misnamed": file.kind, "columns": columns, "missing": missing}
