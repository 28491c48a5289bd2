"""The venue fields of a series: one genuine row of each venue, from which releases copy name, address and so on.

A release may show a venue that its own file never visits, so the fields must come from elsewhere. And each venue shows
the same variant of its fields in every release, so a row that is released again looks the same.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from ghostpoi.data import formats
from ghostpoi.data.checkins import Bools, Checkins, Floats, Longs
from ghostpoi.data.formats import Reading, Rows
from ghostpoi.data.formats.rows import TextRows
from ghostpoi.errors import InputError
from ghostpoi.files import replacing


def sample_rows(table: Checkins, ids: Sequence[str], uniform: Floats) -> Longs:
    """Return a row of each of these venues, drawn among those with the venue's usual category. `uniform`: (N,)."""
    number = {name: v for v, name in enumerate(table.venue_ids)}
    usual = table.category == table.venues.category[table.venue]
    order = np.lexsort((uniform, ~usual, table.venue))
    first = order[np.searchsorted(table.venue[order], np.arange(len(table.venue_ids)))[1:]]
    return first[np.array([number[name] for name in ids], np.int64) - 1]


def write_rows(path: Path, rows: Rows) -> None:
    """Store rows in the format of their file."""
    with replacing(path, mode=0o600) as out:
        rows.write(out)


def read_rows(paths: Sequence[Path], like: Rows, mapping: dict[str, str], format: str, reading: Reading) -> Rows:
    """Read stored rows of several files, to be joined to `like`."""
    parts = [formats.read(path, mapping, format, reading).all_rows for path in paths]
    return joined([like.take(np.empty(0, np.int64)), *parts], like)


def joined(parts: Sequence[Rows], like: Rows) -> Rows:
    """Return the rows of all parts as rows of the same kind as `like`."""
    if isinstance(like, TextRows):
        texts = [part for part in parts if isinstance(part, TextRows)]
        frame = pl.concat([part.frame.select(like.columns) for part in texts])
        returns = None
        if like.returns is not None:
            missing = [pl.repeat(False, part.frame.height, eager=True) for part in texts]
            returns = pl.concat([m if p.returns is None else p.returns for p, m in zip(texts, missing, strict=True)])
        return TextRows(frame, like.dialect, returns)
    import pyarrow as pa  # slow to import

    from ghostpoi.data.formats.parquet import ParquetRows

    if isinstance(like, ParquetRows):
        tables = [part.table.select(like.columns) for part in parts if isinstance(part, ParquetRows)]
        try:
            table = pa.concat_tables([one.cast(like.table.schema) for one in tables]).unify_dictionaries()
        except (pa.ArrowException, ValueError):
            raise InputError(
                f"{like.path}: the types of its columns differ from those of the series; store the same types"
            ) from None
        return replace(like, table=table)
    raise InputError("--series: releases of this format cannot form a series; use CSV, TSV, TSMC2014 or Parquet")


def every_row(rows: Rows) -> Longs:
    """Return the numbers of all rows, (N,)."""
    return np.arange(len(rows.get_column(rows.columns[0])))


def with_fields(rows: Rows, columns: list[str], stored: Rows, place: Longs, drawn: Bools) -> Rows:
    """Return the rows with these columns taken from stored rows: place (N,) for the rows that `drawn` (N,) marks."""
    count = len(drawn)
    both = joined([rows, stored], rows)
    donor = np.arange(count + len(every_row(stored)))
    donor[:count][drawn] = count + place[drawn]
    return both.copy_fields(columns, donor).take(np.arange(count))
