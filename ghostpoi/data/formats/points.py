"""Positions written as WKT points, longitude first: POINT (-73.99 40.73)."""

import polars as pl

POINT = "point"  # an optional field, in place of lat and lon
NUMBER = r"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
FORM = rf"^\s*(?i:SRID=4326;\s*)?(?i:POINT)\s*\(\s*{NUMBER}\s+{NUMBER}\s*\)\s*$"


def with_positions(frame: pl.DataFrame) -> pl.DataFrame:
    """Add latitude and longitude from the points, null where a point has another form."""
    if POINT not in frame.columns:
        return frame
    text = pl.col(POINT).cast(pl.String)
    return frame.with_columns(
        lon=text.str.extract(FORM, 1).cast(pl.Float64), lat=text.str.extract(FORM, 2).cast(pl.Float64)
    )
