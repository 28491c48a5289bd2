"""What the page is made of: a release, others to compare it with and, for the publisher's own eyes, the clean side."""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ghostpoi.data import formats
from ghostpoi.data.checkins import Checkins, Floats, Longs, places
from ghostpoi.data.formats import Rows
from ghostpoi.data.geo import EARTH_RADIUS_KM, haversine_km, unit_sphere
from ghostpoi.errors import InputError
from ghostpoi.publish.manifest import hash_complaint, read_manifest
from ghostpoi.report.figures import Audit

PAIRS = "pairs.npz"
# Columns that give the venue or its category a name that people read, as lower-case letters alone.
VENUE_NAMES = ("name", "title", "venuename", "poiname", "placename", "locationname", "venue", "place")
CATEGORY_NAMES = ("categoryname", "catname", "poicatname", "poicategoryname", "venuecategoryname", "category")


@dataclass(frozen=True)
class Released:
    """One release, read and found to be what its manifest says."""

    folder: str  # its name, not its path
    manifest: dict[str, Any]
    audit: Audit | None
    table: Checkins
    rows: Rows

    @property
    def method(self) -> str:
        return str(self.manifest.get("method", "unknown"))


@dataclass(frozen=True)
class Venues:
    """Every venue that the page may name, and where it lies on a flat map in km around the city's middle."""

    name: list[str]
    category: list[str]
    lat: Floats  # (P,)
    lon: Floats  # (P,)

    @cached_property
    def middle(self) -> tuple[float, float]:
        """On the sphere, so that a city across the antimeridian has one too; medians, so that strays do not matter."""
        x, y, z = np.median(unit_sphere(self.lat, self.lon), axis=0)
        return float(np.degrees(np.arctan2(z, np.hypot(x, y)))), float(np.degrees(np.arctan2(y, x)))

    @cached_property
    def xy(self) -> tuple[Floats, Floats]:
        """East and north of the middle, (P,) each."""
        lat, lon = self.middle
        km = np.pi / 180 * EARTH_RADIUS_KM
        east = (self.lon - lon + 180) % 360 - 180
        return east * km * np.cos(np.radians(lat)), (self.lat - lat) * km

    def km(self, a: Longs, b: Longs) -> Floats:
        """Distances between venues."""
        return haversine_km(self.lat[a], self.lon[a], self.lat[b], self.lon[b])


@dataclass(frozen=True)
class Collected:
    """Rows are those of the first release; a side is the venue of every row, -1 where that side has no such row."""

    main: Released
    others: list[Released]
    venues: Venues
    released: Longs  # (N,)
    compared: list[Longs]  # (N,) each, in the order of `others`; empty on the public page
    clean: Longs | None  # (N,)

    @cached_property
    def user(self) -> Longs:
        return self.main.table.user.astype(np.int64)

    @property
    def time(self) -> Longs:
        return self.main.table.time


def collect(release: Path, others: list[Path], private: Path | None) -> Collected:
    """Read everything. `private` is the folder of the pairs where the clean side is wanted.

    Rows of the other releases are read for the private page alone: a second draw for the same rows, put beside the
    first on a public page, would give an adversary more evidence.
    """
    main = open_release(release)
    more = [open_release(other) for other in others]
    rows = [align(main.table, other.table, path) for other, path in zip(more, others, strict=True)]
    if private is None:
        return Collected(main, more, _venues(main), main.table.poi.astype(np.int64), [], None)
    pairs = read_pairs(private, main)
    compared = [_in_terms_of(pairs, other, row) for other, row in zip(more, rows, strict=True)]
    return Collected(main, more, pairs.venues, pairs.released, compared, pairs.clean)


def open_release(folder: Path) -> Released:
    """A release with its data; refused where the data is not what the manifest was written for."""
    manifest = read_manifest(folder)
    if complaint := hash_complaint(folder, manifest):
        raise InputError(f"{folder}: {complaint}; make the release again with protect")
    data = folder / manifest["data"]["file"]
    table, source = formats.read(data, manifest["columns"]["fields"], manifest["data"]["format"])
    audit = Audit.read(manifest, folder)
    return Released(folder.resolve().name, manifest, audit, table, formats.read_rows(source))


def align(table: Checkins, other: Checkins, path: Path) -> Longs:
    """The row of `other` with the user and time of each row of `table`, (N,); -1 for one that it withholds."""
    row = dict(zip(_keys(other), range(len(other)), strict=True))
    found = np.array([row.get(key, -1) for key in _keys(table)], np.int64)
    if (found >= 0).sum() < min(len(table), len(other)):
        raise InputError(
            f"--compare {path}: its rows are not those of the release that the report is about; "
            "compare releases of one file"
        )
    return found


def _keys(table: Checkins) -> list[tuple[str, int, int]]:
    """User, time, and which of the rows with that user and time it is."""
    seen: Counter[tuple[str, int]] = Counter()
    keys = []
    for user, time in zip(table.users[table.user].tolist(), table.time.tolist(), strict=True):
        keys.append((user, time, seen[user, time]))
        seen[user, time] += 1
    return keys


def _venues(release: Released) -> Venues:
    """Those of the release alone."""
    table, place = release.table, places(release.table)
    names = _names(release, VENUE_NAMES, "poi")
    kinds = _names(release, CATEGORY_NAMES, "category")
    return Venues(
        [names.get(v, v) for v in table.pois],
        [kinds.get(c, c) for c in table.categories[place.category]],
        place.lat, place.lon,
    )  # fmt: skip


def _names(release: Released, columns: tuple[str, ...], field: str) -> dict[str, str]:
    """What people call each id of a field, where a column of the file says so."""
    fields = release.manifest["columns"]["fields"]
    for column in release.manifest["columns"]["changed_with_the_venue"]:
        known = "".join(c for c in str(column).lower() if c.isalpha()) in columns
        if known and column in release.rows.columns and column not in fields.values():
            table = release.table
            ids, code = (table.pois, table.poi) if field == "poi" else (table.categories, table.category)
            texts = release.rows.column(column).to_list()
            # Later rows first, so that the first spelling in the file is what stays.
            return {str(ids[c]): str(t) for c, t in zip(code[::-1], texts[::-1], strict=True) if t}
    return {}


@dataclass(frozen=True)
class Pairs:
    """The clean and the released venue of every released row, as the publisher's private folder keeps them."""

    venues: Venues
    ids: list[str]  # (P,)
    clean: Longs  # (N,)
    released: Longs  # (N,)


def read_pairs(private: Path, release: Released) -> Pairs:
    """The pairs, if they are this release's."""
    path = private / PAIRS
    if not path.is_file():
        raise InputError(f"--private {private} holds no {PAIRS}; give the private folder that protect wrote")
    try:
        with np.load(path, allow_pickle=False) as file:
            shown = file["shown"]
            clean, released = (file[name][shown].astype(np.int64) for name in ("clean", "released"))
            ids, category = (file[name].tolist() for name in ("poi_id", "category"))
            lat, lon = file["lat"], file["lon"]
            same = np.array_equal(file["poi_id"][released], release.table.pois[release.table.poi].astype(str))
    except KeyError:
        raise InputError(f"{path} was written by an older version of ghostpoi; make the release again") from None
    except (OSError, ValueError, IndexError, EOFError):
        raise InputError(f"{path} cannot be read; restore it from a copy or make the release again") from None
    if not same:
        raise InputError(
            f"{path} holds the pairs of another release than {release.folder}; give that release's private folder"
        )
    names, kinds = _names(release, VENUE_NAMES, "poi"), _names(release, CATEGORY_NAMES, "category")
    venues = Venues([names.get(v, v) for v in ids], [kinds.get(c, c) for c in category], lat, lon)
    return Pairs(venues, ids, clean, released)


def _in_terms_of(pairs: Pairs, other: Released, row: Longs) -> Longs:
    """The venues of another release at our rows, as numbers of the pairs."""
    number = {name: code for code, name in enumerate(pairs.ids)}
    code = np.array([number.get(name, -1) for name in other.table.pois], np.int64)
    return np.where(row >= 0, code[other.table.poi[row]], -1)
