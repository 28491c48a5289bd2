"""The metadata of a Parquet file stays out of its release, except what the types need."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_city import RICH, SEED, SETS, called, rich_parquet

NOTE = "top venue 4ab966c3"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The rich table with notes on the table, on a column and inside a nested column."""
    table = pq.read_table(rich_parquet())
    inner = pa.field("made", pa.int64(), metadata={"note": NOTE})
    table = table.append_column("extra", pa.array([{"made": 1}] * table.num_rows, pa.struct([inner])))
    mood = table.schema.get_field_index("mood")
    table = table.cast(table.schema.set(mood, table.schema.field(mood).with_metadata({"note": NOTE})))
    path = tmp_path / "noted.parquet"
    pq.write_table(table.replace_schema_metadata({"origin": f"/home/ann/{NOTE}", "pandas": "{}"}), path)
    return path


def made(file: Path, *more: str) -> bytes:
    folder = file.with_name(f"r{len(more)}")
    words = ("protect", file, "-o", folder, "--method", "random", "--seed", SEED, *SETS, *RICH, "--keep", "mood", *more)
    done = called(*words)
    assert done.returncode == 0, done.stderr
    return (folder / "checkins.parquet").read_bytes()


def test_metadata_is_dropped(file: Path) -> None:
    data = made(file)
    assert NOTE.encode() not in data
    schema = pq.read_schema(pa.BufferReader(data))
    assert schema.metadata is None
    assert schema.field("mood").metadata is None
    assert schema.equals(pq.read_schema(file))


def test_metadata_is_kept_on_request(file: Path) -> None:
    schema = pq.read_schema(pa.BufferReader(made(file, "--keep-metadata")))
    assert schema.equals(pq.read_schema(file), check_metadata=True)
    assert schema.metadata == {b"origin": f"/home/ann/{NOTE}".encode(), b"pandas": b"{}"}
    assert schema.field("mood").metadata == {b"note": NOTE.encode()}
