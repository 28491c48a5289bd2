"""A column of time zones that changes with the venue: substitutes must lie in the same zone, or times would change."""

from shlex import quote

import numpy as np

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Longs
from ghostpoi.errors import InputError
from ghostpoi.formats import CheckinFile
from ghostpoi.formats.zones import TIMEZONE
from ghostpoi.options import option
from ghostpoi.publish.columns.classify import constant_within
from ghostpoi.publish.columns.dependence import value_codes
from ghostpoi.publish.whole_table import WholeTable


def check_zones(file: CheckinFile, change: list[str], whole: WholeTable, anywhere: bool) -> None:
    """Refuse a file in which a venue can become one of another zone. `anywhere`: any venue can become any other."""
    column = file.mapping.get(TIMEZONE)
    if column is None or column not in change:
        return
    zone, table = value_codes(file.rows.get_column(column)), file.table
    of_venue = np.zeros(len(table.venue_ids), np.int64)
    of_venue[table.venue] = zone
    sets = ((of_venue, whole.venue_sets), (of_venue[whole.data.vocabulary.venue], whole.session_sets))
    if anywhere or not constant_within(zone, table.venue) or any(_leaves_zone(*one) for one in sets):
        raise InputError(
            f"{file.path}: a venue can become one of another time zone, and the column {column!r} would change its "
            "times; write all times in UTC, or keep the column at your own risk with "
            f"{option('keep', column, shown=quote)}"
        )


def _leaves_zone(zone: Longs, sets: Candidates) -> bool:
    return sets.everywhere or bool(((sets.poi > 0) & (zone[sets.poi] != zone[:, None])).any())
