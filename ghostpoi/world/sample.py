"""A sample of regions, in an order that nobody chose: by a hash of their keys."""

import hashlib
from collections.abc import Iterable

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
