"""Ranges of ids: how tasks join what pieces know of the same venue or user.

Every piece leaves its ids in their order. A task takes one range of ids from all pieces. So no process holds all ids,
and the results of all ranges, one after the other, are in the order of the ids.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import polars as pl

AT_ONCE = 10_000_000  # rows of the users of a range: bounds the memory of its task
VENUES_AT_ONCE = 2_000_000  # the same for venues, which count in every piece that has them: 250 bytes each time
STEP = 10_000  # one id in so many is in the sample that decides where ranges end,
LEAST = 16  # and so many ids of every piece: its first id alone would tell nothing about the others


def leave_ids(path: Path, table: pl.DataFrame, size: pl.Series) -> None:
    """Write a table of ids, in their order, and a sample of it. `size`: what each id adds to its range."""
    table.write_parquet(path, row_group_size=STEP)
    end, total = size.cum_sum().to_numpy(), int(size.sum())
    count = max(LEAST, -(-total // STEP)) if total else 0
    chosen = np.searchsorted(end, (np.arange(count) + 0.5) * total / max(1, count), side="right")
    table[chosen].select("id", size=pl.lit(total / max(1, count))).write_parquet(_sample(path))


def bounds_of(paths: Iterable[Path], at_once: int) -> list[str]:
    """Return where each range but the first begins, so that all have about the same size, at most `at_once`."""
    sample = pl.concat([pl.read_parquet(_sample(path)) for path in paths]).sort("id")
    end, total = sample["size"].cum_sum().to_numpy(), float(sample["size"].sum())
    count = int(np.ceil(total / at_once))
    at = np.searchsorted(end, total / max(1, count) * np.arange(1, count))
    return sample["id"].gather(at).unique().sort().to_list()


def read_range(path: Path, bounds: Sequence[str], number: int) -> pl.DataFrame:
    """Read what a table tells of the ids of a range."""
    table = pl.scan_parquet(path)
    if number > 0:
        table = table.filter(pl.col("id") >= bounds[number - 1])
    if number < len(bounds):
        table = table.filter(pl.col("id") < bounds[number])
    return table.collect()


def _sample(path: Path) -> Path:
    return path.with_suffix(".sample")
