"""How kept text is written: a form that follows the venue is refused, and --normalise writes one form per column."""

import json
import shlex
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from small_city import called, sentence

import ghostpoi
from ghostpoi import InputError
from ghostpoi.data import synthetic as synth
from ghostpoi.data.synthetic_files import city_frame
from ghostpoi.formats.rows import form_of, plain

NAMES = ("category_id", "venue_id", "latitude", "longitude", "user", "row", "utc_time", "plan")
Row = dict[str, Any]
Form = Callable[[Row, int], None]


@cache
def city() -> list[tuple[Row, int]]:
    """Rows as texts, each with the number of its category; `plan` is the same in all rows of a user."""
    frame = city_frame(synth.make_city(120, 160, 40, 3), 3).sort(
        pl.col("utc_time").str.to_datetime("%a %b %d %H:%M:%S %z %Y")
    )
    number = {name: at for at, name in enumerate(frame["category_id"].unique().sort())}
    rows = []
    for at, row in enumerate(frame.iter_rows(named=True)):
        texts = {name: str(row.get(name)) for name in NAMES} | {"row": str(at), "plan": str(-int(row["user"]) % 7 - 10)}
        rows.append((texts | {"end": "\n"}, number[row["category_id"]]))
    return rows


def put(name: str, written: Callable[[str, int], str]) -> Form:
    return lambda row, category: row.__setitem__(name, written(row[name], category))


def fixed_length(row: Row, category: int) -> None:
    """Pad the line, so that the padding says how long the venue's fields are."""
    row["plan"] += " " * (99 - len(",".join(row[name] for name in NAMES)) + 7 * category)


FORMS: dict[str, tuple[str, Form]] = {
    "padded lines": ("plan", fixed_length),
    "line ends": ("user", put("end", lambda _, c: "\r\n" if c % 2 else "\n")),
    "numbers of rows": ("row", put("row", lambda text, c: text + ".0" * (c % 2))),
    "negative numbers": ("plan", put("plan", lambda text, c: text + ".0" * (c % 2))),
    "quoted users": ("user", put("user", lambda text, c: f'"{text}"' if c % 2 else text)),
    "users with zeros": ("user", put("user", lambda text, c: "0" * (c % 3) + text)),
    "users with decimals": ("user", put("user", lambda text, c: text + ".0" * (c % 2))),
    "times": ("utc_time", put("utc_time", lambda text, c: text + " " * (c % 4))),
}


def write(path: Path, form: Form, delimiter: str = ",") -> Path:
    """Write the rows as text, or as JSON lines with bare numbers."""
    lines = [] if path.suffix == ".jsonl" else [delimiter.join(NAMES) + "\n"]
    for texts, category in city():
        row = dict(texts)
        form(row, category)
        if path.suffix == ".jsonl":
            bare = {name: row[name] for name in ("row", "plan")}
            lines.append(json.dumps({n: row[n] for n in NAMES if n not in bare})[:-1])
            lines[-1] += "".join(f', "{name}": {text}' for name, text in bare.items()) + "}\n"
        else:
            lines.append(delimiter.join(row[name] for name in NAMES) + row["end"])
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(lines), newline="")
    return path


def refused_then_written_in_one_form(path: Path, column: str, out: Path, *more: str) -> str:
    """Protect a file; it is refused until the named column has one form. Return the text of the release."""
    words = ("protect", path, "-o", out, *more)
    said = sentence(called(*words))
    assert "it could reveal clean venues or users; write it in one form with --normalise " in said
    assert shlex.split(said.split("--normalise ")[1])[0].strip(";") == column
    assert not out.exists()
    assert called(*words, "--normalise", column).returncode == 0
    verified = called("verify", out, "--against", path)
    assert verified.returncode == 0, verified.stdout
    (data,) = (p for p in [*out.glob("checkins*"), *out.glob("checkins/*")] if p.is_file())
    return data.read_bytes().decode()


@pytest.mark.parametrize("name", FORMS)
def test_a_form_that_follows_the_venue_is_refused_until_it_is_one(name: str, tmp_path: Path) -> None:
    column, form = FORMS[name]
    text = refused_then_written_in_one_form(write(tmp_path / "a.csv", form), column, tmp_path / "r")
    rows = [line.split(",") for line in text.split("\n")[1:-1]]
    assert [row[5] for row in rows] == [str(at) for at in range(len(city()))] or column != "row"
    assert {row[4] for row in rows} == {texts["user"] for texts, _ in city()} or name == "times"
    assert "\r" not in text


def test_the_same_text_in_one_form_is_not_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", lambda row, category: row.update(user=f'"{row["user"]}"', row=row["row"].zfill(6)))
    assert called("protect", path, "-o", tmp_path / "r").returncode == 0


@pytest.mark.parametrize(("suffix", "delimiter"), [(".tsv", "\t"), (".jsonl", "")])
def test_forms_in_other_formats(suffix: str, delimiter: str, tmp_path: Path) -> None:
    column, form = FORMS["numbers of rows"]
    text = refused_then_written_in_one_form(write(tmp_path / f"a{suffix}", form, delimiter), column, tmp_path / "r")
    assert ".0\t" not in text
    assert not [
        line for line in text.splitlines() if line.startswith("{") and isinstance(json.loads(line)["row"], float)
    ]


def test_forms_in_parquet_text(tmp_path: Path) -> None:
    path, words = tmp_path / "a.parquet", ("protect", tmp_path / "a.parquet", "-o", tmp_path / "r")
    text = pl.read_csv(write(tmp_path / "a.csv", FORMS["negative numbers"][1]), infer_schema=False)
    text.with_columns(pl.col("latitude", "longitude").cast(pl.Float64)).write_parquet(path)
    assert "--normalise plan" in sentence(called(*words))
    assert called(*words, "--normalise", "plan").returncode == 0
    assert {int(plan) for plan in pl.read_parquet(tmp_path / "r" / "checkins.parquet")["plan"]} == set(range(-10, -3))


@pytest.mark.parametrize("name", ["padded lines", "line ends"])
def test_forms_by_region(name: str, tmp_path: Path) -> None:
    column, form = FORMS[name]
    path = write(tmp_path / "data" / "a.csv", form)
    text = refused_then_written_in_one_form(path.parent, column, tmp_path / "r", "--engine", "local")
    assert "\r" not in text
    assert " \n" not in text


def test_verify_names_a_form_that_reveals_venues(tmp_path: Path) -> None:
    """The release of one who kept the column at their own risk."""
    path = write(tmp_path / "a.csv", FORMS["negative numbers"][1])
    assert called("protect", path, "-o", tmp_path / "r", "--keep", "plan").returncode == 0
    done = called("verify", tmp_path / "r", "--against", path)
    assert done.returncode == 1
    assert "FAIL  kept columns" in done.stdout


def test_from_python(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", FORMS["users with decimals"][1])
    with pytest.raises(InputError, match=r'write it in one form with normalise=\["user"\]'):
        ghostpoi.protect(path)
    made = ghostpoi.protect(path, normalise=["user"])
    assert made.manifest["data"]["reading"] == {"normalise": "user"}
    assert not any("." in user for user in made.table["user"].cast(pl.String))


def test_a_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", lambda row, category: None)
    said = sentence(called("protect", path, "-o", tmp_path / "r", "--normalise", "plans"))
    assert said.startswith(f"--normalise plans: {path} has no column 'plans'; it has category_id, ")


def test_what_is_form_and_what_is_value() -> None:
    ones = pl.Series(["1", " 1", '"1"', "01", "1.0", "+1", "1e0"])
    assert form_of(ones).n_unique() == len(ones)
    assert plain(pl.Series(["1", " 1", "01", "1.0", "+1", "1e0"])).unique().to_list() == ["1"]
    assert form_of(pl.Series(["1", "12", "-3.25", None, ""])).n_unique() == 1
    assert plain(pl.Series(["12e5", "-0", "007", " a  b ", "1.50", "n/a"])).to_list() == [
        "12e5",
        "0",
        "7",
        "a  b",
        "1.5",
        "n/a",
    ]
