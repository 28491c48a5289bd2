"""Points in WKB, whatever its byte order, system and dimensions; and bytes that are none."""

import struct

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.formats.geometry import is_empty, named, positions, wkb_points

Degrees = st.tuples(st.floats(-180, 180), st.floats(-90, 90))


@given(st.lists(st.tuples(Degrees, st.booleans(), st.sampled_from([None, 0, 4326]), st.booleans()), min_size=1))
def test_any_form_of_a_point(
    cases: list[tuple[tuple[float, float], bool, int | None, bool]],
) -> None:
    rows = []
    for place, little, srid, high in cases:
        order, flags = "<" if little else ">", 0 if srid is None else 0x20000000
        kind = (1 | 0x80000000 if srid is not None else 1001) if high else 1
        system = b"" if srid is None else struct.pack(f"{order}I", srid)
        numbers = struct.pack(f"{order}{'ddd' if high else 'dd'}", *place, *[7.0] * high)
        rows.append(struct.pack(f"{order}BI", little, kind | flags) + system + numbers)
    expected = [place for place, *_ in cases]
    assert positions(pl.Series(rows)).rows() == expected
    text = pl.Series([row.hex().upper() for row in rows])
    assert positions(text).rows() == expected
    assert set(named(pl.Series(rows))) <= {"POINT", "POINT of SRID 0", "POINT of SRID 4326"}


@given(st.lists(Degrees, min_size=1))
def test_written_points_are_read(places: list[tuple[float, float]]) -> None:
    lon, lat = pl.DataFrame(places, ["lon", "lat"], orient="row").to_numpy().T
    points = pl.Series(wkb_points(lon, lat))
    assert positions(points).rows() == places
    assert not is_empty(points).any()


@given(st.lists(st.none() | st.binary(max_size=60), min_size=1))
def test_any_bytes(values: list[bytes | None]) -> None:
    column = pl.Series(values, dtype=pl.Binary)
    assert positions(column).height == len(is_empty(column)) == len(named(column)) == len(values)
