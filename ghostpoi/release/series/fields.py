"""The venue fields of a series, and what the private folder of a release keeps of its series."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from ghostpoi import formats
from ghostpoi.data.checkins import Bools, Checkins, Floats, Ints, Longs
from ghostpoi.draw.catalogue import UNREADABLE, Catalogue, KeptCrowds, with_crowds
from ghostpoi.draw.methods.crowd import CrowdDraw
from ghostpoi.errors import InputError
from ghostpoi.files import replacing
from ghostpoi.formats import CheckinFile, Rows
from ghostpoi.options import option
from ghostpoi.release.manifest import settings_of
from ghostpoi.release.users import PAIRS

NAME = "the series"  # in messages


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
    return like.joined([like.take(np.empty(0, np.int64)), *parts], NAME)


def check_file(file: CheckinFile) -> None:
    """Refuse a file whose venue fields a series cannot keep."""
    if not file.rows.can_join:
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


def with_fields(rows: Rows, columns: list[str], stored: Rows, place: Longs, drawn: Bools) -> Rows:
    """Return the rows with these columns taken from stored rows: place (N,) for the rows that `drawn` (N,) marks."""
    count = len(drawn)
    both = rows.joined([rows, stored], NAME)
    donor = np.arange(count + len(stored))
    donor[:count][drawn] = count + place[drawn]
    return both.copy_fields(columns, donor).take(np.arange(count))


VENUES, FIELDS = "series-venues.npz", "series-fields"  # the venues of a series, and a row of each


InSeries = tuple[Checkins, KeptCrowds | None]


def with_series(private: Path, table: Checkins, manifest: dict[str, Any]) -> InSeries:
    """Return clean check-ins of a release with all venues of its series, and their crowds, if it belongs to one."""
    if "series" not in manifest:
        return table, None
    return with_crowds(table, _catalogue(private), cast(CrowdDraw, settings_of(manifest).method))


def _catalogue(private: Path) -> Catalogue:
    try:
        return Catalogue.empty().load_more(private / VENUES)
    except FileNotFoundError:
        raise InputError(
            f"the release belongs to a series, and {private} lacks the crowds of the series; name the private folder "
            f"that protect wrote with {option('private')}"
        ) from None
    except UNREADABLE:
        raise InputError(f"{private / VENUES} cannot be read; restore it from a copy") from None


def read_table(private: Path, table: Checkins, manifest: dict[str, Any]) -> InSeries:
    """Return the same for the clean table of a release: the private folder knows which rows repeat a draw."""
    if "series" not in manifest:
        return table, None
    known = _catalogue(private)
    try:
        with np.load(private / PAIRS, allow_pickle=False) as pairs:
            repeated = pairs["repeated"]
        if len(repeated) == len(table):
            return with_crowds(table, known, cast(CrowdDraw, settings_of(manifest).method), repeated)
    except UNREADABLE:
        pass
    raise InputError(f"{private} does not fit the file; give the private folder of this release")


def read_fields(private: Path, kept: KeptCrowds | None, file: CheckinFile, like: Rows) -> tuple[Rows, Ints] | None:
    """Return the stored row of each venue of a series, and its venue in the table; None without a series."""
    if kept is None:
        return None
    [path] = list(private.glob(f"{FIELDS}*")) or [private / FIELDS]
    place = np.empty(len(kept.in_series) - 1, np.int32)
    place[kept.in_series[1:]] = np.arange(1, len(kept.in_series))
    return read_rows([path], like, file), place
