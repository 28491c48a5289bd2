"""Positions in one column, longitude first: WKT points, POINT (-73.99 40.73), or LibCity's pairs, [-73.99,40.73]."""

import polars as pl

POINT = "point"  # an optional field, in place of lat and lon
NUMBER = r"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
FORMS = (
    rf"^\s*(?i:SRID=4326;\s*)?(?i:POINT)\s*\(\s*{NUMBER}\s+{NUMBER}\s*\)\s*$",
    rf"^\s*\[\s*{NUMBER}\s*,\s*{NUMBER}\s*\]\s*$",
)


def with_positions(frame: pl.DataFrame) -> pl.DataFrame:
    """Add latitude and longitude from the points, null where a point has another form."""
    if POINT not in frame.columns:
        return frame
    text = pl.col(POINT).cast(pl.String)
    lon, lat = (pl.coalesce(text.str.extract(form, group) for form in FORMS).cast(pl.Float64) for group in (1, 2))
    return frame.with_columns(lon=lon, lat=lat)


def as_written(lat: float, lon: float, like: str) -> str:
    """Write a position in the form of another one."""
    return f"[{lon},{lat}]" if like.strip(' "').startswith("[") else f"POINT ({lon} {lat})"
