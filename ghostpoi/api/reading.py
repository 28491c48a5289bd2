"""Where check-ins come from, and how to read them: a path or a data frame, with what the caller states about it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

if TYPE_CHECKING:
    import pandas
    import polars

TABLE = "the table"  # what messages call a data frame
VENUES = "the venues"
FRAMES = {TABLE: "table", VENUES: "venues"}  # how a call that is shown names them
PathLike: TypeAlias = str | os.PathLike[str]
if TYPE_CHECKING:
    Source: TypeAlias = PathLike | polars.DataFrame | pandas.DataFrame
else:
    Source = Any


class ReadingOptions(TypedDict, total=False):
    """What the caller states about a file of check-ins, where the file itself does not tell."""

    columns: Sequence[str]  # names of the columns of a text file without a header line, also as one text with commas
    decimal: str  # the sign before the decimals of coordinates, if it is a comma
    time_format: str  # the form of all times, with the directives of strptime
    timezone: str  # the zone of times without an offset
    missing: str  # rows that lack a value: "refuse" (the default), "drop" or "keep"
    venues: Source  # a table that gives the position and category of each venue id
    cluster_points: str  # make venues of raw points: clusters of stays within this distance, e.g. "100m"
    max_size: str  # read at most this much from a file, e.g. "20GB"


@contextmanager
def opened(source: Any, options: ReadingOptions, name: str = TABLE) -> Iterator[Path]:
    """Yield the path of a file, or one under which a data frame is read, and apply the options inside the block."""
    given: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    with ExitStack() as stack:
        if "max_size" in given:
            from ghostpoi.formats.size_limit import at_most

            stack.enter_context(at_most(given.pop("max_size")))
        if "columns" in given:
            given["columns"] = ",".join(given["columns"])
        if "venues" in given:
            path = isinstance(given["venues"], str | os.PathLike)
            given["venues"] = str(given["venues"] if path else stack.enter_context(_held_venues(given["venues"])))
        if given:
            from ghostpoi.formats.reading import Reading, read_as

            stack.enter_context(read_as(Reading(**given)))
        if isinstance(source, str | os.PathLike):
            yield Path(source)
        else:
            from ghostpoi.formats.frames import frame_content
            from ghostpoi.formats.in_memory import held

            yield stack.enter_context(held(name, frame_content(source)))


def _held_venues(frame: Any) -> AbstractContextManager[Path]:
    """Hold a table of venues as the text that its reader takes."""
    from ghostpoi.formats.in_memory import Content, held

    text: str = frame.write_csv() if hasattr(frame, "write_csv") else frame.to_csv(index=False)
    return held("venues.csv", Content(text.encode(), ".csv"))


def assignments(settings: Mapping[str, Any] | Sequence[str]) -> list[str]:
    """Return settings as `section.key=value` texts."""
    return [f"{key}={value}" for key, value in settings.items()] if isinstance(settings, Mapping) else list(settings)


def optional(path: PathLike | None) -> Path | None:
    """Return a path, if there is one."""
    return None if path is None else Path(path)
