"""Mutated Parquet files: types, encodings, compression, metadata, damage."""

import io
import json
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fuzz.city import NAMES, make_rows
from fuzz.text_files import mutated

Make = Callable[[list[Any]], pa.Array]


def _extension(kind: pa.DataType, storage: pa.DataType) -> Make:
    return lambda values: pa.ExtensionArray.from_storage(kind, pa.array(values, storage))


IDS: tuple[Make, ...] = (
    lambda v: pa.array([f"i{x}" for x in v]),
    lambda v: pa.array([f"i{x}" for x in v]),
    lambda v: pa.array(v, pa.int8()),
    lambda v: pa.array(v, pa.uint64()),
    lambda v: pa.array([float(x) for x in v]),
    lambda v: pa.array([f"i{x}" for x in v]).dictionary_encode(),
    lambda v: pa.array([f"i{x}" for x in v], pa.large_string()),
    lambda v: pa.array([f"i{x}" * 9 for x in v], pa.string_view()),
    lambda v: pa.array([Decimal(x) for x in v], pa.decimal256(60, 2)),
    lambda v: pa.array([Decimal(x) for x in v], pa.decimal128(9, 4)),
    lambda v: pa.array([bytes([x]) * 3 for x in v]),
    lambda v: pa.array([bytes([x]) * 3 for x in v], pa.binary(3)),
    lambda v: pa.array([[x] for x in v]),
    lambda v: pa.array([{"a": x} for x in v]),
    lambda v: pa.array([x % 2 == 0 for x in v]),
    lambda v: pa.array(v, pa.duration("ms")),
    lambda v: pa.array(v, pa.date32()),
    lambda v: pa.array([x * 1000 for x in v], pa.timestamp("ns", "+05:30")),
    lambda v: pa.ExtensionArray.from_storage(pa.json_(), pa.array([f"{x}" for x in v])),
    lambda v: pa.ExtensionArray.from_storage(pa.uuid(), pa.array([bytes([x]) * 16 for x in v], pa.binary(16))),
    lambda v: pa.array([f"i{x}" if x else None for x in v]),
    lambda v: pa.nulls(len(v)),
)
DEGREES: tuple[Make, ...] = (
    pa.array,
    pa.array,
    lambda v: pa.array(v, pa.float32()),
    lambda v: pa.array(v).cast(pa.float16()),
    lambda v: pa.array(v).dictionary_encode(),
    lambda v: pa.array([str(x) for x in v]),
    lambda v: pa.array([str(x) for x in v], pa.string_view()),
    lambda v: pa.array([str(x) for x in v]).dictionary_encode(),
    lambda v: pa.array([Decimal(str(x)) for x in v], pa.decimal128(12, 6)),
    lambda v: pa.array([Decimal(str(x)) for x in v], pa.decimal256(70, 6)),
    lambda v: pa.array([int(x) for x in v]),
    _extension(pa.opaque(pa.float64(), "a", "b"), pa.float64()),
    lambda v: pa.array([*v[:-1], float("nan")]),
    lambda v: pa.array([*v[:-1], None]),
    lambda v: pa.array([[x] for x in v], pa.list_(pa.float64(), 1)),
)


def _stamp(unit: str, zone: str | None) -> Make:
    factor = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    return lambda v: pa.array([x * factor for x in v], pa.timestamp(unit, zone))


TIMES: tuple[Make, ...] = (
    *(_stamp(unit, zone) for unit in ("ms", "us", "ns") for zone in (None, "UTC", "+05:30", "Asia/Tokyo", "Mars/Base")),
    pa.array,
    lambda v: pa.array([str(x) for x in v]),
    lambda v: pa.array([*v[:-1], 2**62], pa.timestamp("ms")),
    lambda v: pa.array([*v[:-1], -(2**62)], pa.timestamp("us", "Asia/Tokyo")),
    lambda v: pa.array([x % 2**31 for x in v], pa.date32()),
    lambda v: pa.array([x // 86400 for x in v], pa.date32()),
    lambda v: pa.array(v, pa.duration("s")),
    lambda v: pa.array([x % 86400 for x in v], pa.time32("s")),
    lambda v: pa.array(v).cast(pa.float64()),
    lambda v: pa.array([Decimal(x) for x in v], pa.decimal256(60, 3)),
)
EXTRA: tuple[Make, ...] = (
    *IDS,
    *DEGREES,
    lambda v: pa.array([NAMES[x % len(NAMES)] for x in v]),
    lambda v: pa.array([[("k", x)] for x in v], pa.map_(pa.string(), pa.int64())),
    lambda v: pa.array([[x] for x in v], pa.list_view(pa.int64())),
    lambda v: pa.array([[f"{x}"] for x in v], pa.list_(pa.string_view())),
    lambda v: pa.array([[x] for x in v], pa.list_(pa.timestamp("us", "+05:30"))),
    lambda v: pa.array([2**62 - x for x in v], pa.timestamp("ms")),
    lambda v: pa.array([x % 86400 for x in v], pa.time64("us")),
    lambda v: pa.array([b"x" * 40 for _ in v], pa.binary_view()),
    _extension(pa.bool8(), pa.int8()),
)


def _bomb() -> bytes:
    """A short file of many equal rows."""
    out = io.BytesIO()
    names = ("user", "poi", "category", "lat", "lon", "time")
    zeros = pa.table({name: pa.array([0] * 500_000, pa.int64()) for name in names})
    with pq.ParquetWriter(out, zeros.schema, compression="zstd") as writer:
        for _ in range(6):
            writer.write_table(zeros)
    return out.getvalue()


BOMB = _bomb()


def parquet_file(draw: Random) -> tuple[str, bytes]:
    """Return the name and the content of a Parquet file."""
    if draw.random() < 0.01:
        return "x.parquet", BOMB
    rows = make_rows(draw)
    odd = draw.choice((0.0, 0.1, 0.4))  # share of columns with any type of their list

    def column(kinds: tuple[Make, ...], values: list[Any]) -> pa.Array:
        return (draw.choice(kinds) if draw.random() < odd else kinds[0])(values)

    category = sorted({r.category for r in rows})
    columns = {
        "user": column(IDS, [r.user for r in rows]),
        "poi": column(IDS, [r.venue for r in rows]),
        "category": column(IDS, [category.index(r.category) for r in rows]),
        "lat": column(DEGREES, [r.lat for r in rows]),
        "lon": column(DEGREES, [r.lon for r in rows]),
        "time": column(TIMES, [r.time for r in rows]),
    }
    if draw.random() < 0.6:
        columns[draw.choice(("name", "\x1b]0;x", "ü"))] = draw.choice(EXTRA)([r.venue for r in rows])
    if draw.random() < 0.4:
        columns["level"] = draw.choice(EXTRA)([r.user for r in rows])
    if draw.random() < 0.3:
        columns["kept"] = draw.choice(EXTRA)([draw.randrange(5) for _ in rows])  # named by --keep
    table = pa.table(columns)
    if draw.random() < 0.3:
        table = table.replace_schema_metadata({"origin": "/home/me/clean.csv", "pandas": json.dumps({"a": 1})})
    data = _written(draw, table)
    for _ in range(draw.choice((0, 0, 0, 1, 1, 3))):
        data = mutated(draw, data)
    return draw.choice(("x.parquet", "x.parquet", "x.csv", "x")), data


def _written(draw: Random, table: pa.Table) -> bytes:
    out = io.BytesIO()
    options: dict[str, Any] = {
        "compression": draw.choice(("snappy", "gzip", "zstd", "none", "brotli", "lz4")),
        "data_page_version": draw.choice(("1.0", "2.0")),
        "version": draw.choice(("1.0", "2.4", "2.6")),
        "use_dictionary": draw.random() < 0.5,
        "row_group_size": draw.choice((1, 7, 1000)),
        "store_schema": draw.random() < 0.7,
        "write_statistics": draw.random() < 0.5,
        "write_page_checksum": draw.random() < 0.2,
    }
    pq.write_table(table, out, **options)
    return out.getvalue()
