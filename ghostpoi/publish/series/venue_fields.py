"""The venue fields of a series: one genuine row of each venue, from which releases copy name, address and so on.

A release may show a venue that its own file never visits, so the fields must come from elsewhere. And each venue shows
the same variant of its fields in every release, so a row that is released again looks the same.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ghostpoi import formats
from ghostpoi.data.checkins import Bools, Checkins, Floats, Longs
from ghostpoi.errors import InputError
from ghostpoi.files import replacing
from ghostpoi.formats import CheckinFile, Rows
from ghostpoi.formats.joined_rows import can_join, joined_rows
from ghostpoi.options import option
from ghostpoi.publish.series.frame_rows import as_given, in_file


def sample_rows(table: Checkins, ids: Sequence[str], uniform: Floats) -> Longs:
    """Return a row of each of these venues, drawn among those with the venue's usual category. `uniform`: (N,)."""
    number = {name: v for v, name in enumerate(table.venue_ids)}
    usual = table.category == table.venues.category[table.venue]
    order = np.lexsort((uniform, ~usual, table.venue))
    first = order[np.searchsorted(table.venue[order], np.arange(len(table.venue_ids)))[1:]]
    return first[np.array([number[name] for name in ids], np.int64) - 1]


def write_rows(path: Path, rows: Rows) -> None:
    """Store rows in the format of their file."""
    with replacing(path, mode=0o600) as out:
        rows.write(out)


def read_rows(paths: Sequence[Path], like: Rows, file: CheckinFile) -> Rows:
    """Read stored rows of several files, to be joined to `like`."""
    parts = [formats.read(file.source.at(path), file.mapping, file.format).all_rows for path in paths]
    return joined([like.take(np.empty(0, np.int64)), *parts], like)


def joined(parts: Sequence[Rows], like: Rows) -> Rows:
    """Return the rows of all parts as rows of the same kind as `like`, as a file holds them."""
    return joined_rows([in_file(part) for part in parts], in_file(like), "the series")


def check_file(file: CheckinFile) -> None:
    """Refuse a file whose venue fields a series cannot keep."""
    if not can_join(in_file(file.rows)):
        raise InputError(
            f"{option('series')}: releases of this format cannot form a series; use CSV, TSV, TSMC2014 or Parquet"
        )
    if file.venues is not None:
        raise InputError(
            f"{option('series')} and {option('venues')} exclude each other; write position and category into the file "
            "itself"
        )
    if file.reading.cluster_points:
        raise InputError(
            f"{option('series')} and {option('cluster_points')} exclude each other: clusters change from file to file"
        )


def every_row(rows: Rows) -> Longs:
    """Return the numbers of all rows, (N,)."""
    return np.arange(len(rows.get_column(rows.columns[0])))


def with_fields(rows: Rows, columns: list[str], stored: Rows, place: Longs, drawn: Bools) -> Rows:
    """Return the rows with these columns taken from stored rows: place (N,) for the rows that `drawn` (N,) marks."""
    count = len(drawn)
    both = joined([rows, stored], rows)
    donor = np.arange(count + len(every_row(stored)))
    donor[:count][drawn] = count + place[drawn]
    found = both.copy_fields(columns, donor).take(np.arange(count))
    return as_given(rows, columns, found)
