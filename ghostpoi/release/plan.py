"""The rows of a release and what its manifest says about them, whether they are written to a folder or not."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ghostpoi import __version__
from ghostpoi.columns import VenueColumns
from ghostpoi.data.checkins import Checkins, Longs, duplicates
from ghostpoi.data.displacement import displacement, published, without_category
from ghostpoi.draw import whole_table
from ghostpoi.draw.methods import AnyMethod, FreeDraw
from ghostpoi.draw.publication import described
from ghostpoi.draw.walks import Substitution
from ghostpoi.draw.whole_table import WholeTable, prepare
from ghostpoi.formats import CheckinFile, Rows
from ghostpoi.formats.times import TIMEZONE, needs_zone, split_names
from ghostpoi.formats.written_times import with_times
from ghostpoi.options import option
from ghostpoi.progress import Say
from ghostpoi.randomness import Seed
from ghostpoi.release import times
from ghostpoi.release import users as pseudonyms
from ghostpoi.release.manifest import NO_CATEGORY
from ghostpoi.release.private_folder import ReleaseRequest, RowsRequest
from ghostpoi.release.refusals import check_kept, check_parts, check_sets, check_zones, in_file
from ghostpoi.release.venue_files import classify_file, files_beside, split_columns

if TYPE_CHECKING:  # only the releases of a series need them
    from ghostpoi.release.series.add import SeriesRelease
    from ghostpoi.release.series.ledger import Series

FEW_ROWS = 100  # of a release
GROUPS = ("in_sessions", "outside_sessions")
# Counts that say nothing about draws, nor how many of a few rows are at homes.
BY_RULE = dict.fromkeys(GROUPS, ("rows", "no_candidate")) | {"hidden": ("withheld",)}


def figures(
    whole: WholeTable, method: AnyMethod, released: Substitution, shown: Longs, missing: Mapping[str, int],
    whole_file: bool,
) -> dict[str, Any]:  # fmt: skip
    """Return the sections `rows` and `plausibility` of the manifest. `shown` are the rows that are not withheld.

    `missing` counts the rows that lack a value: kept or dropped. A kept row is left genuine. Figures of a region, which
    is not the `whole_file`, are joined to those of others.
    """
    genuine = whole_table.genuine_rows(whole, method, shown, released.poi[shown])
    genuine = with_kept(genuine, len(shown), missing.get("kept", 0))
    moved = published(displacement(whole.table.venues, whole.table.venue, released.poi))
    rows: dict[str, Any] = {
        **whole_table.count_rows(whole, released), "withheld": len(whole.table) - len(shown),
        "hidden": whole_table.hidden_rows(whole), "duplicates": duplicates(whole.table), **genuine,
        **({"missing": dict(missing)} if missing else {}),
    }  # fmt: skip
    found = {"rows": rows, "plausibility": moved if whole.table.category_field else without_category(moved)}
    return without_draws(found) if whole_file and (whole.repeated.any() or is_small(rows)) else found


def is_small(rows: Mapping[str, Any]) -> bool:
    """Return whether a release has so few rows that figures of draws would reveal the venues of single ones."""
    return bool(sum(rows[name]["rows"] for name in GROUPS) < FEW_ROWS)


def without_draws(found: dict[str, Any]) -> dict[str, Any]:
    """Return the figures without the outcomes of draws and without plausibility."""
    rows = {name: value for name, value in found["rows"].items() if name != "drawn_own"}
    by_rule = {name: {key: rows[name][key] for key in keys} for name, keys in BY_RULE.items()}
    return found | {"rows": rows | by_rule, "plausibility": None}


def with_kept(genuine: dict[str, dict[str, Any]], shown: int, kept: int) -> dict[str, dict[str, Any]]:
    """Count kept rows that lack a value as left genuine, among `shown` rows of the table."""
    if not kept:
        return genuine
    rows = {name: found["rows"] + kept * (name == "left_genuine") for name, found in genuine.items()}
    return {name: {"rows": count, "share": round(count / (shown + kept), 3)} for name, count in rows.items()}


@dataclass(frozen=True)
class Plan:
    """A file that can be released: what becomes of each column, and the venues that rows may draw."""

    request: RowsRequest
    file: CheckinFile
    columns: VenueColumns
    rows: Rows  # without the columns that the release leaves out
    series: "SeriesRelease | None"  # to which the release belongs
    whole: WholeTable
    whole_file: bool  # else a region
    in_order: bool = False  # whether rows keep their users, times and order, which change once regions are joined


@dataclass(frozen=True)
class ReleasedRows:
    """The rows of a release, and what is private about them."""

    rows: Rows
    manifest: dict[str, Any]  # everything in it is public
    beside: dict[str, bytes]  # files that belong to the data: the table of venues
    whole: WholeTable
    venues: Substitution  # of all clean rows
    shown: Longs  # (M,) the clean row of each released row
    users: pseudonyms.NewUsers | None

    def with_manifest(self, more: dict[str, Any]) -> "ReleasedRows":
        """Return the same rows with more in the manifest."""
        return replace(self, manifest=self.manifest | more)


def plan(
    request: RowsRequest, file: CheckinFile, say: Say, series: "Series | None" = None,
    columns: VenueColumns | None = None,
) -> Plan:  # fmt: skip
    """Decide what becomes of each column; refuse a file that cannot be released.

    `columns`: what was decided on more rows, of which the file holds one region.
    """
    settings, reorders = request.settings, request.settings.reorders
    whole_table.check_category(file.table, settings)
    table = whole_table.grouped(file.table, request.groups, settings.method)
    number = pseudonyms.wanted(file, settings)
    whole_file = columns is None
    columns = columns or classify_file(file, request.keep, request.drop, number, settings.keeps_category)
    times.check(file, settings, series is not None, whole_file)
    more = times.check_columns(file, settings, columns.keep, request.keep)
    if whole_file and not reorders:  # else rows are divided again, or `regions` has tested the parts
        check_parts(file, columns.change)
    if series and isinstance(request, ReleaseRequest):
        from ghostpoi.release.series.add import series_columns

        columns = series_columns(series, file, columns, request, number)
    noted = check_kept(file, settings)
    rows = file.all_rows if len(file.kept) else file.rows
    rows = (rows if request.keep_metadata else rows.without_metadata()).drop(columns.drop)
    _try_changes(rows, columns.change, file.mapping["user"] if settings.hides_users else None)
    for text in [*columns.warnings, *more, *filter(None, (noted, _taken_for_utc(file)))]:
        say(f"warning: {text}")
    part = None
    if series and isinstance(request, ReleaseRequest):
        from ghostpoi.release.series.add import SeriesRelease

        part = SeriesRelease.plan(series, request, file, table, columns)
        request, table = part.request, part.table
    whole = prepare(table, settings, whole_file, part.kept if part else None)
    anywhere = isinstance(settings.method, FreeDraw)
    if not reorders:
        check_sets(file, None if anywhere else whole.venue_sets)
    check_zones(file, columns.change, whole, anywhere)
    return Plan(request, file, columns, rows, part, whole, whole_file)


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
        draw = series.users if series else pseudonyms.draw
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
            "dropped": list(dict.fromkeys([*columns.drop, *split_columns(file, request.drop)[1]])),
            "kept_on_request": [name for name in columns.keep if name in request.keep]
            + split_columns(file, request.keep)[1],
        },
        "disclosure": {
            "category": settings.keeps_category if category else NO_CATEGORY,
            "category_groups": whole_table.category_groups(whole, settings),
            "aggregates": whole_table.published_aggregates(category, groups, settings),
        },
        **({} if new is None else {"identity": new.public}),
        **(series.public if series else {}),
        **figures(whole, settings.method, released, shown, file.counted, plan.whole_file),
    }
    beside = files_beside(file, request.keep, request.drop, settings.hide, *_shown(whole.table, released, shown, new))
    return ReleasedRows(rows, manifest, beside, whole, released, shown, new)


def _shown(
    table: Checkins, released: Substitution, shown: Longs, new: pseudonyms.NewUsers | None
) -> tuple[dict[str, int], list[str]]:
    """Return how many released rows each venue has, and the released user ids."""
    visits = np.bincount(released.poi[shown], minlength=len(table.venue_ids))
    ids = table.user_ids if new is None else new.ids
    number = (table.user if new is None else new.number)[shown]
    users = np.unique(ids[np.flatnonzero(np.bincount(number))])
    return dict(zip(table.venue_ids.tolist(), visits.tolist(), strict=True)), users.tolist()


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


def _try_changes(rows: Rows, columns: list[str], user: str | None) -> None:
    """Change one row as all will be changed: what cannot be is refused before any work."""
    first = np.zeros(1, np.int64)
    row = rows.take(first).copy_fields(columns, first)
    if user is not None:
        row.replace_ids(user, np.array(["1"], object))
