"""Large text files: divided where rows end, and put together piece by piece, with the same bytes as undivided."""

import gzip
import io
import random
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_city import called, scratch, sentence
from small_world import SEED, contents, parts, protected, rows

from ghostpoi import formats
from ghostpoi.formats import Reading, Rows, Source, parquet, text
from ghostpoi.formats.delimited import TABLE
from ghostpoi.regions import protect
from ghostpoi.regions.pieces import BYTES_PER_ROW, find_spans

LOCAL = ("--engine", "local")
DIVIDED = (*LOCAL, "--set", "regions.most_rows=2500")  # more than a city has, and a third of the world


def stored(data: bytes, name: str = "x.csv", columns: str = "") -> Source:
    path = scratch() / name
    path.write_bytes(data)
    return Source(path, Reading(columns=columns))


def test_spans_hold_whole_rows() -> None:
    line = b"0123456789,abcdefghijklmnopqrstuvwxyz\n"  # 38 bytes
    source = stored(b"\xef\xbb\xbfa,b\n" + line * 10)
    spans = find_spans(source, 1)
    assert [(s.begin, s.end, s.rows, s.lines) for s in spans] == [(7, 159, 0, 0), (159, 311, 4, 4), (311, 387, 8, 8)]
    assert spans[1].read(source.path) == b"\xef\xbb\xbfa,b\n" + line * 4
    assert find_spans(source, 4) == []  # it is small


def test_files_without_a_header_have_none_to_repeat() -> None:
    line = b"1\t2010-10-19T23:55:27Z\t30.2359091167\t-97.7951395833\t22847\n"
    spans = find_spans(stored(line * 5, "x.txt"), 1)
    assert [(s.head, s.begin, s.end) for s in spans] == [(0, 0, 174), (0, 174, 290)]
    named = stored(b"1,2,3,4,5\n" * 20, columns="user,time,lat,lon,poi")
    assert [(s.head, s.rows) for s in find_spans(named, 1)] == [(0, 0), (0, 13)]


ROW = b"1234567890,abcdefghijklmnop\n"


@pytest.mark.parametrize(
    "data",
    [
        b"a,b\n" + ROW * 9 + "1,caf\u00e9\n".encode("latin-1") + ROW,
        b"a,b\n" + ROW * 9 + b'1,12" pipe\n' + ROW,
        b"a,b\n" + ROW * 9 + b'1,"open\n' + ROW,
        b"a,b\n" + ROW * 5 + b"\n" + ROW * 9,
        b"a,b\n" + b'1,"quoted"\n' * 20 + ROW + b"1,x\x1dy\n" + ROW,
        b'{"a": 1}\n' * 40,
        b"a,b" * 99,
    ],
    ids=["latin-1", "inches", "open quote", "blank line between spans", "control character", "JSON", "no lines"],
)
def test_what_might_be_read_otherwise_stays_whole(data: bytes) -> None:
    assert len(data) > BYTES_PER_ROW
    assert find_spans(stored(data), 1) == []


def test_the_delimiter_must_show_in_every_span() -> None:
    """Without a header, the first row shows it."""
    line, commas = b"12345\tabcdefghijk\n", b"1,2\t3,4\n"
    names = "user,poi,lat"
    assert find_spans(stored(line * 20, columns=names), 1) != []
    assert find_spans(stored(line * 8 + commas + line * 8, columns=names), 1) == []


def test_compressed_files_stay_whole() -> None:
    packed = gzip.compress(random.Random(0).randbytes(1000))
    assert find_spans(stored(packed, "x.csv.gz"), 1) == []


VALUE = st.text(st.sampled_from("ab \u00e9"), min_size=1, max_size=20)
INSIDE = st.one_of(st.text(st.sampled_from(alphabet), max_size=20) for alphabet in ('a,"\u00e9', 'a\n"\u00e9'))
QUOTED = INSIDE.map(lambda t: '"' + t.replace('"', '""') + '"')
LINES = st.lists(
    st.tuples(st.one_of(VALUE, QUOTED), st.one_of(VALUE, QUOTED), st.sampled_from(["\n", "\r\n"])), min_size=1,
    max_size=40,
)  # fmt: skip


def fields(rows: Rows) -> pl.DataFrame:
    return pl.DataFrame({name: rows.held[name] for name in rows.columns})


@given(LINES, st.booleans())
def test_spans_read_like_the_file(lines: list[tuple[str, str, str]], ended: bool) -> None:
    whole = "".join(f"{one},{two}{end}" for one, two, end in lines)
    data = ("a,b\n" + (whole if ended else whole.rstrip("\r\n"))).encode()
    source = stored(data)
    spans = find_spans(source, 1)
    assert spans or len(data) <= BYTES_PER_ROW
    if not spans:
        return
    assert data[: spans[0].head] + b"".join(data[s.begin : s.end] for s in spans) == data
    expected = TABLE.decode(source, data)
    found = [TABLE.decode(source, span.read(source.path)) for span in spans]
    assert pl.concat([fields(rows) for rows in found]).equals(fields(expected))
    flags = [f for rows in found for f in (rows.line_ends if rows.line_ends is not None else [False] * len(rows))]
    wanted = expected.line_ends if expected.line_ends is not None else [False] * len(expected)
    assert flags[:-1] == list(wanted)[:-1]
    assert [span.rows for span in spans] == [sum(map(len, found[:n])) for n in range(len(found))]
    assert [span.lines for span in spans] == [data[spans[0].head : s.begin].count(b"\n") for s in spans]


@given(st.lists(st.integers(0, 30), max_size=6))
def test_the_division_into_tables_changes_no_byte(sizes: list[int]) -> None:
    schema = pa.schema([("n", pa.int64()), ("t", pa.string()), ("d", pa.dictionary(pa.int8(), pa.string()))])

    def table(begin: int, size: int) -> pa.Table:
        numbers = list(range(begin, begin + size))
        words = [f"w{n % 7}" for n in numbers]
        return pa.Table.from_arrays([pa.array(numbers), pa.array(words), pa.array(words).dictionary_encode()
                                     .cast(schema.field("d").type)], schema=schema)  # fmt: skip

    def written(sizes: list[int]) -> bytes:
        begins = [sum(sizes[:at]) for at in range(len(sizes))]
        parquet.write_tables((table(*each) for each in zip(begins, sizes, strict=True)), schema, out := io.BytesIO())
        return out.getvalue()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "GROUP", 10)
        assert written(sizes) == written([sum(sizes)])


def as_text(end: str, ended: bool = True, category: str = "{}") -> bytes:
    """The small world as a text file."""
    frame = rows().with_columns(
        pl.col("utc_time").dt.strftime("%Y-%m-%dT%H:%M:%SZ"), pl.format(category, pl.col("category"))
    )
    data = frame.write_csv(line_terminator=end, quote_style="necessary").encode()
    return data if ended else data.rstrip(b"\r\n")


@pytest.mark.parametrize(
    "data",
    [as_text("\n"), as_text("\r\n"), as_text("\r\n", ended=False), as_text("\n", category='{},\nor "so"')],
    ids=["plain", "CRLF", "no last line end", "lines in quotes"],
)
def test_a_large_text_gives_the_same_bytes(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "world.csv"
    path.write_bytes(data)
    assert len(find_spans(Source(path), 2500)) > 1
    whole, divided = (protected(path, tmp_path / name, *how) for name, how in (("w", LOCAL), ("d", DIVIDED)))
    new = (divided / "checkins.csv").read_bytes()
    assert new == (whole / "checkins.csv").read_bytes()
    assert (new.count(b"\n"), new.count(b"\r\n"), new[-1:]) == (data.count(b"\n"), data.count(b"\r\n"), data[-1:])
    done = called("verify", divided, "--against", path, *LOCAL)
    assert done.returncode == 0, done.stdout


def test_messages_count_the_lines_of_the_file(tmp_path: Path) -> None:
    lines = as_text("\n").splitlines(keepends=True)
    bad = len(lines) - 3
    lines[bad - 1] = lines[bad - 1].replace(b"2012-", b"never-")
    path = tmp_path / "world.csv"
    path.write_bytes(b"".join(lines))
    for how in (LOCAL, DIVIDED):
        done = called("protect", path, "-o", tmp_path / "r", "--keep", "timezone_offset", *how)
        assert done.returncode == 2
        assert f"world.csv, line {bad}:" in sentence(done)
        assert sorted(tmp_path.iterdir()) == [path]  # nothing is left, so that the next attempt needs no --force


def test_a_file_that_must_be_read_whole_must_fit(tmp_path: Path) -> None:
    path = tmp_path / "world.csv"
    path.write_bytes(as_text("\n") + b'"' + b"x" * 20_000_000)  # a quote that opens no field
    done = called("protect", path, "-o", tmp_path / "r", *LOCAL, "--memory", "500MB")
    assert done.returncode == 2
    assert "world.csv must be read whole and needs about 523MB" in sentence(done)
    assert sorted(tmp_path.iterdir()) == [path]
    packed = tmp_path / "world.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    done = called("protect", packed, "-o", tmp_path / "r", *LOCAL, "--memory", "500MB")
    assert "world.csv.gz must be read whole and needs about 523MB" in sentence(done)


def test_text_is_utf8_or_not() -> None:
    assert text.is_utf8("caf\u00e9".encode())
    assert not text.is_utf8("caf\u00e9".encode("latin-1"))


def test_a_region_is_read_in_the_format_of_the_file(tmp_path: Path) -> None:
    """Most of the first rows of a region lack a time, so that they alone would not look like SNAP's."""
    frame = rows().with_columns(pl.col("utc_time").dt.strftime("%Y-%m-%dT%H:%M:%SZ"))
    one, others = (frame.filter((pl.col("city") == frame["city"][0]) == here) for here in (True, False))
    frame = pl.concat([one[:1], others[:19], one[1:], others[19:]])
    lacks = pl.int_range(pl.len()).is_between(20, 45)
    frame = frame.select(pl.col("user"), pl.when(~lacks).then(pl.col("utc_time")), "latitude", "longitude", "venue_id")
    path = tmp_path / "checkins.txt"
    frame.write_csv(path, separator="\t", include_header=False)
    release = tmp_path / "release"
    done = called("protect", path, "-o", release, "--missing", "keep", *LOCAL)
    assert done.returncode == 0, done.stderr
    new = (release / "checkins.txt").read_text().splitlines()
    assert len(new) == frame.height
    assert [line.split("\t")[:2] for line in new] == [
        [str(u), t or ""] for u, t in frame.select("user", "utc_time").rows()
    ]
    assert called("verify", release, "--against", path, *LOCAL).returncode == 0


@pytest.mark.parametrize("files", [1, 3])
@pytest.mark.parametrize("city", [0, 1])
def test_an_encoding_survives_where_only_one_region_has_accents(city: int, files: int, tmp_path: Path) -> None:
    name = rows()["city"].unique().sort()[city]
    plain = pl.col("category").str.replace_all("\u00e9", "e")
    accented = pl.when(pl.col("city") == name).then(pl.lit("Caf\u00e9")).otherwise(plain)
    data = parts(tmp_path / "data", files, rows().with_columns(category=accented), ".csv")
    for file in data.iterdir():
        file.write_bytes(file.read_text("utf-8").encode("latin-1"))
    new = b"".join(contents(protected(data, tmp_path / "release", *LOCAL)).values())
    assert b"Caf\xe9" in new
    assert b"\xc3" not in new


def test_accents_of_one_region_that_might_be_utf8_stay_as_they_are(tmp_path: Path) -> None:
    """In latin-1, the bytes of this name are two characters; the other regions show that it is latin-1."""
    names = rows()["city"].unique().sort()
    other = pl.when(pl.col("city") == names[1]).then(pl.lit("\u00c3\u00a9")).otherwise(pl.lit("\u00e9"))
    data = parts(tmp_path / "data", 1, rows().with_columns(category=other), ".csv")
    for file in data.iterdir():
        file.write_bytes(file.read_text("utf-8").encode("latin-1"))
    [before], [after] = ([*data.iterdir()], [*contents(protected(data, tmp_path / "release", *LOCAL)).values()])
    counts = [(text.count(b"\xc3\xa9"), text.count(b",\xe9,")) for text in (before.read_bytes(), after)]
    assert counts[0] == counts[1] == (2323, 1368)


def test_a_dataset_has_one_encoding(tmp_path: Path) -> None:
    accent = rows().with_columns(category=pl.lit("\u00e9"))
    data = parts(tmp_path / "data", 2, accent, ".csv")
    one = data / "part-000.csv"
    one.write_bytes(one.read_text("utf-8").encode("latin-1"))
    done = called("protect", data, "-o", tmp_path / "release", *LOCAL)
    assert done.returncode == 2
    assert "some files are in latin-1, others in utf-8; store them in one encoding" in sentence(done)


def test_control_characters_of_one_file_are_not_mistaken_for_line_ends(tmp_path: Path) -> None:
    data = parts(tmp_path / "data", 2, rows().with_columns(category=pl.lit("a\x1db")), ".csv")
    one = data / "part-000.csv"
    one.write_bytes(one.read_bytes().replace(b"a\x1db", b'"ab"'))
    formats.read(data).all_rows.write_to(tmp_path / "again")
    for part in data.iterdir():
        assert (tmp_path / "again" / part.name).read_bytes() == part.read_bytes()


def test_a_region_that_fails_leaves_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it is the only one: its models and the seed are of use to --resume."""
    frame = rows().filter(pl.col("city") == rows()["city"][0])
    data, tried = parts(tmp_path / "data", 1, frame), protect.protect_table

    def out_of_memory(*given: object, **more: object) -> None:
        raise MemoryError

    monkeypatch.setattr(protect, "protect_table", out_of_memory)
    done = called("protect", data, "-o", tmp_path / "release", *SEED, *LOCAL)
    assert done.returncode == 1, done.stderr
    assert (tmp_path / "release.private" / "unfinished").is_dir()
    monkeypatch.setattr(protect, "protect_table", tried)
    protected(data, tmp_path / "release", *LOCAL, "--resume")


def test_a_row_group_must_fit(tmp_path: Path) -> None:
    path = tmp_path / "world.parquet"
    pl.DataFrame({"user": pl.repeat(1, 3_000_000, eager=True)}).write_parquet(path, row_group_size=3_000_000)
    done = called("protect", path, "-o", tmp_path / "r", *LOCAL, "--memory", "1GB")
    assert done.returncode == 2
    assert "world.parquet has a row group that needs about 2.8GB; write it with smaller row groups" in sentence(done)
