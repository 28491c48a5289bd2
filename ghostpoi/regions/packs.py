"""Packs: rows that are divided into numbered groups, in a file of Arrow from which each group is read alone.

A piece leaves a group for every region, and a region one for every piece. A file for each of them would cost far more
than its rows: there are as many as pieces times regions.
"""

import pickle
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.formats import Rows
from ghostpoi.formats.rows import Dialect

if TYPE_CHECKING:  # pyarrow is slow to import
    import pyarrow as pa


PACK = "pack.arrow"
NUMBERS, HEAD = b"numbers", b"head"  # in the metadata of its schema
MANY = 1000  # rows of a group that is compressed; with fewer, that takes eight times as long as the rest
AT_ONCE = 100_000  # rows that are decoded at once, which bounds the memory
Head = Any  # what the groups have in common: the dialect of a text, or the schema of a Parquet file
OLDEST = pl.CompatLevel.oldest()  # pyarrow cannot rearrange the newest text type


@dataclass(frozen=True)
class Group:
    """The rows of a group, as they are stored, and their places in the piece."""

    places: Ints  # (N,) ascending
    stored: "pa.RecordBatch"  # without the places
    head: Head


def write_pack(folder: Path, places: Mapping[int, Ints | Longs], rows: Rows | None = None) -> None:
    """Write groups, by ascending number: the places of their rows and, one group after the other, the `rows`."""
    import pyarrow as pa

    head, part = (None, lambda at, size: pa.table({})) if rows is None else _parts(rows)
    own, end = [*places.values()], [0, *accumulate(map(len, places.values()))]
    schema = pa.schema([("place", pa.int32()), *map(_plain, part(0, 0).schema)]).with_metadata(
        {NUMBERS: np.array([*places], np.int64).tobytes(), HEAD: pickle.dumps(head)}
    )
    options = pa.ipc.IpcWriteOptions(compression="lz4" if end[-1] >= MANY * len(own) else None)
    at = 0
    with pa.ipc.new_file(str(folder / PACK), schema, options=options) as writer:
        while at < len(own):
            stop = max(at + 1, bisect_right(end, end[at] + AT_ONCE) - 1)
            columns = [pa.array(np.concatenate(own[at:stop])), *part(end[at], end[stop] - end[at]).columns]
            cast = [column.cast(kind) for column, kind in zip(columns, schema.types, strict=True)]
            [batch] = pa.Table.from_arrays(cast, schema=schema).combine_chunks().to_batches()
            for begin, until in pairwise(end[at : stop + 1]):
                writer.write_batch(batch.slice(begin - end[at], until - begin))
            at = stop


def numbers_of(folder: Path) -> list[int]:
    """Return the numbers of the groups of a pack."""
    return _opened(folder)[1].tolist()


def head_of(folder: Path) -> Head:
    """Return what all groups of a pack have in common."""
    return pickle.loads(_opened(folder)[0].schema.metadata[HEAD])


def read_groups(folder: Path, wanted: Sequence[int]) -> list[Group]:
    """Return the groups of these numbers, ascending, which the pack has."""
    file, numbers = _opened(folder)
    head = pickle.loads(file.schema.metadata[HEAD])
    batches = (file.get_batch(int(at)) for at in np.flatnonzero(np.isin(numbers, wanted)))
    return [Group(batch.column(0).to_numpy(), batch.remove_column(0), head) for batch in batches]


def _opened(folder: Path) -> tuple[Any, Longs]:
    """Open a pack; return also the numbers of its groups."""
    import pyarrow as pa

    file = pa.ipc.open_file(pa.memory_map(str(folder / PACK)))
    return file, np.frombuffer(file.schema.metadata[NUMBERS], np.int64)


def pack_by(folder: Path, number: Ints | Longs, places: Ints | Longs, rows: Rows) -> None:
    """Write rows, which are in the order of their groups, by the `number` of the group of each, (N,)."""
    numbers, begin = np.unique(number, return_index=True)
    each: list[Longs] = np.split(places, begin[1:])
    write_pack(folder, dict(zip(numbers.tolist(), each, strict=True)), rows)


def in_order(groups: Sequence[Group], name: str) -> Rows:
    """Return the rows of groups in the order of their places."""
    return rows_of(groups, name).take(np.argsort(np.concatenate([group.places for group in groups])))


def rows_of(groups: Sequence[Group], name: str) -> Rows:
    """Return the rows of groups, one after the other. `name`: how messages call them."""
    import pyarrow as pa

    from ghostpoi.formats.parquet import ParquetRows
    from ghostpoi.formats.text import TextRows

    parts = list[Rows]()
    for head, some in groupby(groups, key=lambda group: group.head):
        table = pa.Table.from_batches([group.stored for group in some]).replace_schema_metadata()
        if isinstance(head, Dialect):
            parts.append(TextRows(held=pl.DataFrame(pl.from_arrow(table)).to_dict(), dialect=head))
        else:
            columns = [c if c.type == f.type else c.cast(f.type) for f, c in zip(head, table.columns, strict=True)]
            parts.append(ParquetRows.of(pa.Table.from_arrays(columns, schema=head), Path(name)))
    return parts[0] if len(parts) == 1 else parts[0].joined(parts, "other parts")


def _parts(rows: Rows) -> tuple[Head, Callable[[int, int], "pa.Table"]]:
    """Return what groups of rows have in common, and what returns some rows, given the first one and their number."""
    if rows.dialect:
        frame = pl.DataFrame(rows.held)
        return rows.dialect, lambda at, size: frame.slice(at, size).to_arrow(compat_level=OLDEST)
    from ghostpoi.formats.parquet import ParquetRows

    if not isinstance(rows, ParquetRows):
        raise TypeError(f"rows of {type(rows).__name__} cannot be divided")
    return rows.schema, rows.segment


def _plain(field: "pa.Field") -> "pa.Field":
    """Return how a column is stored. Dictionaries and views would bring the values of all groups along."""
    import pyarrow as pa

    from ghostpoi.formats.parquet import VIEWS

    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    return field.with_type(VIEWS.get(kind, kind))
