"""The data of the page: a release, others to compare it with and, on the private page, the clean side."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from ghostpoi.data.checkins import Checkins, Floats, Ints, Longs, by_user_and_time
from ghostpoi.data.geo import EARTH_RADIUS_KM, haversine_km, speed_kmh, unit_sphere
from ghostpoi.errors import InputError
from ghostpoi.formats import Source
from ghostpoi.options import option
from ghostpoi.release.private_folder import Pairs, clean_users, read_pairs
from ghostpoi.reports.release_view import ReleaseView, open_release, read_audits
from ghostpoi.reports.texts import plain

KEY = ("user", "time", "nth")  # of a row, the last its number among those with the same user and time


Clean = tuple[Sequence[str], Longs]  # the clean user id and the clean time of each row, (N,)


def align(main: ReleaseView, other: ReleaseView, path: Path, clean: Clean | None = None) -> Longs:
    """Return the row of `other` with the user and time of each row of `main`, (N,); -1 where it withholds the row.

    No row may be missing but those that a manifest counts as withheld. Without the `clean` side of `main`, only times
    are compared where pseudonyms hide the users of either; and only the number of rows, where their times differ.
    """
    if clean is not None and (other.pseudonyms or not other.keeps_times):
        raise InputError(
            f"{option('compare', path)}: its user ids are pseudonyms or its times are not those of the file, so its "
            f"rows cannot be put next to clean ones; compare a release that keeps both, or leave "
            f"{option('with_clean')} out"
        )
    table, users = (main.table, None) if clean is None else (replace(main.table, time=clean[1]), clean[0])
    hidden = users is None and (main.pseudonyms or other.pseudonyms)
    ours = _keyed(table, [""] * len(table) if hidden else users)
    theirs = _keyed(other.table, [""] * len(other.table) if hidden else None)
    both = ours.join(theirs, on=KEY, how="left", maintain_order="left")
    found = both.get_column("row_right").cast(pl.Int64).fill_null(-1)
    missing, extra = ours.filter(found < 0), theirs.join(ours, on=KEY, how="anti", maintain_order="left")
    same_file = len(ours) + main.withheld == len(theirs) + other.withheld
    if same_file and clean is None and (main.kind_of_times != other.kind_of_times or main.kind_of_times == "shift"):
        return np.full(len(ours), -1)
    if same_file and len(missing) <= other.withheld and len(extra) <= main.withheld and len(missing) < len(ours):
        return found.to_numpy()
    if len(missing) > other.withheld:
        what = f"it lacks {len(missing):,} rows of the release, for example {_first(missing)}"
    elif len(extra) > main.withheld:
        what = f"it has {len(extra):,} rows that the release lacks, for example {_first(extra)}"
    else:
        what = f"it and the release withheld {other.withheld:,} and {main.withheld:,} rows of files of different length"
    raise InputError(f"{option('compare', path)}: {what}; compare releases of one file")


def _first(rows: pl.DataFrame) -> str:
    user, time = rows.select("user", "time").row(0)
    return f"{f'user {user} at ' if user else ''}{datetime.fromtimestamp(time, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _keyed(table: Checkins, users: Sequence[str] | None) -> pl.DataFrame:
    """The rows of a table with their keys; `users` (N,) are other user ids than its own."""
    ids = users or table.user_ids[table.user].tolist()
    rows = pl.DataFrame({"user": pl.Series(ids, dtype=pl.String), "time": pl.Series(table.time, dtype=pl.Int64)})
    return rows.with_columns(nth=pl.int_range(pl.len()).over("user", "time")).with_row_index("row")


# Columns that name the venue or its category for people, as lower-case letters only.
VENUE_NAMES = ("name", "title", "venuename", "poiname", "placename", "locationname", "venue", "place")
CATEGORY_NAMES = ("categoryname", "catname", "poicatname", "poicategoryname", "venuecategoryname", "category")


@dataclass(frozen=True)
class PageVenues:
    """The venues that the page may name, on a flat map in km around the city's centre. Row 0 is no venue."""

    name: list[str]  # (V+1,)
    category: list[str]
    lat: Floats  # (V+1,)
    lon: Floats  # (V+1,)

    @cached_property
    def centre(self) -> tuple[float, float]:
        """Computed on the sphere, so that a city across the antimeridian has one; medians ignore strays."""
        x, y, z = np.median(unit_sphere(self.lat[1:], self.lon[1:]), axis=0)
        return float(np.degrees(np.arctan2(z, np.hypot(x, y)))), float(np.degrees(np.arctan2(y, x)))

    @cached_property
    def east(self) -> Floats:
        """Degrees east of the centre, (V+1,), without a jump at the antimeridian."""
        return self._east(self.lon)

    def _east(self, lon: Floats) -> Floats:
        return (lon - self.centre[1] + 180) % 360 - 180

    @cached_property
    def xy(self) -> tuple[Floats, Floats]:
        """Kilometres east and north of the centre, (V+1,) each."""
        return self.place(self.lat, self.lon)

    def place(self, lat: Floats, lon: Floats) -> tuple[Floats, Floats]:
        """Kilometres east and north of the centre."""
        km = np.pi / 180 * EARTH_RADIUS_KM
        return self._east(lon) * km * np.cos(np.radians(self.centre[0])), (lat - self.centre[0]) * km

    def km(self, a: Ints, b: Ints) -> Floats:
        return haversine_km(self.lat[a], self.lon[a], self.lat[b], self.lon[b])


@dataclass(frozen=True, kw_only=True)
class PageData:
    """Rows are those of the main release. A side is the venue of every row, 0 where that side has no such row."""

    main: ReleaseView
    others: list[ReleaseView]
    venues: PageVenues
    released: Ints  # (N,)
    compared: list[Ints]  # (N,) each, in the order of `others`; empty on the public page
    clean: Ints | None  # (N,)

    @cached_property
    def user(self) -> Longs:
        return self.main.table.user.astype(np.int64)

    @property
    def time(self) -> Longs:
        return self.main.table.time

    @cached_property
    def by_user(self) -> Longs:
        """The rows of each user in the order of time, (N,)."""
        return by_user_and_time(self.main.table.user, self.time)

    def kmh(self, venue: Ints, time: Longs) -> Floats:
        """Speeds of the steps between venues visited at these times, (n,), (n,) -> (n-1,)."""
        gap = float(self.main.manifest["speed"]["min_gap_s"])
        return speed_kmh(self.venues.km(venue[:-1], venue[1:]), np.diff(time), gap)

    @property
    def releases(self) -> dict[str, ReleaseView]:
        """All releases by the label of their method, with the folder where two have the same one."""
        every = [self.main, *self.others]
        methods = [r.method for r in every]
        found: dict[str, ReleaseView] = {}
        for number, r in enumerate(every, 1):
            name = plain(f"{r.method} ({r.folder})" if methods.count(r.method) > 1 else r.method)
            found[f"{name}, no. {number}" if name in found else name] = r
        return found


def read_page_data(
    releases: Sequence[Source], private: Path | None, mapping: dict[str, str] | None = None,
    audits: Sequence[Path] = (),
) -> PageData:  # fmt: skip
    """Read everything. `private` is the folder of the pairs where the clean side is wanted.

    Releases of other tools are files with the columns of `mapping`; `audits` holds what was measured of them.

    Rows of the other releases are used on the private page alone: a second draw for the same rows, put next to
    the first on a public page, would give an adversary more evidence.
    """
    measured = read_audits(audits)
    main, *more = (open_release(source, mapping, measured) for source in releases)
    files = {r.manifest["data"]["sha256"] for r in (main, *more) if not r.ours}
    if strange := [path for path, digest in zip(audits, measured, strict=True) if digest not in files]:
        raise InputError(
            f"{option('audits', strange[0])} measured none of these files; a release folder holds its own audit, and "
            "a file of another tool needs one of its present content"
        )
    pairs = None if private is None else read_pairs(private, main.table, main.folder)
    clean = pairs and private and (clean_users(private, main.table, bool(main.pseudonyms)), pairs.time)
    rows = [align(main, other, source.path, clean or None) for other, source in zip(more, releases[1:], strict=True)]
    if pairs is None:
        table, place = main.table, main.table.venues
        category = ["", *table.category_ids[place.category[1:]].tolist()]
        venues = _venues(main, table.venue_ids.tolist(), category, place.lat, place.lon)
        return PageData(main=main, others=more, venues=venues, released=table.venue, compared=[], clean=None)
    compared = [_in_terms_of(pairs, other, row) for other, row in zip(more, rows, strict=True)]
    venues = _venues(main, pairs.ids, pairs.category, np.array(pairs.lat), np.array(pairs.lon))
    return PageData(
        main=main, others=more, venues=venues, released=pairs.released, compared=compared, clean=pairs.clean
    )


def _venues(release: ReleaseView, ids: list[str], category: list[str], lat: Floats, lon: Floats) -> PageVenues:
    table = release.table
    names = _names(release, VENUE_NAMES, table.venue_ids[table.venue].tolist())
    kinds = _names(release, CATEGORY_NAMES, table.category_ids[table.category].tolist())
    return PageVenues([names.get(v, v) for v in ids], [kinds.get(c, c) for c in category], lat, lon)


def _names(release: ReleaseView, known: tuple[str, ...], ids: list[str]) -> dict[str, str]:
    """The name of each id, where a column of the file holds names; `ids` has one per row."""
    columns = release.manifest["columns"]
    for column in columns["changed_with_the_venue"]:
        letters = "".join(c for c in str(column).lower() if c.isalpha())
        if letters in known and column in release.file.rows.columns and column not in columns["fields"].values():
            texts = release.file.rows.get_column(column).to_list()
            # Later rows first, so that the first spelling in the file wins.
            return {str(i): str(t) for i, t in zip(ids[::-1], texts[::-1], strict=True) if t}
    return {}


def _in_terms_of(pairs: Pairs, other: ReleaseView, row: Longs) -> Ints:
    """The venues of another release at our rows, 0 for a missing row. Venues that its tool invented are added."""
    number, table, places = {name: venue for venue, name in enumerate(pairs.ids)}, other.table, other.table.venues
    for venue in (venue for venue, name in enumerate(table.venue_ids) if name not in number):
        pairs.ids.append(table.venue_ids[venue])
        pairs.category.append(table.category_ids[places.category[venue]])
        pairs.lat.append(float(places.lat[venue]))
        pairs.lon.append(float(places.lon[venue]))
    number |= {name: venue for venue, name in enumerate(pairs.ids)}
    renumbered = np.array([number[name] for name in table.venue_ids], np.int32)
    return np.where(row >= 0, renumbered[table.venue[row]], 0)
