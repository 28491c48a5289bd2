"""Text columns of large Parquet files are held as dictionaries; what is read and written stays the same."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi import formats
from ghostpoi.data.checkins import Checkins
from ghostpoi.errors import InputError
from ghostpoi.formats import parquet
from ghostpoi.formats.parquet import ParquetRows, read_rows
from ghostpoi.formats.rows import difference
from ghostpoi.formats.source import Source, limit_of

KINDS = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
SMALL = "100KB"  # a file whose rows times bytes exceed this is read with dictionaries
ROWS = 400
SOME = np.array([3, 3, 1, 399, 0])


def packed(table: pa.Table, rows: int = 150, plain: bool = False) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=rows, use_dictionary=not plain)
    return out.getvalue()


@given(
    st.lists(st.one_of(st.none(), st.text(max_size=4)), min_size=1, max_size=9), st.sampled_from(KINDS), st.booleans()
)
def test_dictionaries_stand_for_the_table_of_the_file(
    values: list[str | None], kind: pa.DataType, plain: bool
) -> None:  # fmt: skip
    text = pa.array([values[i % len(values)] for i in range(ROWS)], pa.string()).cast(kind)
    number = pa.array(np.arange(ROWS))
    nested = pa.array([values[:2]] * ROWS, pa.list_(pa.string()))
    table = pa.table({"a": text, "n": number, "l": nested, "d": number.dictionary_encode()}, metadata={"note": "x"})
    data = packed(table, plain=plain)
    rows = read_rows(Source(Path("file"), limit=limit_of(SMALL)), data)
    whole = pq.ParquetFile(pa.BufferReader(data)).read()
    assert pa.types.is_dictionary(rows.held["a"].type)
    assert rows.segment().equals(whole, check_metadata=True)
    assert rows.segment().column("a").num_chunks == whole.column("a").num_chunks == 1
    for one, two in (
        (rows, ParquetRows.of(whole, Path("file"))),
        (rows.take(SOME), rows.of(whole.take(SOME), rows.path)),
    ):
        assert written(one) == written(two)
        if "binary" not in str(kind):
            assert one.get_column("a").equals(two.get_column("a"))


def written(rows: ParquetRows) -> bytes:
    out = io.BytesIO()
    rows.write(out)
    return out.getvalue()


def test_a_large_table_is_written_as_pyarrow_writes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "GROUP", 150)
    table = checkins(["a", "b", "c"])
    assert written(ParquetRows.of(table, Path("file"))) == packed(table)


def checkins(users: list[str | None]) -> pa.Table:
    rows = range(ROWS)
    return pa.table({
        "user": [users[i % len(users)] for i in rows], "venue_id": [f"v{i % 7}" for i in rows],
        "category": pa.array([f"c{i % 3}" for i in rows], pa.large_string()), "lat": [1.0 + i % 7 for i in rows],
        "lon": [2.0] * ROWS, "time": list(rows),
    })  # fmt: skip


def read(table: pa.Table, path: Path, limit: str | None) -> Checkins:
    path.write_bytes(packed(table))
    return formats.read(Source(path, limit=limit_of(limit))).table


@pytest.mark.parametrize("users", [["b", "a", "c"], ["a" * 30, "ä"], ["1", "01", " 1"]])
def test_ids_are_numbered_the_same(users: list[str | None], tmp_path: Path) -> None:
    plain, coded = (read(checkins(users), tmp_path / "a.parquet", limit) for limit in (None, SMALL))
    for field in ("user", "venue", "category", "time"):
        assert getattr(plain, field).tolist() == getattr(coded, field).tolist()
    for field in ("user_ids", "venue_ids", "category_ids"):
        assert getattr(plain, field).tolist() == getattr(coded, field).tolist()
    assert coded.user_ids.tolist() == users


@pytest.mark.parametrize("missing", ["", None])
def test_a_missing_id_is_found_in_dictionaries(missing: str | None, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"row 3: the user is missing"):
        read(checkins(["a", "b", missing]), tmp_path / "a.parquet", SMALL)


@given(st.lists(st.text(max_size=2), min_size=1, max_size=5), st.integers(0, ROWS - 1), st.text(max_size=2))
def test_dictionaries_are_compared_as_their_texts_are(texts: list[str], row: int, other: str) -> None:
    values = [texts[i % len(texts)] for i in range(ROWS)]
    changed = [*values[:row], other, *values[row + 1 :]]
    one, two = (rows_of(pa.table({"a": pa.array(column)})) for column in (values, changed))
    plain = [ParquetRows.of(rows.segment(), rows.path) for rows in (one, two)]
    told = None if values == changed else f"row {row + 1} has a different a"
    assert difference(one, two) == difference(*plain) == told
    assert difference(one, rows_of(pa.table({"a": values[:-1]}))) == "there are 399 rows, not 400"
    assert difference(one, one.drop(["a"])) == "the columns are , not a"


def rows_of(table: pa.Table) -> ParquetRows:
    data = packed(table)
    rows = read_rows(Source(Path("file"), limit=limit_of("8KB")), data)
    assert pa.types.is_dictionary(rows.held["a"].type)
    return rows
