"""--pseudonyms: user ids that change with every session or week, the order of rows, verify, and the private map."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sample_releases import put_manifest
from small_city import (
    CONFIG,
    RICH,
    SEED,
    SETS,
    SMALL,
    Release,
    called,
    city,
    protect,
    release,
    rich_csv,
    rich_frame,
    rich_parquet,
    sentence,
)  # fmt: skip

import ghostpoi
from ghostpoi import formats
from ghostpoi.data.checkins import Checkins
from ghostpoi.data.pseudonyms import of_rows
from ghostpoi.errors import InputError
from ghostpoi.release import private_folder as making
from ghostpoi.release.identity import clean_rows
from ghostpoi.release.manifest import settings_of

GAP = 86_400
SESSION = ("--pseudonyms", "session")
CSV = (*SESSION, "--drop", "gender")  # a column that is constant per user is refused


def table_of(made: Release) -> Checkins:
    manifest = made.manifest
    return formats.read(made.data, manifest["columns"]["fields"], manifest["data"]["format"]).table


def checks(folder: Path, *more: object) -> dict[str, bool]:
    done = called("verify", folder, *more, "--json")
    found = {c["check"]: c["passed"] for c in json.loads(done.stdout)["checks"]}
    assert done.returncode == (0 if all(found.values()) else 1)
    return found


def failed(folder: Path, *more: object) -> set[str]:
    return {name for name, passed in checks(folder, *more).items() if not passed}


@pytest.mark.parametrize("kind", ["session", "week"])
@pytest.mark.parametrize("more", [(), ("--no-candidate", "withhold")])
def test_every_session_or_week_has_an_id_of_its_own(kind: str, more: tuple[str, ...]) -> None:
    made = release("random", "txt", "--pseudonyms", kind, *more)
    kept = release("random", "txt", *more)
    clean, shown, plain = formats.read(city()).table, table_of(made), table_of(kept)
    row = clean_rows(made.private, clean, shown, settings_of(made.manifest))
    number = of_rows(clean, "session" if kind == "session" else "week", GAP)[row]
    assert len(set(zip(number.tolist(), shown.user.tolist(), strict=True))) == len(shown.user_ids) == len(set(number))
    assert not set(shown.user_ids) & set(clean.user_ids)
    assert made.manifest["identity"] == {"ids": len(shown.user_ids), "row_order": "time, then user id"}
    key = list(zip(shown.time.tolist(), shown.user_ids[shown.user].tolist(), strict=True))
    assert key == sorted(key)
    # The venues are those of the release that keeps user ids.
    before = clean.user_ids[clean.user[row]], shown.time, shown.venue_ids[shown.venue]
    after = plain.user_ids[plain.user], plain.time, plain.venue_ids[plain.venue]
    assert sorted(zip(*(c.tolist() for c in before), strict=True)) == sorted(
        zip(*(c.tolist() for c in after), strict=True)
    )
    assert failed(made.folder) == failed(made.folder, "--against", city()) == set()


def test_every_person_has_one_id_of_the_file() -> None:
    made = release("random", "txt", "--pseudonyms", "file")
    clean, shown = formats.read(city()).table, table_of(made)
    row = clean_rows(made.private, clean, shown, settings_of(made.manifest))
    pairs = set(zip(clean.user[row].tolist(), shown.user.tolist(), strict=True))
    assert len(pairs) == len(clean.user_ids) == len(shown.user_ids)
    assert not set(shown.user_ids) & set(clean.user_ids)
    assert f"{len(clean.user_ids)} pseudonyms, one per user;" in made.done.stdout
    assert failed(made.folder) == failed(made.folder, "--against", city()) == set()


def test_a_person_who_never_pauses_changes_her_id_every_day(tmp_path: Path) -> None:
    """Without a gap of 24 hours, a session would last for months."""
    file = tmp_path / "busy.csv"
    rows = [(u, v % 7, 1, 40.7 + v % 7 / 1e3, -74.0, at) for u in range(60) for v, at in enumerate(
        range(1_350_000_000 + 997 * u, 1_350_000_000 + 300 * GAP, 6 * 3600 + 1800 * (u % 30)))]  # fmt: skip
    pl.DataFrame(rows, ["user", "venue_id", "category", "lat", "lon", "time"], orient="row").write_csv(file)
    for kind, longest in (("session", GAP), ("week", 7 * GAP)):
        made = protect(file, tmp_path / kind, "--method", "random", "--seed", SEED, "--pseudonyms", kind)
        shown = pl.read_csv(made.data).group_by("user").agg(pl.col("time").max() - pl.col("time").min())
        assert longest * 0.7 < shown["time"].max() < longest
        assert failed(made.folder, "--against", file) == set()


def test_the_same_seed_gives_the_same_bytes_and_the_flag_is_a_setting(tmp_path: Path) -> None:
    made = release("random", "txt", *SESSION)
    setting = ("--set", "identity.pseudonyms=session", "--set", "identity.pseudonyms=session")
    again = protect(city(), tmp_path / "r", "--method", "random", "--seed", SEED, *setting)
    assert again.data.read_bytes() == made.data.read_bytes()
    other = protect(city(), tmp_path / "s", "--method", "random", "--seed", SEED + 1, *SESSION)
    assert set(table_of(other).user_ids) != set(table_of(made).user_ids)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--pseudonyms", "day"), "--pseudonyms day: use keep, file, session or week"),
        (
            (*SESSION, "--set", "identity.pseudonyms=week"),
            "--pseudonyms session and --set identity.pseudonyms=week contradict each other; give one of them",
        ),
    ],
)
def test_refusals_of_the_flag(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    assert sentence(called("protect", city(), "-o", tmp_path / "r", *SETS, *words)) == said
    assert not list(tmp_path.iterdir())


def test_nothing_in_the_release_folder_names_a_user(tmp_path: Path) -> None:
    names = {u: f"person-{u:0>3}-{hashlib.sha256(str(u).encode()).hexdigest()[:6]}" for u in rich_frame()["Who"]}
    file = tmp_path / "named.csv"
    rich_frame().drop("gender").with_columns(Who=pl.Series([names[u] for u in rich_frame()["Who"]])).write_csv(file)
    made = protect(file, tmp_path / "r", *SESSION, *RICH)
    assert called("report", made.folder).returncode == 0
    for path in made.folder.iterdir():
        text = path.read_bytes().decode("latin-1")
        assert not [name for name in names.values() if name in text], path.name
    assert failed(made.folder) == set()
    assert b"person" not in made.data.read_bytes()
    with np.load(made.private / "pairs.npz") as pairs:
        assert set(pairs["user"]) == set(names.values())


def test_quotes_stay_quotes(tmp_path: Path) -> None:
    """One spelling for all rows: where only some ids were quoted, quotes would reveal whose they are."""
    lines = rich_csv().read_text().splitlines()
    at = lines[0].split(",").index("Who")
    assert at == 1
    frame = rich_frame().drop("gender", "title", "address", "checkin", "mood")
    rows = [",".join(frame.columns)]
    rows += [",".join([f'"{who}"' if int(who) % 3 == 0 else who, *map(str, rest)]) for who, *rest in frame.iter_rows()]
    file = tmp_path / "quoted.csv"
    file.write_text("\n".join(rows) + "\n")
    made = protect(file, tmp_path / "r", *SESSION, "--map", "user=Who", "--map", "poi=spot")
    assert all(line.startswith('"') for line in made.data.read_text().splitlines()[1:])
    assert failed(made.folder, "--against", file) == set()


@pytest.mark.parametrize("kind", ["int32", "uint16", "float", "string", "large_string", "string_view", "dictionary"])
def test_parquet_types_stay(kind: str, tmp_path: Path) -> None:
    table = pq.read_table(rich_parquet()).drop_columns(["gender"])
    types = {
        "int32": pa.int32(), "uint16": pa.uint16(), "float": pa.float64(), "string": pa.string(),
        "large_string": pa.large_string(), "string_view": pa.string_view(),
        "dictionary": pa.dictionary(pa.int8(), pa.string()),
    }  # fmt: skip
    at, type_ = table.column_names.index("Who"), types[kind]
    text = table.column("Who").cast(pa.string())
    new = text.dictionary_encode().cast(type_) if kind == "dictionary" else table.column("Who")
    new = new if kind == "dictionary" else (text if "string" in kind else new).cast(type_)
    file = tmp_path / "in.parquet"
    pq.write_table(table.set_column(at, pa.field("Who", type_), new), file)
    made = protect(file, tmp_path / "r", *SESSION, *RICH)
    before, after = (pq.read_table(path).schema.field("Who").type for path in (file, made.data))
    if kind == "dictionary":  # 8 bits count no more than 127 ids
        assert (before.index_type, after.index_type, after.value_type) == (pa.int8(), pa.int32(), pa.string())
    else:
        assert after == before
    assert failed(made.folder, "--against", file) == set()


def test_a_type_that_holds_too_few_ids_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    file = tmp_path / "in.parquet"
    table = pq.read_table(rich_parquet()).drop_columns(["gender"])
    pq.write_table(table.set_column(1, "Who", table.column("Who").cast(pa.int8())), file)
    assert table.column_names[1] == "Who"
    said = sentence(called("protect", file, "-o", tmp_path / "r", *SETS, *SESSION, *RICH))
    assert "too few values for" in said
    assert "store user ids as 64-bit integers or as text" in said
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


# Manipulations of a release, after which the manifest has the hash of the new data.

Lines = list[list[str]]


def swap_two_ids(rows: Lines) -> None:
    one, two = rows[0][0], next(row[0] for row in rows if row[0] != rows[0][0])
    for row in rows:
        row[0] = {one: two, two: one}.get(row[0], row[0])
    rows.sort(key=lambda row: (order[row[7]], row[0]))


def swap_one_row(rows: Lines) -> None:
    other = next(row for row in rows if row[0] != rows[0][0])
    rows[0][0], other[0] = other[0], rows[0][0]


def keep_an_id(rows: Lines) -> None:
    old, new = rows[0][0], formats.read(city()).table.user_ids[0]
    for row in rows:
        row[0] = new if row[0] == old else row[0]


def merge_two_sessions(rows: Lines) -> None:
    one, two = rows[0][0], next(row[0] for row in rows if row[0] != rows[0][0])
    for row in rows:
        row[0] = one if row[0] == two else row[0]


def sort_by_id(rows: Lines) -> None:
    rows.sort(key=lambda row: row[0])


order: dict[str, int] = {}


@pytest.mark.parametrize(
    ("change", "without", "against"),
    [
        (swap_two_ids, set(), {"pseudonyms"}),
        (swap_one_row, {"speed"}, {"pseudonyms"}),
        (keep_an_id, set(), {"pseudonyms"}),
        (merge_two_sessions, {"user ids", "speed"}, {"pseudonyms"}),
        (sort_by_id, {"row order"}, {"pseudonyms"}),
    ],
)
def test_verify_finds_a_manipulation(
    change: Callable[[Lines], None], without: set[str], against: set[str], tmp_path: Path
) -> None:
    made, folder = release("random", "txt", *SESSION), tmp_path / "t"
    shutil.copytree(made.folder, folder)
    rows = [line.split("\t") for line in made.data.read_text("latin-1").splitlines()]
    order.update(zip((row[7] for row in rows), table_of(made).time.tolist(), strict=True))
    change(rows)
    data = "".join("\t".join(row) + "\n" for row in rows).encode("latin-1")
    (folder / "checkins.txt").write_bytes(data)
    manifest = made.manifest
    manifest["data"]["sha256"] = hashlib.sha256(data).hexdigest()
    put_manifest(folder, manifest)
    # A step more or less changes the number of steps, which the manifest counts.
    assert failed(folder) - {"speed"} == without - {"speed"}
    assert failed(folder, "--against", city(), "--private", made.private) >= against


def test_verify_against_the_clean_file_needs_the_private_map(tmp_path: Path) -> None:
    made, folder = release("random", "txt", *SESSION), tmp_path / "copy"
    shutil.copytree(made.folder, folder)
    assert failed(folder) == set()
    assert sentence(called("verify", folder, "--against", city())) == (
        f"this release has pseudonyms or other times, and {folder}.private does not hold the private map that undoes "
        "them; name the private folder that protect wrote with --private"
    )
    ask = ("verify", folder, "--against", city(), "--private")
    assert called(*ask, made.private).returncode == 0
    assert "holds no map of rows" in sentence(called(*ask, release("random").private))
    assert sentence(called("verify", folder, "--private", made.private)).startswith("--private is for a comparison")
    other = release("random", "txt", "--pseudonyms", "week")
    assert failed(folder, "--against", city(), "--private", other.private) == {"pseudonyms"}
    clean = formats.read(city()).table
    with pytest.raises(InputError, match="holds the map of another release or file than"):
        clean_rows(other.private, clean, table_of(made), settings_of(made.manifest))


def test_an_interrupted_run_ends_with_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("protect", city(), "-o", tmp_path / "r", "--method", "random", "--seed", SEED, *SETS, *SESSION)

    def broken(*arguments: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(making, "publish_folder", broken)
    assert called(*words).returncode == 2
    assert not (tmp_path / "r").exists()
    monkeypatch.undo()
    week = (*words[:-1], "week")
    assert "the settings differ" in sentence(called(*week, "--resume"))
    assert called(*words, "--resume").returncode == 0
    made = release("random", "txt", *SESSION)
    assert (tmp_path / "r" / "checkins.txt").read_bytes() == made.data.read_bytes()
    assert failed(tmp_path / "r", "--against", city()) == set()
    assert called(*words[:-2], "--force").returncode == 0  # a release that keeps user ids takes its place
    assert failed(tmp_path / "r", "--against", city()) == set()


def test_the_dry_run_counts_them(tmp_path: Path) -> None:
    words = ("protect", city(), "-o", tmp_path / "r", *SETS, *SESSION, "--dry-run")
    found = json.loads(called(*words, "--json").stdout)
    assert found["pseudonyms"] == release("random", "txt", *SESSION).manifest["identity"]["ids"]
    assert f"gives users {found['pseudonyms']:,} pseudonyms" in called(*words).stdout


def frame(kind: pl.DataType | type[pl.DataType]) -> pl.DataFrame:
    return rich_frame().drop("gender", "mood", "checkin").with_columns(Who=pl.col("Who").cast(kind))


API: dict[str, Any] = {
    "method": "random", "seed": SEED, "set": SMALL, "config": CONFIG, "map": {"user": "Who", "poi": "spot"},
    "pseudonyms": "session",
}  # fmt: skip


@pytest.mark.parametrize("kind", [pl.Int16, pl.String, pl.Categorical, pl.Enum([str(i) for i in range(1, 61)])])
def test_a_data_frame_gets_them_too(kind: pl.DataType) -> None:
    table = frame(pl.String) if isinstance(kind, pl.Enum) else frame(kind)
    table = table.with_columns(pl.col("Who").cast(kind))
    released = ghostpoi.protect(table, **API).table
    assert released.columns == table.columns
    assert type(released["Who"].dtype) is type(table["Who"].dtype)
    assert not set(released["Who"].cast(pl.String)) & set(table["Who"].cast(pl.String))
    time = released["timestamp"].str.to_datetime("%a %b %d %H:%M:%S %z %Y")
    assert time.is_sorted()
    assert sorted(time) == sorted(table["timestamp"].str.to_datetime("%a %b %d %H:%M:%S %z %Y"))
    assert released.equals(ghostpoi.protect(table, **API).table)


def test_a_pandas_frame_gets_them_too() -> None:
    table = frame(pl.Int32).to_pandas()
    released = ghostpoi.protect(table.astype({"Who": "category"}), **API).table
    assert str(released["Who"].dtype) == "category"
    assert not set(released["Who"].cat.categories) & set(table["Who"])
    assert list(released.index) == list(range(len(table)))  # the old one would reveal the order of the file
    indexed = ghostpoi.protect(table.set_index("Who"), **API).table
    assert indexed.index.name == "Who"
    assert not set(indexed.index) & set(table["Who"])
