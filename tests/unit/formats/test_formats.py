"""Every file format: reading, and writing back byte for byte."""

import gzip
import io
import lzma
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from conftest import HEADER, same_checkins

from ghostpoi import formats
from ghostpoi.data.checkins import duplicates
from ghostpoi.errors import InputError
from ghostpoi.files import extension
from ghostpoi.formats.content import load

Save = Callable[[str, bytes | str], Path]

TSMC = (
    "470\t49bbd6c0\t4bf58dd8\tArts & Crafts Store\t40.719810\t-74.002581\t-240\tTue Apr 03 18:00:09 +0000 2012\n"
    '979\t4a43c0ae\t4bf58dd9\tCaf\xe9 "Bridge"\t40.606800\t-74.044170\t-240\tTue Apr 03 18:00:25 +0000 2012\n'
    "69\t4c5cc7b4\t4bf58dd8\tHome (private)\t40.716162\t-73.883070\t-240\tTue Apr 03 18:02:24 +0000 2012"
).encode("latin-1")
CSV = (
    f"note,{HEADER},name\n"
    "a,007,v1,c1,40.5,-74,1333476009,first\n"
    'b,7,v2,c1,40.6,-74.1,1333476010,"second, with ""quotes"""\n'
    "c,007,v1,c1,40.50,-74.0,1333476009,first\n"
)
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: zstandard.ZstdCompressor().compress(data),
}


def written(path: Path, rows: formats.Rows | None = None) -> bytes:
    out = io.BytesIO()
    (rows or formats.read(path).rows).write(out)
    return out.getvalue()


def parquet(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def test_tsmc(save: Save) -> None:
    source = formats.read(save("x.txt", TSMC))
    table = source.table
    assert source.format == "tsmc2014"
    assert table.user_ids.tolist() == ["470", "979", "69"]
    assert table.venue_ids.tolist() == ["", "49bbd6c0", "4a43c0ae", "4c5cc7b4"]
    assert table.category_ids.tolist() == ["4bf58dd8", "4bf58dd9"]
    assert table.category.tolist() == [0, 1, 0]
    assert table.category_field == "category_id"
    assert table.lat.tolist() == [40.71981, 40.6068, 40.716162]
    assert table.lon.tolist() == [-74.002581, -74.04417, -73.88307]
    assert table.time.tolist() == [1333476009, 1333476025, 1333476144]


def test_tsmc_columns_can_be_mapped(save: Save) -> None:
    path = save("x.txt", TSMC)
    table = formats.read(path, {"category": "category"}).table
    assert table.category_field == "category"
    assert table.category_ids.tolist() == ["Arts & Crafts Store", 'Caf\xe9 "Bridge"', "Home (private)"]
    with pytest.raises(InputError, match="no column 'venue'; did you mean 'venue_id'"):
        formats.read(path, {"poi": "venue"})


def test_csv(save: Save) -> None:
    source = formats.read(save("x.csv", CSV))
    table = source.table
    assert source.mapping == {field: field for field in HEADER.split(",")}
    assert table.user_ids.tolist() == ["007", "7"]  # ids are text
    assert table.user.tolist() == [0, 1, 0]
    assert table.lat.tolist() == [40.5, 40.6, 40.5]
    assert duplicates(table) == 1


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
@pytest.mark.parametrize("bad", [None, 0, 1])
def test_tsmc_is_recognised_by_most_of_its_lines(save: Save, ending: bytes, bad: int | None) -> None:
    lines = (TSMC + b"\n" + TSMC).split(b"\n")
    if bad is not None:
        lines[bad] = lines[bad].replace(b"\t", b" ", 1)
    path = save("x.dat", ending.join(lines))
    if bad is None:
        assert formats.read(path).format == "tsmc2014"
        assert written(path) == path.read_bytes()
    else:
        with pytest.raises(InputError, match=rf"x\.dat, line {bad + 1} has 7 columns, not 8"):
            formats.read(path)


@pytest.mark.parametrize("delimiter", ["\t", ",", ";"])
def test_a_header_over_tsmc_columns_makes_a_table(save: Save, delimiter: str) -> None:
    header = "userId\tvenueId\tvenueCategoryId\tvenueCategory\tlatitude\tlongitude\ttimezoneOffset\tutcTimestamp\n"
    path = save("x.csv", header.encode().replace(b"\t", delimiter.encode()) + TSMC.replace(b"\t", delimiter.encode()))
    source = formats.read(path)
    table = source.table
    assert source.format == "table"
    assert table.category_field == "venueCategoryId"
    plain = formats.read(save("x.txt", TSMC)).table
    assert np.array_equal(table.time, plain.time)
    assert table.user_ids.tolist() == plain.user_ids.tolist()
    assert written(path) == path.read_bytes()


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize(("name", "data"), [("x.txt", TSMC), ("x.csv", CSV.encode())])
def test_compressed_files_are_read_directly_and_written_plain(save: Save, suffix: str, name: str, data: bytes) -> None:
    path = save(name + suffix, COMPRESS[suffix](data))
    assert written(path) == data
    assert extension(path) == name[1:]


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_several_compressed_parts_make_one_file(save: Save, suffix: str) -> None:
    source = formats.Source(save(f"x{suffix}", COMPRESS[suffix](b"one ") + COMPRESS[suffix](b"two")))
    assert load(source) == b"one two"


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_cut_compressed_file_is_refused_wherever_it_is_cut(save: Save, suffix: str) -> None:
    noise = np.random.default_rng(0).bytes(300)
    data = COMPRESS[suffix](noise * 3)
    for length in range(8, len(data), 11):
        with pytest.raises(
            InputError, match=rf"x{suffix} is a damaged compressed file \(.+\); download or compress it again"
        ):
            load(formats.Source(save(f"x{suffix}", data[:length])))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n\r\n  \n", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (bytes(range(256)), "is a binary file"),
        (b"\x89PNG\r\n\x1a\n\x01\x02\x03", "is a binary file"),
        ("user,poi".encode("utf-16"), "is UTF-16 text; save it as UTF-8"),
        ("user,poi".encode("utf-16-le"), "is a binary file"),
        (b"PK\x03\x04\x00\x00", "is a damaged compressed file"),
        (b"PAR1", "is a damaged Parquet file"),
        (b"PAR1" + bytes(100) + b"PAR1", "is a damaged Parquet file"),
        (TSMC.replace(b"\t", b","), "line 1: no column looks like the user among 470, 49bbd6c0"),
    ],
)
def test_what_is_no_table_is_named(save: Save, content: bytes, message: str) -> None:
    path = save("x.dat", content)
    with pytest.raises(InputError) as error:
        formats.read(path)
    assert f"{path}" in str(error.value)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_format_can_be_forced(save: Save) -> None:
    path = save("x.txt", TSMC)
    with pytest.raises(InputError, match="no column looks like the user"):
        formats.read(path, format="table")
    with pytest.raises(InputError, match="there is no format 'pdf'; choose one of tsmc2014, snap, table"):
        formats.read(path, format="pdf")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("u,v,c,91,0,0", "the latitude 91.0 is outside the range -90 to 90"),
        ("u,v,c,-90.0001,0,0", "the latitude -90.0001 is outside"),
        ("u,v,c,0,180.5,0", "the longitude 180.5 is outside the range -180 to 180"),
        ("u,v,c,0,1e400,0", "the longitude inf is outside"),
        ("u,v,c,east,0,0", "the latitude 'east' is not a number"),
        ('u,v,c,"40,7",0,0', "the latitude '40,7' has a decimal comma; state it with --decimal ,"),
        ("u,v,c,NaN,0,0", "the latitude is missing"),
        ("u,v,c,,0,0", "the latitude is missing"),
        (",v,c,0,0,0", "the user is missing"),
        ("u, ,c,0,0,0", "the venue is missing"),
        ('u,v,"",0,0,0', "the category is missing"),
        ("u,v,c,0,0,", "the time is missing"),
        ("u,v,c,0,0,later", "the time 'later' cannot be read; use ISO 8601"),
        ("u,v,c,0,0,1e400", "the time '1e400' cannot be read"),
        ("u,v,c,0,0,1e34", "the time '1e34' cannot be read"),
        (f"u,v,c,{'9' * 500}x,0,0", "the latitude '" + "9" * 59 + "... is not a number"),
    ],
)
def test_a_bad_value_names_its_line(save: Save, row: str, message: str) -> None:
    path = save("x.csv", f"{HEADER}\nu,v,c,90,-180,0\n{row}\nu,v,c,0,0,0\n")
    with pytest.raises(InputError) as error:
        formats.read(path)
    assert str(error.value).startswith(f"{path}, line 3: {message}")
    assert "; " in str(error.value)


def test_copied_fields_change_and_nothing_else_does(save: Save) -> None:
    path = save("x.csv", CSV)
    rows = formats.read(path).rows
    changed = rows.copy_fields(["poi", "name"], np.array([1, 1, 0]))
    expected = CSV.splitlines()
    expected[1] = 'a,007,v2,c1,40.5,-74,1333476009,"second, with ""quotes"""'
    assert written(path, changed) == ("\n".join(expected) + "\n").encode()
    assert changed.columns == ["note", *HEADER.split(","), "name"]
    assert changed.get_column("poi").to_list() == ["v2", "v2", "v1"]
    assert written(path, rows) == CSV.encode()  # the original rows stay as they are


@pytest.fixture
def arrow() -> pa.Table:
    """A Parquet table with a rich schema."""
    schema = pa.schema(
        [
            pa.field("user_id", pa.int32(), nullable=False, metadata={"unit": "person"}),
            pa.field("venue_id", pa.dictionary(pa.int8(), pa.string())),
            pa.field("category_id", pa.int64()),
            pa.field("lat", pa.float32()),
            pa.field("lon", pa.decimal128(9, 4)),
            pa.field("time", pa.timestamp("ms", "Asia/Tokyo")),
            pa.field("tags", pa.list_(pa.string())),
            pa.field("name", pa.large_string()),
            pa.field("time_zone", pa.int16()),
        ],
        metadata={"made by": "a test", "pandas": "{}"},
    )
    return pa.table(
        {
            "user_id": [7, 7, 8],
            "venue_id": ["b", "a", "b"],
            "category_id": [3, 4, 3],
            "lat": [1.5, 2.5, 1.5],
            "lon": [pa.scalar(v).as_py() for v in (-1, -2, -1)],
            "time": [1_333_476_009_250, 1_333_476_010_000, -1],
            "tags": [["x"], [], None],
            "name": ["B", None, "B"],
            "time_zone": [540, 540, None],
        },
        schema=schema,
    )


def test_parquet_of_many_types(save: Save, arrow: pa.Table) -> None:
    path = save("x.parquet", parquet(arrow, row_group_size=2))
    source = formats.read(path)
    table = source.table
    assert source.mapping["time"] == "time"
    assert table.user_ids.tolist() == ["7", "8"]
    assert [table.venue_ids[v] for v in table.venue] == ["b", "a", "b"]
    assert table.category_ids.tolist() == ["3", "4"]
    assert table.lat.tolist() == [1.5, 2.5, 1.5]
    assert table.lon.tolist() == [-1, -2, -1]
    assert table.time.tolist() == [1_333_476_009, 1_333_476_010, -1]


def test_parquet_is_written_back_with_equal_values_and_schema(save: Save, arrow: pa.Table) -> None:
    path = save("x.parquet", parquet(arrow, row_group_size=2))
    original = pq.read_table(path)
    again = pq.read_table(io.BytesIO(written(path)))
    assert again.schema.equals(original.schema, check_metadata=True)
    assert again.equals(original)
    assert again.schema.metadata[b"made by"] == b"a test"


def test_parquet_copied_fields(save: Save, arrow: pa.Table) -> None:
    path = save("x.parquet", parquet(arrow, row_group_size=2))
    rows = formats.read(path).rows.copy_fields(["user_id", "venue_id", "lat", "tags"], np.array([1, 0, 0]))
    again = pq.read_table(io.BytesIO(written(path, rows)))
    original = pq.read_table(path)
    assert again.schema.equals(original.schema, check_metadata=True)
    assert again["user_id"].to_pylist() == [7, 7, 7]
    assert again["venue_id"].to_pylist() == ["a", "b", "b"]
    assert again["lat"].to_pylist() == [2.5, 1.5, 1.5]
    assert again["tags"].to_pylist() == [[], ["x"], ["x"]]
    others = ["category_id", "lon", "time", "name", "time_zone"]
    assert again.select(others).equals(original.select(others))
    assert rows.get_column("lat").to_list() == [2.5, 1.5, 1.5]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_parquet_timestamps(save: Save, arrow: pa.Table, unit: str, zone: str | None) -> None:
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    times = pa.array([s * per_second for s in (1_333_476_009, -86_401, 0)], pa.timestamp(unit, zone))
    path = save("x.parquet", parquet(arrow.set_column(5, "time", times)))
    assert formats.read(path).table.time.tolist() == [1_333_476_009, -86_401, 0]
    assert pq.read_table(io.BytesIO(written(path))).equals(pq.read_table(path), check_metadata=True)


@pytest.mark.parametrize(
    ("at", "name", "values", "message"),
    [
        (0, "user_id", pa.array([1, None, 2]), ", row 2: the user is missing"),
        (0, "user_id", pa.array([1.0, 2.0, float("nan")]), ", row 3: the user is missing"),
        (3, "lat", pa.array([1.0, None, 2.0]), ", row 2: the latitude is missing"),
        (3, "lat", pa.array([1.0, 2.0, float("nan")]), ", row 3: the latitude is missing"),
        (3, "lat", pa.array(["1", "2", "north"]), ", row 3: the latitude 'north' is not a number"),
        (4, "lon", pa.array([0, 0, 181]), ", row 3: the longitude 181 is outside"),
        (5, "time", pa.array([None, None, None], pa.timestamp("s")), ", row 1: the time is missing"),
        (5, "time", pa.array([0, 1, 2], pa.duration("s")), ": the column 'time' has the type duration[s]"),
        (1, "venue_id", pa.array([b"\xff", b"a", b"b"]), ": the column 'venue_id' has the type binary"),
        (1, "venue_id", pa.array([[1], [2], [3]]), ": the column 'venue_id' has the type list"),
        (6, "lat", pa.array([1, 2, 3]), ": two columns are named 'lat'"),
        (5, "moment", pa.array([1, 2, 3]), ": no column looks like the time"),
    ],
)
def test_bad_parquet_values_name_their_row(
    save: Save, arrow: pa.Table, at: int, name: str, values: pa.Array, message: str
) -> None:
    path = save("x.parquet", parquet(arrow.set_column(at, name, values)))
    with pytest.raises(InputError) as error:
        formats.read(path)
    assert str(error.value).startswith(f"{path}{message}")


def test_parquet_without_rows(save: Save, arrow: pa.Table) -> None:
    with pytest.raises(InputError, match="has columns but no check-ins"):
        formats.read(save("x.parquet", parquet(arrow.slice(0, 0))))


def test_a_table_reads_alike_in_every_form(save: Save) -> None:
    rows = [line.split(",") for line in ("u1,p1,c1,1.5,2.5,10", "u2,p2,c2,-1.5,-2.5,20", "u1,p2,c2,-1.5,-2.5,30")]
    tables = [formats.read(save("x.csv", "\n".join([HEADER, *(",".join(r) for r in rows)]))).table]
    for name, delimiter in (("x.tsv", "\t"), ("y.csv", ";"), ("x.psv", "|"), ("x.inter", "\t")):
        header = delimiter.join(HEADER.split(","))
        tables.append(formats.read(save(name, "\n".join([header, *(delimiter.join(r) for r in rows)]))).table)
    columns = dict(zip(HEADER.split(","), zip(*rows, strict=True), strict=True))
    typed = {c: list(map(float if c in ("lat", "lon") else int if c == "time" else str, v)) for c, v in columns.items()}
    tables += [formats.read(save("x.parquet", parquet(pa.table(t)))).table for t in (columns, typed)]
    for table in tables[1:]:
        same_checkins(table, tables[0])


def test_a_place_is_that_of_its_first_row_in_time() -> None:
    from conftest import checkins

    venues = checkins(
        [("u", "p", 5, "late", 5.0, 5.0), ("u", "p", 1, "first", 1.0, 2.0), ("u", "p", 1, "x", 9.0, 9.0)]
    ).venues
    assert (venues.lat[1:].tolist(), venues.lon[1:].tolist(), venues.category.tolist()) == ([1.0], [2.0], [-1, 1])


def test_new_york_is_written_back_to_the_byte(nyc: Path) -> None:
    assert written(nyc) == lzma.decompress(nyc.read_bytes())


def test_tokyo_reads_without_a_warning(tokyo: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        source = formats.read(tokyo)
        table = source.table
    assert not caught
    assert (len(table), source.format) == (56_932, "tsmc2014")
    assert 35 < table.lat.min() < table.lat.max() < 36
    assert written(tokyo) == lzma.decompress(tokyo.read_bytes())
