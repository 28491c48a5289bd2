"""From the columns of a file to what reading it returns: the last step of every format."""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import polars as pl

from ghostpoi.data.formats.base import CheckinFile, Rows
from ghostpoi.data.formats.fields import to_checkins
from ghostpoi.data.formats.joined import with_venue_fields
from ghostpoi.data.formats.missing import Where, complete_rows, places


def to_file(
    path: Path, data: bytes, format: str, mapping: dict[str, str], fields: pl.DataFrame, where: Where,
    rows: Callable[[], Rows],
) -> CheckinFile:  # fmt: skip
    """Return a file that was read: `fields` has a column per field, `where` names the place of a row."""
    fields = with_venue_fields(fields, where)
    complete, place, missing = complete_rows(fields, where)
    table = to_checkins(complete, mapping.get("category", ""), place, str(path))
    at = places(missing, where) if len(missing) else ""
    return CheckinFile(
        path, format, mapping, table, sha256(data).digest(), rows, missing=missing, missing_at=at
    )  # fmt: skip
