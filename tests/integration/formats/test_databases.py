"""Tables of SQLite and DuckDB files: the same release as from a file, written back, and what is refused."""

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from database_files import as_duckdb, as_sqlite, shuffled, typed_city
from small_city import SEED, called, sentence

import ghostpoi
from ghostpoi.formats import databases


@pytest.fixture(scope="module")
def city() -> pl.DataFrame:
    return typed_city()


@pytest.fixture(scope="module")
def files(city: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, rows = tmp_path_factory.mktemp("databases"), shuffled(city)
    rows.with_columns(pl.col("utc_time").dt.to_string("%Y-%m-%dT%H:%M:%SZ")).write_csv(folder / "city.csv")
    return {
        "csv": folder / "city.csv", "sqlite": as_sqlite(rows, folder / "city.sqlite"),
        "duckdb": as_duckdb(rows, folder / "city.duckdb"),
    }  # fmt: skip


def comparable(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows without the types and the order of a format."""
    time = rows["utc_time"]
    plain = rows.with_columns(pl.col("user").cast(pl.Int64), pl.col("timezone_offset").cast(pl.Int64))
    plain = plain.with_columns(utc_time=time.str.to_datetime(time_zone="UTC") if time.dtype == pl.String else time)
    return plain.with_columns(pl.col("utc_time").dt.cast_time_unit("us")).sort(plain.columns)


@pytest.fixture(scope="module")
def expected(files: dict[str, Path]) -> pl.DataFrame:
    return comparable(ghostpoi.protect(files["csv"], seed=SEED, order="time").table)


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
@pytest.mark.parametrize("at_scale", [(), ("--memory", "4GB")], ids=["at once", "by region"])
def test_the_same_seed_gives_the_same_rows_as_from_a_file(
    files: dict[str, Path], expected: pl.DataFrame, kind: str, at_scale: tuple[str, ...], tmp_path: Path
) -> None:
    out = tmp_path / "release"
    done = called("protect", files[kind], "--table", "checkins", "-o", out, "--seed", SEED, *at_scale)
    assert done.returncode == 0, done.stderr
    assert f"audit {files[kind]} --table checkins {out}" in done.stdout.replace("\n", " ").replace("  ", " ")
    found = pl.read_parquet(out / "checkins.parquet")
    assert comparable(found).equals(expected)
    assert found["utc_time"].is_sorted()
    assert {path.name for path in (tmp_path / "release.private").iterdir()} <= {
        "run.json", "pairs.npz", "pairs", "signing.key"
    }  # fmt: skip
    assert str(files[kind]) not in (out / "manifest.json").read_text()
    checked = called("verify", out, "--against", files[kind], "--table", "checkins")
    assert checked.returncode == 0, checked.stdout
    if at_scale:
        return
    checked = called("verify", out, "--against", files[kind], "--query", "SELECT * FROM checkins WHERE user != 3")
    assert checked.returncode != 0


def test_what_follows_a_release_of_a_table(files: dict[str, Path], tmp_path: Path) -> None:
    file, settings = files["sqlite"], tmp_path / "city.toml"
    done = called("init", file, "--table", "checkins", "-o", settings)
    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith(f"then: ghostpoi choose {file} --table checkins --config {settings}\n")
    ghostpoi.protect(file, table="checkins", config=settings, seed=SEED, output=tmp_path / "release")
    quick: dict[str, Any] = {"adversaries": ["none"], "victim": ["markov"], "seeds": 1, "naturalness": False}
    quick["set"] = {"filters.train_share": 0.5, "filters.val_share": 0.25}
    found = ghostpoi.audit(file, tmp_path / "release", table="checkins", **quick, store=False)
    again = ghostpoi.audit(files["csv"], tmp_path / "release", **quick, order="time", store=False)
    assert found.accuracy == again.accuracy


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_frame_of_a_query(files: dict[str, Path], kind: str) -> None:
    made = ghostpoi.protect(files[kind], query="SELECT * FROM checkins WHERE user < 30", order_by="utc_time,user")
    assert made.table["user"].max() == 29
    assert made.folder is None
    found = ghostpoi.inspect(files[kind], table="checkins")
    assert found.summary["checkins"] == typed_city().height


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_release_is_written_back(files: dict[str, Path], city: pl.DataFrame, kind: str, tmp_path: Path) -> None:
    own = tmp_path / files[kind].name
    own.write_bytes(files[kind].read_bytes())
    words = ["protect", own, "--table", "checkins", "--drop", "category", "--to-table", "released"]
    assert called(*words, "-o", tmp_path / "one").returncode == 0
    columns, rows = table_of(own, "released")
    clean, _ = table_of(own, "checkins")
    assert columns == [column for column in clean if column[0] != "category"]
    written = pl.read_parquet(tmp_path / "one" / "checkins.parquet")
    assert [row[:-1] for row in rows] == written.drop("utc_time").rows()
    assert sentence(called(*words, "-o", tmp_path / "two")) == (
        "--to-table released exists already; name another, or replace it with --force"
    )
    assert not (tmp_path / "two").exists()
    assert not (tmp_path / "two.private").exists()
    assert called(*words, "-o", tmp_path / "one", "--force").returncode == 0
    assert table_of(own, "released")[1] != rows
    assert table_of(own, "checkins")[1] == table_of(files[kind], "checkins")[1]


def table_of(path: Path, name: str) -> tuple[list[tuple[str, str]], list[tuple[object, ...]]]:
    """The columns of a table, and its rows with times as text."""
    connection = (sqlite3.connect if path.suffix == ".sqlite" else duckdb.connect)(path)
    columns = connection.execute(f"SELECT name, type FROM pragma_table_info('{name}')").fetchall()
    shown = ", ".join(f"CAST({column} AS TEXT)" if column == "utc_time" else column for column, _ in columns)
    rows = connection.execute(f"SELECT {shown} FROM {name} ORDER BY utc_time").fetchall()
    connection.close()
    kinds = {"INTEGER": "INT", "BIGINT": "INT"}  # SQLite keeps the affinity of a type
    return [(column, kinds.get(kind, kind)) for column, kind in columns], rows


def test_neither_folder_nor_table_if_one_fails(files: dict[str, Path], tmp_path: Path,
                                               monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    own = as_sqlite(typed_city(), tmp_path / "own.sqlite")
    words = ["protect", own, "--table", "checkins", "--to-table", "released", "-o", tmp_path / "release"]
    real = databases.Session.write

    def lost(self: databases.Session, name: str, path: Path, replaces: bool) -> None:
        real(self, name, path, replaces)
        raise databases.ConnectionLost("the connection to own.sqlite was lost; check the server, then try again")

    monkeypatch.setattr(databases.Session, "write", lost)
    failed = called(*words)
    assert (failed.returncode, failed.stderr.count("\n")) == (1, 1)
    assert not (tmp_path / "release").exists()
    with sqlite3.connect(own) as connection:
        connection.execute("DELETE FROM checkins WHERE user = 3")  # the run holds the rows that it has read
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (1,)
    connection.close()
    monkeypatch.undo()
    assert called(*words, "--resume").returncode == 0
    assert len(table_of(own, "released")[1]) == typed_city().height
    assert not (tmp_path / "release.private" / databases.ROWS).exists()


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ((), "{file} is a database; name what to read: --table NAME or --query 'SELECT ...'"),
        (("--table", "visits"), "{file} has no table visits; its tables are checkins"),
        (("--query", "SELEC 1"),
         "the query of {file} cannot be read, because a name or the syntax is wrong; correct --query"),
        (("--query", "SELECT nothing FROM checkins"),
         "the query of {file} cannot be read, because a name or the syntax is wrong; correct --query"),
        (("--query", "SELECT * FROM checkins WHERE user < 0"),
         "the query of {file} has columns but no check-ins; give a file with at least one row of data"),
        (("--table", "checkins", "--order-by", "when"),
         "--order-by when: table checkins of {file} has no column 'when'; its columns are user, venue_id, "
         "category_id, category, latitude, longitude, timezone_offset, utc_time"),
        (("--table", "checkins", "--order-by", "venue_id"),
         "table checkins of {file}: its rows are grouped by venue, so their order reveals clean venues; sort them by "
         "time with --order time"),
        (("--table", "checkins", "--to-table", "checkins"),
         "--to-table checkins is the table that is read; name another"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_what_is_refused_leaves_nothing(
    files: dict[str, Path], kind: str, more: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    before = files[kind].read_bytes()
    done = called("protect", files[kind], *more, "-o", tmp_path / "release")
    assert sentence(done) == expected.format(file=files[kind])
    assert not any(tmp_path.iterdir())
    assert files[kind].read_bytes() == before


def test_options_of_databases_are_for_databases(files: dict[str, Path], tmp_path: Path) -> None:
    assert sentence(called("inspect", files["csv"], "--table", "checkins")) == (
        "--table checkins is for a database: postgresql://USER@HOST/DATABASE, or a file of SQLite or DuckDB"
    )
    assert sentence(called("protect", files["csv"], "--to-table", "released", "-o", tmp_path / "release")) == (
        "--to-table released is for check-ins that come from a database"
    )


def test_a_locked_database(tmp_path: Path) -> None:
    own = as_sqlite(typed_city(), tmp_path / "own.sqlite")
    hold = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('BEGIN EXCLUSIVE'); print(flush=True); input()"
    command = [sys.executable, "-c", hold, own]  # locks of one process do not exclude each other
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert sentence(called("inspect", own, "--table", "checkins")) == (
            f"{own} is locked by another process; wait until that has finished"
        )
        other.communicate("\n")
