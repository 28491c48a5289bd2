"""What to read from a database, and where that is."""

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import unquote

from ghostpoi.errors import InputError
from ghostpoi.options import option

URL = re.compile(r"postgres(?:ql)?://", re.IGNORECASE)
SECRET = re.compile(r"([?&])password=([^&]*)(&?)")
HEAD = 72  # bytes that tell databases apart
SQLITE, DUCKDB = b"SQLite format 3\x00", b"DUCK"  # the first bytes of such a file; those of DuckDB's from the ninth on


@dataclass(frozen=True)
class Query:
    """What to read from a database, and where that is."""

    place: str = field(repr=False)  # the URL of a server, which may hold a password, or the path of a file
    table: str = ""
    sql: str = ""  # in place of a table
    order_by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.table) == bool(self.sql):
            asked = "give one of them" if self.table else "name what to read"
            raise InputError(
                f"{shown_place(self.place)} is a database; {asked}: {option('table', 'NAME')} or "
                f"{option('query', 'SELECT ...', shown=repr)}"
            )

    def __str__(self) -> str:
        what = f"table {self.table}" if self.table else "the query"
        return f"{what} of {shown_place(self.place)}"

    @property
    def stated(self) -> dict[str, str]:
        """What is asked for, by the names of options."""
        return {"table": self.table, "query": self.sql, "order_by": ",".join(self.order_by)}

    @property
    def relation(self) -> str:
        """What follows FROM."""
        what = f"({self.sql.strip().rstrip(';')})" if self.sql else quoted(self.table)
        return f"{what} AS asked"


def is_url(place: str) -> bool:
    """Return whether a place is the URL of a server, not a path."""
    return URL.match(place) is not None


def database_of(place: str) -> str:
    """Return the kind of the database at a place, a key of ENGINES; "" if it is none."""
    if URL.match(place):
        return "postgresql"
    if not os.path.isfile(place):  # to look into a pipe would take what it gives
        return ""
    with suppress(OSError), open(place, "rb") as file:
        head = file.read(HEAD)
        if head.startswith(SQLITE):
            return "" if is_geopackage(head) else "sqlite"
        return "duckdb" if head[8:].startswith(DUCKDB) else ""
    return ""


def is_geopackage(head: bytes) -> bool:
    """Return whether an SQLite database is a GeoPackage, by its first bytes."""
    return head.startswith(SQLITE) and head[68:72] in (b"GPKG", b"GP10", b"GP11")


def shown_place(place: str) -> str:
    """Return how messages name a database: without user, password and parameters, whatever signs they hold."""
    return URL.sub("", place).rsplit("@", 1)[-1].partition("?")[0] if URL.match(place) else place


def without_password(url: str) -> tuple[str, str]:
    """Return a URL without its password, and the password; "" if it has none."""
    if not is_url(url):
        return url, ""
    if found := SECRET.search(url):
        return url[: found.start()] + (found[1] if found[3] else "") + url[found.end() :], unquote(found[2])
    start, sign, rest = url.rpartition("@")
    name, colon, secret = start.partition("://")[2].partition(":")
    return (f"{start.partition('://')[0]}://{name}{sign}{rest}", unquote(secret)) if colon else (url, "")


def quoted(name: str, whole: bool = False) -> str:
    """Return a name in the quotes of SQL, by default with that of its schema before a point."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in ([name] if whole else name.split(".")))
