"""Data frames, read and changed like Parquet files; the caller gets back a frame of the same kind.

narwhals says which kinds there are: polars, pandas and its subclasses, pyarrow, DuckDB relations, Dask and others. A
pandas index becomes columns, because it may reveal the venue like any column, and an index again.
"""

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import narwhals as nw
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from ghostpoi.errors import InputError
from ghostpoi.formats.source import Source

KINDS = "polars, pandas, pyarrow, DuckDB, Dask or another kind that narwhals reads"
NAMES = "the column names of the table must be distinct strings; rename them"
T = TypeVar("T")


def framed_like(frame: Any, table: pa.Table) -> Any:
    """Return rows as a frame of the kind of another one."""
    known = nw.from_native(frame)
    backend, is_lazy = known.implementation, isinstance(known, nw.LazyFrame)
    if backend.is_pandas():
        return _as_pandas(table, frame)
    eager = nw.from_arrow(table, backend="pyarrow" if is_lazy and not backend.is_polars() else backend)
    if backend.is_polars():
        kinds = frame.collect_schema()
        eager = nw.from_native(pl.DataFrame([_as_polars(one, kinds[one.name]) for one in eager.to_native()]))
    return (eager.lazy(backend) if is_lazy else eager).to_native()


def _as_polars(column: pl.Series, kind: pl.DataType) -> pl.Series:
    """Return a column with the type that it had; an Enum lists its own values alone, as the old list is clean."""
    if kind != pl.Enum:
        return column.cast(kind)
    texts = column.cast(pl.String)
    return texts.cast(pl.Enum(texts.drop_nulls().unique().sort()))


def _as_pandas(table: pa.Table, frame: Any) -> Any:
    """Return rows as a pandas frame, or of its subclass, with the types and the index of another one."""
    like = _without_index(frame).iloc[:0]
    types = pa.Schema.from_pandas(like.to_wkb() if hasattr(like, "to_wkb") else like)
    found = table.replace_schema_metadata(types.metadata).to_pandas()
    for name in found.columns:
        kind = like.dtypes[name]
        if hasattr(kind, "categories"):  # in the order that they had
            here = set(found[name].dropna())
            order = [one for one in kind.categories if one in here] if kind.ordered else []
            every = [*order, *sorted(here - set(order))]
            found[name] = found[name].astype("category").cat.set_categories(every, ordered=kind.ordered)
        elif hasattr(like[name], "from_wkb"):  # of geopandas
            found[name] = type(like[name]).from_wkb(found[name], crs=like[name].crs)
        else:
            found[name] = found[name].astype(kind)
    levels = [name for name in like.columns if name not in frame.columns]
    kept = [number for number, name in enumerate(levels) if name in found.columns]
    if kept:
        found = found.set_index([levels[number] for number in kept])
        found.index.names = [frame.index.names[number] for number in kept]
    return frame._constructor(found)


def _without_index(frame: Any) -> Any:
    """Return a pandas frame whose index is columns, unless it only counts rows; without notes, which may name files."""
    found = frame.reset_index(drop=type(frame.index).__name__ == "RangeIndex")
    found.attrs = {}
    return found


def known(frame: Any) -> Any:
    """Return a frame as narwhals sees it; None if it is none."""
    try:
        found = nw.from_native(frame, pass_through=True)
    except nw.exceptions.DuplicateError:
        raise InputError(NAMES) from None
    return found if isinstance(found, nw.DataFrame | nw.LazyFrame) else None


def _arrow(frame: Any) -> pa.Table:
    """Return the rows of a frame, in memory."""
    found = known(frame)
    if found is None:
        raise InputError(f"give a path, or a data frame ({KINDS}), not {type(frame).__name__}")
    if found.implementation.is_dask():  # whose index counts the rows of each part
        own = found.collect("pandas").to_native()
        return _arrow(own if own.index.name else own.reset_index(drop=True))
    if found.implementation.is_pandas():
        if not (frame.columns.is_unique and all(isinstance(name, str) for name in frame.columns)):
            raise InputError(NAMES)
        plain = _without_index(frame)
        if hasattr(plain, "to_wkb"):  # of geopandas
            return pa.table(plain.to_arrow(index=False))
        found = nw.from_native(plain)
    return (found.collect("pyarrow") if isinstance(found, nw.LazyFrame) else found).to_arrow()


def frame_source(frame: Any, like: Source) -> Source:
    """Return how to read a data frame, which is held as Parquet, in the way that `like` states."""
    out = io.BytesIO()
    pq.write_table(_read(_arrow, frame), out, compression="none", use_dictionary=False)
    return replace(like, content=out.getvalue(), suffix=".parquet", frame=frame)


def as_csv(frame: Any) -> bytes:
    """Return a data frame as a table of text."""
    text: str = _read(lambda one: pl.DataFrame(pl.from_arrow(_arrow(one))).write_csv(), frame)
    return text.encode()


def _read(read: Callable[[Any], T], frame: Any) -> T:
    try:
        return read(frame)
    except InputError:
        raise
    except Exception as e:  # libraries raise errors of many kinds, whose messages quote values
        raise InputError(
            f"the table cannot be read ({type(e).__name__}); its columns may hold only text, numbers and times"
        ) from None
