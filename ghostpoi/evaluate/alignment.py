"""A clean file beside a release of the same rows, as the recipient of the release would cut it into sessions.

The recipient filters, segments and splits the released table alone. The clean values at the same positions are what
audits need on top: leaked pairs, the clean ceiling, and clean validation and test sessions.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ghostpoi.data import formats, sessions
from ghostpoi.data.checkins import Checkins, Floats, Ints, Longs, Places, places
from ghostpoi.data.geo import haversine_km
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.errors import InputError
from ghostpoi.publish.manifest import hash_complaint, read_manifest, settings_of
from ghostpoi.publish.table import prepare
from ghostpoi.settings import FilterSettings

FAR_KM = 100.0  # venues that share no id and lie further apart than this are another city's


@dataclass(frozen=True)
class Opened:
    """Both tables, row by row the same check-in. A data file of another tool has no manifest."""

    clean: Checkins
    shown: Longs  # (N,) the clean row behind each released one: all but those that the publisher withheld
    released: Checkins
    manifest: dict[str, Any] | None


@dataclass(frozen=True)
class Matched:
    """Sessions of the release over one vocabulary: the POIs of its sessions and the clean POIs at their positions.

    So every value lies in 1..P, whoever hands it over; a POI of the test that nobody trained on is simply never right.
    """

    vocabulary: Vocabulary
    train: Sessions  # clean
    val: Sessions  # clean
    test: Sessions  # clean
    released: Ints  # (N,) at the positions of train
    all: Sessions  # clean, of all three parts
    all_released: Ints  # (N,) at the positions of all


def open_pair(file: Path, release: Path, mapping: dict[str, str]) -> Opened:
    """Read both and refuse a release that is not of these rows."""
    manifest = None
    if release.is_dir():
        manifest = read_manifest(release)
        if complaint := hash_complaint(release, manifest):
            raise InputError(f"{release}: {complaint}; make the release again with protect")
        fields, format = manifest["columns"]["fields"], manifest["data"]["format"]
        released, source = formats.read(release / manifest["data"]["file"], fields, format)
        clean, clean_source = formats.read(file, mapping or fields, format)
    else:
        clean, clean_source = formats.read(file, mapping)
        released, source = formats.read(release, mapping)
    _same_columns(file, release, formats.read_rows(clean_source).columns, formats.read_rows(source).columns)
    _same_city(file, release, clean, released)
    shown = _shown(clean, manifest)
    _same_rows(file, release, clean, shown, released)
    return Opened(clean, shown, released, manifest)


def match(pair: Opened, filters: FilterSettings) -> Matched:
    """What the recipient trains on, and the clean values beside it."""
    data = sessions.build(pair.released, filters)
    parts = {"training": data.train, "validation": data.val, "test": data.test}
    for name, part in parts.items():
        if not len(part):
            counts = ", ".join(f"{len(p):,} {n}" for n, p in parts.items())
            raise InputError(
                f"{pair.released.name}: the filters leave no {name} sessions ({counts}); lower "
                "filters.session_gap_s, filters.min_session_length or filters.min_poi_checkins, or change "
                "filters.train_share and filters.val_share, with --set"
            )
    before, after, place = _joint(pair)
    used = np.unique(np.concatenate([before[data.all.row], after[data.all.row]]))
    number = np.zeros(len(place.lat), np.int32)
    number[used] = np.arange(1, len(used) + 1, dtype=np.int32)
    vocabulary = Vocabulary(
        np.append(np.nan, place.lat[used]),
        np.append(np.nan, place.lon[used]),
        np.append(np.int32(-1), place.category[used]),
        np.append(np.int32(-1), used.astype(np.int32)),
    )
    clean, released = number[before], number[after]
    train, val, test, everything = (
        replace(part, poi=clean[part.row]) for part in (data.train, data.val, data.test, data.all)
    )
    return Matched(vocabulary, train, val, test, released[train.row], everything, released[everything.row])


def _joint(pair: Opened) -> tuple[Longs, Longs, Places]:
    """The clean and the released POI of every released row under one numbering, and what each POI is.

    A POI of the clean file is what that says; only one that the other tool made up is what the release says.
    """
    clean, released = pair.clean, pair.released
    poi = _renumber(clean.pois, released.pois)
    category = _renumber(clean.categories, released.categories)
    a, b = places(clean), places(released)
    new = np.flatnonzero(poi >= len(clean.pois))  # codes of the release
    place = Places(
        np.concatenate([a.lat, b.lat[new]]),
        np.concatenate([a.lon, b.lon[new]]),
        np.concatenate([a.category, category[b.category[new]]]).astype(np.int32),
    )
    return clean.poi[pair.shown].astype(np.int64), poi[released.poi], place


def _renumber(ours: Any, theirs: Any) -> Longs:
    """The code of each of their ids among ours; ids that we lack count on, in order."""
    known = {name: code for code, name in enumerate(ours)}
    return np.array([known.setdefault(name, len(known)) for name in theirs], np.int64)


def _shown(clean: Checkins, manifest: dict[str, Any] | None) -> Longs:
    if manifest is None or not manifest.get("rows", {}).get("withheld"):
        return np.arange(len(clean))
    return np.flatnonzero(prepare(clean, settings_of(manifest)).has_candidates)


def _same_columns(file: Path, release: Path, clean: list[str], released: list[str]) -> None:
    if clean == released:
        return
    odd = [c for c in released if c not in clean] or [c for c in clean if c not in released]
    what = f"the column {odd[0]!r} stands in one of them alone" if odd else "they come in another order"
    raise InputError(
        f"{release} does not have the columns of {file} ({what}); give a release in the format of the file"
    )


def _same_city(file: Path, release: Path, clean: Checkins, released: Checkins) -> None:
    if not set(clean.pois).isdisjoint(released.pois):
        return
    km = float(haversine_km(*_middle(clean), *_middle(released)))
    if km > FAR_KM:
        raise InputError(
            f"{release} shows another city than {file}, {km:,.0f} km away and without a venue in common; "
            "give a release of that file"
        )


def _middle(table: Checkins) -> tuple[Floats, Floats]:
    return np.median(table.lat), np.median(table.lon)  # type: ignore[return-value]


def _same_rows(file: Path, release: Path, clean: Checkins, shown: Longs, released: Checkins) -> None:
    """The user and the time of every row must be the same."""
    user = _renumber(clean.users, released.users)
    a, b = np.stack([clean.user[shown], clean.time[shown]]), np.stack([user[released.user], released.time])
    strangers = np.flatnonzero(user >= len(clean.users))
    if len(strangers):
        raise InputError(
            f"{release} has users that {file} lacks, {released.users[strangers[0]]!r} for one; "
            "give a release of that file with its user ids"
        )
    if a.shape != b.shape:
        withheld = len(clean) - len(shown)
        less = f" less {withheld:,} withheld" if withheld else ""
        raise InputError(
            f"{release} has {len(released):,} rows and {file} {len(clean):,}{less}; give a release of all its rows"
        )
    differs = (a != b).any(axis=0)
    if not differs.any():
        return
    at = int(differs.argmax())
    if np.array_equal(a[:, np.lexsort(a)], b[:, np.lexsort(b)]):
        raise InputError(
            f"{release} has the rows of {file} in another order, from row {at + 1:,} on; "
            "put them in the order of the file"
        )
    raise InputError(
        f"row {at + 1:,} of {release} is user {_name(released, at)}, in {file} it is user "
        f"{_name(clean, int(shown[at]))}; give a release of the same rows"
    )


def _name(table: Checkins, row: int) -> str:
    time = datetime.fromtimestamp(int(table.time[row]), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"{table.users[table.user[row]]} at {time}"
