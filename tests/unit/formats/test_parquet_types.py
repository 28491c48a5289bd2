"""Parquet columns of every type: the command line reads them, or says in one sentence which column it cannot use."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from odd_parquet import GOOD, LOOSE, ROWS, VENUE, columns, extension, written
from small_city import SEED, called, sentence

from ghostpoi import formats


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
