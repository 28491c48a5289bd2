"""Folders of files: read as one table, released as the same parts, refused where a row's part reveals its venue."""

import gzip
import hashlib
import json
import random
import warnings
from functools import cache
from itertools import pairwise
from pathlib import Path

import mlcroissant
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_city import called, scratch, sentence

from ghostpoi import formats
from ghostpoi.data.checkins import Checkins
from ghostpoi.data.synthetic_files import write_city

SEED = ("--seed", str(3**60))


@cache
def city() -> pl.DataFrame:
    """A small city as text, in the order of time."""
    path = scratch() / "folders-city.csv"
    write_city(path, 40, 120, 60, 1)
    return pl.read_csv(path, infer_schema=False)


def divided(folder: Path, part: list[int], ending: str = ".csv") -> Path:
    """The city in parts; `part` has the number of the part of each row."""
    folder.mkdir()
    frame = city().with_columns(part=pl.Series(part))
    for (number,), rows in frame.group_by("part", maintain_order=True):
        path = folder / f"part-{number}{ending}"
        rows.drop("part").write_csv(path) if ending == ".csv" else rows.drop("part").write_parquet(path)
    return folder


def in_thirds() -> list[int]:
    return [3 * i // city().height for i in range(city().height)]


def same(one: Checkins, two: Checkins) -> bool:
    names = [name for name in Checkins.__dataclass_fields__ if name != "name"]
    return all(np.array_equal(getattr(one, n), getattr(two, n)) for n in names if n != "category_groups")


def whole(folder: Path) -> Path:
    path = folder / "whole.csv"
    city().write_csv(path)
    return path


def test_parts_are_one_table(tmp_path: Path) -> None:
    one = formats.read(whole(tmp_path))
    for ending in (".csv", ".parquet"):
        several = formats.read(divided(tmp_path / ending, in_thirds(), ending))
        assert same(several.table, one.table)
        assert several.sha256 != one.sha256
        assert [several.rows.get_column(c).to_list() for c in city().columns] == [
            city()[c].to_list() for c in city().columns
        ]


@given(cuts=st.lists(st.integers(1, 30), min_size=1, max_size=4, unique=True))
def test_wherever_a_text_is_cut(cuts: list[int], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("cut")
    lines = [f'u{i % 3},v{i * 7 % 5},"c{i * 7 % 5}, ""x""",1.0,{i * 7 % 5},{i * 60}\n' for i in range(31)]
    (folder / "one.csv").write_text("user,venue,category,lat,lon,time\n" + "".join(lines))
    (folder / "parts").mkdir()
    places = [0, *sorted(cuts), 31]
    for number, (begin, stop) in enumerate(pairwise(places)):
        text = "user,venue,category,lat,lon,time\n" + "".join(lines[begin:stop])
        (folder / "parts" / f"{number}.csv").write_text(text)
    assert same(formats.read(folder / "parts").table, formats.read(folder / "one.csv").table)


def test_a_release_has_the_same_parts_and_the_bytes_of_one_file(tmp_path: Path) -> None:
    folder = divided(tmp_path / "in", in_thirds())
    (folder / "year=2012").mkdir()
    (folder / "part-2.csv").rename(folder / "year=2012" / "part-2.csv")
    middle = folder / "part-1.csv"
    (folder / "part-1.csv.gz").write_bytes(gzip.compress(middle.read_bytes()))
    middle.unlink()
    (folder / "part-9.csv").write_text(",".join(city().columns) + "\n")  # without rows
    (folder / "_SUCCESS").touch()
    release = tmp_path / "release"
    assert called("protect", folder, "-o", release, *SEED).returncode == 0
    assert called("protect", whole(tmp_path), "-o", tmp_path / "one", *SEED).returncode == 0
    names = ["part-0.csv", "part-1.csv", "part-9.csv", "year=2012/part-2.csv"]
    assert sorted(p.relative_to(release / "checkins").as_posix() for p in release.rglob("*.csv")) == names
    header, *rows = (tmp_path / "one" / "checkins.csv").read_text().splitlines()
    parts = {name: (release / "checkins" / name).read_text().splitlines() for name in names}
    assert all(lines[0] == header for lines in parts.values())
    assert [row for lines in parts.values() for row in lines[1:]] == rows
    assert [len(lines) - 1 for lines in parts.values()] == [sum(p == n for p in in_thirds()) for n in (0, 1, 9, 2)]
    data = json.loads((release / "manifest.json").read_text())["data"]
    assert data["parts"] == {n: hashlib.sha256((release / "checkins" / n).read_bytes()).hexdigest() for n in names}
    listed = "".join(f"{data['parts'][name]}  {name}\n" for name in names)
    assert data["sha256"] == hashlib.sha256(listed.encode()).hexdigest()
    done = called("verify", release, "--against", folder)
    assert done.returncode == 0, done.stdout
    assert "parts            4 parts" in done.stdout


def released(tmp_path: Path, *words: object) -> tuple[Path, Path]:
    folder, release = divided(tmp_path / "in", in_thirds()), tmp_path / "release"
    done = called("protect", folder, "-o", release, *SEED, *words)
    assert done.returncode == 0, done.stderr
    return folder, release


def test_parquet_parts(tmp_path: Path) -> None:
    folder, release = divided(tmp_path / "in", in_thirds(), ".parquet"), tmp_path / "release"
    assert called("protect", folder, "-o", release, *SEED).returncode == 0
    before, after = (pl.read_parquet(p / "part-1.parquet") for p in (folder, release / "checkins"))
    assert before.schema == after.schema
    assert before["utc_time"].equals(after["utc_time"])
    assert not before["venue_id"].equals(after["venue_id"])
    assert called("verify", release, "--against", folder).returncode == 0


def test_pseudonyms_divide_the_rows_anew(tmp_path: Path) -> None:
    users = [int(user) % 2 for user in city()["user"]]  # two parts that separate users
    folder, release = divided(tmp_path / "in", users), tmp_path / "release"
    assert called("protect", folder, "-o", release, *SEED, "--pseudonyms", "session").returncode == 0
    assert sorted(p.name for p in (release / "checkins").iterdir()) == ["part-00000.csv", "part-00001.csv"]
    parts = [formats.read(release / "checkins" / f"part-0000{n}.csv").table for n in (0, 1)]
    assert parts[0].time.max() <= parts[1].time.min()
    assert abs(len(parts[0]) - len(parts[1])) <= 1  # neither names nor sizes reveal whose rows a part held
    assert called("verify", release, "--against", folder).returncode == 0


def test_line_ends_do_not_tell_users_apart(tmp_path: Path) -> None:
    folder = divided(tmp_path / "in", [int(user) % 2 for user in city()["user"]])
    part = folder / "part-1.csv"
    part.write_bytes(part.read_bytes().replace(b"\n", b"\r\n"))
    assert called("protect", folder, "-o", tmp_path / "release", *SEED, "--pseudonyms", "session").returncode == 0
    lines = b"".join(p.read_bytes() for p in sorted((tmp_path / "release" / "checkins").iterdir())).split(b"\n")
    assert {line.endswith(b"\r") for line in lines[1:-1] if b"user," not in line} in ({True}, {False})


def test_a_changed_part_and_a_file_too_many(tmp_path: Path) -> None:
    _, release = released(tmp_path)
    part = release / "checkins" / "part-1.csv"
    text = part.read_text()
    part.write_text(text + text.splitlines()[-1] + "\n")
    done = called("verify", release)
    assert done.returncode == 1
    assert "the SHA-256 of checkins/part-1.csv differs from the manifest" in done.stdout
    part.write_text(text)
    assert called("verify", release).returncode == 0
    (release / "checkins" / "more.csv").write_text(text)
    done = called("verify", release)
    assert done.returncode == 1
    assert "checkins/more.csv" in done.stdout


@pytest.mark.parametrize("name", ["../outside.csv", "/etc/hosts", "a//b.csv", "x\0.csv", "\ud800.csv", ""])
def test_a_manifest_whose_parts_lead_elsewhere(name: str, tmp_path: Path) -> None:
    _, release = released(tmp_path)
    path = release / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["data"]["parts"] = {name: "0" * 64}
    path.write_text(json.dumps(manifest))
    assert "data.parts are not plain paths" in sentence(called("verify", release))


def test_rows_in_other_parts_than_before(tmp_path: Path) -> None:
    _, release = released(tmp_path)
    other = divided(tmp_path / "other", [min(1, n) for n in in_thirds()])
    done = called("verify", release, "--against", other)
    assert done.returncode == 1
    assert "the rows are in other parts than before" in done.stdout


def test_report_audit_and_export_of_a_folder(tmp_path: Path) -> None:
    folder, release = released(tmp_path)
    assert called("report", release).returncode == 0
    metadata = json.loads((release / "croissant.json").read_text())
    assert [part["contentUrl"] for part in metadata["distribution"][:-1]] == [
        f"checkins/part-{n}.csv" for n in range(3)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that mlcroissant uses
        found = mlcroissant.Dataset(jsonld=str(release / "croissant.json"))
        assert not found.metadata.ctx.issues.errors
        assert len(list(found.records("checkins"))) == city().height
    assert "a folder of 3 parts, UTF-8 text" in (release / "card.md").read_text()
    quick = ("--victim", "markov", "--seeds", "1", "--adversaries", "frequency", "--cache", tmp_path / "cache")
    done = called("audit", folder, release, *quick)
    assert done.returncode == 0, done.stderr
    assert called("export", release, "--to", "recbole", "-o", tmp_path / "export").returncode == 0
    assert called("verify", release).returncode == 0


def refusal(folder: Path, *words: object) -> str:
    before = set(folder.parent.iterdir())
    said = sentence(called("protect", folder, "-o", folder.parent / "release", *SEED, *words))
    assert set(folder.parent.iterdir()) == before
    return said


def test_parts_by_category_are_refused(tmp_path: Path) -> None:
    names = sorted(set(city()["category"]))
    said = refusal(divided(tmp_path / "in", [names.index(c) % 2 for c in city()["category"]]))
    assert "its parts follow from the venue, and a venue of part-" in said
    assert "divide the rows by time or at random, or give one file" in said
    free = refusal(tmp_path / "in", "--method", "geo-indistinguishability")
    assert "can become one of part-" in free


def test_parts_that_depend_on_the_venue_are_refused(tmp_path: Path) -> None:
    noise, venues = random.Random(0), sorted(set(city()["venue_id"]))
    part = [venues.index(v) % 2 if noise.random() < 0.95 else noise.randrange(2) for v in city()["venue_id"]]
    assert "the part of the folder" in refusal(divided(tmp_path / "in", part))


def test_parts_by_city_and_by_user_are_kept(tmp_path: Path) -> None:
    there = city().with_columns(
        user=pl.lit("t") + pl.col("user"), venue_id=pl.lit("t") + pl.col("venue_id"),
        latitude=(pl.col("latitude").cast(pl.Float64) + 2).cast(pl.String),
    )  # fmt: skip
    (tmp_path / "in").mkdir()
    for name, rows in (("here", city()), ("there", there)):
        (tmp_path / "in" / f"city={name}").mkdir()
        rows.write_csv(tmp_path / "in" / f"city={name}" / "visits.csv")
    done = called("protect", tmp_path / "in", "-o", tmp_path / "release", *SEED)
    assert done.returncode == 0, done.stderr
    users = divided(tmp_path / "users", [int(user) % 3 for user in city()["user"]])
    assert called("protect", users, "-o", tmp_path / "other", *SEED).returncode == 0


def test_a_pattern(tmp_path: Path) -> None:
    folder = divided(tmp_path / "in", in_thirds())
    (folder / "notes.txt").write_text("not check-ins")
    assert len(formats.read(folder / "part-*.csv").table) == city().height
    assert f"{folder / 'x*.csv'} names no file" in refusal_of(folder / "x*.csv")


def refusal_of(path: Path) -> str:
    return sentence(called("inspect", path))


def test_folders_that_are_no_table(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert f"{tmp_path / 'empty'} holds no files" in refusal_of(tmp_path / "empty")
    mixed = divided(tmp_path / "mixed", in_thirds())
    (mixed / "part-0.csv").unlink()
    city().head(5).write_parquet(mixed / "part-0.parquet")
    assert "has another format than" in refusal_of(mixed)
    columns = divided(tmp_path / "columns", in_thirds())
    city().head(5).with_columns(more=pl.lit(1)).write_csv(columns / "part-8.csv")
    assert "part-8.csv has other columns than" in refusal_of(columns)
    bad = divided(tmp_path / "bad", in_thirds())
    lines = (bad / "part-1.csv").read_text().splitlines()
    (bad / "part-1.csv").write_text("\n".join([*lines[:2], lines[2].replace("-73.", "x73."), *lines[3:]]))
    assert f"{bad / 'part-1.csv'}, line 3: the longitude" in refusal_of(bad)
    twice = divided(tmp_path / "twice", in_thirds())
    (twice / "part-1.csv.gz").write_bytes(gzip.compress((twice / "part-1.csv").read_bytes()))
    assert "holds part-1.csv more than once" in refusal_of(twice)
    for text in ("# Read me\n", "user, poi and more", ",".join(city().columns[:3])):
        notes = divided(tmp_path / f"notes{len(text)}", in_thirds())
        (notes / "README.md").write_text(text)
        assert refusal_of(notes) == (
            f"{notes / 'README.md'} holds no rows, and not the columns of {notes / 'part-0.csv'}; remove it, or name "
            f"the other files with a pattern such as {notes}/*.csv"
        )
    headers = tmp_path / "headers"
    headers.mkdir()
    (headers / "a.csv").write_text(",".join(city().columns) + "\n")
    assert "has no check-ins" in refusal_of(headers)
    (headers / "a.csv").write_text('[{"user": 1}]')
    assert sentence(called("inspect", headers))
    points = sentence(called("inspect", twice, "--cluster-points", "100m"))
    assert "--cluster-points needs all points in one file" in points
