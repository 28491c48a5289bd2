"""The files next to the data of a release: the table of venues and, for LibCity, the list of users.

The table lists all venues of the publisher's table but hidden ones, in the order of their ids, so that nothing in it
depends on which venues the clean rows show. A column that counts the check-ins of each venue is counted again from the
released rows. Other columns that follow from the clean rows are refused.
"""

import io
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ghostpoi.columns import VenueColumns, classify
from ghostpoi.columns.related import refused
from ghostpoi.data.checkins import NAME, Bools, Checkins, Floats, Longs
from ghostpoi.data.created import are_new
from ghostpoi.data.places import is_hidden
from ghostpoi.draw.publication import Publication
from ghostpoi.errors import InputError
from ghostpoi.files import COMPRESSED
from ghostpoi.formats import CheckinFile
from ghostpoi.formats.content import STDIN, ending
from ghostpoi.formats.source import VenueTable
from ghostpoi.formats.times import parse_times
from ghostpoi.options import option
from ghostpoi.release.manifest import MANIFEST, PAGES, SIGNATURE
from ghostpoi.settings import HideSettings

SAME = 0.5  # share of the visited venues at which a column must agree with a statistic of the clean rows
LIKE = 0.9  # rank correlation with the visits, or the first visit, of each venue
FEWEST = 20  # visited venues for a correlation
LIBCITY, USERS = ".dyna", ".usr"
Texts = NDArray[np.object_]


def data_name(file: CheckinFile) -> str:
    """Return the name of the data file. A file with a table of venues keeps its own, because tools go by the names."""
    if file.all_rows.parts:
        return "checkins"
    if file.venues is None or file.source.path == STDIN or file.source.in_memory:
        return f"checkins{ending(file.source, file.kind)}"
    name, other = _plain(file.source.path), _plain(file.venues.path)
    for one in (name, other):
        if one in (MANIFEST, SIGNATURE, *PAGES) or not one.isprintable():
            raise InputError(f"a release cannot hold a data file named {one!r}; rename it")
    if name == other or other == Path(name).with_suffix(USERS).name:
        raise InputError(f"{file.path} and {option('venues', file.venues.path)} have the same name; rename one of them")
    return name


def split_columns(file: CheckinFile, names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the columns of an option into those of the data (and unknown ones) and those of the table of venues."""
    there = file.venues.rows.columns if file.venues else []
    own = [name for name in names if name in file.rows.columns or name not in there]
    return own, [name for name in names if name in there]


def classify_file(
    file: CheckinFile, keep: Sequence[str], drop: Sequence[str], pseudonym: Longs | None,
    settings: Publication, order: bool = True,
) -> VenueColumns:  # fmt: skip
    """Classify the columns of the data; refuse columns, also of the table of venues, that reveal clean rows."""
    found = classify(
        file.table, file.rows, file.mapping, file.path, split_columns(file, keep)[0], split_columns(file, drop)[0],
        pseudonym, order, settings.keeps_category, settings.hide.new,
    )  # fmt: skip
    if file.venues is not None:
        _check_venues(file, file.venues, keep, drop)
    return found


def _check_venues(file: CheckinFile, table: VenueTable, keep: Sequence[str], drop: Sequence[str]) -> None:
    data_name(file)  # refuses names that a release cannot have
    dropped = split_columns(file, drop)[1]
    if needed := [name for name in dropped if name in table.mapping.values()]:
        raise InputError(f"{option('drop', needed[0])}: a release needs this column of {table.path}; remove the option")
    telling = {name: what for name, what in _telling(table, file.table).items() if name not in (*keep, *drop)}
    if found := {name: what for name, what in telling.items() if what != COUNT}:
        raise refused(table.path, found, ", so it follows from the clean rows", "follow from the clean rows")


def files_beside(
    file: CheckinFile, keep: Sequence[str], drop: Sequence[str], hide: HideSettings, venues: Texts, users: Texts
) -> dict[str, bytes]:
    """Return the content of each file next to the data, given the ids of the venues and of the users of released rows.

    Venues that are never released are not listed.
    """
    if file.venues is None:
        return {}
    table, (_, dropped), visits = file.venues, split_columns(file, drop), Counter(venues.tolist())
    ids = table.fields["poi"].to_list()
    listed = np.flatnonzero(~_hidden(table, file.table, hide)).tolist()
    listed.sort(key=lambda row: _key(ids[row]))
    rows = table.rows.take(np.array(listed, np.int64))
    for name, what in _telling(table, file.table).items():
        if what == COUNT and name not in (*keep, *drop):
            rows = rows.replace_ids(name, np.array([str(visits[ids[row]]) for row in listed], object))
    out = io.BytesIO()
    rows.drop(dropped).write(out)
    found = {_plain(table.path): out.getvalue()}
    data = Path(data_name(file))
    if data.suffix.lower() == LIBCITY:
        everybody = "".join(f"{user}\n" for user in sorted({*users.tolist()}, key=_key))
        found[data.with_suffix(USERS).name] = f"usr_id\n{everybody}".encode()
    return found


def _hidden(table: VenueTable, clean: Checkins, hide: HideSettings) -> Bools:
    """Mark the listed venues (L,) that are never released, visited or not: a gap must not show who was visited."""
    named = [table.fields[name].cast(pl.String).fill_null("") for name in ("category", NAME) if name in table.fields]
    of = {called: is_hidden(called, hide) for called in set(zip(*named, strict=True))}
    hidden = np.array([of[called] for called in zip(*named, strict=True)] or [False] * len(table.fields), bool)
    venue = np.unique(np.stack([clean.venue, clean.user]), axis=1)[0]
    visitors = dict(zip(clean.venue_ids.tolist(), np.bincount(venue, minlength=len(clean.venue_ids)), strict=True))
    few = [visitors.get(one, 0) < hide.min_visitors for one in table.fields["poi"]]
    hidden |= np.array(few, bool) & (hide.min_visitors > 1)
    return hidden | are_new(table.fields["poi"].to_list(), clean) if hide.new else hidden


def venue_file(file: CheckinFile) -> str:
    """Return the name of the table of venues in a release, "" without one."""
    return _plain(file.venues.path) if file.venues else ""


def _plain(path: Path) -> str:
    return path.stem if path.suffix.lower() in COMPRESSED else path.name


def _key(text: str) -> tuple[int, int, str]:
    """Order ids: numbers by size, then texts."""
    return (0, int(text), text) if text.isascii() and text.isdigit() else (1, 0, text)


COUNT = "counts the check-ins of each venue"


def _telling(table: VenueTable, clean: Checkins) -> dict[str, str]:
    """Return the columns of a table of venues that follow from the clean rows, and how."""
    at = {name: venue for venue, name in enumerate(clean.venue_ids)}
    number = np.array([at.get(name, 0) for name in table.fields["poi"]])  # 0: nobody visited it
    row, size = np.flatnonzero(number), len(clean.venue_ids)
    visits = np.bincount(clean.venue, minlength=size).astype(float)
    pairs = np.unique(np.stack([clean.venue, clean.user]), axis=1)[0]
    first, last = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(first, clean.venue, clean.time)
    np.maximum.at(last, clean.venue, clean.time)
    by_hour = np.bincount(clean.venue * 24 + clean.time // 3600 % 24, minlength=24 * size).reshape(size, 24)  # UTC
    statistics = {
        COUNT: visits, "holds the busiest hour of each venue": by_hour.argmax(axis=1).astype(np.float64),
        "counts the visitors of each venue": np.bincount(pairs, minlength=size).astype(float),
        "holds the time of each venue's first check-in": first, "holds the time of each venue's last check-in": last,
    }  # fmt: skip
    found: dict[str, str] = {}
    for name in table.rows.columns:
        if name in table.mapping.values():
            continue
        texts = table.rows.get_column(name).str.strip_chars(' \t\r"').gather(row)
        if _names_visitors(texts, number[row], clean):
            found[name] = "names visitors of each venue"
            continue
        plain, times = _numbers(texts), _times(texts)
        for what, statistic in statistics.items():
            own = statistic[number[row]]
            same = [np.mean(plain == own), np.mean(times == own)]
            if "hour" in what:  # in any time zone
                same += [np.mean((plain - own) % 24 == shift) for shift in range(1, 24)]
            if len(np.unique(own)) > 1 and max(same) >= SAME:
                found[name] = what
                break
        else:
            known = np.isfinite(plain)
            for what, statistic in (("number of check-ins", visits), ("first check-in", first)):
                both = (pl.Series(one[known]) for one in (plain, statistic[number[row]]))
                alike = known.sum() >= FEWEST and pl.select(pl.corr(*both, method="spearman")).item()
                if abs(alike or 0) >= LIKE:
                    found.setdefault(name, f"follows the {what} of each venue")
    return found


def _names_visitors(texts: pl.Series, venue: Longs, clean: Checkins) -> bool:
    """Return whether words of a column are ids of users who visited the venue, far more often than by chance."""
    there = set(zip(clean.venue.tolist(), clean.user_ids[clean.user].tolist(), strict=True))
    words = [re.split(r"[^\w.@-]+", text or "") for text in texts.to_list()]
    filled = [n for n, some in enumerate(words) if any(some)]
    other = np.roll(venue, 1)

    def share(of: Longs) -> float:
        return sum(any((of[n], word) in there for word in words[n]) for n in filled) / max(1, len(filled))

    return share(venue) >= SAME and share(venue) >= 2 * share(other)


def _numbers(texts: pl.Series) -> Floats:
    return texts.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()


def _times(texts: pl.Series) -> Floats:
    try:
        return parse_times(texts).cast(pl.Float64).fill_null(float("nan")).to_numpy()
    except pl.exceptions.PolarsError:
        return np.full(len(texts), np.nan)
