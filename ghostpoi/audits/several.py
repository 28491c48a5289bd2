"""The audit of several releases of the same people: does the next month reveal more about the last one?

It needs each release and its private folder, which holds the clean venues.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ghostpoi.attack.adversaries.several_releases import Left, Month, SeveralMonths, shown_popularity
from ghostpoi.audits.measures import persons as measure
from ghostpoi.audits.measures.gaps import spread
from ghostpoi.audits.measures.persons import Parts, Visits
from ghostpoi.audits.persons import CLEAN, CONTROLS, RELEASE, SIDES, Division, held_out, nested
from ghostpoi.audits.verdicts import NOTHING
from ghostpoi.data.checkins import Bools, Checkins, Floats, Longs
from ghostpoi.draw.channel import Channel
from ghostpoi.draw.methods import METHODS, FreeDraw
from ghostpoi.draw.methods.crowd import CrowdDraw
from ghostpoi.draw.whole_table import prepare
from ghostpoi.errors import InputError
from ghostpoi.formats.source import SizeLimit
from ghostpoi.options import option, with_urls
from ghostpoi.release.manifest import MANIFEST, checked_manifest, read_data, settings_of
from ghostpoi.release.private_folder import Pairs, clean_users, read_pairs
from ghostpoi.release.series.ledger import COMPLETE, NOTE, read_series, read_table
from ghostpoi.stores import fetched

CLEAR = 2.0  # standard errors by which a gain must exceed 0
LEAST = 0.01  # the smallest gain that counts
Place = tuple[Path, Path]  # a release and its private folder


class Known(NamedTuple):
    """One release, what is true of it, and how it was drawn. People, ids and venues have the same numbers in all."""

    user: Longs  # (N,) as released
    person: Longs  # (N,)
    time: Longs  # (N,) as released
    clean_time: Longs  # (N,)
    released: Longs  # (N,)
    clean: Longs  # (N,)
    crowd: Longs  # (P+1,) the crowd of each venue of this release and of those before, or else the venue
    channel: Channel
    shows_popularity: bool
    rotates: bool  # whether a person has several user ids


Numbers = dict[str, int]  # of names, in the order in which they come


def _numbers(known: Numbers, names: Iterable[object]) -> Longs:
    return np.array([known.setdefault(str(name), len(known)) for name in names], np.int64)


def places(folder: Path) -> list[tuple[str, str]]:
    """Return the releases of a series folder, or those that lie in a folder next to their private folders."""
    if (folder / NOTE).exists():
        found = [(entry.release, entry.private) for entry in read_series(folder).entries if entry.status == COMPLETE]
    elif folder.is_dir():
        inside = sorted(path for path in folder.iterdir() if (path / MANIFEST).is_file())
        found = [(str(path), f"{path}.private") for path in inside]
    else:
        raise InputError(f"{option('series', folder)} is not a folder; give a series folder, or a folder of releases")
    if len(found) < 2:
        count = f"{len(found)} complete releases"
        raise InputError(f"{option('series', folder)} has {count}; several months take at least two")
    return found


def audit_series(folder: Path, release: Path | None = None, limit: SizeLimit | None = None) -> dict[str, Any]:
    """Measure what an adversary learns from all releases together, and from each alone.

    `release`, if given, must be one of them.
    """
    with ExitStack() as stack:
        take = stack.enter_context
        recorded = [(take(fetched(place)), take(fetched(private))) for place, private in places(folder)]
        return _audited(folder, release, recorded, limit)


def _audited(folder: Path, release: Path | None, recorded: list[Place], limit: SizeLimit | None) -> dict[str, Any]:
    if release is not None and _shown(release.resolve()) not in [_shown(place.resolve()) for place, _ in recorded]:
        raise InputError(
            f"{option('series', folder)} does not hold {release}; give the series or the folder of this release"
        )
    where = [place for place in recorded if (place[0] / MANIFEST).is_file()]
    absent = [_shown(place) for place, _ in recorded if not (place / MANIFEST).is_file()]
    if len(where) < 2:
        raise InputError(
            f"{option('series', folder)}: fewer than two releases are left, because these are missing: "
            f"{', '.join(absent)}; move them back, or leave {option('series')} out"
        )
    people, users, venues = Numbers(), Numbers(), Numbers({"": 0})
    known = [_read(*place, limit, people, users, venues) for place in where]
    found = {
        "releases": [_shown(release) for release, _ in where], "not_compared": absent,
        "kept_crowds": (folder / NOTE).exists(), **_recurring(known, len(venues)),
        "linkage": linkage(known, len(people)),
    }  # fmt: skip
    return found | {"verdict": _verdict(found)}


def _recurring(known: Sequence[Known], rows: int) -> dict[str, Any]:
    """Return what A19 learns of visits that recur under one user id; `rows` is P+1."""
    habit, place = np.unique(np.concatenate([one.user * rows + one.clean for one in known]), return_inverse=True)
    places, clean, habits = np.split(place, np.cumsum([len(one.user) for one in known])[:-1]), habit % rows, len(habit)
    months = [
        Month(at, one.released, one.channel, one.shows_popularity) for one, at in zip(known, places, strict=True)
    ]  # fmt: skip
    in_month = np.stack([np.bincount(month.habit, minlength=habits) for month in months])  # visits by release and habit
    visits = np.where((in_month > 0).sum(axis=0) > 1, in_month, 0)  # of habits that recur in another release
    used = np.flatnonzero(visits.sum(axis=1))
    if not len(used):
        return {"recurring_visits": 0, "restored": None, "pinned": None}
    # Popularity is shown on purpose. Both adversaries know what all releases show of it, so it is no gain.
    adversary, popular = SeveralMonths(), shown_popularity(months, rows)
    together = adversary.intersect(months, popular)
    alone = [adversary.intersect([months[n]], popular) for n in used]

    def shares(measure: Callable[[Left], Any]) -> dict[str, Any]:
        each, joint = [measure(left) for left in alone], [measure(together)] * len(used)
        one, both = (
            [round(float(np.average(value, weights=visits[n])), 4) for value, n in zip(values, used, strict=True)]
            for values in (each, joint)
        )
        gain = spread([round(b - a, 4) for a, b in zip(one, both, strict=True)])
        clear = bool(gain["mean"] > max(LEAST, CLEAR * gain["std"] / np.sqrt(len(used))))
        return {"alone": spread(one), "together": spread(both), "gain": gain | {"clear": clear}}

    return {
        "recurring_visits": int(visits.sum()), "restored": shares(lambda left: left.right(clean)),
        "pinned": shares(lambda left: left.size(habits) == 1),
    }  # fmt: skip


def _shown(place: Path) -> str:
    """Return a path or, of a copy, the URL."""
    return with_urls(str(place))


def _verdict(found: dict[str, Any]) -> str:
    gone, ids, count = ", ".join(found["not_compared"]), found["linkage"]["ids"], f"({len(found['releases'])} releases)"
    linked, absent = "", f" Not compared, because no longer in place: {gone}." if gone else ""
    if ids["release"]:
        right, chance, clean = (f"{ids[end]['mean']:.0%}" for end in (RELEASE, CONTROLS[RELEASE], CLEAN))
        linked = (
            f" By visits alone, {right} of the user ids of a release are assigned to the right person of the one "
            f"before ({chance} if all go to the most active person, {clean} from clean files)."
        )
    if not found["pinned"]:
        return f"No visit recurs under the same user id {count}.{linked}{absent}"
    only, only_one, back, back_one = (
        f"{found[measure][name]['mean']:.0%}" for measure in ("pinned", "restored") for name in ("together", "alone")
    )
    shown = (
        f"{only} of recurring visits can be at one venue only, {only_one} by one release alone; A19 recovers {back} of "
        f"them, {back_one} from one release alone"
    )
    verdict, remedy = f"{NOTHING.capitalize()} beyond one release", ""
    if found["pinned"]["gain"]["clear"] or found["restored"]["gain"]["clear"]:
        verdict = "Gives away more than one release"
        remedy = "" if found["kept_crowds"] else " Make releases of the same people with protect --series."
    return f"{verdict} {count}: {shown}.{linked}{remedy}{absent}"


def linkage(known: Sequence[Known], people: int) -> dict[str, Any]:
    """Return how often the user ids of a release are assigned to the right person of the one before.

    A tenth of the people is unknown in the one before and serves, with those who are new, as control.
    """
    tallies, held = dict[tuple[str, ...], Floats](), held_out(people)
    for side in SIDES:
        parts = [between(*both, side, held) for both in pairwise(known)]
        for end, found in zip((side, CONTROLS[side]), measure.linkage("ids", parts, people), strict=True):
            tallies |= {(name, end): counts for name, counts in found.items()}
    return nested(tallies)


def between(before: Known, after: Known, side: str, held: Bools) -> Parts:
    """Return what an outsider compares who knows the people of one release and holds the next, or both clean files."""

    def both(name: str) -> Longs:
        return np.concatenate([getattr(before, name), getattr(after, name)])

    person, later = both("person"), np.arange(len(before.person) + len(after.person)) >= len(before.person)
    strangers = held | (np.bincount(before.person, minlength=len(held)) == 0)
    if side == CLEAN:
        place, unit, time = both("clean"), person, both("clean_time")
    else:
        place, unit, time = after.crowd[both("released")], both("user"), both("time")
    visits, one_each = Visits(person, unit, time, place, place, place), side == CLEAN or not after.rotates
    return Parts(visits, unit, later, np.unique(unit[later]), strangers, one_each)


def _read(
    release: Path, private: Path, limit: SizeLimit | None, people: Numbers, users: Numbers, venues: Numbers
) -> Known:  # fmt: skip
    manifest = checked_manifest(release)
    settings, written = settings_of(manifest), read_data(release, manifest, limit).table
    if manifest["method"] not in METHODS or isinstance(settings.method, FreeDraw):
        raise InputError(
            f"{release}: releases of {manifest['method']} have no sets to intersect; leave {option('series')} out"
        )
    pairs = read_pairs(private, written, str(release))
    clean = _clean_table(pairs, private, written, manifest)
    table, crowds = read_table(private, clean, manifest, clean=False)
    whole, v = prepare(table, settings, crowds=crowds), table.venues
    apart = f"{release}: " if settings.hides_users and crowds is None else ""  # the same random id is not the same user
    venue, released = _numbers(venues, table.venue_ids), _numbers(venues, pairs.ids)[pairs.released]
    crowd, channel = np.arange(len(venues)), settings.method.channel(whole.venue_sets, v.lat, v.lon)
    if isinstance(settings.method, CrowdDraw):
        crowd[venue] = venue[Division.crowds(whole, v).cell]
    return Known(
        user=_numbers(users, (apart + str(name) for name in written.user_ids))[written.user],
        person=_numbers(people, table.user_ids)[table.user], time=written.time, clean_time=pairs.time,
        released=released, clean=venue[table.venue], crowd=crowd,
        channel=Channel.of(venue[channel.clean], venue[channel.released], channel.probability, len(crowd)),
        shows_popularity=settings.method.popularity_power > 0, rotates=settings.rotates_users,
    )  # fmt: skip


def _clean_table(pairs: Pairs, private: Path, written: Checkins, manifest: dict[str, Any]) -> Checkins:
    """Return the clean check-ins that a release shows, in its order."""
    visited, venue = np.unique(pairs.clean, return_inverse=True)
    categories, category = np.unique([pairs.category[v] for v in visited], return_inverse=True)
    hides = settings_of(manifest).hides_users
    users, user = np.unique(clean_users(private, written, hides), return_inverse=True)
    lat, lon = (np.array([values[v] for v in visited])[venue] for values in (pairs.lat, pairs.lon))
    return Checkins(
        user.astype(np.int32), (venue + 1).astype(np.int32), category[venue].astype(np.int32), lat, lon, pairs.time,
        users.astype(object), np.array(["", *(pairs.ids[v] for v in visited)], object), categories.astype(object),
        written.category_field, written.name, dict(manifest["disclosure"]["category_groups"]),
    )  # fmt: skip
