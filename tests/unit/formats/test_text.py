"""Delimited text: values, lines and bytes for all kinds of quoting and line endings."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest
from conftest import HEADER, same_checkins
from hypothesis import example, given
from hypothesis import strategies as st

from ghostpoi.data.checkins import FIELDS, Checkins
from ghostpoi.errors import InputError
from ghostpoi.formats import Source, file_of, text
from ghostpoi.formats.delimited import TABLE, TSMC_COLUMNS
from ghostpoi.formats.fields import to_checkins
from ghostpoi.formats.text import TextRows

SOURCE = Source(Path("x.csv"))


def decoded(content: str) -> TextRows:
    return text.decode(SOURCE, content.encode(), ",")


def texts(rows: TextRows, columns: Sequence[str] = ()) -> pl.DataFrame:
    return pl.DataFrame({name: rows.values(SOURCE, "", name) for name in columns or rows.columns})


def values(content: str) -> list[tuple[str | None, ...]]:
    return texts(decoded(content)).rows()


def rewritten(data: bytes, source: Source = SOURCE) -> bytes:
    """The file after reading every field and writing it again."""
    out = io.BytesIO()
    columns, delimiter = (TSMC_COLUMNS, "\t") if source.extension == ".txt" else (None, ",")
    text.decode(source, data, delimiter, columns, "latin-1" if columns else None, quotes=not columns).write(out)
    return out.getvalue()


def read(data: bytes) -> Checkins:
    return file_of(SOURCE, "table", TABLE.decode(SOURCE, data), {}).table


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,b\n1,2", [("1", "2")]),
        ("a,b\n 1 ,\t2 ", [("1", "2")]),
        ("a,b\n,\nx,", [(None, None), ("x", None)]),
        ('a,b\n"x, y","say ""hi"""\n', [("x, y", 'say "hi"')]),
        ('a,b\r\n"two\r\nlines",2\r\n', [("two\r\nlines", "2")]),
        ('a,b\n"",2\n', [(None, "2")]),
        ('a,b\n" x ",2\n', [(" x ", "2")]),
        ('a,b\n12" pizza,2\n', [('12" pizza', "2")]),
    ],
)
def test_values(content: str, expected: list[tuple[str | None, ...]]) -> None:
    assert values(content) == expected


def test_a_stray_quote_is_text_and_does_not_spoil_quoted_fields_elsewhere() -> None:
    content = 'a,b\n12" pizza,2\n"x, y",3\n"open,4\n5" by 6",7\n'
    assert values(content) == [('12" pizza', "2"), ("x, y", "3"), ('"open', "4"), ('5" by 6"', "7")]
    assert rewritten(content.encode()) == content.encode()


def test_quotes_in_tsmc_files_are_always_text() -> None:
    line = '7\tv\tc\t"Bar"\t40.5\t-74.0\t-240\tTue Apr 03 18:00:09 +0000 2012'
    for end in ("\n", "\r\n"):
        data = (line + end).encode()
        rows = text.decode(Source(Path("x.txt")), data * 2, "\t", TSMC_COLUMNS, "latin-1", quotes=False)
        assert rows.values(SOURCE, "", "category").to_list() == ['"Bar"'] * 2
        assert rewritten(data * 2, Source(Path("x.txt"))) == data * 2


def test_a_quoted_header_may_hold_the_delimiter() -> None:
    assert decoded('"a, b",c,"d ""e"""\n1,2,3').columns == ["a, b", "c", 'd "e"']


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n3\n", "x.csv, line 3 has 1 column, not 2"),
        ("a,b\n1,2\n3,4,5\n6\n", "x.csv, line 3 has 3 columns, not 2"),
        ("a,b\n1,2,3\n4\n", "x.csv, line 2 has 3 columns, not 2"),  # the total is right, the lines are not
        ("a,b\n1\n2,3,4\n", "x.csv, line 2 has 1 column, not 2"),
        ("a,b\n1,2\n\n3,4\n", "x.csv, line 3 is blank"),
        ("a,b\r\n1,2\r\n\r\n3,4\r\n", "x.csv, line 3 is blank"),
        ('a,b\n"x\ny\nz",2\n3\n', "x.csv, line 5 has 1 column, not 2"),
        ("\n\na,b\n1,2\n3\n", "x.csv, line 5 has 1 column, not 2"),
        ("a,b\n", "x.csv has columns but no check-ins"),
        ('"a","b"\r\n', "x.csv has columns but no check-ins"),
        ("a,b", "x.csv has columns but no check-ins"),
        ("a,b\n\n\r\n", "x.csv has columns but no check-ins"),
        ("a,b\r1,2\r", "x.csv ends its lines with carriage returns only"),
        ("a,a\n1,2", "x.csv, line 1: two columns are named 'a'"),
        ('a,b\n"\x1f",2', "x.csv contains control characters"),
    ],
)
def test_a_bad_layout_names_the_line(content: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        read(content.encode())
    assert str(error.value).startswith(message)
    assert "; " in str(error.value)


def test_widths_are_checked_over_many_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "CHUNK", 7)
    good = "a,b\n" + "12,34\n" * 50 + '"5\n6",7\n' * 20
    assert len(decoded(good)) == 70
    assert rewritten(good.encode()) == good.encode()
    with pytest.raises(InputError, match="line 42 has 1 column, not 2"):
        decoded("a,b\n" + "12,34\n" * 40 + "1234\n" + "12,34\n" * 40)


def test_the_line_of_a_row_counts_line_feeds_inside_quotes() -> None:
    rows = decoded('a,b\n1,2\n"x\ny",3\n4,5\n"\n\n",6\n7,8\n')
    assert [rows.place(SOURCE, row) for row in range(5)] == [f"x.csv, line {line}" for line in (2, 3, 5, 6, 9)]


def test_a_line_of_megabytes() -> None:
    content = f"{HEADER},note\n1,2,3,4,5,6,{'x' * 3_000_000}\n1,2,3,4,5,6,\n"
    assert len(read(content.encode())) == 2
    assert rewritten(content.encode()) == content.encode()


# Random files, composed of pieces that cannot be confused.
SAFE = st.characters(exclude_characters='\x00\n\r\x1d\x1e\x1f",;|\t', exclude_categories=["Cs"])
LATIN = st.characters(exclude_characters='\x00\n\r\x1d\x1e\x1f",;|\t', max_codepoint=255)


File = tuple[bytes, str, list[list[bytes]]]


def _filled(rows: TextRows) -> list[list[str]]:
    return [[value or "" for value in row] for row in texts(rows, ["first", "last"]).rows()]


@st.composite
def files(draw: st.DrawFn, stray: bool = True) -> File:
    """A table with two extra columns of text: bytes, delimiter, and the values of those columns as bytes."""
    delimiter, encoding = draw(st.sampled_from([",", "\t", ";", "|"])), draw(st.sampled_from(["utf-8", "latin-1"]))
    letters = st.text(SAFE if encoding == "utf-8" else LATIN, max_size=5).map(lambda text: text.strip(" "))
    ends = st.sampled_from(draw(st.sampled_from([["\n"], ["\r\n"], ["\n", "\r\n"]])))
    inner = st.lists(st.one_of(letters, st.sampled_from([delimiter, "\n", "\r\n", "\r", '"', " "])), max_size=4).map(
        "".join
    )

    def field() -> tuple[str, str]:
        kind = draw(st.sampled_from(["plain", "padded", "quoted", "stray"] if stray else ["plain", "quoted"]))
        if kind == "quoted":
            value = draw(inner)
            return '"' + value.replace('"', '""') + '"', value
        value = draw(letters)
        if kind == "stray":
            value = f'x{value}"{draw(letters)}'
        return (f" {value} ", value) if kind == "padded" else (value, value)

    lines, expected = [], []
    for row in range(draw(st.integers(1, 5))):
        raw, value = zip(*(field() for _ in range(2)), strict=True)
        core = [f"u{row % 2}", f"p{row}", "c", "1.5", "-2.5", str(86_400 * row)]
        if draw(st.booleans()):
            core = [f'"{value}"' for value in core]
        lines.append(delimiter.join([raw[0], *core, raw[1]]))
        expected.append([v.encode(encoding) for v in value])
    header = delimiter.join(["first", *HEADER.split(","), "last"])
    bom = draw(st.sampled_from(["", "\ufeff"])) if encoding == "utf-8" else ""
    content = bom + header + draw(ends) + "".join(line + draw(ends) for line in lines[:-1]) + lines[-1]
    content += draw(st.sampled_from(["", "\n", "\r\n", "\n\n\n", "\r\n\n"]))
    return content.encode(encoding), delimiter, expected


@example(
    (f"first;{HEADER.replace(',', ';')};last\nx^;u0;p0;c;1.5;-2.5;0;y".encode(), ";", [[b"x^", b"y"]])
)  # zlib's first bytes
@given(files())
@example((f"first,{HEADER},last\n\ufeffx,u,p,c,1,2,0,y".encode(), ",", [["\ufeffx".encode(), b"y"]]))
@example((f"first,{HEADER},last\nx\x01,u,p,c,1,2,0,y".encode(), ",", [[b"x\x01", b"y"]]))  # looks like zlib data
def test_every_file_is_written_back_to_the_byte(file: File) -> None:
    data, delimiter, expected = file
    assert rewritten(data) == data
    assert read(data).time.tolist() == [86_400 * row for row in range(len(expected))]
    found = text.decode(SOURCE, data, delimiter)
    encoded = [[value.encode(found.dialect.encoding) for value in row] for row in _filled(found)]
    assert encoded == expected


@given(files(stray=False))
def test_values_are_those_of_python_s_csv_module(file: File) -> None:
    data, delimiter, _ = file
    found = text.decode(SOURCE, data, delimiter)
    content = data.decode(found.dialect.encoding).removeprefix("\ufeff")
    # Unlike ghostpoi, csv ends a line at a lone carriage return. These files have them only inside quotes.
    rows = [row for row in csv.reader(io.StringIO(content, newline=""), delimiter=delimiter) if row][1:]
    assert [[value or "" for value in row] for row in texts(found).rows()] == rows


ids = st.sampled_from(["7", "007", "7.0", " 7", "7 ", "x y", "é", "1e400", "-0"])
categories = st.one_of(ids, st.sampled_from(["nan", "None"]))
numbers = st.sampled_from(["1", "-1.5", "+2", " 3.25", ".5", "4.", "1e1", "-0.0", "45.000000000000014"])
times = st.sampled_from(["2012-04-03T18:00:09Z", "2012-04-03 20:00+02:00", "1969-12-31 23:59:59.5"])


@given(st.lists(st.tuples(ids, ids, categories, numbers, numbers, times), min_size=1, max_size=6))
def test_the_fast_path_and_the_kind_path_read_the_same(rows: list[tuple[str, ...]]) -> None:
    plain = "\n".join([HEADER, *(",".join(row) for row in rows)])
    slow = to_checkins(SOURCE, texts(decoded(plain), FIELDS), "category", str)
    same_checkins(read(plain.encode()), slow)
    same_checkins(read(plain.replace("\n", "\r\n").encode()), slow)
    quoted = "\n".join([HEADER, *(",".join(f'"{value.strip()}"' for value in row) for row in rows)])
    same_checkins(read(quoted.encode()), slow)
    assert [slow.user_ids[code] for code in slow.user] == [row[0].strip() for row in rows]
    assert slow.lat.tolist() == [float(row[3]) for row in rows]
