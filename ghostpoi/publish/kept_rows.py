"""Rows that lack a value and stay in the release as they are, between the rows of the table."""

import numpy as np

from ghostpoi.data.checkins import Longs
from ghostpoi.data.formats import CheckinFile
from ghostpoi.errors import InputError


def in_file(file: CheckinFile, donor: Longs, shown: Longs) -> tuple[Longs, Longs]:
    """Turn the donor of each row of the table, and the rows to show, into rows of the file; kept rows stay."""
    if not len(file.kept):
        return donor, shown
    every = np.arange(len(file.table) + len(file.missing))
    every[file.present] = file.present[donor]
    return every, np.sort(np.concatenate([file.present[shown], file.kept]))


def check_kept(file: CheckinFile, hides_users: bool) -> str | None:
    """Return the warning about rows that lack a value; refuse to keep the user ids of some rows beside pseudonyms."""
    if not len(file.missing):
        return None
    what = "that lack a value or lie in no cluster" if file.reading.cluster_points else "with missing values"
    count = f"{len(file.missing):,} row{'s' * (len(file.missing) > 1)} {what} ({file.missing_at})"
    if not len(file.kept):
        return f"{count}: left out of the release"
    if hides_users:
        raise InputError(
            f"{file.path}: {count} would keep their user ids, which pseudonyms replace; use --missing drop"
        )
    return f"{count}: kept as they are, so they show genuine visits; --missing drop leaves them out"
