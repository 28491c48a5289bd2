"""Compare two sets of rows field by field."""

from collections.abc import Container

import numpy as np

from ghostpoi.formats import Rows
from ghostpoi.formats.rows import Coded


def difference(expected: Rows, found: Rows, ignore: Container[str] = ()) -> str | None:
    """Return the first difference outside the columns to ignore, or None."""
    if expected.columns != found.columns:
        return f"the columns are {', '.join(found.columns)}, not {', '.join(expected.columns)}"
    for name in found.columns:
        if name in ignore or _same_codes(expected, found, name):
            continue
        one, two = expected.get_column(name), found.get_column(name)
        if len(one) != len(two):
            return f"there are {len(two):,} rows, not {len(one):,}"
        if one.dtype != two.dtype:
            return f"the column {name} has type {two.dtype}, not {one.dtype}"
        if not one.equals(two):
            return f"row {int(one.ne_missing(two).arg_max() or 0) + 1} has a different {name}"
    return None


def _same_codes(expected: Rows, found: Rows, name: str) -> bool:
    """Tell whether two columns hold the same texts, from the numbers of the texts; False if that cannot be seen."""
    if not (isinstance(expected, Coded) and isinstance(found, Coded)):
        return False
    one, two = expected.codes(name), found.codes(name)
    if one is None or two is None or len(one[0]) != len(two[0]):
        return False
    number = {text: code for code, text in enumerate(one[1])}
    return bool((np.array([number.get(text, -1) for text in two[1]])[two[0]] == one[0]).all())
