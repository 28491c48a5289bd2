"""Parquet files: converted for polars, written back with the same types."""

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ghostpoi.data.checkins import IDS, Floats
from ghostpoi.errors import InputError
from ghostpoi.formats import geometry
from ghostpoi.formats.geometry import LAYER
from ghostpoi.formats.rows import Index, Kind, Rows
from ghostpoi.formats.source import POINT, Source
from ghostpoi.formats.times import EARLIEST, LATEST

WIDTH = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "BYTE_ARRAY": 4}  # bytes of a value in memory; 8 for other types
# A thread of pyarrow that lets go of Python's bytes while the interpreter ends would abort the process (exit code 134).
ALONE = {"use_threads": False}
MOST_TEXT = 2**31 - 1  # bytes of a column that pyarrow always keeps in one piece


def read_rows(source: Source, data: bytes) -> "ParquetRows":
    """Read all fields. A large table has dictionaries in place of text.

    Its size is checked first, because a short file can encode any number of equal values.
    """
    with readable(source):
        file = pq.ParquetFile(pa.BufferReader(data))
        schema = schema_of(file, source)
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        width = sum(WIDTH.get(file.schema.column(at).physical_type, 8) for at in range(len(file.schema)))
        least = sum(max(group.num_rows, 0) * width + max(group.total_byte_size, 0) for group in groups)
        source.check_size(least, len(data))
        # A chunk can hold a long text once and repeat it. Its metadata would say whether it does, but on some
        # damaged files pyarrow ends the process when asked for it.
        if sum(max(g.num_rows, 0) * max(g.total_byte_size, 0) for g in groups) > source.size_limit.size:
            texts = {at: field.name for at, field in enumerate(file.schema_arrow) if _is_text(field.type)}
            coded = pq.ParquetFile(pa.BufferReader(data), read_dictionary=[*texts.values()]).read(**ALONE)
            coded.validate(full=True)
            sizes = [_expanded(coded.column(at)) for at in texts]
            source.check_size(sum(sizes), len(data))
            if max(sizes, default=0) <= MOST_TEXT:
                for at, name in texts.items():  # with one dictionary, not one per row group
                    column = coded.column(at).unify_dictionaries().combine_chunks()
                    coded = coded.set_column(at, name, pa.chunked_array([column]))
                return ParquetRows.of(coded, source.path, schema)
        table = file.read(**ALONE)
        table.validate(full=True)
        return ParquetRows.of(table, source.path, schema)


def schema_of(file: Any, source: Source) -> pa.Schema:
    """Return the schema of a Parquet file, with what it says about geometry."""
    kinds = {column.name: column.logical_type.type for column in map(file.schema.column, range(len(file.schema)))}
    native = {name: kind for name, kind in kinds.items() if kind in ("GEOMETRY", "GEOGRAPHY")}
    return geometry.described(file.schema_arrow, str(source), native)


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


def decoded(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return a column with text in place of dictionaries, if its type is text."""
    return column.cast(kind) if _is_text(kind) else column


def is_coded(ids: pa.ChunkedArray) -> bool:
    """Return whether a column numbers texts, of which none is missing or empty."""
    if not pa.types.is_dictionary(ids.type) or not pa.types.is_string(ids.type.value_type) or ids.null_count:
        return False
    return all(pc.min(pc.binary_length(chunk.dictionary)).as_py() != 0 for chunk in ids.chunks)


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def _expanded(column: pa.ChunkedArray) -> int:
    """Return the size of the values of a dictionary-encoded column."""
    sizes = (pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() for chunk in column.chunks)
    return sum(size or 0 for size in sizes)


OURS = (geometry.GEO, LAYER)  # metadata that the rows are read by, which hold no clean data
GROUP = 1 << 20  # rows of a row group, as pyarrow writes them
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
TYPE_KEYS = (b"PARQUET:field_id", b"ARROW:extension:name", b"ARROW:extension:metadata")  # belong to a column's type
VIEWS = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}  # pyarrow cannot rearrange views

REFUSED = (
    pa.types.is_nested, pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view,
    pa.types.is_fixed_size_binary, pa.types.is_duration,
)  # fmt: skip
LISTS = {
    pa.types.is_list: pa.list_, pa.types.is_large_list: pa.large_list, pa.types.is_list_view: pa.list_view,
    pa.types.is_large_list_view: pa.large_list_view,
}  # fmt: skip


GEOPACKAGE = Kind("a GeoPackage", ".gpkg", "a GeoPackage with one layer of points", "application/geopackage+sqlite3")


def read_groups(source: Source, groups: Sequence[int]) -> "ParquetRows":
    """Read all fields of some row groups of a Parquet file."""
    with readable(source):
        file = pq.ParquetFile(source.path)
        table = file.read_row_groups(list(groups))
        table.validate(full=True)
        return ParquetRows.of(table, source.path, schema_of(file, source))


@dataclass(frozen=True, kw_only=True)
class ParquetRows(Rows):
    """The columns of a Parquet table. Where the schema has text, they may be dictionaries, which need less memory."""

    schema: pa.Schema
    path: Path
    joins = True

    @property
    def kind(self) -> Kind:  # type: ignore[override]
        return GEOPACKAGE if LAYER in (self.schema.metadata or {}) else Kind("Parquet", ".parquet")

    @property
    def point(self) -> str:  # type: ignore[override]
        return next(iter(geometry.columns_of(self.schema)), "")

    @staticmethod
    def of(table: pa.Table, path: Path, schema: pa.Schema | None = None) -> "ParquetRows":
        """Return the rows of a table. `schema` is that of the file if dictionaries stand for its texts."""
        schema = schema or table.schema
        plain = (isinstance(kind, pa.BaseExtensionType) for kind in schema.types)  # else types of geometry are bytes
        columns = (one if kept else _storage(one) for one, kept in zip(table.columns, plain, strict=True))
        return ParquetRows(held=dict(zip(schema.names, columns, strict=True)), schema=schema, path=path)

    @property
    def columns(self) -> list[str]:
        return list(self.schema.names)

    def get_column(self, name: str) -> pl.Series:
        try:
            return pl.Series(name, _plain(decoded(self.held[name], self.schema.field(name).type)))
        except (pa.ArrowException, pl.exceptions.PolarsError):
            raise self.refusal(name) from None

    def values(self, source: Source, field: str, name: str) -> pl.Series:
        if field in IDS and not source.elsewhere and is_coded(self.held[name]):
            return self.coded(name)  # ids of a table of venues are looked up as text
        column = _storage(decoded(self.held[name], self.schema.field(name).type))
        kind = _value_type(column.type)
        if field == POINT and (pa.types.is_struct(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)):
            points = self.get_column(name)
            if points.dtype == pl.Binary or geometry.is_pair(points.dtype):
                return points
        if any(is_kind(kind) for is_kind in REFUSED) or (pa.types.is_time(kind) and field != "time"):
            raise self.refusal(name)
        series = self.get_column(name)
        if field == "time" and pa.types.is_temporal(kind) and series.dtype.is_integer():
            per_day = 1 if pa.types.is_date(kind) else 86_400 * PER_SECOND[kind.unit]
            row = source.before + int((~_in_range(series, per_day)).arg_true()[0])
            raise InputError(
                f"{self.path}, row {row + 1}: the time is outside the years 1 to 9999; correct it or remove the row"
            )
        is_instant = field == "time" and pa.types.is_timestamp(kind) and kind.tz is not None
        return series.dt.replace_time_zone("UTC") if is_instant else series

    def coded(self, name: str) -> pl.Series:
        return pl.Series(name, self.held[name]) if is_coded(self.held[name]) else self.get_column(name)

    def taken(self, name: str, index: Index) -> pa.ChunkedArray:
        column = self.held[name]
        try:
            return column.cast(VIEWS.get(column.type, column.type)).take(_index(index)).cast(column.type)
        except pa.ArrowNotImplementedError:
            raise self.refusal(name) from None

    def largest_number(self, column: str) -> int | None:
        kind = _value_type(self.schema.field(column).type)
        if pa.types.is_integer(kind):
            return int(np.iinfo(kind.to_pandas_dtype()).max)
        if pa.types.is_floating(kind) and self.get_column(column).cast(pl.String).str.contains(r"^-?\d+\.0$").all():
            return 1 << (np.finfo(kind.to_pandas_dtype()).nmant + 1)
        if kind in (pa.string(), pa.large_string(), pa.string_view()):
            return None
        raise self.refusal(column)

    def with_ids(self, column: str, ids: NDArray[np.object_]) -> Self:
        at = self.schema.get_field_index(column)
        field = self.schema.field(at)
        values = pa.array(ids.tolist(), pa.large_string())
        if pa.types.is_dictionary(kind := field.type):
            new = values.cast(kind.value_type).dictionary_encode()
            room = len(new.dictionary) <= np.iinfo(kind.index_type.to_pandas_dtype()).max
            index = kind.index_type if room else pa.int32()
            field = field.with_type(pa.dictionary(index, kind.value_type, kind.ordered))
            values = pa.DictionaryArray.from_arrays(new.indices.cast(index), new.dictionary, ordered=kind.ordered)
        else:
            values = values.cast(kind)
        held = {**self.held, column: pa.chunked_array([values])}
        return replace(self, held=held, schema=self.schema.set(at, field))

    def with_positions(self, point: str, lat: Floats, lon: Floats) -> Self:
        box = pa.StructArray.from_arrays([pa.array(side) for side in (lon, lat, lon, lat)], list(geometry.BOX))
        columns = dict.fromkeys(geometry.boxes(self.schema), box)
        kind = _storage(self.held[point]).type
        if pa.types.is_struct(kind):
            columns[point] = pa.StructArray.from_arrays([pa.array(lon), pa.array(lat)], ["x", "y"])
        elif _value_type(kind) not in (pa.string(), pa.large_string()):
            columns[point] = pa.array(geometry.wkb_points(lon, lat), pa.binary())
        else:
            return super().with_positions(point, lat, lon)
        new = {name: pa.chunked_array([column]).cast(self.held[name].type) for name, column in columns.items()}
        return replace(self, held={**self.held, **new})

    def drop(self, columns: list[str]) -> Self:
        kept = [field for field in self.schema if field.name not in columns]
        return replace(super().drop(columns), schema=pa.schema(kept, self.schema.metadata))

    def joined(self, parts: Sequence[Rows], other: str) -> "ParquetRows":
        tables = [part.segment().select(self.columns) for part in parts if isinstance(part, ParquetRows)]
        try:
            table = pa.concat_tables([one.cast(self.schema) for one in tables]).unify_dictionaries()
        except (pa.ArrowException, ValueError):
            raise InputError(
                f"{self.path}: its column types differ from those of {other}; store it with the same types"
            ) from None
        return replace(self, held=dict(zip(self.columns, table.columns, strict=True)))

    def grouped(self) -> pa.Table:
        """Return the table with dictionaries that list its values alone."""
        return _group(self.segment(), self.schema)

    def to_frame(self, mapping: dict[str, str]) -> Any:
        if self.frame is None:
            return pl.from_arrow(self.segment())
        from ghostpoi.formats.frames import framed_like  # slow to import

        return framed_like(self.frame, self.grouped().replace_schema_metadata())

    def write(self, out: BinaryIO) -> None:
        tables = (self.segment(at, GROUP) for at in range(0, len(self), GROUP))  # one at a time needs less memory
        write_tables(tables, self.schema, out)

    def without_metadata(self) -> Self:
        notes = {key: value for key, value in (self.schema.metadata or {}).items() if key in OURS}
        return replace(self, schema=pa.schema(map(_without_notes, self.schema), notes or None))

    def refusal(self, name: str) -> InputError:
        """Return the error for a column whose type cannot be handled."""
        kind = str(self.schema.field(name).type)
        kind = kind if len(kind) <= 60 else f"{kind[:60]}..."
        return InputError(
            f"{self.path}: the column {name!r} has the type {kind}; store it as text, numbers or timestamps"
        )

    def segment(self, at: int = 0, rows: int | None = None) -> pa.Table:
        """Return some rows as the schema has them; None: all that follow."""
        parts = [decoded(self.held[field.name].slice(at, rows), field.type) for field in self.schema]
        return pa.Table.from_arrays(parts, schema=self.schema)


def write_tables(tables: Iterable[pa.Table], schema: pa.Schema, out: BinaryIO, size: int = 0) -> None:
    """Write tables one after the other, in groups of `size` rows. How rows are divided into tables changes no byte."""
    if LAYER in (schema.metadata or {}):
        table = pa.concat_tables([schema.empty_table(), *tables])
        points = next(iter(geometry.columns_of(schema)))
        out.write(geometry.written({schema.metadata[LAYER].decode(): (table, points)}))
        return
    size, extent = size or GROUP, geometry.Extent(schema)
    notes = {key: value for key, value in (schema.metadata or {}).items() if key != geometry.GEO}
    own = pa.schema([_native(field, extent.columns) for field in schema], notes or None)

    def write(table: pa.Table) -> None:
        for name in extent.columns:
            extent.add(name, pl.Series(_plain(table.column(name))))
        writer.write_table(_group(table, own))

    with pq.ParquetWriter(out, own, store_schema=not extent.columns) as writer:
        waiting = schema.empty_table()
        for table in tables:
            waiting = pa.concat_tables([waiting, table])
            while len(waiting) >= size:
                write(waiting.slice(0, size))
                waiting = waiting.slice(size)
        if len(waiting):
            write(waiting)
        if extent.columns:  # pyarrow would store the schema before the rows, on which these metadata depend, are known
            full = own.with_metadata({**notes, **extent.metadata} or None)
            stored = {"ARROW:schema": base64.b64encode(full.serialize())}
            writer.add_key_value_metadata({**(full.metadata or {}), **stored})


class NativeWkb(pa.ExtensionType):  # type: ignore[misc]
    """WKB that pyarrow writes with Parquet's own type of geometry. It reads it as bytes."""

    def __init__(self, storage: pa.DataType, about: bytes) -> None:
        self.about = about
        super().__init__(storage, "geoarrow.wkb")

    def __arrow_ext_serialize__(self) -> bytes:
        return self.about

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, about: bytes) -> "NativeWkb":
        return cls(storage, about)


def _native(field: pa.Field, columns: dict[str, Any]) -> pa.Field:
    """Return a field with the type as which it is written."""
    about = columns.get(field.name, {})
    if geometry.NATIVE not in about or isinstance(field.type, pa.BaseExtensionType):
        return field
    said = {key: about[key] for key in ("crs", "edges") if about.get(key)}
    others = {k: v for k, v in (field.metadata or {}).items() if k not in (geometry.NAME, geometry.ABOUT)}
    return pa.field(field.name, NativeWkb(field.type, json.dumps(said).encode()), field.nullable, others or None)


def _group(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows of a group as they are written, with dictionaries of their own."""
    columns = []
    for field, column in zip(schema, table.columns, strict=True):
        if pa.types.is_dictionary(kind := column.type):  # the old one lists the clean values in order of appearance
            new = column.cast(kind.value_type).combine_chunks().dictionary_encode()
            indices = new.indices.cast(kind.index_type)
            column = pa.DictionaryArray.from_arrays(indices, new.dictionary, ordered=kind.ordered)
        else:
            column = column.combine_chunks()
        if isinstance(field.type, NativeWkb):
            column = pa.ExtensionArray.from_storage(field.type, column)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=schema)


def _index(rows: NDArray[np.int64]) -> pa.Array:
    """Return row numbers for pyarrow without a copy, and without pandas, which `pyarrow.array` would load."""
    rows = np.ascontiguousarray(rows, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(rows), [None, pa.py_buffer(rows)])


def _value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of a dictionary, or the type itself."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _plain(column: pa.ChunkedArray) -> Any:
    """Convert what polars lacks or cannot print: zones, extension types, wide decimals, times out of range."""
    column = _storage(column)
    kind = column.type
    if pa.types.is_dictionary(kind) and not pa.types.is_string(kind.value_type):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_duration(kind) or (pa.types.is_decimal(kind) and kind.bit_width > 128):
        return column.cast(pa.int64() if pa.types.is_duration(kind) else pa.string())
    if pa.types.is_timestamp(kind):
        numbers = column.cast(pa.int64())
        if not _in_range(pl.Series("", numbers), 86_400 * PER_SECOND[kind.unit]).all():
            return numbers
        return column.cast(pa.timestamp(kind.unit))
    if pa.types.is_date32(kind):
        numbers = column.cast(pa.int32())
        return column if _in_range(pl.Series("", numbers), 1).all() else numbers
    return column


def _storage(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values below an extension type."""
    while isinstance(column.type, pa.BaseExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    return column


def _in_range(numbers: pl.Series, per_day: int) -> pl.Series:
    """Return which times, in units of which `per_day` make a day, lie in the years 1 to 9999 or are null."""
    day = numbers.cast(pl.Int64) // per_day
    return day.is_between(EARLIEST // 86_400, LATEST // 86_400).fill_null(True)


def _without_notes(field: pa.Field) -> pa.Field:
    """Drop metadata that does not describe the type of a column: it may hold paths or clean values."""
    kept = {key: value for key, value in (field.metadata or {}).items() if key in TYPE_KEYS}
    return pa.field(field.name, _bare(field.type), field.nullable, kept or None)


def _bare(kind: pa.DataType) -> pa.DataType:
    """Drop the metadata of the fields inside a nested type."""
    if pa.types.is_struct(kind):
        return pa.struct([_without_notes(kind.field(i)) for i in range(kind.num_fields)])
    for is_kind, make in LISTS.items():
        if is_kind(kind):
            return make(_without_notes(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_without_notes(kind.value_field), kind.list_size)
    if pa.types.is_map(kind):
        return pa.map_(_without_notes(kind.key_field), _without_notes(kind.item_field), kind.keys_sorted)
    return kind
