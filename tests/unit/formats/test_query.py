"""What is read from a database: how places are recognised, and that no message shows a password."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.api.given import source_of
from ghostpoi.errors import InputError
from ghostpoi.formats.content import database_of
from ghostpoi.formats.source import Query, quoted, shown_place, without_password


@pytest.mark.parametrize(
    ("url", "without", "secret", "shown"),
    [
        ("postgresql://ann:pw@host:5433/city", "postgresql://ann@host:5433/city", "pw", "host:5433/city"),
        ("postgres://ann:p%40w@host/city", "postgres://ann@host/city", "p@w", "host/city"),
        ("postgresql://ann:a/b@c@host/city", "postgresql://ann@host/city", "a/b@c", "host/city"),
        ("postgresql://ann@host/city?password=pw&sslmode=require", "postgresql://ann@host/city?sslmode=require",
         "pw", "host/city"),
        ("postgresql:///city?host=/tmp&password=pw", "postgresql:///city?host=/tmp", "pw", "/city"),
        ("postgresql://ann@host/city", "postgresql://ann@host/city", "", "host/city"),
        ("a:b@c.sqlite", "a:b@c.sqlite", "", "a:b@c.sqlite"),
    ],
)  # fmt: skip
def test_places(url: str, without: str, secret: str, shown: str) -> None:
    assert without_password(url) == (without, secret)
    assert shown_place(url) == shown


@given(st.text(st.characters(codec="ascii", exclude_characters="%"), min_size=4))
def test_no_password_is_shown(secret: str) -> None:
    query = Query(f"postgresql://ann:#{secret}#@host/city", "t")
    assert str(query) == "table t of host/city"
    assert secret not in repr(query).replace("table='t'", "")


def test_names_are_quoted() -> None:
    assert quoted('odd"name') == '"odd""name"'
    assert quoted("a.b") == '"a"."b"'
    assert quoted("a.b", whole=True) == '"a.b"'


def test_files_are_recognised_by_their_first_bytes(tmp_path: Path) -> None:
    for name, head in (("sqlite", b"SQLite format 3\x00"), ("duckdb", bytes(8) + b"DUCK@"), ("", b"user,poi\n")):
        (tmp_path / "file").write_bytes(head)
        assert database_of(str(tmp_path / "file")) == name
    assert database_of(str(tmp_path)) == database_of(str(tmp_path / "absent")) == ""
    assert database_of("postgresql://host/city") == "postgresql"


@pytest.mark.parametrize(
    ("table", "sql", "asked"), [("", "", "name what to read"), ("t", "SELECT 1", "give one of them")]
)
def test_one_of_table_and_query(table: str, sql: str, asked: str) -> None:
    with pytest.raises(InputError, match=f"city is a database; {asked}: --table NAME or --query"):
        Query("postgresql://ann:pw@host/city", table, sql)


def test_a_call_that_repeats_a_step_has_no_password() -> None:
    source = source_of("postgresql://ann:pw@host/city", {"table": "visits", "order_by": "day, id"})
    assert source.place == "postgresql://ann@host/city"
    assert source.query is not None
    assert source.query.stated == {"table": "visits", "query": "", "order_by": "day,id"}
    assert str(source) == "table visits of host/city"
    assert "pw" not in repr(source)
