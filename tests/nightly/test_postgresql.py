"""A real PostgreSQL server: the same release as from a file, PostGIS points, tables that change, lost connections."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import geopandas
import polars as pl
import pytest
from conftest import ROOT, ghostpoi
from database_files import OLDEST, shuffled, typed_city
from postgres import PASSWORD, Server, server
from small_city import SEED, called, sentence

from benchmarks.databases import TABLE, database
from ghostpoi.formats import databases

TABLES = """
CREATE TABLE numeric_city AS SELECT "user"::varchar AS "user", venue_id::char(24) AS venue_id, category_id,
    latitude::numeric(10, 7) AS latitude, longitude::numeric(10, 7) AS longitude, timezone_offset::int2, utc_time
    FROM checkins
CREATE TABLE binary_city AS SELECT *, '\\x00ff'::bytea AS raw FROM checkins
""".strip().splitlines()


@pytest.fixture(scope="module")
def city() -> pl.DataFrame:
    return typed_city()


@pytest.fixture(scope="module")
def running(city: pl.DataFrame) -> Iterator[Server]:
    with server() as found:
        found.load("checkins", shuffled(city).to_arrow(compat_level=OLDEST))
        yield found


@pytest.fixture(scope="module")
def expected(city: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    """The release of a Parquet file of the same rows."""
    folder = tmp_path_factory.mktemp("file")
    city.write_parquet(folder / "city.parquet")
    words = ["--seed", SEED, "--order", "time", "-o", folder / "release"]
    assert called("protect", folder / "city.parquet", *words).returncode == 0
    return comparable(pl.read_parquet(folder / "release" / "checkins.parquet"))


def comparable(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(pl.col("utc_time").dt.cast_time_unit("us")).sort(rows.columns)


def rows_of(running: Server, sql: str) -> list[tuple[Any, ...]]:
    import adbc_driver_postgresql.dbapi as dbapi

    with dbapi.connect(running.url()) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        found: list[tuple[Any, ...]] = cursor.fetchall()
        return found


@pytest.mark.parametrize("at_scale", [(), ("--memory", "4GB")], ids=["at once", "by region"])
def test_the_same_seed_gives_the_same_rows_as_from_a_file(
    running: Server, expected: pl.DataFrame, at_scale: tuple[str, ...], tmp_path: Path
) -> None:
    out = tmp_path / "release"
    done = called("protect", running.url(), "--table", "public.checkins", "--seed", SEED, "-o", out, *at_scale)
    assert done.returncode == 0, done.stderr
    found = pl.read_parquet(out / "checkins.parquet")
    assert found["utc_time"].is_sorted()
    assert comparable(found).equals(expected)
    assert called("verify", out, "--against", running.url(), "--table", "checkins").returncode == 0
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or PASSWORD.encode() not in path.read_bytes()
    texts = [path.read_text() for path in out.iterdir() if path.suffix == ".json"]
    assert not any("127.0.0.1" in text or "publisher" in text for text in texts)


def test_a_release_is_written_back_with_the_types_of_the_table(running: Server, tmp_path: Path) -> None:
    running.execute(" ".join(TABLES[:3]))
    words = ["protect", running.url(), "--table", "numeric_city", "--to-table", "released"]
    done = called(*words, "-o", tmp_path / "release")
    assert done.returncode == 0, done.stderr
    types = ("SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attnum > 0 "
             "AND attrelid = '{}'::regclass")  # fmt: skip
    assert rows_of(running, types.format("released")) == rows_of(running, types.format("numeric_city"))
    pick = 'SELECT "user", venue_id::text, latitude::text, utc_time FROM released ORDER BY utc_time, "user"'
    written = pl.read_parquet(tmp_path / "release" / "checkins.parquet").select("user", "venue_id", "latitude",
                                                                               "utc_time")  # fmt: skip
    found = pl.DataFrame(rows_of(running, pick), written.columns, orient="row")
    assert found.drop("utc_time").equals(written.drop("utc_time"))
    again = called(*words, "-o", tmp_path / "other")
    assert sentence(again) == "--to-table released exists already; name another, or replace it with --force"
    assert [path.name for path in tmp_path.iterdir()].count("other") == 0


SHAPES = {"geometry": "::geometry(Point, 4326)", "untyped": "", "geography": "::geography(Point, 4326)"}


def with_postgis(running: Server) -> None:
    try:
        running.execute("CREATE EXTENSION IF NOT EXISTS postgis")
    except Exception as e:
        pytest.skip(f"PostGIS is not installed: {type(e).__name__}")


@pytest.mark.parametrize("kind", SHAPES)
def test_points_of_postgis(running: Server, expected: pl.DataFrame, kind: str, tmp_path: Path) -> None:
    """They are found without --map, released as GeoParquet, and written back with their type and system."""
    with_postgis(running)
    name = f"places_{kind}"
    running.execute(
        f'CREATE TABLE {name} AS SELECT "user", venue_id, category_id, category, '
        f"ST_SetSRID(ST_MakePoint(longitude, latitude), 4326){SHAPES[kind]} AS position, utc_time FROM checkins"
    )
    words = ["--table", name, "--to-table", f"released_{name}", "--seed", SEED]
    done = called("protect", running.url(), *words, "-o", tmp_path / "release")
    assert done.returncode == 0, done.stderr
    point = "position::geometry"
    pick = f'SELECT "user", venue_id, ST_Y({point}), ST_X({point}), ST_SRID({point}) FROM released_{name}'
    wanted = [(*row, 4326) for row in expected.select("user", "venue_id", "latitude", "longitude").rows()]
    assert sorted(rows_of(running, pick)) == sorted(wanted)
    types = "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attname = 'position' AND attrelid = "
    assert rows_of(running, f"{types} 'released_{name}'::regclass") == rows_of(running, f"{types} '{name}'::regclass")
    shown = geopandas.read_parquet(tmp_path / "release" / "checkins.parquet")
    assert shown.crs == "OGC:CRS84"
    assert sorted(zip(shown.geometry.y, shown.geometry.x, strict=True)) == sorted(row[2:4] for row in wanted)
    assert called("verify", tmp_path / "release", "--against", running.url(), "--table", name).returncode == 0


def test_other_systems_and_shapes_of_postgis(running: Server, tmp_path: Path) -> None:
    with_postgis(running)
    point = "ST_SetSRID(ST_MakePoint(longitude, latitude), 4326)"
    other = {"metres": f"ST_Transform({point}, 3857)", "areas": f"ST_Buffer({point}, 0.001)"}
    for name, shape in other.items():
        running.execute(f'CREATE TABLE {name} AS SELECT "user", venue_id, {shape} AS position, utc_time FROM checkins')
        said = sentence(called("protect", running.url(), "--table", name, "-o", tmp_path / name))
        kind = {"metres": "POINT of SRID 3857", "areas": "POLYGON"}[name]
        assert f"row 1: the geometry '{kind}' is not a point in degrees of WGS 84; give points" in said
        assert not (tmp_path / name).exists()


def test_a_table_that_changes_is_read_as_it_was(
    running: Server, expected: pl.DataFrame, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    running.execute("CREATE TABLE moving AS SELECT * FROM checkins")
    real, seen = databases.Session.schema, []

    def changed(self: databases.Session) -> Any:
        found = real(self)
        running.execute('DELETE FROM moving WHERE "user" < 30', "UPDATE moving SET latitude = 0")
        seen.append(found)
        return found

    monkeypatch.setattr(databases.Session, "schema", changed)
    done = called("protect", running.url(), "--table", "moving", "--seed", SEED, "-o", tmp_path / "release")
    assert (done.returncode, len(seen)) == (0, 1), done.stderr
    assert comparable(pl.read_parquet(tmp_path / "release" / "checkins.parquet")).equals(expected)


@pytest.mark.parametrize("more", [(), ("--to-table", "lost_release")], ids=["while reading", "while writing"])
def test_a_lost_connection_leaves_no_release(
    running: Server, more: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "release"
    words = ["protect", running.url(), "--table", "checkins", *more, "-o", out]
    cut = ("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'publisher' "
           "AND pid <> pg_backend_pid()")  # fmt: skip
    name = "do" if more else "read"
    real, calls = getattr(databases.Session, name), []

    def lost(self: databases.Session, sql: str) -> Any:
        if sql.startswith(("INSERT", 'SELECT "user"')):
            calls.append(sql)
            running.execute(cut)
        return real(self, sql)

    monkeypatch.setattr(databases.Session, name, lost)
    failed = called(*words)
    monkeypatch.undo()
    assert (failed.returncode, len(calls)) == (1, 1), failed.stderr
    assert failed.stderr == (
        f"ghostpoi: the connection to 127.0.0.1:{running.port}/city was lost; check the server, then try again\n"
    )
    assert not out.exists()
    assert more or not (tmp_path / "release.private").exists()
    assert called(*words, "--resume").returncode == 0
    assert not (tmp_path / "release.private" / databases.ROWS).exists()
    if more:
        assert rows_of(running, "SELECT count(*) FROM lost_release") == [(typed_city().height,)]


def test_a_server_that_stops_while_it_sends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The rows are too many to be underway at once."""
    with server() as own:
        own.execute(
            'CREATE TABLE checkins AS SELECT n % 1000 AS "user", md5((n % 500)::text) AS poi, 40 + n % 500 / '
            "1e4 AS lat, 1.5 AS lon, now() - n * interval '1 hour' AS time FROM generate_series(1, 1000000) n"
        )
        batches, real = [], databases._each

        def stopping(database: databases.Session, found: Any) -> Iterator[Any]:
            for batch in real(database, found):
                if not batches:
                    own.stop()
                batches.append(len(batch))
                yield batch

        monkeypatch.setattr(databases, "_each", stopping)
        failed = called("protect", own.url(), "--table", "checkins", "-o", tmp_path / "release")
    assert failed.returncode == 1
    assert failed.stderr == (
        f"ghostpoi: the connection to 127.0.0.1:{own.port}/city was lost; check the server, then try again\n"
    )
    assert 0 < sum(batches) < 1_000_000
    assert not any(tmp_path.iterdir())


def test_who_may_not_read(running: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, out = f"127.0.0.1:{running.port}", ["-o", tmp_path / "release"]
    refused = f"{place}/city refuses this user or password; correct the URL, or set PGPASSWORD or ~/.pgpass"
    assert sentence(called("protect", running.url("wr0ng-pass"), "--table", "checkins", *out)) == refused
    monkeypatch.setenv("PGPASSWORD", "wr0ng-pass")
    assert sentence(called("protect", running.url(""), "--table", "checkins", *out)) == refused
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert called("inspect", running.url(""), "--table", "checkins").returncode == 0
    monkeypatch.delenv("PGPASSWORD")
    (tmp_path / "pgpass").write_text(f"127.0.0.1:{running.port}:city:publisher:{PASSWORD}\n")
    (tmp_path / "pgpass").chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
    assert called("inspect", running.url(""), "--table", "checkins").returncode == 0
    (tmp_path / "pgpass").unlink()
    assert sentence(called("protect", running.url(database="town"), "--table", "checkins", *out)) == (
        f"{place}/town has no such database; correct the URL"
    )
    assert sentence(called("protect", "postgresql://ann:pw@127.0.0.1:1/city", "--table", "checkins", *out)) == (
        "127.0.0.1:1/city cannot be reached; check the address, and that it is running"
    )
    done = sentence(called("protect", running.url(), "--table", "visits", *out))
    assert done.startswith(f"{place}/city has no table visits; its tables are ")
    assert not any(tmp_path.iterdir())


def test_no_statement_changes_the_database(running: Server, tmp_path: Path) -> None:
    before = rows_of(running, "SELECT count(*) FROM checkins")
    running.execute("CREATE FUNCTION sweep() RETURNS int LANGUAGE sql AS 'DELETE FROM checkins RETURNING 1'")
    done = called("protect", running.url(), "--query", "SELECT *, sweep() FROM checkins", "-o", tmp_path / "release")
    assert sentence(done).startswith("the query of 127.0.0.1:")
    assert rows_of(running, "SELECT count(*) FROM checkins") == before


def test_columns_of_other_types_arrive_as_text(running: Server) -> None:
    running.execute("CREATE TABLE odd (id uuid, price numeric, day date, at time, tags int[], note jsonb, raw bytea)",
                    "INSERT INTO odd VALUES ('00000000-0000-0000-0000-000000000001', 1.50, '2026-01-02', '10:00', "
                    "'{1,2}', '{\"a\": 1}', 'abc')")  # fmt: skip
    source = databases.Source(Path("odd"), query=databases.Query(running.url(), "odd", order_by=("id",)))
    found = databases.in_memory(source, {}).content
    assert found is not None
    assert pl.read_parquet(found).drop("day", "at").rows() == [
        ("00000000-0000-0000-0000-000000000001", "1.50", "{1,2}", '{"a": 1}', "\\x616263")
    ]


def test_other_users_do_not_see_the_password(running: Server, tmp_path: Path) -> None:
    """A command that waits for a lock of the table: its command line as `ps` shows it."""
    running.execute("CREATE TABLE held AS SELECT * FROM checkins")
    import adbc_driver_postgresql.dbapi as dbapi

    with dbapi.connect(running.url()) as connection, connection.cursor() as cursor:
        cursor.execute("LOCK TABLE held")
        command = [sys.executable, "-m", "ghostpoi", "inspect", running.url(), "--table", "held"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env={**os.environ}) as started:
            waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
            while rows_of(running, waiting) == [(0,)]:
                assert started.poll() is None
            line = Path(f"/proc/{started.pid}/cmdline").read_bytes()
            connection.rollback()
            started.communicate()
    assert started.returncode == 0
    assert PASSWORD.encode() not in line
    assert b"postgresql://publisher@127.0.0.1" in line
    assert ghostpoi("inspect", running.url("wr0ng-pass"), "--table", "held").stderr.count("wr0ng-pass") == 0


def test_the_benchmark_compares_a_table_with_a_file(tmp_path: Path) -> None:
    with server() as own:
        found = database(30_000, own.url(), tmp_path, lambda text: None)
        assert rows_of(own, f"SELECT count(*) FROM pg_tables WHERE tablename = '{TABLE}'") == [(0,)]
    assert found["ratio"] == found["postgresql"]["seconds"] / found["parquet"]["seconds"]
    assert 20_000 < found["rows"] < 40_000
    assert [path.name for path in tmp_path.iterdir()] == ["rows-30000"]  # the world, for the next time
