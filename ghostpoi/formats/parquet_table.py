"""Read the table of a Parquet file within the size limit."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ghostpoi.errors import InputError
from ghostpoi.formats.source import Source

WIDTH = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "BYTE_ARRAY": 4}  # bytes of a value in memory; 8 for other types
MOST_TEXT = 2**31 - 1  # bytes of a column that pyarrow always keeps in one piece


def read_table(source: Source, data: bytes) -> tuple[pa.Table, pa.Schema]:
    """Read the whole table, and return the schema of the file: a large table has dictionaries in place of text.

    Its size is checked first, because a short file can encode any number of equal values.
    """
    with readable(source):
        file = pq.ParquetFile(pa.BufferReader(data))
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        source.check_size(sum(_least_size(group, file.schema) for group in groups), len(data))
        # A chunk can hold a long text once and repeat it. Its metadata would say whether it does, but on some
        # damaged files pyarrow ends the process when asked for it.
        if sum(max(g.num_rows, 0) * max(g.total_byte_size, 0) for g in groups) > source.size_limit.size:
            names = [f.name for f in file.schema_arrow if _is_text(f.type)]
            coded = pq.ParquetFile(pa.BufferReader(data), read_dictionary=names).read()
            coded.validate(full=True)
            sizes = [_expanded(coded.column(at)) for at, f in enumerate(file.schema_arrow) if _is_text(f.type)]
            source.check_size(sum(sizes), len(data))
            if max(sizes, default=0) <= MOST_TEXT:
                return _in_one_piece(coded, file.schema_arrow), file.schema_arrow
        table = file.read()
        table.validate(full=True)
        return table, table.schema


@contextmanager
def readable(source: Source) -> Iterator[None]:
    """Refuse a damaged file, or one that is too large for the memory."""
    try:
        yield
    except MemoryError:
        raise InputError(f"{source} does not fit into the memory; read it on a larger machine") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as e:
        why = (str(e).splitlines() or ["it cannot be read"])[0]
        raise InputError(f"{source} is a damaged Parquet file ({why}); write it again") from None


def _in_one_piece(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the table with one dictionary, not one per row group, in each text column."""
    for at, field in enumerate(schema):
        if _is_text(field.type):
            column = table.column(at).unify_dictionaries().combine_chunks()
            table = table.set_column(at, field.name, pa.chunked_array([column]))
    return table


def decoded(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return a column with text in place of dictionaries, if its type is text."""
    return column.cast(kind) if _is_text(kind) else column


def is_coded(ids: pa.ChunkedArray) -> bool:
    """Tell whether a column numbers texts, of which none is missing or empty."""
    if not pa.types.is_dictionary(ids.type) or not pa.types.is_string(ids.type.value_type) or ids.null_count:
        return False
    return all(pc.min(pc.binary_length(chunk.dictionary)).as_py() != 0 for chunk in ids.chunks)


def _least_size(group: Any, schema: Any) -> int:
    """Return the least number of bytes that the values of a row group need in memory."""
    width = sum(WIDTH.get(schema.column(i).physical_type, 8) for i in range(len(schema)))
    return max(int(group.num_rows), 0) * width + max(int(group.total_byte_size), 0)


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def _expanded(column: pa.ChunkedArray) -> int:
    """Return the size of the values of a dictionary-encoded column."""
    sizes = (pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() for chunk in column.chunks)
    return sum(size or 0 for size in sizes)
