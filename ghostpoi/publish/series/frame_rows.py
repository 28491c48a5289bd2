"""Data frames in a series: it stores their rows as Parquet, and the caller gets back a frame of the same kind."""

from typing import Any

import numpy as np
import polars as pl

from ghostpoi.formats import Rows


def in_file(rows: Rows) -> Rows:
    """Return rows as a file holds them."""
    from ghostpoi.formats.frames import FrameRows  # slow to import

    return rows.rows if isinstance(rows, FrameRows) else rows


def as_given(rows: Rows, columns: list[str], changed: Rows) -> Rows:
    """Return changed rows of a file as rows of the same kind as `rows`, from which they differ in these columns."""
    from ghostpoi.formats.frames import FrameRows  # slow to import

    return FrameRows(changed, _with_columns(rows.frame, columns, changed)) if isinstance(rows, FrameRows) else changed


def _with_columns(frame: Any, columns: list[str], rows: Any) -> Any:
    """Return the caller's frame with columns of Parquet rows, in its own types."""
    every = np.arange(rows.table.num_rows)
    frame = frame.copy_fields(columns, every)  # refuses a pandas index, which cannot change
    table, values = frame.frame, pl.from_arrow(rows.table.select(columns))
    assert isinstance(values, pl.DataFrame)
    if isinstance(table, pl.DataFrame):
        kinds: dict[Any, Any] = {name: kind for name, kind in table.schema.items() if name in columns}
        kinds |= {name: pl.Enum(_listed(values[name])) for name, kind in kinds.items() if kind == pl.Enum}
        return type(frame)(table.with_columns(values.cast(kinds)))
    new = {}
    for name in columns:
        old, kind = table[name], table[name].dtype
        if hasattr(kind, "categories"):
            known = set(kind.categories)
            kind = old.cat.add_categories([one for one in _listed(values[name]) if one not in known]).dtype
        new[name] = type(old)(values[name].to_list(), index=table.index, dtype=kind)
    return type(frame)(table.assign(**new)).copy_fields(columns, every)  # lists only the categories in use


def _listed(values: pl.Series) -> pl.Series:
    texts = isinstance(values.dtype, pl.Categorical | pl.Enum)
    return (values.cast(pl.String) if texts else values).drop_nulls().unique().sort()
