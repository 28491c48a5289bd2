"""A release with pseudonyms, as it would be with the clean user ids and in the order of the clean file."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from ghostpoi.data.checkins import Checkins, Longs, renumber
from ghostpoi.formats import CheckinFile
from ghostpoi.publish.pseudonyms import clean_rows


def undo(released: CheckinFile, clean: Checkins, private: Path) -> tuple[CheckinFile, Longs]:
    """Return the release with true users, rows in clean order, and the pseudonym of each row, (N,)."""
    table, row = released.table, clean_rows(private, clean, released.table)
    order = np.argsort(row)
    raw = clean.user[row[order]]
    distinct = np.unique(raw)
    user, user_ids = renumber(raw, distinct, clean.user_ids[distinct])
    columns = {name: getattr(table, name)[order] for name in ("venue", "category", "lat", "lon", "time")}
    restored = replace(table, user=user, user_ids=user_ids, **columns)
    pseudonym = table.user[order].astype(np.int64)
    return replace(released, table=restored, parse_rows=lambda: released.rows.take(order)), pseudonym
