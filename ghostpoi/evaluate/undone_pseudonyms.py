"""A release with pseudonyms, as it would be with the clean user ids and in the order of the clean file."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from ghostpoi.data.checkins import Checkins, Longs, renumber
from ghostpoi.data.formats import CheckinFile
from ghostpoi.errors import InputError
from ghostpoi.publish.pseudonyms import PAIRS, read_map


def undo(released: CheckinFile, clean: Checkins, private: Path) -> tuple[CheckinFile, Longs]:
    """Return the release with true users, rows in clean order, and the pseudonym of each row, (N,)."""
    known, table = read_map(private), released.table
    user_of = dict(zip(known.pseudonym.tolist(), known.user.tolist(), strict=True))
    users = [user_of.get(name) for name in table.user_ids.tolist()]
    fits = len(known.row) == len(table) and None not in users and known.row.max(initial=0) < len(clean)
    if not fits or not (clean.time[known.row] == table.time).all():
        raise InputError(
            f"{private / PAIRS} holds the pseudonyms of another release or file than {released.path}; name the private "
            "folder that protect wrote with --private"
        )
    names, code = np.unique(np.array(users, object).astype(str), return_inverse=True)
    order = np.argsort(known.row)
    pseudonym = table.user[order].astype(np.int64)
    raw = code[pseudonym]
    user, user_ids = renumber(raw, np.unique(raw), names.astype(object))
    columns = {name: getattr(table, name)[order] for name in ("venue", "category", "lat", "lon", "time")}
    restored = replace(table, user=user, user_ids=user_ids, **columns)
    return replace(released, table=restored, parse_rows=lambda: released.rows.take(order)), pseudonym
