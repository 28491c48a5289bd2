"""A region whose rows are all withheld: nothing of it is written."""

from dataclasses import fields, replace

import numpy as np

from ghostpoi.data.checkins import Checkins
from ghostpoi.formats import CheckinFile

PER_ROW = ("user", "venue", "category", "lat", "lon", "time", "crossing")
IDS = {"user_ids": 0, "venue_ids": 1, "category_ids": 0}  # how many stay: venues are numbered from 1


def without_rows(file: CheckinFile) -> CheckinFile:
    """Return a file of the same kind that has no rows."""
    table, none = file.table, np.empty(0, np.int64)
    kept = dict.fromkeys(PER_ROW, 0) | IDS
    short = {f.name: value[: kept[f.name]] for f in fields(Checkins)
             if f.name in kept and (value := getattr(table, f.name)) is not None}  # fmt: skip
    return replace(file, table=replace(table, **short), missing=none, parse_rows=lambda: file.all_rows.take(none))
