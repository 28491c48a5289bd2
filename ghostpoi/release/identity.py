"""The identity of rows: the user ids and times of a release, the order of its rows, and the private map back.

All that is drawn of a row goes by its clean time, which stays private. With other ids or times, rows are released in
the order of these, because the order of the file would show the clean one.
"""

import math
import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ghostpoi.columns.classify import constant_within
from ghostpoi.columns.dependence import value_codes
from ghostpoi.columns.harmless import shows_time
from ghostpoi.columns.related import refused
from ghostpoi.data.checkins import Checkins, Longs
from ghostpoi.data.created import SOON_S, made_on_creation
from ghostpoi.data.places import hidden_venues
from ghostpoi.data.pseudonyms import DAY_S, MONDAY_S, WEEK_S, of_rows, own_clock
from ghostpoi.draw.noise import ByContent
from ghostpoi.draw.publication import Publication
from ghostpoi.errors import InputError
from ghostpoi.formats import CheckinFile
from ghostpoi.formats.fields import NO_VALUE
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


def sessions_and_weeks(table: Checkins, settings: Publication) -> tuple[Longs, Longs]:
    """Number the sessions that move together, (N,), and the weeks of rows, (N,), from Monday at 4 a.m."""
    week = (own_clock(table) - MONDAY_S) // WEEK_S
    return of_rows(table, "session", settings.filters.session_gap_s), week - week.min()


def drawn_times(table: Checkins, settings: Publication, seed: Seed) -> tuple[Longs, Longs]:
    """Return the released time of each row, (N,), and the rank of its session among those at the same time.

    A session moves to a week of the table, each with the same probability. It is drawn by its user and its first clean
    time.
    """
    time = coarse(table, settings)
    if settings.identity.times != "shift":
        return time, np.zeros(len(time), np.int64)
    number, week = sessions_and_weeks(table, settings)
    order = np.lexsort((table.time, number))
    first = order[np.flatnonzero(np.diff(number[order], prepend=-1))]  # of each session
    uniform = ByContent.of(table, seed).take(first).several(2, "times")
    target = (uniform[0] * (week.max() + 1)).astype(np.int64)
    return time + (target[number] - week) * WEEK_S, np.argsort(np.argsort(uniform[1], kind="stable"))[number]


def times_agree(table: Checkins, row: Longs, time: Longs, settings: Publication) -> np.ndarray:
    """Return whether these times can be those of clean rows in a release, (M,)."""
    moved = time - coarse(table, settings)[row]
    if settings.identity.times != "shift":
        return np.asarray(moved == 0)
    number, week = sessions_and_weeks(table, settings)
    last = np.zeros(int(number.max()) + 1, np.int64)
    last[number[row]] = moved
    there = week[row] + moved // WEEK_S
    return np.asarray((moved % WEEK_S == 0) & (moved == last[number[row]]) & (there >= 0) & (there <= week.max()))


def check_time_columns(file: CheckinFile, settings: Publication, kept: Sequence[str], keep: Sequence[str]) -> list[str]:
    """Return warnings about `kept` columns that show clean times; refuse those that `keep` does not name."""
    if settings.identity.times == "keep":
        return []
    table, asked = file.table, option("times", settings.identity.times)
    shown = drawn_times(table, settings, Seed(0))[0]
    columns = {name: file.rows.get_column(name) for name in kept}
    of_user = [name for name, one in columns.items() if constant_within(value_codes(one), table.user)]
    found = {
        name: how for name, one in columns.items() if name not in of_user and (how := shows_time(one, table, shown))
    }
    if wrong := {name: how for name, how in found.items() if name not in keep}:
        raise refused(file.path, wrong, f", and {asked} hides clean times", f"show clean times, which {asked} hides")
    return [f"the column {name!r}, which {option('keep')} names, {how}" for name, how in found.items()]


def visits_on_creation(table: Checkins, settings: Publication) -> int:
    """Count the rows that the release places in time near the creation of their clean venue, as its id states it."""
    if settings.identity.times not in ("keep", "minute"):
        return 0
    return int((made_on_creation(table) & ~hidden_venues(table, settings.hide)[table.venue]).sum())


def creation_warnings(visits: int, sampled: bool = False) -> list[str]:
    """Return the warning about such rows, if there are any. `sampled`: there may be more."""
    if not visits:
        return []
    rows = "at least " * sampled + ("1 row was" if visits == 1 else f"{visits:,} rows were")
    return [
        f"venue ids contain the time at which each venue was created, and {rows} made within {SOON_S} seconds of it, "
        "so the release can show where these people really were; hide venues created in the period of the file with "
        f"{option('set', 'hide.new=true')}, make times coarser with {option('times', 'hour')} or "
        f"{option('purpose', 'public')}, or replace the venue ids in the file by random ones"
    ]


def check_span(table: Checkins, settings: Publication) -> None:
    """Refuse to move the sessions of a table that covers one week."""
    if settings.identity.times == "shift" and not sessions_and_weeks(table, settings)[1].any():
        raise InputError(
            f"{table.name} covers one week, so {option('times', 'shift')} would move nothing; use "
            f"{option('times', 'part-of-day')}"
        )


def check_times(file: CheckinFile, settings: Publication, in_series: bool, whole_file: bool = True) -> None:
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


NONZERO = string.digits[1:]
NUMBERED = re.compile(r"([^\d\s\"]*)([0-9]+)(\.0)?")  # a polars float ends with .0
HEX = {"0123456789abcdef": re.compile(r"[0-9a-f-]+"), "0123456789ABCDEF": re.compile(r"[0-9A-F-]+")}
ROOM = 2  # times as many ids as are in use, so that few draws repeat one

Form = list[str]  # the characters of each place


def fresh_ids(
    ids: Sequence[str], count: int, draw: np.random.Generator, most: int | None = None
) -> NDArray[np.object_]:
    """Draw distinct ids of the form of these, none of which is one of these or reads as a missing value, (count,).

    A form with too few ids is lengthened. `most` is the largest number that the column can hold; None: it holds text.
    """
    form = form_for(ids, count, most)
    known, found = set(ids), dict[str, None]()
    while len(found) < count:
        drawn = (d for d in _draw(form, count - len(found), draw) if d not in known and d.lower() not in NO_VALUE)
        found |= dict.fromkeys(d for d in drawn if most is None or float(d) <= most)
    return np.array(list(found), object)


def form_for(ids: Sequence[str], count: int, most: int | None) -> Form:
    """Return the form of these ids, lengthened until it has enough of them; refuse a type that holds too few."""
    form = form_of(ids if most is None else [i.lstrip("-") for i in ids])
    while most is not None and _least(form) > most:  # that of a single number
        del form[1]
    while _room(form, most) < ROOM * (count + len(ids)):
        form = _longer(form)
        if most is not None and _least(form) > most:
            raise InputError(
                f"the type of the user column has too few values for {count:,} pseudonyms; store user ids as 64-bit "
                "integers or as text"
            )
    return form


def form_of(ids: Sequence[str]) -> Form:
    """Return the form of some ids: a number behind a common prefix, hexadecimal digits, or kinds of characters."""
    parts = [found.groups("") for i in ids if i.isprintable() and (found := NUMBERED.fullmatch(i))]
    around = {(prefix, end) for prefix, _, end in parts}
    if len(set(ids)) == 1:  # how long it is, and what stands around its number, may identify a person
        number = len(parts) == len(ids) and parts[0][0] == ""
        return [NONZERO, *[string.digits] * 7, *parts[0][2]] if number else [string.ascii_lowercase] * 12
    if len(parts) == len(ids) and len(around) == 1:
        padded = any(number[0] == "0" and len(number) > 1 for _, number, _ in parts)
        first, more = (string.digits if padded else NONZERO), max(len(number) for _, number, _ in parts) - 1
        return [*parts[0][0], first, *[string.digits] * more, *parts[0][2]]
    lengths = Counter(map(len, ids))
    usual = max(lengths, key=lambda length: (lengths[length], length))
    places = [set(place) for place in zip(*(i for i in ids if len(i) == usual), strict=True)]
    for digits, pattern in HEX.items():
        if all(map(pattern.fullmatch, ids)) and any(map(str.isdigit, "".join(ids))):
            return ["-" if place == {"-"} else digits for place in places]
    return ["".join(sorted(set(map(_kind, place)))) for place in places]


def _kind(character: str) -> str:
    """Return all characters of one kind. Signs are alone in their kind, except those that a file may have to quote."""
    if character.isdigit():
        return string.digits
    if character.isalpha() or character.isspace() or not character.isprintable() or character == '"':
        return string.ascii_uppercase if character.isupper() else string.ascii_lowercase
    return character


def _longer(form: Form) -> Form:
    """Repeat the last place that varies."""
    at = max((i for i, place in enumerate(form) if len(place) > 1), default=len(form) - 1)
    more = form[at] if len(form[at]) > 1 and form[at] != NONZERO else string.digits
    return [*form[: at + 1], more, *form[at + 1 :]]


def _room(form: Form, most: int | None) -> int:
    """Return how many ids a form has."""
    room = math.prod(map(len, form))
    return room if most is None else min(room, most - _least(form) + 1)


def _least(form: Form) -> int:
    return int(float("".join(place[0] for place in form)))


def _draw(form: Form, count: int, draw: np.random.Generator) -> list[str]:
    text = np.empty((count, len(form)), "U1")
    for at, place in enumerate(form):
        text[:, at] = np.array(list(place))[draw.integers(0, len(place), count)]
    return text.view(f"U{len(form)}")[:, 0].tolist()


PAIRS, MAP = "pairs.npz", "map.npz"  # in the private folder; the second of a release by region
Texts = NDArray[Any]


@dataclass(frozen=True)
class NewUsers:
    """The user ids and the times of a release, and the order of its rows."""

    number: Longs  # (N,) the pseudonym, or else the user, of each clean row
    ids: Texts  # (Q,) the id of each
    row: Longs  # (M,) the clean row of each released row
    time: Longs  # (M,) the time of each released row
    hidden: bool  # whether the ids are pseudonyms

    @property
    def released_ids(self) -> Texts:
        """The user id of each released row, (M,)."""
        return self.ids[self.number[self.row]]

    @property
    def public(self) -> dict[str, Any]:
        """What the manifest says about them."""
        ids = {"ids": len(np.unique(self.number[self.row]))} if self.hidden else {}
        return {**ids, "row_order": "time, then user id"}


def numbers(table: Checkins, settings: Publication) -> Longs:
    """Number the pseudonyms of all rows of a clean table, (N,), from 0."""
    return of_rows(table, settings.identity.pseudonyms, settings.filters.session_gap_s)


def hidden(table: Checkins, settings: Publication) -> Longs | None:
    """Number the pseudonyms of all rows, (N,), or return None if user ids are kept."""
    return numbers(table, settings) if settings.hides_users else None


def wanted(file: CheckinFile, settings: Publication) -> Longs | None:
    """Return the same for a file; refuse a user column that cannot hold so many ids."""
    number = hidden(file.table, settings)
    if number is not None:
        form_for(file.table.user_ids.tolist(), int(number.max()) + 1, file.rows.largest_number(file.mapping["user"]))
    return number


def draw(
    table: Checkins, shown: Longs, settings: Publication, seed: Seed, most: int | None = None,
    kept: Mapping[int, str] | None = None, used: Sequence[str] = (),
) -> NewUsers:  # fmt: skip
    """Draw the pseudonyms of a table. `shown` (M,) are the rows that are not withheld.

    `most` is the largest number that the user column can hold, if it holds numbers. In a series, some pseudonyms are
    `kept`, and no other one that was `used` is drawn again.
    """
    number, ids, kept = numbers(table, settings), table.user_ids, kept or {}
    if settings.hides_users:
        count = int(number.max()) + 1
        drawn = fresh_ids(table.user_ids.tolist(), count + len(used), seed.generator("pseudonyms"), most)
        ids = drawn[~np.isin(drawn.astype(str), np.array(used, str))][:count]
        ids[list(kept)] = list(kept.values())
    time, rank = (values[shown] for values in drawn_times(table, settings, seed))
    # Sessions that meet at one time stand in a random order; their rows stay in the order of the clean times.
    within = (table.time[shown], rank) if settings.identity.times != "keep" else ()
    order = released_order(time, ids[number[shown]], within)
    return NewUsers(number, ids, shown[order], time[order], settings.hides_users)


def released_order(time: Longs, ids: Texts, within: tuple[Longs, ...] = ()) -> Longs:
    """Return the order in which rows with these times and user ids are released, (M,).

    `within` orders the rows of one time and id, the last key first.
    """
    return np.lexsort((*within, np.unique(ids.astype(str), return_inverse=True)[1], time))


@dataclass(frozen=True)
class PrivateMap:
    """What undoes the order and the pseudonyms of a release. It stays in the private folder."""

    row: Longs  # (M,) the clean row of each released row
    pseudonym: Texts  # (Q,) the released id of each pseudonym, in the order of `numbers`
    user: Texts  # (Q,) the clean user id of each

    def behind(self, released: Checkins) -> NDArray[np.object_]:
        """Return the clean user id behind each released row, (M,), "" for a pseudonym of another release."""
        user = dict(zip(self.pseudonym.tolist(), self.user.tolist(), strict=True))
        return np.array([user.get(i, "") for i in released.user_ids.tolist()], object)[released.user]


def map_arrays(table: Checkins, new: NewUsers) -> dict[str, Any]:
    """Return the arrays that the private folder keeps of the pseudonyms, except the clean row of each released row."""
    user = np.empty(len(new.ids), np.int64)
    user[new.number] = table.user
    return {"pseudonym": new.ids.astype(str), "user": table.user_ids[user].astype(str)}


def read_map(private: Path) -> PrivateMap:
    """Read the private map of a release with pseudonyms."""
    path = private / (MAP if (private / MAP).is_file() else PAIRS)
    if not path.is_file():
        raise InputError(
            f"this release has pseudonyms or other times, and {private} does not hold the private map that undoes "
            f"them; name the private folder that protect wrote with {option('private')}"
        )
    try:
        with np.load(path, allow_pickle=False) as file:
            return PrivateMap(file["shown"], file["pseudonym"], file["user"])
    except (OSError, ValueError, KeyError, EOFError):
        raise InputError(
            f"{path} holds no map of rows; give the private folder of this release, or make the release again"
        ) from None


def clean_rows(private: Path, clean: Checkins, released: Checkins, settings: Publication) -> Longs:
    """Return the clean row of each released row, (M,). Refuse a map of another file or release."""
    found = read_map(private)
    row = found.row
    fits = len(row) == len(released) == len(np.unique(row)) and (row >= 0).all() and (row < len(clean)).all()
    fits = fits and (found.behind(released) == clean.user_ids[clean.user[row]]).all()
    if fits and times_agree(clean, row, released.time, settings).all():
        return row
    raise InputError(
        f"{private / PAIRS} holds the map of another release or file than {released.name}; name the "
        f"private folder that protect wrote with {option('private')}"
    )
