"""Parquet files with columns of every type."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

LOOSE = [
    word
    for name in ("min_poi_checkins", "min_user_checkins", "min_session_length")
    for word in ("--set", f"filters.{name}=1")
]


VENUES, ROWS, START = 6, 24, 1_333_476_009
VENUE = [(i * 5) % VENUES for i in range(ROWS)]
Make = Callable[[list[Any]], pa.Array]


def decimals(kind: pa.DataType) -> Make:
    return lambda values: pa.array([Decimal(str(v)) for v in values], kind)


def extension(kind: pa.DataType) -> Make:
    return lambda values: pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))


def times(unit: str, zone: str | None) -> Make:
    factor = {"ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    return lambda values: pa.array([v * factor for v in values], pa.timestamp(unit, zone))


def columns() -> dict[str, list[Any]]:
    return {
        "user": [i % 2 for i in range(ROWS)],
        "poi": VENUE,
        "category": [0] * ROWS,
        "lat": [40.5 + v / 1024 for v in VENUE],
        "lon": [-74 + v / 1024 for v in VENUE],
        "time": [START + 3600 * i for i in range(ROWS)],
    }


def written(path: Path, more: dict[str, pa.Array]) -> Path:
    pq.write_table(pa.table(columns() | more), path)
    return path


GOOD: dict[str, tuple[str, Make]] = {
    "a zone without a name": ("time", times("us", "+05:30")),
    "an unknown zone": ("time", times("ns", "Mars/Base")),
    "dictionary-encoded degrees": ("lat", lambda v: pa.array([str(x) for x in v]).dictionary_encode()),
    "degrees of an extension type": ("lon", extension(pa.opaque(pa.float64(), "a", "b"))),
    "degrees as wide decimals": ("lat", decimals(pa.decimal256(60, 20))),
    "venues as wide decimals": ("poi", decimals(pa.decimal256(60, 2))),
    "venues as views": ("poi", lambda v: pa.array([f"a venue with a long id {x}" for x in v], pa.string_view())),
    "venues of an extension type": ("poi", lambda v: extension(pa.json_())([str(x) for x in v])),
    "users as zoned times": ("user", times("ms", "+05:30")),
    "venue names as wide decimals": ("name", decimals(pa.decimal256(60, 2))),
    "venue names as views": (
        "name",
        lambda v: pa.array([f"a place with a long name {x}" for x in v], pa.string_view()),
    ),
    "venue names as binary views": ("name", lambda v: pa.array([bytes([x]) * 30 for x in v], pa.binary_view())),
    "venue names as durations": ("name", lambda v: pa.array(v, pa.duration("s"))),
    "venue names as times out of range": ("name", lambda v: pa.array([2**62 - x for x in v], pa.timestamp("ms"))),
    "venue names as dates out of range": ("name", lambda v: pa.array([2**31 - 1 - x for x in v], pa.date32())),
    "venue names of an extension type": ("name", extension(pa.bool8())),
}
