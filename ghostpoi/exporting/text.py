"""What several exports share: tables as CSV, times as text, and numbers for users."""

import csv
import io
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from ghostpoi.data.checkins import Longs
from ghostpoi.exporting.base import ExportData, Visits


def csv_text(head: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table as CSV, with quotes where they are needed."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(chain([head], rows))
    return out.getvalue()


def iso(time: Longs) -> list[str]:
    """Return UTC times in the form 2012-04-03T18:00:09."""
    texts: list[str] = np.datetime_as_string(time.astype("datetime64[s]")).tolist()
    return texts


def session_of(visits: Visits) -> list[int]:
    """Return the number of each visit's session, from 0."""
    numbers: list[int] = np.repeat(np.arange(len(visits.start) - 1), np.diff(visits.start)).tolist()
    return numbers


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
