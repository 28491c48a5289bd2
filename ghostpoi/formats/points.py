"""Positions in one column, longitude first: WKT points, POINT (-73.99 40.73), or LibCity's pairs, [-73.99,40.73]."""

import polars as pl

POINT = "point"  # an optional field, in place of lat and lon
NUMBER = r"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
START = r"^\s*(?i:SRID=4326;\s*)?(?i:POINT)\s*"
FORMS = (
    rf"{START}\(\s*{NUMBER}\s+{NUMBER}\s*\)\s*$",
    rf"^\s*\[\s*{NUMBER}\s*,\s*{NUMBER}\s*\]\s*$",
)
EMPTY = rf"{START}(?i:EMPTY|\(\s*nan\s+nan\s*\))\s*$"


def with_positions(frame: pl.DataFrame) -> pl.DataFrame:
    """Add latitude and longitude from the points, null where a point has another form."""
    if POINT not in frame.columns:
        return frame
    text = pl.col(POINT).cast(pl.String)
    lon, lat = (pl.coalesce(text.str.extract(form, group) for form in FORMS).cast(pl.Float64) for group in (1, 2))
    return frame.with_columns(lon=lon, lat=lat)


def is_empty_point(points: pl.Series) -> pl.Series:
    """Mark the points (N,) that have no position, as PostGIS and GeoPandas write them: POINT EMPTY."""
    return points.cast(pl.String).str.contains(EMPTY).fill_null(False)


def as_written(lat: float, lon: float, like: str) -> str:
    """Write a position in the form of another one."""
    return f"[{lon},{lat}]" if like.strip(' "').startswith("[") else f"POINT ({lon} {lat})"
