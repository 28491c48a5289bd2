"""Which column was taken for which field, and why: what `inspect` tells."""

from collections.abc import Mapping

from ghostpoi.formats.base import CheckinFile
from ghostpoi.formats.fields import COLUMN_NAMES, plain_name
from ghostpoi.formats.zones import has_names
from ghostpoi.options import option

WITHOUT_NAMES = ("tsmc2014", "snap")  # formats with fixed columns


def chosen_columns(file: CheckinFile, given: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the column of each field and the reason; `given` is the user's choice, field by field."""
    found = {
        field: {"column": column, "chosen_by": _reason(file, field, given)} for field, column in file.mapping.items()
    }
    if has_names(file.rows.get_column(file.mapping["time"])):
        found["time"]["chosen_by"] += "; it names time zones"
    return found


def _reason(file: CheckinFile, field: str, given: Mapping[str, str]) -> str:
    if field in given:
        return option("map")
    if file.venues and field in file.venues.mapping:
        return f"its name in {file.venues.path.name}"
    if file.reading.columns:
        return option("columns")
    names = [name for tier in COLUMN_NAMES.get(field, ()) for name in tier]
    if file.format in WITHOUT_NAMES or plain_name(file.mapping[field]) not in names:
        return f"its place ({file.format})"
    taken = set(file.mapping.values())
    others = [repr(c) for c in file.rows.columns if c not in taken and plain_name(c) in names]
    return "its name" + (f", before {' and '.join(others)}" if others else "")
