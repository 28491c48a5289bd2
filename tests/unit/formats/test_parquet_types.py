"""Parquet columns of every type: the command line reads them, or says in one sentence which column it cannot use."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_city import SEED, called, sentence

from ghostpoi import formats

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


@pytest.mark.parametrize("case", GOOD)
def test_an_unusual_type_is_released(case: str, tmp_path: Path) -> None:
    name, make = GOOD[case]
    file = written(tmp_path / "x.parquet", {name: make(columns().get(name, VENUE))})
    table = formats.read(file).table
    assert table.time.tolist() == columns()["time"]
    assert (table.lat.tolist(), table.lon.tolist()) == (columns()["lat"], columns()["lon"])
    done = called("protect", file, "-o", tmp_path / "r", "--method", "random", "--seed", SEED, *LOOSE)
    assert (done.returncode, done.stderr) == (0, "")
    before, after = pq.read_table(file), pq.read_table(tmp_path / "r" / "checkins.parquet")
    assert after.schema.equals(before.schema)
    assert after.column("user").equals(before.column("user"))
    assert after.column("time").equals(before.column("time"))
    assert not after.column("poi").equals(before.column("poi"))
    assert called("verify", tmp_path / "r", "--against", file).returncode == 0


BAD: dict[str, tuple[pa.Array, str]] = {  # by the column's type in the file; a column and its values
    "duration[ms]": (pa.array(range(ROWS), pa.duration("ms")), "time"),
    "extension<arrow.uuid>": (extension(pa.uuid())([bytes([v]) * 16 for v in VENUE]), "poi"),
    "binary_view": (pa.array([b"x"] * ROWS, pa.binary_view()), "poi"),
    "list_view<element: int8>": (pa.array([[1]] * ROWS, pa.list_view(pa.int8())), "name"),
    "list<element: string_view>": (pa.array([["x"]] * ROWS, pa.list_(pa.string_view())), "name"),
    "list<element: timestamp[us, tz=+05:30]>": (
        pa.array([[1]] * ROWS, pa.list_(pa.timestamp("us", "+05:30"))),
        "name",
    ),
}


def refused(file: Path) -> str:
    """What `protect` says; it leaves nothing behind."""
    done = called("protect", file, "-o", file.with_name("r"), "--method", "random", "--seed", SEED, *LOOSE)
    assert [p.name for p in file.parent.iterdir()] == [file.name]
    return sentence(done)


@pytest.mark.parametrize("kind", BAD)
def test_a_type_that_cannot_be_used_is_named(kind: str, tmp_path: Path) -> None:
    values, name = BAD[kind]
    file = written(tmp_path / "x.parquet", {name: values})
    assert refused(file) == (
        f"{file}: the column {name!r} has the type {kind}; store it as text, numbers or timestamps"
    )


@pytest.mark.parametrize(
    ("row", "kind", "value"),
    [
        (2, pa.timestamp("ms"), 2**62),
        (3, pa.timestamp("us", "Asia/Tokyo"), -(2**62)),
        (1, pa.date32(), 2**31 - 1),
    ],
)
def test_a_time_out_of_range_names_its_row(row: int, kind: pa.DataType, value: int, tmp_path: Path) -> None:
    values = list(range(ROWS))
    values[row - 1] = value
    file = written(tmp_path / "x.parquet", {"time": pa.array(values, kind)})
    says = "the time is outside the years 1 to 9999; correct it or remove the row"
    assert refused(file) == f"{file}, row {row}: {says}"


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    pq.write_table(pa.table(columns() | {"name": [f"#{v}?" for v in VENUE]}), file, compression="none")
    file.write_bytes(file.read_bytes().replace(b"#3?", b"#\xff?"))
    assert sentence(called("inspect", file, *LOOSE)).startswith(f"{file} is a damaged Parquet file (")
