"""The rows of a release and what its manifest says about them, whether they are written to a folder or not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ghostpoi import __version__
from ghostpoi.columns import VenueColumns
from ghostpoi.columns.classify import Tests, constant_within
from ghostpoi.columns.dependence import value_codes
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Checkins, Longs, duplicates
from ghostpoi.data.displacement import Moves, moves, published, without_category
from ghostpoi.draw import whole_table
from ghostpoi.draw.methods import AnyMethod
from ghostpoi.draw.publication import Publication, described
from ghostpoi.draw.walks import Substitution
from ghostpoi.draw.whole_table import WholeTable, prepare
from ghostpoi.errors import InputError
from ghostpoi.formats import CheckinFile, Rows
from ghostpoi.formats.folder import keys_of
from ghostpoi.formats.times import TIMEZONE, needs_zone, split_names
from ghostpoi.formats.written_times import with_times
from ghostpoi.options import option
from ghostpoi.progress import Say
from ghostpoi.randomness import Seed
from ghostpoi.release import identity
from ghostpoi.release.manifest import NO_CATEGORY
from ghostpoi.release.private_folder import ReleaseRequest, RowsRequest
from ghostpoi.release.venue_files import classify_file, files_beside, split_columns

if TYPE_CHECKING:
    from ghostpoi.release.series.add import SeriesRelease
    from ghostpoi.release.series.ledger import Series


FEW_ROWS = 100  # of a release: figures of draws would reveal the venues of single rows
GROUPS = ("in_sessions", "outside_sessions")
SHARES = ("left_genuine", "drawn_own")  # of all released rows
# Counts that say nothing about draws, nor how many of a few rows are at homes.
BY_RULE = dict.fromkeys(GROUPS, ("rows", "no_candidate")) | {"hidden": ("withheld",)}


@dataclass(frozen=True)
class Figures:
    """What a region, or a file that is one region, adds to the figures of a release."""

    rows: dict[str, Any]  # a tree of counts
    moved: Moves  # to the metre
    p95_km: float  # exact, which no sum of counts is
    released: int  # rows
    hides_draws: bool  # because some repeat those of an earlier release
    category: bool
    duplicates: int  # which only the publisher is told


def counted(
    whole: WholeTable, method: AnyMethod, released: Substitution, shown: Longs, missing: Mapping[str, int]
) -> Figures:
    """Count the rows of a release. `shown` are those that are not withheld.

    `missing` counts the rows that lack a value: kept or dropped. A kept row is left genuine.
    """
    genuine, kept = whole_table.genuine_rows(whole, method, shown, released.poi[shown]), missing.get("kept", 0)
    rows = {
        **whole_table.count_rows(whole, released), "withheld": len(whole.table) - len(shown),
        "hidden": whole_table.hidden_rows(whole), **genuine, "left_genuine": genuine["left_genuine"] + kept,
        **({"missing": dict(missing)} if missing else {}),
    }  # fmt: skip
    moved, category = moves(whole.table.venues, whole.table.venue, released.poi), bool(whole.table.category_field)
    counts, high = moved.to_the_metre, moved.measures["p95_km"]
    return Figures(rows, counts, high, len(shown) + kept, bool(whole.repeated.any()), category, duplicates(whole.table))


def stated(each: Sequence[Figures]) -> dict[str, Any]:
    """Return the sections `rows`, `plausibility` and `data` of a manifest, given the figures of all regions."""
    empty: dict[str, Any] = {}
    rows, total = reduce(added, (one.rows for one in each), empty), sum(one.released for one in each)
    rows |= {name: {"rows": rows[name], "share": round(rows[name] / total, 3) if total else 0.0} for name in SHARES}
    measures = Moves.added([one.moved for one in each]).measures
    moved = published(measures | {"p95_km": each[0].p95_km} if len(each) == 1 else measures)
    if any(one.hides_draws for one in each) or sum(rows[name]["rows"] for name in GROUPS) < FEW_ROWS:
        by_rule = {name: {key: rows[name][key] for key in keys} for name, keys in BY_RULE.items()}
        rows = {name: value for name, value in (rows | by_rule).items() if name != "drawn_own"}
        return {"rows": rows, "plausibility": None, "data": {"rows": total}}
    moved = moved if each[0].category else without_category(moved)
    return {"rows": rows, "plausibility": moved, "data": {"rows": total}}


def added(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    """Add two trees of numbers."""
    both = {key: (one.get(key, 0), two.get(key, 0)) for key in one | two}
    return {k: added(a or {}, b or {}) if isinstance(a or b, dict) else a + b for k, (a, b) in both.items()}


def joint_speed(each: Sequence[dict[str, float]]) -> dict[str, float]:
    """Add up what regions count of their steps."""
    return each[0] | {name: sum(one[name] for one in each) for name in ("steps", "steps_over_limit")}


@dataclass(frozen=True)
class Plan:
    """A file that can be released: what becomes of each column, and the venues that rows may draw."""

    request: RowsRequest
    file: CheckinFile
    columns: VenueColumns
    rows: Rows  # without the columns that the release leaves out
    series: "SeriesRelease | None"  # to which the release belongs
    whole: WholeTable
    in_order: bool = False  # whether rows keep their users, times and order, which change once regions are joined


@dataclass(frozen=True)
class ReleasedRows:
    """The rows of a release, and what is private about them."""

    rows: Rows
    manifest: dict[str, Any]  # everything in it is public
    figures: Figures  # of which it states some
    beside: dict[str, bytes]  # files that belong to the data: the table of venues
    whole: WholeTable
    venues: Substitution  # of all clean rows
    shown: Longs  # (M,) the clean row of each released row
    users: identity.NewUsers | None


def plan(
    request: RowsRequest, file: CheckinFile, say: Say, series: "Series | None" = None,
    columns: VenueColumns | None = None, lap: Say = lambda step: None,
) -> Plan:  # fmt: skip
    """Decide what becomes of each column; refuse a file that cannot be released.

    `columns`: what was decided on more rows, of which the file holds one region. `lap` is told of each step.
    """
    settings, reorders = request.settings, request.settings.reorders
    whole_table.check_category(file.table, settings)
    table = whole_table.grouped(file.table, request.groups, settings.method)
    number = identity.wanted(file, settings)
    whole_file = columns is None
    columns = columns or classify_file(file, request.keep, request.drop, number, settings)
    identity.check_times(file, settings, series is not None, whole_file)
    more = identity.check_time_columns(file, settings, columns.keep, request.keep)
    more += identity.creation_warnings(identity.visits_on_creation(file.table, settings)) if whole_file else []
    if whole_file and not reorders:  # else rows are divided again, or `regions` has tested the parts
        check_parts(file, columns.change)
    part = None
    if series and isinstance(request, ReleaseRequest):
        from ghostpoi.release.series.add import SeriesRelease

        part = SeriesRelease.plan(series, request, file, table, columns, number)
        request, table, columns = part.request, part.table, part.columns
    noted = check_kept(file, settings)
    rows = file.all_rows if len(file.kept) else file.rows
    rows = (rows if request.keep_metadata else rows.without_metadata()).drop(columns.drop)
    first = np.zeros(1, np.int64)  # one row is changed as all will be: what cannot be is refused before any work
    row = rows.take(first).copy_fields(columns.change, first)
    if settings.hides_users:
        row.replace_ids(file.mapping["user"], np.array(["1"], object))
    for text in [*columns.warnings, *more, *filter(None, (noted, _taken_for_utc(file)))]:
        say(f"warning: {text}")
    lap("reading and testing columns")
    whole = prepare(table, settings, whole_file, part.kept if part else None)
    if not reorders:
        check_sets(file, whole.venue_sets)
    check_zones(file, columns.change, whole)
    tell_duplicates(duplicates(table), say)
    lap("finding candidates")
    return Plan(request, file, columns, rows, part, whole)


def release_rows(plan: Plan, released: Substitution, seed: Seed) -> ReleasedRows:
    """Give every row the fields of its released venue, and a pseudonym if users are hidden."""
    request, file, whole, columns = plan.request, plan.file, plan.whole, plan.columns
    settings, rows, series = request.settings, plan.rows, plan.series
    shown = whole.shown(request.withhold)
    _, shown_in_file = in_file(file, np.arange(len(whole.table)), shown)
    if series:
        rows = series.with_fields(rows, whole, released, settings.hides_users)
    else:
        donor = whole_table.donor_rows(whole, released, settings.method, seed, every=settings.hides_users)
        rows = rows.copy_fields(columns.change, in_file(file, donor, donor)[0])
    user, new = file.mapping["user"], None
    if settings.reorders and not plan.in_order:
        draw = series.users if series else identity.draw
        new = draw(whole.table, shown, settings, seed, rows.largest_number(user) if settings.hides_users else None)
        shown = new.row
        rows = rows.take(shown).divided_anew()
        if settings.hides_users:
            rows = rows.replace_ids(user, new.released_ids)
        if settings.identity.times != "keep":
            rows = with_times(file, rows, new.time)
    elif len(shown) < len(whole.table):
        rows = rows.take(shown_in_file)
    category, groups = bool(whole.table.category_field), whole.table.category_groups
    kept_beside, dropped_beside = (split_columns(file, names)[1] for names in (request.keep, request.drop))
    manifest = {
        "tool": {"name": "ghostpoi", "version": __version__},
        "method": request.method,
        "protocol": request.protocol,
        **described(settings, request.purpose, request.method, request.withhold),
        "settings": settings.public(),
        "columns": {
            "fields": file.mapping,
            "changed_with_the_venue": columns.change,
            "kept": columns.keep,
            "why": {name: columns.why[name] for name in columns.keep if name in columns.why},
            "dropped": list(dict.fromkeys([*columns.drop, *dropped_beside])),
            "kept_on_request": [name for name in columns.keep if name in request.keep] + kept_beside,
        },
        "disclosure": {
            "category": settings.keeps_category if category else NO_CATEGORY,
            "category_groups": whole_table.category_groups(whole, settings),
            "aggregates": whole_table.published_aggregates(category, groups, settings),
        },
        **({} if new is None else {"identity": new.public}),
        **(series.public if series else {}),
    }
    venues, users = whole.table.venue_ids[released.poi[shown]], whole.table.user_ids[whole.table.user[shown]]
    users = users if new is None else new.released_ids
    beside = files_beside(file, request.keep, request.drop, settings.hide, venues, users)
    found = counted(whole, settings.method, released, shown, file.counted)
    return ReleasedRows(rows, manifest, found, beside, whole, released, shown, new)


def _taken_for_utc(file: CheckinFile) -> str | None:
    """Return the warning about times that state no zone, and for which the publisher states none."""
    reading, mapping = file.reading, file.mapping
    if reading.timezone or TIMEZONE in mapping or file.source.frame is not None:  # the caller knows a frame's times
        return None
    time = file.rows.values(file.source, "time", mapping["time"])
    is_text = time.dtype == pl.String
    named = split_names(time)[1].is_not_null() if is_text else pl.Series([False])
    without = needs_zone(time, reading.time_format) & ~named
    if not (count := int(without.sum())):
        return None
    times = "1 time states" if count == 1 else f"{count:,} times state"
    remedy = f"name the zone with {option('timezone', 'ZONE')}" if is_text else "store them with their zone"
    return f"{times} no time zone and count as UTC; {remedy} if it is another"


def tell_duplicates(count: int, say: Say) -> None:
    """Tell the publisher, and no recipient, how many rows are released as one that they repeat."""
    if count:
        say(f"note: {count:,} {'row repeats' if count == 1 else 'rows repeat'} another's user, time, venue and release")


def in_file(file: CheckinFile, donor: Longs, shown: Longs) -> tuple[Longs, Longs]:
    """Turn the donor of each row of the table, and the rows to show, into rows of the file; kept rows stay."""
    if not len(file.kept):
        return donor, shown
    every = np.arange(len(file.table) + len(file.missing))
    every[file.present] = file.present[donor]
    return every, np.sort(np.concatenate([file.present[shown], file.kept]))


def check_kept(file: CheckinFile, settings: Publication) -> str | None:
    """Return the warning about rows that lack a value; refuse to keep user ids or times that others replace."""
    if not len(file.missing):
        return None
    one = len(file.missing) == 1
    what = f"that lack{'s' * one} a value or lie{'s' * one} in no cluster"
    what = what if file.reading.cluster_points else "with missing values"
    count = f"{len(file.missing):,} row{'s' * (not one)} {what} ({file.missing_at})"
    if not len(file.kept):
        return f"{count}: left out of the release"
    replaced = ""
    if settings.hides_users:
        replaced = "pseudonyms replace all user ids"
    elif settings.reorders:
        replaced = f"{option('times', settings.identity.times)} replaces all times"
    if replaced:
        raise InputError(
            f"{file.path}: {replaced}, but {count} would keep {'its own' if one else 'theirs'}; drop "
            f"{'this row' if one else 'these rows'} with {option('missing', 'drop')}"
        )
    if one:
        return f"{count}: kept as it is, so it shows a genuine visit; {option('missing', 'drop')} leaves it out"
    return f"{count}: kept as they are, so they show genuine visits; {option('missing', 'drop')} leaves them out"


def check_zones(file: CheckinFile, change: list[str], whole: WholeTable) -> None:
    """Refuse a file in which a venue can become one of another zone."""
    column = file.mapping.get(TIMEZONE)
    if column is None or column not in change:
        return
    zone, table = value_codes(file.rows.get_column(column)), file.table
    of_venue = np.zeros(len(table.venue_ids), np.int64)
    of_venue[table.venue] = zone
    pairs = ((of_venue, whole.venue_sets), (of_venue[whole.data.vocabulary.venue], whole.session_sets))
    leave = (sets.everywhere or leaving(own, sets) for own, sets in pairs)
    if not constant_within(zone, table.venue) or any(leave):
        raise InputError(
            f"{file.path}: a venue can become one of another time zone, and the column {column!r} would change its "
            "times; write all times in UTC, or keep the column at your own risk with "
            f"{option('keep', column, shown=quote)}"
        )


def leaving(of_venue: Longs, sets: Candidates) -> tuple[int, int] | None:
    """Return two values of `of_venue` (V+1,) of which a venue with the first can become one with the second, if any."""
    if sets.everywhere:
        other = np.flatnonzero(of_venue[1:] != of_venue[1]) + 1
        return (int(of_venue[1]), int(of_venue[other[0]])) if len(other) else None
    differs = (sets.poi > 0) & (of_venue[sets.poi] != of_venue[:, None])
    if not differs.any():
        return None
    venue, at = np.argwhere(differs)[0]
    return int(of_venue[venue]), int(of_venue[sets.poi[venue, at]])


PART = "the part of the folder"
REMEDY = "divide the rows by time or at random, or give one file"


@dataclass(frozen=True)
class _Division:
    """How a folder divides the rows: into parts, or by a key that names of folders hold, e.g. city=Paris."""

    what: str
    code: Longs  # (N,)
    names: Sequence[str]

    def of_venues(self, table: Checkins) -> Longs | None:
        """Return the part of each venue, (V+1,), if all rows of a venue are in one part, else None."""
        found = np.zeros(len(table.venue_ids), np.int64)
        found[table.venue] = self.code
        return found if (found[table.venue] == self.code).all() else None


def check_parts(file: CheckinFile, change: list[str]) -> None:
    """Refuse a folder whose parts reveal clean venues, but for those that follow from the venue: see `check_sets`."""
    for division in _divisions(file):
        if division.of_venues(file.table) is not None:
            continue
        names, rows = [division.names[number] for number in division.code.tolist()], file.rows
        needed = {name: rows.get_column(name) for name in rows.columns if name in (*change, *file.mapping.values())}
        tests = Tests(file.table, pl.DataFrame(needed | {division.what: names}), file.mapping)
        if (found := tests.finding(division.what, tests.sample(change))) and found.share > 0:
            raise InputError(f"{file.path}: {division.what} {found}, so it could reveal clean venues; {REMEDY}")


def check_sets(file: CheckinFile, sets: Candidates) -> None:
    """Refuse a folder that is divided by venue, say by city, if a venue can become one of another part.

    Rows stay in their part, so it would reveal that they moved. `sets` are the candidate sets of the table's venues.
    """
    for division in _divisions(file):
        of_venue = division.of_venues(file.table)
        if of_venue is not None and (found := leaving(of_venue, sets)):
            raise InputError(
                f"{file.path}: its parts follow from the venue, and a venue of {division.names[found[0]]} can become "
                f"one of {division.names[found[1]]}, so the part would reveal clean venues; {REMEDY}"
            )


def _divisions(file: CheckinFile) -> Iterator[_Division]:
    """Yield how a folder divides the rows of the table, if it does."""
    rows = file.rows
    if len(np.unique(rows.part)) < 2:
        return
    yield _Division(PART, rows.part, rows.parts)
    keys = [keys_of(name) for name in rows.parts]
    for key in dict.fromkeys(key for one in keys for key in one):
        names, code = np.unique([f"{key}={one.get(key, '')}" for one in keys], return_inverse=True)
        if 1 < len(np.unique(code[rows.part])) < len(np.unique(rows.part)):  # else it reveals nothing, or what parts do
            yield _Division(f"the folder name {key}=", code[rows.part], names.tolist())
