"""What a release says about one person, for requests of access and erasure.

The release alone is enough, if it shows the person under the given id. The private folder undoes pseudonyms and shows
what is clean; without it, nothing clean is stated.
"""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from ghostpoi.audits.measures import persons as measure
from ghostpoi.audits.measures.persons import Matcher, Parts, Visits
from ghostpoi.audits.persons import Division
from ghostpoi.data import pseudonyms
from ghostpoi.data.checkins import Checkins, Longs
from ghostpoi.data.geo import haversine_km
from ghostpoi.draw.publication import Publication
from ghostpoi.errors import InputError
from ghostpoi.formats.source import SizeLimit
from ghostpoi.options import option
from ghostpoi.randomness import Seed
from ghostpoi.release.identity import read_map
from ghostpoi.release.manifest import checked_manifest, read_data, settings_of
from ghostpoi.release.private_folder import Pairs, read_pairs

DRAWS = 200  # of known check-ins
AREA_KM = 1.0
KNOWN = {"minute": "minute", "hour": "hour", "hour_place": "hour", "part_place": "part"}  # name -> resolution


def about(release: Path, user: str, private: Path | None = None, limit: SizeLimit | None = None) -> dict[str, Any]:
    """Return what a release says about a person; refuse an id that it does not show."""
    manifest = checked_manifest(release)
    table, settings = read_data(release, manifest, limit).table, settings_of(manifest)
    people, rows = _people(table, user, private, settings.hides_users, release)
    cell = Division.squares(table.venues, AREA_KM).cell[table.venue]
    visits = Visits(people, table.user.astype(np.int64), table.time, cell, cell, table.venue.astype(np.int64))
    pairs = None if private is None else read_pairs(private, table, str(release))
    first, last = (datetime.fromtimestamp(int(end(table.time[rows])), UTC) for end in (np.min, np.max))
    found: dict[str, Any] = {
        "user": user, "release": str(release), "ids": len(np.unique(table.user[rows])), "rows": len(rows),
        "share_of_rows": round(len(rows) / len(table), 6), "first": f"{first:%Y-%m-%d}", "last": f"{last:%Y-%m-%d}",
        "venues": len(np.unique(table.venue[rows])), "areas_of_1km": len(np.unique(cell[rows])),
        "singled_out": _singled_out(visits, rows),
        "linked_sessions": _linked(table, visits, people[rows[0]], settings, pairs),
        "checkins": [_shown(table, int(row)) for row in rows],
    }  # fmt: skip
    if pairs is not None:
        found["clean"] = _clean(pairs, rows, found["checkins"])
    return found


def _people(
    table: Checkins, user: str, private: Path | None, hides: bool, release: Path
) -> tuple[Longs, Longs]:  # fmt: skip
    """Return who made each released row, (N,), as far as it is known, and the person's rows."""
    ids = read_map(private).behind(table) if hides and private is not None else table.user_ids[table.user]
    mine = np.flatnonzero(ids == user)
    if not len(mine):
        hint = f"; its user ids are pseudonyms: name the private folder with {option('private')}" if hides else ""
        shows = "holds no row of" if private is not None or not hides else "shows no user"
        raise InputError(f"{release} {shows} {user!r}{hint if private is None else ''}; check the id")
    return np.unique(ids.astype(str), return_inverse=True)[1].astype(np.int64), mine


def _singled_out(visits: Visits, rows: Longs) -> dict[str, dict[str, float]]:
    """Return how often 1 to 5 of the person's rows, as the release shows them, fit no other person."""
    most, found = min(measure.MOST_KNOWN, len(rows)), {}
    drawn = rows[measure.draws(np.full(len(rows), 0), 1, DRAWS, most, Seed(0).generator("person"))]
    for name, resolution in KNOWN.items():
        around = (0,) if name.endswith("_place") else ()
        single = measure.singled_out(Matcher(visits, measure.RESOLUTIONS[resolution], around), visits, drawn)
        found[name] = {str(k + 1): round(float(share), 2) for k, share in enumerate(single.mean(axis=0))}
    return found


def _linked(
    table: Checkins, visits: Visits, person: int, settings: Publication, pairs: Pairs | None
) -> dict[str, int] | None:  # fmt: skip
    """Return how many later sessions of the person are the likeliest hers, from everybody's earlier ones."""
    time = table.time if pairs is None else pairs.time  # moved sessions meet
    everybody = replace(table, user=visits.person.astype(np.int32), time=time)
    session = pseudonyms.of_rows(everybody, "session", settings.filters.session_gap_s)
    later = measure.later(visits.person, session, time)
    tested = np.unique(session[later & (visits.person == person)])
    if not len(tested) or not (~later & (visits.person == person)).any():
        return None
    people = int(visits.person.max()) + 1
    parts = Parts(visits, session, later, tested, np.zeros(people, bool))
    found, _ = measure.linkage("sessions", [parts], people)
    right, total = found["sessions"][person]
    return {"right": int(right), "of": int(total)}


def _shown(table: Checkins, row: int) -> dict[str, Any]:
    at = datetime.fromtimestamp(int(table.time[row]), UTC)
    return {
        "time": f"{at:%Y-%m-%dT%H:%M:%SZ}", "id": str(table.user_ids[table.user[row]]),
        "venue": str(table.venue_ids[table.venue[row]]), "lat": float(table.lat[row]), "lon": float(table.lon[row]),
    }  # fmt: skip


def _clean(pairs: Pairs, rows: Longs, shown: list[dict[str, Any]]) -> dict[str, Any]:
    """Add the clean venue to every row, and say how far the shown ones are away."""
    clean, released = pairs.clean[rows], pairs.released[rows]
    for one, venue in zip(shown, clean.tolist(), strict=True):
        one["clean_venue"] = pairs.ids[venue]
    lat, lon = np.array(pairs.lat), np.array(pairs.lon)
    km = haversine_km(lat[clean], lon[clean], lat[released], lon[released])
    often, guess = (np.bincount(venue, minlength=len(pairs.ids)) for venue in (clean, released))
    return {
        "venues": int((often > 0).sum()), "genuine_rows": int((clean == released).sum()),
        "mean_km": round(float(km.mean()), 2), "most_visited": pairs.ids[int(often.argmax())],
        "most_visited_is_most_shown": bool(often.argmax() == guess.argmax()),
    }  # fmt: skip
