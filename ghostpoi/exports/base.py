"""What an export gets and must return, and what several exports share. `exports.write` reads, checks and writes."""

import csv
import io
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ghostpoi.data.checkins import Floats, Ints, Longs

Texts = NDArray[Any]


@dataclass(frozen=True)
class Visits:
    """Visits by user and time. Session s holds the visits start[s] to start[s+1] - 1."""

    user: Texts  # (N,) user ids
    venue: Ints  # (N,) rows of the venue table
    time: Longs  # (N,) UTC seconds
    start: Longs  # (S+1,)


@dataclass(frozen=True)
class ExportVenues:
    """Every venue that the files may name. Row 0 is no venue."""

    id: list[str]  # (V+1,), and so the others
    category: list[str]
    lat: Floats
    lon: Floats


@dataclass(frozen=True)
class ExportData:
    """A release and, for the publisher alone, its clean side.

    `parts` is empty in a public export. In a private one, all parts have the sessions of the clean file and its split:
    `train` shows the released venues, `clean` the clean ones of the same sessions; `valid` and `test` are clean.
    """

    name: str  # of the folder to write
    released: Visits  # all rows that lack no value; one session per user
    venues: ExportVenues
    parts: Mapping[str, Visits] = field(default_factory=dict)
    clean: Ints | None = None  # (N,) the clean venue of each row of `released`; None in a public export
    left_out: int = 0  # rows of the release that lack a value, which no export can hold

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each user, from 0: those of the release as they appear there, then those of the clean parts."""
        users = chain(self.released.user, *(visits.user for visits in self.parts.values()))
        return {user: number for number, user in enumerate(dict.fromkeys(users))}

    def rows(self, visits: Visits, venue: Ints | None = None) -> pl.DataFrame:
        """Return visits, or the same with other venues, and what is known of their users and venues."""
        at, venues = visits.venue if venue is None else venue, self.venues
        return pl.DataFrame({
            "user_id": visits.user.tolist(), "user": [self.number[user] for user in visits.user], "venue": at,
            "time": pl.from_epoch(pl.Series(visits.time), "s").dt.cast_time_unit("ms").dt.replace_time_zone("UTC"),
            "venue_id": pl.Series(venues.id, dtype=pl.String).gather(at),
            "category": pl.Series(venues.category, dtype=pl.String).gather(at),
            "latitude": venues.lat[at], "longitude": venues.lon[at],
            "session": pl.Series(np.repeat(np.arange(len(visits.start) - 1), np.diff(visits.start)), dtype=pl.Int32),
        })  # fmt: skip

    @property
    def id_tables(self) -> dict[str, str]:
        """The files that say which user and venue each number means. A venue's number is its row."""
        venues = zip(self.venues.id, self.venues.category, strict=True)
        rows = ((k, *venue) for k, venue in enumerate(venues) if k)
        return {
            f"{self.name}.users.csv": csv_text(("number", "user"), ((k, u) for u, k in self.number.items())),
            f"{self.name}.venues.csv": csv_text(("number", "venue", "category"), rows),
        }


class Export(Protocol):
    """The form of one other tool."""

    @property
    def summary(self) -> str:
        """One phrase that says what the files are."""

    def files(self, data: ExportData) -> Mapping[str, str | bytes]:
        """Return the content of each file by its name. The caller adds to README.md, if there is one."""

    def usage(self, data: ExportData) -> str:
        """Return what README.md says about loading the files, in Markdown."""


class Described:
    """An export of this package, which usage.toml describes under the name of its class."""

    def numbers(self, data: ExportData) -> dict[str, int]:
        """Return what the description counts."""
        return {}

    def usage(self, data: ExportData) -> str:
        said = tomllib.loads(Path(__file__).with_name("usage.toml").read_text("utf-8"))[type(self).__name__]
        text: str = said["always"] + said.get("private" if data.parts else "public", "")
        return text.format(name=data.name, **self.numbers(data))


def csv_text(head: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table as CSV, with quotes where they are needed."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(chain([head], rows))
    return out.getvalue()
