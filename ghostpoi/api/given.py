"""What steps are given: check-ins, a path or a data frame, with how to read and to divide them, and settings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from ghostpoi.errors import InputError
from ghostpoi.options import option

if TYPE_CHECKING:
    from narwhals.typing import IntoFrame

    from ghostpoi import formats
    from ghostpoi.formats.query import Query
    from ghostpoi.regions.scale import Scale

TABLE = "the table"  # what messages call a data frame
VENUES = "the venues"
IN_DATABASES = ("table", "query", "order_by")  # the options that are for databases
VENUES_FILE = "venues.csv"  # as which a data frame of venues is read
FRAMES = {TABLE: "table", VENUES: "venues"}  # how a call that is shown names them
SECTION, REGION = "regions.", "region"  # of settings, of --map
PathLike: TypeAlias = str | os.PathLike[str]
if TYPE_CHECKING:
    Source: TypeAlias = PathLike | IntoFrame
else:
    Source = Any


class ReadingOptions(TypedDict, total=False):
    """What the caller states about a file of check-ins, where the file itself does not say."""

    columns: Sequence[str]  # names of the columns of a text file without a header line, also as one text with commas
    decimal: str  # the sign before the decimals of coordinates, if it is a comma
    time_format: str  # the form of all times, with the directives of strptime
    timezone: str  # the zone of times without an offset
    missing: str  # rows that lack a value: "refuse" (the default), "drop" or "keep"
    venues: Source  # a table that gives the position and category of each venue id
    cluster_points: str  # make venues of raw points: clusters of stays within this distance, e.g. "100m"
    normalise: Sequence[str]  # columns to write in one form, also as one text with commas
    order: str  # "time": rows in the order of time, then user id
    table: str  # of a database
    query: str  # of a database, in place of a table
    order_by: Sequence[str]  # columns of a database that order its rows; the default: the time, then the user
    max_size: str  # read at most this much from a file, e.g. "20GB"


def source_of(source: Any, options: Mapping[str, Any], name: str = TABLE) -> formats.Source:
    """Return how to read a file or a data frame, with what the caller states about it."""
    from ghostpoi import formats
    from ghostpoi.formats.query import is_url
    from ghostpoi.formats.source import limit_of

    given: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    limit, beside = limit_of(given.pop("max_size", None)), {}
    for key in {"columns", "normalise"} & given.keys():
        given[key] = given[key] if isinstance(given[key], str) else ",".join(given[key])
    if "venues" in given:
        venues = given["venues"]
        if not isinstance(venues, str | os.PathLike):
            from ghostpoi.formats.frames import as_csv  # slow to import

            venues, beside = VENUES_FILE, {VENUES_FILE: as_csv(venues)}
        given["venues"] = str(venues)
    is_path = isinstance(source, str | os.PathLike)
    if query := _query(str(source) if is_path else "", {name: given.pop(name, "") for name in IN_DATABASES}):
        place = Path(query.place if not is_url(query.place) else str(query))
        return formats.Source(place, formats.Reading(**given), limit, beside=beside, query=query, named=str(query))
    stated = formats.Source(Path(source if is_path else name), formats.Reading(**given), limit, beside=beside)
    if is_path:
        return stated
    from ghostpoi.formats.frames import frame_source

    return frame_source(source, stated)


def _query(place: str, asked: Mapping[str, Any]) -> Query | None:
    """Return what to read from a database; None if the check-ins are in none."""
    from ghostpoi.formats.query import Query, database_of

    if not database_of(place):
        if given := next((name for name, value in asked.items() if value), ""):
            raise InputError(
                f"{option(given, asked[given])} is for a database: postgresql://USER@HOST/DATABASE, or a file of "
                "SQLite or DuckDB"
            )
        return None
    columns = [asked["order_by"]] if isinstance(asked["order_by"], str) else asked["order_by"]
    order_by = tuple(name.strip() for text in columns for name in text.split(",") if name.strip())
    return Query(place, asked["table"], asked["query"], order_by)


def assignments(settings: Mapping[str, Any] | Sequence[str]) -> list[str]:
    """Return settings as `section.key=value` texts."""
    return [f"{key}={value}" for key, value in settings.items()] if isinstance(settings, Mapping) else list(settings)


def optional(path: PathLike | None) -> Path | None:
    """Return a path, if there is one."""
    return None if path is None else Path(path)


def mapped(map: Mapping[str, str] | None, config: PathLike | None) -> dict[str, str]:
    """Return which column holds each field: what the settings file states, then what the caller does."""
    from ghostpoi.settings import columns_of

    return columns_of(optional(config)) | dict(map or {})


def divided(
    map: Mapping[str, str] | None, set: Mapping[str, Any] | Sequence[str], engine: str | None, workers: int,
    scheduler: str, memory: str | None,
) -> tuple[Scale | None, dict[str, str], list[str]]:  # fmt: skip
    """Return how to divide a dataset, if an option asks for that, and the fields and settings that tables can have."""
    fields, texts = dict(map or {}), assignments(set)
    region, own = fields.pop(REGION, None), [text for text in texts if text.startswith(SECTION)]
    texts = [text for text in texts if text not in own]
    if not (own or region is not None or engine or workers or scheduler or memory):
        return None, fields, texts
    from ghostpoi.formats.source import bytes_of
    from ghostpoi.regions.scale import Scale
    from ghostpoi.settings import Divided, override

    return Scale(
        settings=override(Divided(), own).regions, region_column=region or "", engine=engine or "local",
        workers=workers, scheduler=scheduler, memory=None if memory is None else bytes_of(memory, "memory"),
    ), fields, texts  # fmt: skip
