"""What releases of a series have in common: the method, the settings that decide draws, the columns, pseudonyms."""

from dataclasses import replace
from typing import Any

import numpy as np

from ghostpoi.columns import VenueColumns, telling
from ghostpoi.data.checkins import Checkins, Longs
from ghostpoi.draw.publication import Publication
from ghostpoi.errors import InputError
from ghostpoi.formats import CheckinFile
from ghostpoi.options import option
from ghostpoi.release.private_folder import ReleaseRequest
from ghostpoi.release.series.fields import check_file
from ghostpoi.release.series.ledger import DrawnRows, Series
from ghostpoi.release.users import numbers

SECTIONS = ("method", "speed", "identity")
READ_ALIKE = ("timezone", "time_format", "decimal", "columns")  # read otherwise, a row would count as new
PARTS = {
    "form": "its format",
    "names": "its columns",
    "fields": "its fields",
    "reading": "how its values are read",
}  # that all files share


def asked_settings(request: ReleaseRequest) -> dict[str, dict[str, Any]]:
    """Return the settings that decide the draws of a series."""
    every = request.settings.public()
    chosen = {name: every.get(name, {}) for name in SECTIONS}
    chosen["filters"] = {"session_gap_s": request.settings.filters.session_gap_s}
    return chosen


def check_settings(series: Series, request: ReleaseRequest) -> None:
    """Refuse another method or other settings than those of the series."""
    other = f"use what the series uses (ghostpoi series show {series.folder}), or start another series"
    if request.method != series.method:
        raise InputError(f"{option('method', request.method)}: {series.folder} is a series of {series.method}; {other}")
    if request.seed not in (None, series.seed):
        raise InputError(
            f"{option('seed')} differs from the seed of the series {series.folder}; leave {option('seed')} out"
        )
    for section, values in asked_settings(request).items():
        for key, value in values.items():
            kept = series.settings.get(section, {}).get(key, value)
            if kept != value:
                raise InputError(f"{section}.{key} is {value} here and {kept} in {series.folder}; {other}")
    if request.withhold != bool(series.columns.get("withhold")):
        kind = "keep" if request.withhold else "withhold"
        raise InputError(f"{series.folder} is a series with {option('no_candidate', kind)}; {other}")


def described_columns(file: CheckinFile, columns: VenueColumns, request: ReleaseRequest) -> dict[str, Any]:
    """Return the form of a file and what becomes of its columns."""
    return {
        "form": f"{file.format}, {request.file.extension or 'no extension'}",
        "names": [name for name in file.rows.columns if name not in columns.drop],
        "fields": file.mapping,
        "reading": {name: value for name, value in file.reading.stated.items() if name in READ_ALIKE},
        "changed": columns.change,
        "withhold": request.withhold,
    }


def series_columns(
    series: Series, file: CheckinFile, columns: VenueColumns, request: ReleaseRequest, pseudonym: Longs | None
) -> VenueColumns:
    """Return what becomes of the columns: as in the first release, if that is safe in this file, too."""
    check_file(file)
    if not series.entries:
        return columns
    here = described_columns(file, columns, request)
    for key, what in PARTS.items():
        kept = series.columns.get(key, {} if key == "reading" else None)
        if here[key] != kept:
            raise InputError(
                f"{request.file} does not fit into the series {series.folder}: {what} ({_text(here[key]) or 'none'}) "
                f"should be {_text(kept) or 'none'}; give files of one kind"
            )
    changed = list(series.columns["changed"])
    kept = [name for name in here["names"] if name not in changed and name not in file.mapping.values()]
    if newly := [name for name in kept if name in columns.change]:
        found = telling(file.table, file.rows, file.mapping, [*changed, *columns.drop], pseudonym)
        if wrong := [name for name in newly if name in found and name not in request.keep]:
            raise InputError(
                f"{request.file}: the column {wrong[0]!r}, which earlier releases kept, {found[wrong[0]]}; leave it "
                "out of the file and start another series, or keep it at your own risk with "
                f"{option('keep', wrong[0])}"
            )
    return replace(columns, change=changed, keep=kept)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{field}={column}" for field, column in value.items())
    return value if isinstance(value, str) else ", ".join(map(str, value or []))


def kept_users(table: Checkins, settings: Publication, earlier: DrawnRows, found: Longs) -> dict[int, str]:
    """Return the earlier pseudonym of each number; refuse a file that cuts sessions otherwise than before.

    `found` (N,) is the place of each row among the earlier ones, -1 for a new row.
    """
    again = np.flatnonzero(found >= 0)
    number, user = numbers(table, settings)[again], earlier.user[found[again]]
    pairs = sorted(set(zip(number.tolist(), user.tolist(), strict=True)))
    kept = dict(pairs)
    if len(kept) < len(pairs) or len(set(kept.values())) < len(pairs):
        raise InputError(
            f"{table.name} has rows that were released before, in other sessions: their pseudonyms cannot be repeated; "
            "give all rows of these sessions as they were, or leave them out"
        )
    return kept
