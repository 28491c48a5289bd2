"""A sample of regions, in an order that nobody chose: by a hash of their keys."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from ghostpoi.world.job import Region

ENOUGH_ROWS = 300_000  # of all regions of a sample together


def by_hash(regions: Iterable[Region]) -> list[Region]:
    """Return regions in the order of the hashes of their keys."""
    return sorted(regions, key=lambda region: hashlib.sha256(region.key.encode()).digest())


def sample(regions: Iterable[Region], count: int | None = None) -> list[Region]:
    """Return the first `count` regions in the order of hashes; without a count, until they have enough rows."""
    order, chosen = by_hash(regions), list[Region]()
    if count is not None:
        return order[:count]
    for region in order:
        if sum(one.rows for one in chosen) < ENOUGH_ROWS:
            chosen.append(region)
    return chosen


def joint(regions: Iterable[Region]) -> list[Region]:
    """Return regions, in the order of hashes, that do not have more than enough rows together: those that still fit."""
    chosen, rows = list[Region](), 0
    for region in by_hash(regions):
        if rows + region.rows <= ENOUGH_ROWS:
            chosen.append(region)
            rows += region.rows
    return chosen


def sampled(every: Sequence[Region], chosen: Sequence[Region], used: Collection[int]) -> dict[str, Any]:
    """Say which share of a dataset a sample is, and how many of its regions have too few sessions to be `used`."""
    few = [region for region in chosen if region.number not in used]
    total, some = (sum(region.rows for region in regions) for regions in (every, chosen))
    return {
        "count": len(every), "sampled": len(chosen), "share_of_rows": round(some / total, 3),
        "too_few_sessions": len(few), "too_few_share_of_rows": round(sum(r.rows for r in few) / max(1, some), 3),
    }  # fmt: skip
