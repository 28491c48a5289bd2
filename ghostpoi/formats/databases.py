"""Tables of databases: read as Arrow batches in one transaction, and releases written back in one.

PostgreSQL and SQLite are read through ADBC, DuckDB through its own Arrow reader, which has the same shape. What is read
becomes Parquet, in memory or in a private file, and is released like any Parquet file.
"""

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ghostpoi.data.checkins import DATE
from ghostpoi.errors import ConnectionLost, InputError
from ghostpoi.files import replacing
from ghostpoi.formats import geometry
from ghostpoi.formats.content import database_of
from ghostpoi.formats.fields import find_columns
from ghostpoi.formats.source import URL, Query, Source, quoted, shown_place
from ghostpoi.options import option
from ghostpoi.plugins import installing

if TYPE_CHECKING:  # pyarrow is slow to import
    import pyarrow as pa

GROUP = 1 << 18  # rows of a row group of what is read, which bounds the memory
BATCH = 1 << 16  # rows of a record batch
SORTING = "256MB"  # of the server's memory, to order the rows
TIES = (DATE, "time", "user")  # the fields by which rows are ordered, if nothing is said: no venue is among them
LISTED = 10  # tables that a message names
GEOMETRY = ("geometry", "geography")  # types of PostGIS
# Types of Arrow that Parquet has, too.
PLAIN = ("integer", "floating", "boolean", "string", "large_string", "timestamp", "date", "time", "decimal", "null",
         "binary")  # fmt: skip
WGS84 = 4326  # as PostGIS calls it
ROWS = "rows.parquet"  # the rows of a database, in a private folder
STAGED = "ghostpoi_released"  # a temporary table or view


@dataclass(frozen=True)
class Engine:
    """How to speak to a kind of database."""

    driver: str  # the module
    connect: Callable[[Any, str, bool], Any]  # opens a place with it, to read only or to write
    begin: tuple[str, ...]  # a transaction that sees one state of the database and changes nothing
    tables: str  # lists the names of tables
    writes: tuple[str, ...] = ()  # begins a transaction that writes, if the driver does not
    types: str = ""  # lists the columns of a table, and their types where text must be converted to them
    exact: frozenset[str] = frozenset()  # the types that Arrow holds as they are; empty: PLAIN


DUCK, LITE = "duckdb", "adbc_driver_sqlite.dbapi"  # drivers
ENGINES = {
    "postgresql": Engine(
        "adbc_driver_postgresql.dbapi", lambda driver, place, read_only: driver.connect(place),
        # Parallel and shared scans return rows that tie in an order that varies.
        ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY", "SET LOCAL synchronize_seqscans = off",
         "SET LOCAL max_parallel_workers_per_gather = 0", f"SET LOCAL work_mem = '{SORTING}'"),
        "SELECT CASE table_schema WHEN 'public' THEN '' ELSE table_schema || '.' END || table_name "
        "FROM information_schema.tables WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1",
        types="SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute "
        "WHERE attrelid = {table}::regclass AND attnum > 0 AND NOT attisdropped",
        exact=frozenset({"int2", "int4", "int8", "float4", "float8", "bool", "text", "varchar", "bpchar", "timestamp",
                         "timestamptz", "date", "time"}),
    ),
    "sqlite": Engine(
        LITE,
        lambda driver, place, ro: driver.connect(f"{Path(place).absolute().as_uri()}?mode={'ro' if ro else 'rw'}"),
        ("PRAGMA query_only = 1",),
        "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY name",
    ),
    "duckdb": Engine(
        DUCK, lambda driver, place, read_only: driver.connect(place, read_only=read_only), ("BEGIN TRANSACTION",),
        "SELECT table_name FROM information_schema.tables ORDER BY 1",
        writes=("BEGIN TRANSACTION",),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Session:
    """An open transaction. Its errors are sentences without passwords and values."""

    query: Query
    engine: Engine
    connection: Any
    cursor: Any  # the only one: a reader ends with its cursor

    def read(self, sql: str) -> Any:
        """Run a query and return a reader of its record batches."""
        with speaking(self.query):
            if self.engine.driver == DUCK:
                return self.cursor.sql(sql).to_arrow_reader(BATCH)
            if self.engine.driver == LITE:  # the types of columns follow from the first batch
                self.cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(BATCH)})
            self.cursor.execute(sql)
            return self.cursor.fetch_record_batch()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a short answer."""
        found = self.read(sql)
        with speaking(self.query):
            return [tuple(row.values()) for row in found.read_all().to_pylist()]

    def do(self, sql: str) -> None:
        """Run a statement that returns nothing."""
        with speaking(self.query):
            self.cursor.execute(sql)

    def schema(self) -> "pa.Schema":
        """Return the columns of what is asked for; refuse a table that is not there."""
        names = [] if self.query.sql else [str(name) for (name,) in self.rows(self.engine.tables)]
        if names and self.query.table not in (*names, *(f"public.{name}" for name in names)):
            raise InputError(
                f"{shown_place(self.query.place)} has no table {self.query.table}; its tables are "
                f"{', '.join(names[:LISTED])}{', ...' if len(names) > LISTED else ''}"
            )
        return self.read(f"SELECT * FROM {self.query.relation} LIMIT 0").schema

    def selected(self, field: "pa.Field") -> str:
        """Return what selects a column: geometry as WKB, other types that Arrow or Parquet lack as text."""
        import pyarrow as pa

        name, kind = quoted(field.name, whole=True), (field.metadata or {}).get(b"POSTGRESQL:type", b"").decode()
        if kind in GEOMETRY:  # as plain WKB, if it is in degrees; else with its system, which is refused
            shape = f"{name}::geometry"
            wkb = f"CASE WHEN ST_SRID({shape}) IN (0, {WGS84}) THEN ST_AsBinary({shape}) ELSE ST_AsEWKB({shape}) END"
            return f"{wkb} AS {name}"
        plain = any(getattr(pa.types, f"is_{one}")(field.type) for one in PLAIN)
        plain = is_geometry(field) or (kind in self.engine.exact if kind else plain)
        return name if plain else f"CAST({name} AS VARCHAR) AS {name}"

    def write(self, name: str, path: Path, replace_it: bool) -> None:
        """Create a table with the types of the columns that were read, and fill it with the rows of a Parquet file."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            listed = ", ".join(quoted(column, whole=True) for column in schema.names)
            if replace_it:
                self.do(f"DROP TABLE IF EXISTS {quoted(name)}")
            self.do(f"CREATE TABLE {quoted(name)} AS SELECT {listed} FROM {self.query.relation} WHERE 1 = 0")
            rows = pa.RecordBatchReader.from_batches(schema, file.iter_batches(BATCH))
            with speaking(self.query):
                if self.engine.driver == DUCK:
                    self.cursor.register(STAGED, rows)
                else:
                    self.cursor.adbc_ingest(STAGED, rows, mode="create", temporary=True)
            table = "'" + quoted(name).replace("'", "''") + "'"
            types = dict(self.rows(self.engine.types.format(table=table))) if self.engine.types else {}
            cast = list[str]()
            for column in schema.names:
                kind, value = types.get(column), quoted(column, whole=True)
                if kind and kind.startswith(GEOMETRY):  # WKB does not name the system of its degrees
                    value = f"ST_SetSRID({value}::geometry, {WGS84})"
                cast.append(f"CAST({value} AS {kind})" if kind else value)
            self.do(f"INSERT INTO {quoted(name)} ({listed}) SELECT {', '.join(cast)} FROM {STAGED}")


def is_geometry(field: "pa.Field") -> bool:
    """Return whether a column of a database holds geometry."""
    metadata = field.metadata or {}
    own = metadata.get(b"POSTGRESQL:type", b"").decode() in GEOMETRY
    return own or geometry.extension(field)[0] in geometry.ENCODINGS


@contextmanager
def session(query: Query, read_only: bool = True) -> Iterator[Session]:
    """Open a database and begin a transaction, which is rolled back unless it is committed."""
    engine = ENGINES[database_of(query.place)]
    try:
        with speaking(query):
            connection = engine.connect(import_module(engine.driver), query.place, read_only)
    except ImportError:
        raise InputError(
            f"{shown_place(query.place)} is a database; install what reads it with {installing('databases')}"
        ) from None
    found = Session(query, engine, connection, connection.cursor())
    try:
        for statement in engine.begin if read_only else engine.writes:
            found.do(statement)
        yield found
    finally:
        for opened in (found.cursor, connection):
            with suppress(Exception):  # the connection may be lost
                opened.close()


@contextmanager
def speaking(query: Query) -> Iterator[None]:
    """Say in one sentence what a database refused. Its own words may quote values, so few of them are repeated."""
    try:
        yield
    except (InputError, ImportError, MemoryError):
        raise
    except Exception as e:
        raise _refusal(query, e) from None


REFUSALS = (  # what a message has, what to say; the first that fits counts
    ("password|no pg_hba|role .* does not exist|authenticat",
     "{place} refuses this user or password; correct the URL, or set PGPASSWORD or ~/.pgpass"),
    ("database .* does not exist", "{place} has no such database; correct the URL"),
    ("Failed to connect|failed to open", "{place} cannot be reached; check the address, and that it is running"),
    ("locked|set lock|different configuration", "{place} is locked by another process; wait until that has finished"),
    ("permission denied", "{query} may not be used by this user; ask for the right to it, or use another table"),
    ("already exists", "{query}: the table to write exists already; name another, or replace it with {force}"),
    ("[Nn]o such|does not exist|not found|syntax error|Parser Error|Binder Error",
     "{query} cannot be read, because a name or the syntax is wrong; correct {asked}"),
)  # fmt: skip
LOST = re.compile("server closed|connection|terminat|no connection", re.IGNORECASE)


def _refusal(query: Query, error: Exception) -> InputError:
    text, place = str(error), shown_place(query.place)
    asked = option("query") if query.sql else option("table", query.table)
    for pattern, sentence in REFUSALS:
        if re.search(pattern, text):
            return InputError(sentence.format(place=place, query=query, asked=asked, force=option("force")))
    if LOST.search(text) and URL.match(query.place):
        return ConnectionLost(f"the connection to {place} was lost; check the server, then try again")
    state = getattr(error, "sqlstate", None) or type(error).__name__  # the message may quote values
    return InputError(f"{query}: the database failed ({state}); correct {asked}, or look into its log")


def fetch(source: Source, mapping: Mapping[str, str], out: BinaryIO) -> None:
    """Write the rows of a database as Parquet, in the order asked for, in row groups that bound the memory."""
    import pyarrow as pa

    from ghostpoi.formats.parquet import write_tables

    assert source.query is not None
    with session(source.query) as database:
        schema = database.schema()
        shapes = [field.name for field in schema if is_geometry(field)]
        if not (order := source.query.order_by):  # no column of the venue, whose order would reveal it
            found = find_columns(source, schema.names, dict(mapping), point=next(iter(shapes), ""))
            order = tuple(found[field] for field in TIES if field in found)
        if strange := [name for name in order if name not in schema.names]:
            raise InputError(
                f"{option('order_by', ','.join(order))}: {source} has no column {strange[0]!r}; its columns are "
                f"{', '.join(schema.names)}"
            )
        columns = ", ".join(database.selected(schema.field(name)) for name in schema.names)
        by = ", ".join(f"asked.{quoted(name, whole=True)}" for name in order)
        batches = database.read(f"SELECT {columns} FROM {source.query.relation} ORDER BY {by}")
        geo = {"version": "1.1.0", "primary_column": next(iter(shapes), "")}
        geo["columns"] = {name: {"encoding": "WKB"} for name in shapes}
        notes = {geometry.GEO: json.dumps(geo).encode()} if shapes else None
        kinds = [getattr(field.type, "storage_type", field.type) for field in batches.schema]
        # DuckDB gives instants the zone of this machine, which is nobody's business.
        kinds = [pa.timestamp(k.unit, "UTC") if pa.types.is_timestamp(k) and k.tz else k for k in kinds]
        plain = pa.schema(zip(batches.schema.names, kinds, strict=True), notes)
        tables = (pa.Table.from_batches([batch], batches.schema).cast(plain) for batch in _each(database, batches))
        write_tables(tables, plain, out, GROUP)


def _each(database: Session, batches: Any) -> "Iterator[pa.RecordBatch]":
    """Yield record batches; say in one sentence why there are no more."""
    while True:
        with speaking(database.query):
            try:
                batch = batches.read_next_batch()
            except StopIteration:
                return
        yield batch


def in_memory(source: Source, mapping: Mapping[str, str]) -> Source:
    """Return the rows of a database as Parquet in memory."""
    fetch(source, mapping, out := io.BytesIO())
    return replace(source, content=out.getvalue(), suffix=".parquet", query=None)


def stored(source: Source, mapping: Mapping[str, str], path: Path) -> Source:
    """Return the rows of a database as a Parquet file of its owner alone."""
    with replacing(path, mode=0o600) as out:
        fetch(source, mapping, out)
    return replace(source, path=path, query=None)


def check_target(query: Query, name: str, replaces: bool) -> None:
    """Refuse a table to write to that is the one that is read or, unless it is to be replaced, that is there."""
    if name.removeprefix("public.") == query.table.removeprefix("public."):
        raise InputError(f"{option('to_table', name)} is the table that is read; name another")
    with session(query) as database:
        if not replaces and (name.removeprefix("public."),) in database.rows(database.engine.tables):
            raise InputError(
                f"{option('to_table', name)} exists already; name another, or replace it with {option('force')}"
            )


@contextmanager
def table_written(query: Query, name: str, path: Path, replaces: bool) -> Iterator[None]:
    """Write the rows of a Parquet file to a table. Others see it only when the block has ended without an error."""
    with session(query, read_only=False) as database:
        database.write(name, path, replaces)
        yield
        with speaking(query):
            (database.cursor if database.engine.driver == DUCK else database.connection).commit()
