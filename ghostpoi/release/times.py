"""The times of a release: those of the file, coarser ones, or whole sessions moved by weeks.

All that is drawn of a row goes by its clean time, which stays private. Rows with other times are released in the order
of these, because the order of the file would show the clean one.
"""

from collections.abc import Sequence
from shlex import quote

import numpy as np

from ghostpoi.columns.classify import constant_within
from ghostpoi.columns.dependence import value_codes
from ghostpoi.columns.harmless import shows_time
from ghostpoi.data.checkins import Checkins, Longs
from ghostpoi.data.pseudonyms import DAY_S, MONDAY_S, WEEK_S, of_rows, own_clock
from ghostpoi.draw.noise import ByContent
from ghostpoi.draw.publication import Publication
from ghostpoi.errors import InputError
from ghostpoi.formats import CheckinFile
from ghostpoi.formats.written_times import offsets_of, with_times
from ghostpoi.options import option
from ghostpoi.randomness import Seed

RESOLUTION_S = {"minute": 60, "hour": 3600, "part-of-day": DAY_S // 4, "shift": 3600}


def coarse(table: Checkins, settings: Publication) -> Longs:
    """Return the beginning of the minute, hour or part of the day of each row, (N,).

    The parts of a day begin at 4, 10, 16 and 22 o'clock of the solar time of the table.
    """
    kind = settings.identity.times
    if kind == "keep":
        return table.time
    ahead = own_clock(table) - table.time
    return (table.time + ahead) // RESOLUTION_S[kind] * RESOLUTION_S[kind] - ahead


def sessions(table: Checkins, settings: Publication) -> Longs:
    """Number the sessions that move together, (N,)."""
    return of_rows(table, "session", settings.filters.session_gap_s)


def weeks(table: Checkins) -> Longs:
    """Return the number of the week of each row, (N,), from Monday at 4 a.m., the first week of the table being 0."""
    week = (own_clock(table) - MONDAY_S) // WEEK_S
    return np.asarray(week - week.min())


def drawn(table: Checkins, settings: Publication, seed: Seed) -> tuple[Longs, Longs]:
    """Return the released time of each row, (N,), and the rank of its session among those at the same time.

    A session moves to a week of the table, each with the same probability. It is drawn by its user and its first clean
    time.
    """
    time = coarse(table, settings)
    if settings.identity.times != "shift":
        return time, np.zeros(len(time), np.int64)
    number, week = sessions(table, settings), weeks(table)
    order = np.lexsort((table.time, number))
    first = order[np.flatnonzero(np.diff(number[order], prepend=-1))]  # of each session
    uniform = ByContent.of(table, seed).take(first).several(2, "times")
    target = (uniform[0] * (week.max() + 1)).astype(np.int64)
    return time + (target[number] - week) * WEEK_S, np.argsort(np.argsort(uniform[1], kind="stable"))[number]


def agree(table: Checkins, row: Longs, time: Longs, settings: Publication) -> np.ndarray:
    """Return whether these times can be those of clean rows in a release, (M,)."""
    moved = time - coarse(table, settings)[row]
    if settings.identity.times != "shift":
        return np.asarray(moved == 0)
    number, week = sessions(table, settings), weeks(table)
    last = np.zeros(int(number.max()) + 1, np.int64)
    last[number[row]] = moved
    there = week[row] + moved // WEEK_S
    return np.asarray((moved % WEEK_S == 0) & (moved == last[number[row]]) & (there >= 0) & (there <= week.max()))


def check_columns(file: CheckinFile, settings: Publication, kept: Sequence[str], keep: Sequence[str]) -> list[str]:
    """Return warnings about `kept` columns that show clean times; refuse those that `keep` does not name."""
    if settings.identity.times == "keep":
        return []
    table, asked = file.table, option("times", settings.identity.times)
    shown = drawn(table, settings, Seed(0))[0]
    columns = {name: file.rows.get_column(name) for name in kept}
    of_user = [name for name, one in columns.items() if constant_within(value_codes(one), table.user)]
    found = {
        name: how for name, one in columns.items() if name not in of_user and (how := shows_time(one, table, shown))
    }
    if refused := {name: how for name, how in found.items() if name not in keep}:
        drops, keeps = (option(flag, *refused, shown=quote) for flag in ("drop", "keep"))
        listed = ", ".join(f"{name!r} {how}" for name, how in refused.items())
        raise InputError(
            f"{file.path}: {asked} hides clean times that columns would show: {listed}; leave them out with "
            f"{drops}, or keep them at your own risk with {keeps}"
        )
    return [f"the column {name!r}, which {option('keep')} names, {how}" for name, how in found.items()]


def check_span(table: Checkins, settings: Publication) -> None:
    """Refuse to move the sessions of a table that covers one week."""
    if settings.identity.times == "shift" and not weeks(table).any():
        raise InputError(
            f"{table.name} covers one week, so {option('times', 'shift')} would move nothing; use "
            f"{option('times', 'part-of-day')}"
        )


def check(file: CheckinFile, settings: Publication, in_series: bool, whole_file: bool = True) -> None:
    """Refuse a file, or a region of one, whose times cannot be changed."""
    kind, column = settings.identity.times, file.mapping["time"]
    if kind == "keep":
        return
    asked = option("times", kind)
    if "date" in file.mapping:
        raise InputError(
            f"{file.path}: {asked} needs the date and the time in one column; put them together, or use "
            f"{option('times', 'keep')}"
        )
    if kind == "shift":
        if in_series:
            raise InputError(
                f"{asked} draws a week of one file, and a row that two releases of a series show would stand at two "
                f"times; use {option('times', 'part-of-day')}, or leave {option('series')} out"
            )
        if whole_file:
            check_span(file.table, settings)
        if np.ptp(offsets_of(file, file.rows)):
            raise InputError(
                f"{file.path}: the distance of the times in the column {column!r} from UTC varies, and would show the "
                f"season of a session that {asked} moved; write all times in UTC"
            )
    with_times(file, file.rows, coarse(file.table, settings))
