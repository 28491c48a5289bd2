"""Stray quotes in venue names: what is released reads back as intended, or nothing is released."""

import csv
import json
from pathlib import Path

import polars as pl
from small_city import MAP, RICH, SEED, SETS, called, protect, rich_frame, sentence

from ghostpoi import formats

NAMES = ['Pizza 12"', '"Roxy']


EXACT = ["--set", "method.category=exact", "--set", "method.draw=even"]


def stray_file(path: Path) -> Path:
    """The rich table with two names that hold a quote. All rows of the one come first, so the file reads well."""
    frame = rich_frame().drop("address")
    often = frame["spot"].value_counts(sort=True, name="n")["spot"].to_list()
    first = frame.filter(pl.col("spot") == often[0])
    same = frame.filter((pl.col("catid") == first["catid"][0]) & (pl.col("spot") != often[0]))
    other = same["spot"].value_counts(sort=True, name="n")["spot"][0]
    title = {often[0]: NAMES[0], other: NAMES[1]}
    frame = frame.with_columns(title=pl.Series([title.get(v, f"Place {v[:5]}") for v in frame["spot"]]))
    frame = frame.sort(pl.col("spot") != often[0], maintain_order=True)
    lines = [",".join(frame.columns), *(",".join(map(str, row)) for row in frame.iter_rows())]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_moved_quotes_do_not_swallow_rows(tmp_path: Path) -> None:
    file = stray_file(tmp_path / "x.csv")
    made = protect(file, tmp_path / "r", "--method", "crowd", "--seed", SEED, *RICH)
    rows = len(file.read_text().splitlines()) - 1
    assert rows == 1090
    assert made.manifest["data"]["rows"] == rows
    assert f"{rows:,} rows released" in made.done.stdout
    with made.data.open(newline="") as text:
        titles = [row["title"] for row in csv.DictReader(text)]
    assert len(titles) == rows
    assert set(titles) >= set(NAMES)
    read = formats.read(made.data, made.manifest["columns"]["fields"], "table")
    assert len(read.table) == rows
    report = called("verify", made.folder, "--against", file, "--json")
    assert json.loads(report.stdout)["passed"] is True


def test_what_would_not_read_back_is_refused(tmp_path: Path) -> None:
    """Only a withheld row shows that the file is Latin-1; without it, the other rows would be read as UTF-8."""
    lines = [line.encode() for line in stray_file(tmp_path / "x.csv").read_text().replace('"', "").splitlines()]
    at = lines[0].split(b",").index(b"mood")
    fields = [line.split(b",") for line in lines]
    for row in fields[1:]:
        row[at] = "für".encode()
    alone = dict(zip(lines[0].split(b","), range(len(fields[0])), strict=True))
    fields[5][alone[b"spot"]], fields[5][alone[b"catid"]], fields[5][alone[b"title"]] = b"lone", b"lone", b"Caf\xe9"
    file = tmp_path / "x.csv"
    file.write_bytes(b"\n".join(b",".join(row) for row in fields) + b"\n")
    done = called("protect", file, "-o", tmp_path / "r", "--no-candidate", "withhold", *SETS, *RICH, *EXACT)
    assert sentence(done) == (
        f"{file} cannot be released: what was written does not read back the same (row 1 has a different mood); put "
        'fields that contain a quote into quotes and double the quote ("12"""), and use one encoding'
    )
    assert not [*tmp_path.glob("r*")]


def test_a_quote_that_opens_a_field_and_swallows_rows_is_named(tmp_path: Path) -> None:
    frame = rich_frame().drop("address", "checkin")
    names = ['"Roxy' if k in (3, 7) else f"Place {v[:5]}" for k, v in enumerate(frame["spot"])]
    columns = ["Who", "title", *(c for c in frame.columns if c not in ("Who", "title"))]
    frame = frame.with_columns(title=pl.Series(names)).select(columns)
    lines = [",".join(frame.columns), *(",".join(map(str, row)) for row in frame.iter_rows())]
    lines[8] = lines[8].replace('"Roxy', 'Roxy"')  # closes what the fourth row opens
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    for command in (("inspect", tmp_path / "x.csv"), ("protect", tmp_path / "x.csv", "-o", tmp_path / "r")):
        assert sentence(called(*command, *MAP)) == (
            f"{tmp_path / 'x.csv'}, line 5: a quoted field spans 5 lines and contains whole rows; double the quote "
            "that opens it, or remove it"
        )
