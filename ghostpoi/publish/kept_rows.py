"""Rows that lack a value and stay in the release as they are, between the rows of the table."""

import numpy as np

from ghostpoi.data.checkins import Longs
from ghostpoi.errors import InputError
from ghostpoi.formats import CheckinFile
from ghostpoi.options import option


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
    one = len(file.missing) == 1
    what = f"that lack{'s' * one} a value or lie{'s' * one} in no cluster"
    what = what if file.reading.cluster_points else "with missing values"
    count = f"{len(file.missing):,} row{'s' * (not one)} {what} ({file.missing_at})"
    if not len(file.kept):
        return f"{count}: left out of the release"
    if hides_users:
        ids = "its user id" if one else "their user ids"
        raise InputError(
            f"{file.path}: {count} would keep {ids}, which pseudonyms replace; use {option('missing', 'drop')}"
        )
    if one:
        return f"{count}: kept as it is, so it shows a genuine visit; {option('missing', 'drop')} leaves it out"
    return f"{count}: kept as they are, so they show genuine visits; {option('missing', 'drop')} leaves them out"
