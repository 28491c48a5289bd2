"""How to read a file where the file itself does not tell: what the publisher states with options.

The options of a command apply to every file that it reads, except to a release, which states its own in its manifest.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ghostpoi.errors import InputError
from ghostpoi.files import COMPRESSED
from ghostpoi.formats.zones import is_zone
from ghostpoi.options import option

# A form has directives that the parser knows, and all of a date: the year, and month and day, or the day of the year.
FORM = re.compile(
    r"(?=.*%[YyFD])(?=.*%([FDj]|[mbB].*%[de]|[de].*%[mbB]))(?:[^%]|%(?:[YymdebBajHIklMSpPTRFDz%]|\.f|#z))+"
)


DISTANCE = re.compile(r"(\d+(?:\.\d+)?) ?(m|km)")
POSITIONS = "positions"  # in place of a distance: every position is a venue, as in a release made with --cluster-points


@dataclass(frozen=True)
class Reading:
    """What the publisher states about a file. The fields are named as the options are."""

    columns: str = ""  # names of the columns of a text file without a header, separated by commas
    decimal: str = ""  # the sign before the decimals of coordinates, if it is not a point
    time_format: str = ""  # the form of all times, with the directives of strptime
    missing: str = ""  # what to do with rows that lack a value: keep, drop or refuse (the default)
    timezone: str = ""  # the zone of times without an offset, if it is not UTC
    cluster_points: str = ""  # how far apart the points of one stay may be, e.g. 100m: venues come from clusters
    venues: str = ""  # the path of a table of venues; in a manifest, the name of the file beside the data

    def __post_init__(self) -> None:
        names = self.column_names
        if names is not None and (not all(names) or max(Counter(names).values()) > 1):
            raise InputError(
                f"{option('columns', self.columns, shown=repr)}: name every column once, separated by commas, e.g. "
                "user,time,lat,lon,poi"
            )

        if self.missing not in ("", "keep", "drop", "refuse"):
            raise InputError(f"{option('missing', self.missing)}: use keep, drop or refuse")
        if self.decimal not in ("", ","):
            raise InputError(
                f"{option('decimal', self.decimal, shown=repr)}: the sign can be a comma only; leave it out for points"
            )
        if self.time_format and not FORM.fullmatch(self.time_format):
            raise InputError(
                f"{option('time_format', self.time_format, shown=repr)}: give the form of a date and a time with "
                "directives of strptime, e.g. '%d/%m/%Y %H:%M'"
            )
        if self.timezone and not is_zone(self.timezone):
            raise InputError(
                f"{option('timezone', self.timezone, shown=repr)}: there is no such zone; give a name such as "
                "America/New_York"
            )

        if self.cluster_points and self.cluster_points != POSITIONS and not 1 <= self.radius_m <= 5000:
            raise InputError(
                f"{option('cluster_points', self.cluster_points)}: give a distance from 1m to 5km, e.g. 100m"
            )
        if self.cluster_points and self.venues:
            raise InputError(
                f"{option('cluster_points')} makes venues, and {option('venues')} lists them; give one of them"
            )
        if self.cluster_points and self.missing == "keep":
            raise InputError(
                f"{option('missing', 'keep')} would release raw points, which {option('cluster_points')} hides; use "
                f"{option('missing', 'drop')}"
            )

    @property
    def radius_m(self) -> float:
        """The distance of --cluster-points in metres; 0 if it is none."""
        found = DISTANCE.fullmatch(self.cluster_points)
        return float(found[1]) * (1000 if found[2] == "km" else 1) if found else 0.0

    @property
    def column_names(self) -> tuple[str, ...] | None:
        return tuple(name.strip() for name in self.columns.split(",")) if self.columns else None

    @property
    def stated(self) -> dict[str, str]:
        """What differs from the default, as the manifest records it."""
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) != f.default}

    @property
    def words(self) -> list[str]:
        """The options as words of a command line."""
        return [word for name, value in self.stated.items() for word in (f"--{name.replace('_', '-')}", value)]

    def in_folder(self, folder: Path) -> "Reading":
        """Return the same for a file whose table of venues lies in this folder."""
        path = Path(self.venues)
        name = path.stem if path.suffix.lower() in COMPRESSED else path.name
        return replace(self, venues=str(folder / name)) if self.venues else self

    def of_release(self, folder: Path) -> "Reading":
        """Return how to read the release, in this folder, of a file that was read so."""
        return replace(self.in_folder(folder), cluster_points=POSITIONS if self.cluster_points else "")

    @staticmethod
    def of(stated: Mapping[str, Any]) -> "Reading":
        """Return what a manifest records; refuse what no version of ghostpoi writes."""
        known = {f.name for f in fields(Reading)}
        if strange := [name for name in stated if name not in known]:
            raise InputError(f"data.reading.{strange[0]} of the manifest is unknown; read it with the newest ghostpoi")
        return Reading(**stated)


_reading: ContextVar[Reading] = ContextVar("reading", default=Reading())  # noqa: B039 (it is frozen)


def current_reading() -> Reading:
    """Return what applies here."""
    return _reading.get()


@contextmanager
def read_as(reading: Reading) -> Iterator[None]:
    """Read files so inside the block."""
    token = _reading.set(reading)
    try:
        yield
    finally:
        _reading.reset(token)
