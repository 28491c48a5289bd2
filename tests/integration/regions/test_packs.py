"""Packs: what pieces leave for regions and regions for pieces, in as few files as possible."""

import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from odd_parquet import GOOD, LOOSE, VENUE, columns, written
from small_city import called
from small_world import SEED, parts, rows

from ghostpoi import formats
from ghostpoi.formats import FORMATS, Rows, Source
from ghostpoi.formats.parquet import ParquetRows
from ghostpoi.regions import pieces as module
from ghostpoi.regions import protect
from ghostpoi.regions.pieces import Piece, Pieces, numbers_of, read_groups, rows_of, write_pack

LOCAL = ("--engine", "local")
GROUPS = {-1: np.array([0, 2]), 3: np.array([1, 4]), 1_000_000: np.array([5])}
ODD = {
    "text": pa.array(["a", "b", None, "d", "e"]),
    "coded": pa.array(["a", "b", None, "b", "a"]).dictionary_encode(),
    "small codes": pa.array(["a", "b", None, "b", "a"]).cast(pa.dictionary(pa.int8(), pa.large_string())),
    "views": pa.array(["a long text that is not held inline", *"bcde"], pa.string_view()),
    "lists": pa.array([[1], [], None, [2, 3], [4]]),
    "structs": pa.array([{"x": n} for n in range(5)]),
    "zoned": pa.array(range(5), pa.timestamp("us", "+05:30")),
}


@pytest.mark.parametrize("at_once", [1, 100])
@pytest.mark.parametrize("name", ODD)
def test_groups_of_parquet_are_read_back(
    name: str, at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    table = pa.table({name: ODD[name]}).replace_schema_metadata({"note": "kept"})
    write_pack(tmp_path, GROUPS, ParquetRows.of(table, Path("x")))
    assert numbers_of(tmp_path) == [*GROUPS]
    groups = read_groups(tmp_path, [*GROUPS])
    assert [group.places.tolist() for group in groups] == [places.tolist() for places in GROUPS.values()]
    found = rows_of(groups, "x").segment()
    assert found.schema.equals(table.schema, check_metadata=True)
    assert found.to_pylist() == table.to_pylist()
    assert rows_of(groups[1:2], "x").segment().to_pylist() == table.to_pylist()[2:4]
    assert read_groups(tmp_path, [4]) == []


@pytest.mark.parametrize("kind", [pa.dictionary(pa.int32(), pa.string()), pa.string_view()])
def test_a_group_does_not_bring_the_values_of_others(kind: pa.DataType, tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([f"a text of some length {n}" for n in range(1000)]).cast(kind)})
    write_pack(tmp_path, {n: np.array([n]) for n in range(1000)}, ParquetRows.of(table, Path("x")))
    assert (tmp_path / module.PACK).stat().st_size < 500_000


@pytest.mark.parametrize("ends", [b"", b"\n", b"\r\n"])
def test_groups_of_text_are_read_back(ends: bytes, tmp_path: Path) -> None:
    line = b"%d,v,bar,40.0,-74.0,2026-01-01T00:00:00Z"
    eol = ends or b"\n"
    data = eol.join([b"user,venue_id,category,latitude,longitude,utc_time", *(line % n for n in range(5))]) + ends
    (tmp_path / "x.csv").write_bytes(data)
    write_pack(tmp_path, GROUPS, formats.read(tmp_path / "x.csv").all_rows)
    groups = read_groups(tmp_path, [*GROUPS])
    rows_of(groups, "x").with_line_end().write(out := io.BytesIO())
    assert out.getvalue() == data.removesuffix(ends) + eol
    assert rows_of(groups[1:2], "x").get_column("user").to_list() == ["2", "3"]


@pytest.mark.parametrize("case", GOOD)
def test_a_column_of_any_type_is_protected_as_in_one_file(case: str, tmp_path: Path) -> None:
    name, make = GOOD[case]
    file = written(tmp_path / "x.parquet", {name: make(columns().get(name, VENUE))})
    for folder, words in (("whole", ()), ("regions", LOCAL)):
        given = ("--method", "random", *SEED[:2], *LOOSE, *words)
        assert called("protect", file, "-o", tmp_path / folder, *given).returncode == 0
    one, two = ((tmp_path / folder / "checkins.parquet").read_bytes() for folder in ("whole", "regions"))
    assert one == two


def test_files_and_readings_do_not_grow_with_parts_times_regions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_time = parts(tmp_path / "data", 30, rows().sort("utc_time", "user"))
    readings, table = list[object](), FORMATS["table"]

    def counted(source: Source, data: bytes) -> Rows:
        readings.append(source)
        return table.decode(source, data)

    def stops(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setitem(FORMATS.builtin, "table", replace(table, decode=counted))
    monkeypatch.setattr(protect, "assemble", stops)
    assert called("protect", by_time, "-o", tmp_path / "release", *SEED, *LOCAL).returncode == 130
    assert len(readings) < 2 * 30 + 10  # a survey and a division of each part
    (left,) = (tmp_path / "release.private" / "unfinished").glob("world-*")
    for stage, count in (("fragments", 30), ("released", 3)):
        assert len([path for path in (left / stage).rglob("*") if path.is_file()]) <= 8 * count


def test_the_pieces_of_a_part_are_found_without_a_look_at_all() -> None:
    class Ordered(tuple):
        def __iter__(self) -> Iterator[object]:
            raise AssertionError("all pieces are looked at, for each part")

    every = Ordered(Piece(number, number // 3, Path(f"{number}.csv")) for number in range(3000))
    pieces = Pieces(Path("data"), True, tuple(map(str, range(1001))), every)
    assert [piece.number for piece in pieces.of_part(500)] == [1500, 1501, 1502]
    assert pieces.of_part(1000) == []
