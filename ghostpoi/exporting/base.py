"""What an export gets and must return. It decides the form alone; `exporting.write` reads, checks and writes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

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
