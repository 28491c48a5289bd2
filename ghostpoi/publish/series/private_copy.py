"""What the private folder of a release keeps of its series, so that `verify` and `audit` need nothing else."""

from pathlib import Path
from typing import Any

import numpy as np

from ghostpoi.data.checkins import Checkins, Ints
from ghostpoi.errors import InputError
from ghostpoi.formats import CheckinFile, Rows
from ghostpoi.options import option
from ghostpoi.publish.kept_table import KeptCrowds, with_crowds
from ghostpoi.publish.manifest import settings_of
from ghostpoi.publish.pseudonyms import PAIRS
from ghostpoi.publish.series.venue_fields import read_rows, write_rows
from ghostpoi.publish.venue_catalogue import UNREADABLE, Catalogue

VENUES, FIELDS = "series-venues.npz", "series-fields"


def store(folder: Path, catalogue: Catalogue, rows: Rows, ending: str) -> tuple[str, str]:
    """Store the venues of a series and a row of each; return the names of the files."""
    catalogue.save(folder / VENUES, since=Catalogue.empty())
    write_rows(folder / f"{FIELDS}{ending}", rows)
    return VENUES, f"{FIELDS}{ending}"


InSeries = tuple[Checkins, KeptCrowds | None]


def with_series(private: Path, table: Checkins, manifest: dict[str, Any]) -> InSeries:
    """Return clean check-ins of a release with all venues of its series, and their crowds, if it belongs to one."""
    if "series" not in manifest:
        return table, None
    return with_crowds(table, _catalogue(private), settings_of(manifest).method)


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
            return with_crowds(table, known, settings_of(manifest).method, repeated)
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
