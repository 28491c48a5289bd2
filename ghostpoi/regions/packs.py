"""Packs: rows that are divided into numbered groups, in a few files from which each group is read alone.

A piece leaves a group for every region, and a region one for every piece. A file for each of them would cost far more
than its rows: there are as many as pieces times regions.
"""

import pickle
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, groupby, pairwise, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.formats import Rows
from ghostpoi.formats.rows import Dialect

if TYPE_CHECKING:
    import pyarrow as pa


INDEX, GROUPS = "index", "groups"
MANY = 1000  # rows of a group that is compressed; with fewer, that takes eight times as long as the rest
AT_ONCE = 100_000  # rows that are decoded at once, which bounds the memory
PLACE = np.dtype(np.int32)
Head = Any  # what the groups have in common: the dialect of a text, or the schema of a Parquet file
OLDEST = pl.CompatLevel.oldest()  # pyarrow cannot rearrange the newest text type


@dataclass(frozen=True)
class Group:
    """The rows of a group, as they are stored, and their places in the piece."""

    places: Ints  # (N,) ascending
    data: bytes
    head: Head


def write_pack(folder: Path, places: Mapping[int, Ints | Longs], rows: Rows | None = None) -> None:
    """Write groups, by ascending number: the places of their rows and, one group after the other, the `rows`."""
    sizes = [len(own) for own in places.values()]
    head, groups = (None, repeat(b"")) if rows is None else _encoded(rows, [0, *accumulate(sizes)])
    begin = []
    with (folder / GROUPS).open("wb") as out:
        for own, data in zip(places.values(), groups, strict=False):
            begin.append(out.tell())
            out.write(np.asarray(own, PLACE).tobytes() + data)
        begin.append(out.tell())
    # (G + 1, 3) the number of each group, how many rows it has, and where it begins; at last, where all end
    index = np.column_stack([[*places, -1], [*sizes, 0], begin]).astype(np.int64)
    size = len(index).to_bytes(8, sys.byteorder)
    (folder / INDEX).write_bytes(size + index.tobytes() + pickle.dumps(head))


def numbers_of(folder: Path) -> list[int]:
    """Return the numbers of the groups of a pack."""
    numbers: list[int] = _index(folder)[0][:-1, 0].tolist()
    return numbers


def head_of(folder: Path) -> Head:
    """Return what all groups of a pack have in common."""
    return _index(folder)[1]


def read_group(folder: Path, number: int) -> Group | None:
    """Return a group; None if there is none of this number."""
    index, head = _index(folder)
    at = int(np.searchsorted(index[:-1, 0], number))
    if at == len(index) - 1 or index[at, 0] != number:
        return None
    with (folder / GROUPS).open("rb") as file:
        file.seek(index[at, 2])
        data = file.read(index[at + 1, 2] - index[at, 2])
    size = int(index[at, 1])
    return Group(np.frombuffer(data, PLACE, size), data[size * PLACE.itemsize :], head)


def rows_of(groups: Sequence[Group], name: str) -> Rows:
    """Return the rows of groups, one after the other. `name`: how messages call them."""
    import pyarrow as pa  # slow to import

    parts = []
    for head, some in groupby(groups, key=lambda group: group.head):
        table = pa.concat_tables(pa.ipc.open_stream(group.data).read_all() for group in some)
        parts.append(_text_rows(head, table) if isinstance(head, Dialect) else _parquet_rows(head, table, Path(name)))
    return parts[0] if len(parts) == 1 else parts[0].joined(parts, "other parts")


def _text_rows(dialect: Dialect, table: "pa.Table") -> Rows:
    from ghostpoi.formats.text import TextRows

    return TextRows(held=pl.DataFrame(pl.from_arrow(table)).to_dict(), dialect=dialect)


def _parquet_rows(schema: "pa.Schema", table: "pa.Table", path: Path) -> Rows:
    import pyarrow as pa

    from ghostpoi.formats.parquet import ParquetRows

    columns = [c if c.type == f.type else c.cast(f.type) for f, c in zip(schema, table.columns, strict=True)]
    return ParquetRows.of(pa.Table.from_arrays(columns, schema=schema), path)


def _index(folder: Path) -> tuple[Longs, Head]:
    data = (folder / INDEX).read_bytes()
    size = int.from_bytes(data[:8], sys.byteorder)
    return np.frombuffer(data, np.int64, 3 * size, 8).reshape(size, 3), _head(data[8 + 24 * size :])


@lru_cache(maxsize=8)
def _head(data: bytes) -> Head:
    return pickle.loads(data)


def _encoded(rows: Rows, end: list[int]) -> tuple[Head, Iterator[bytes]]:
    """Return what groups of rows have in common, and the bytes of each."""
    if rows.dialect:
        frame = pl.DataFrame(rows.held)
        return rows.dialect, _streams(lambda at, size: frame.slice(at, size).to_arrow(compat_level=OLDEST), end)
    from ghostpoi.formats.parquet import ParquetRows

    if not isinstance(rows, ParquetRows):
        raise TypeError(f"rows of {type(rows).__name__} cannot be divided")
    return rows.schema, _streams(rows.segment, end)


def _streams(part: "Callable[[int, int], pa.Table]", end: list[int]) -> Iterator[bytes]:
    """Yield the Arrow stream of each group. Parquet would take twenty times as long, for few rows.

    `part` returns some rows, given the first one and their number.
    """
    import pyarrow as pa

    from ghostpoi.formats.parquet import VIEWS

    at = 0
    while at < len(end) - 1:
        stop = max(at + 1, bisect_right(end, end[at] + AT_ONCE) - 1)
        rows = part(end[at], end[stop] - end[at])
        # Dictionaries and views would bring the values of all groups along.
        types = [
            f.type.value_type if pa.types.is_dictionary(f.type) else VIEWS.get(f.type, f.type) for f in rows.schema
        ]
        stored = [c if c.type == kind else c.cast(kind) for kind, c in zip(types, rows.columns, strict=True)]
        schema = pa.schema([field.with_type(kind) for field, kind in zip(rows.schema, types, strict=True)])
        table = pa.Table.from_arrays(stored, schema=schema)
        for begin, until in pairwise(end[at : stop + 1]):
            options = pa.ipc.IpcWriteOptions(compression="lz4" if until - begin >= MANY else None)
            out = pa.BufferOutputStream()
            with pa.ipc.new_stream(out, schema, options=options) as writer:
                writer.write_table(table.slice(begin - end[at], until - begin))
            yield bytes(out.getvalue())
        at = stop
