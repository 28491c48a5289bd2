"""The audit of several releases of the same people: does the next month reveal more about the last one?

It needs each release and its private folder, which holds the clean venues.
"""

from collections.abc import Callable, Mapping, Sequence
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
    """One release in numbers of its own: what is shown, what is true, and how it was drawn."""

    users: list[str]  # (N,) as released
    people: list[str]  # (N,) who they are
    time: Longs  # (N,) as released
    clean_time: Longs  # (N,)
    released: Longs  # (N,)
    clean: Longs  # (N,)
    ids: list[str]  # (P+1,)
    crowd: list[str]  # (P+1,) the crowd of each venue, or else the venue
    channel: Channel
    shows_popularity: bool
    rotates: bool  # whether a person has several user ids


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
    known = [_read(*place, limit) for place in where]
    found = {
        "releases": [_shown(release) for release, _ in where], "not_compared": absent,
        "kept_crowds": (folder / NOTE).exists(), **_recurring(known), "linkage": linkage(known),
    }  # fmt: skip
    return found | {"verdict": _verdict(found)}


def _recurring(known: Sequence[Known]) -> dict[str, Any]:
    """Return what A19 learns of visits that recur under one user id."""
    months, clean = _together(known)
    rows, habits = months[0].channel.symbols, len(clean)
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


def linkage(known: Sequence[Known]) -> dict[str, Any]:
    """Return how often the user ids of a release are assigned to the right person of the one before.

    A tenth of the people is unknown in the one before and serves, with those who are new, as control.
    """
    number = {name: n for n, name in enumerate(sorted({name for one in known for name in one.people}))}
    tallies, held = dict[tuple[str, ...], Floats](), held_out(len(number))
    for side in SIDES:
        parts = [between(*both, side, number, held) for both in pairwise(known)]
        for end, found in zip((side, CONTROLS[side]), measure.linkage("ids", parts, len(number)), strict=True):
            tallies |= {(name, end): counts for name, counts in found.items()}
    return nested(tallies)


def between(before: Known, after: Known, side: str, number: Mapping[str, int], held: Bools) -> Parts:
    """Return what an outsider compares who knows the people of one release and holds the next, or both clean files."""
    both, shows = (before, after), side == RELEASE
    person = np.array([number[name] for one in both for name in one.people], np.int64)
    crowd = dict(zip(after.ids, after.crowd, strict=True)) if shows else {}
    places = [crowd.get(one.ids[v], one.ids[v]) for one in both for v in (one.released if shows else one.clean)]
    place, unit = (np.unique(names, return_inverse=True)[1] for names in (places, [*before.users, *after.users]))
    time = np.concatenate([one.time if shows else one.clean_time for one in both])
    unit, later = unit if shows else person, np.arange(len(person)) >= len(before.people)
    strangers = held | (np.bincount(person[~later], minlength=len(number)) == 0)
    visits = Visits(person, unit, time, place, place, place)
    return Parts(visits, unit, later, np.unique(unit[later]), strangers, not (shows and after.rotates))


def _read(release: Path, private: Path, limit: SizeLimit | None) -> Known:
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
    number, ids = {name: n for n, name in enumerate(table.venue_ids)}, [str(name) for name in table.venue_ids]
    cell = Division.crowds(whole, v).cell if isinstance(settings.method, CrowdDraw) else np.arange(len(ids))
    return Known(
        users=[f"{apart}{written.user_ids[n]}" for n in written.user],
        people=[str(table.user_ids[n]) for n in table.user],
        time=written.time, clean_time=pairs.time,
        released=np.array([number[pairs.ids[n]] for n in pairs.released], np.int64), clean=table.venue.astype(np.int64),
        ids=ids, crowd=[ids[n] for n in cell], channel=settings.method.channel(whole.venue_sets, v.lat, v.lon),
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


def _together(known: Sequence[Known]) -> tuple[list[Month], Longs]:
    """Return the releases with the same numbers of habits and venues, and the clean venue of each habit."""
    venue: dict[str, int] = {"": 0}
    user: dict[str, int] = {}
    numbers = [np.array([venue.setdefault(i, len(venue)) for i in one.ids], np.int64) for one in known]
    rows, habit = len(venue), []
    for one, to in zip(known, numbers, strict=True):
        who = np.array([user.setdefault(i, len(user)) for i in one.users], np.int64)
        habit.append(who * rows + to[one.clean])
    habits, place = np.unique(np.concatenate(habit), return_inverse=True)
    places = np.split(place, np.cumsum([len(one.users) for one in known])[:-1])
    months = [
        Month(
            at, to[one.released],
            Channel.of(to[one.channel.clean], to[one.channel.released], one.channel.probability, rows),
            one.shows_popularity,
        )
        for one, to, at in zip(known, numbers, places, strict=True)
    ]  # fmt: skip
    return months, habits % rows
