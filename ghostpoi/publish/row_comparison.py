"""Compare two sets of rows field by field."""

from collections.abc import Container

from ghostpoi.data.formats import Rows


def difference(expected: Rows, found: Rows, ignore: Container[str] = ()) -> str | None:
    """Return the first difference outside the columns to ignore, or None."""
    if expected.columns != found.columns:
        return f"the columns are {', '.join(found.columns)}, not {', '.join(expected.columns)}"
    for name in found.columns:
        if name in ignore:
            continue
        one, two = expected.get_column(name), found.get_column(name)
        if len(one) != len(two):
            return f"there are {len(two):,} rows, not {len(one):,}"
        if one.dtype != two.dtype:
            return f"the column {name} has type {two.dtype}, not {one.dtype}"
        if not one.equals(two):
            return f"row {int(one.ne_missing(two).arg_max() or 0) + 1} has a different {name}"
    return None
