"""What an export gets and must return, and what several exports share. `exports.write` reads, checks and writes."""

import csv
import io
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np
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


def iso(time: Longs) -> list[str]:
    """Return UTC times in the form 2012-04-03T18:00:09."""
    return np.datetime_as_string(time.astype("datetime64[s]")).tolist()


def session_of(visits: Visits) -> list[int]:
    """Return the number of each visit's session, from 0."""
    return np.repeat(np.arange(len(visits.start) - 1), np.diff(visits.start)).tolist()


def user_numbers(data: ExportData) -> dict[str, int]:
    """Number the users from 0: those of the release as they appear there, then those of the clean parts."""
    users = chain(data.released.user, *(visits.user for visits in data.parts.values()))
    return {user: number for number, user in enumerate(dict.fromkeys(users))}


def id_tables(data: ExportData) -> dict[str, str]:
    """Return the files that say which user and venue each number means. A venue's number is its row."""
    venues = zip(data.venues.id, data.venues.category, strict=True)
    return {
        f"{data.name}.users.csv": csv_text(("number", "user"), ((k, u) for u, k in user_numbers(data).items())),
        f"{data.name}.venues.csv": csv_text(
            ("number", "venue", "category"), ((k, *venue) for k, venue in enumerate(venues) if k)
        ),
    }
