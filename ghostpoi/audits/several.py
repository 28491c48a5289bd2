"""The audit of several releases of the same people: does the next month reveal more about the last one?

It needs each release and its private folder, which holds the clean venues.
"""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ghostpoi.attack.adversaries.several_releases import Left, Month, SeveralMonths, shown_popularity
from ghostpoi.audits.measures.gaps import spread
from ghostpoi.audits.verdicts import NOTHING
from ghostpoi.data.checkins import Checkins, Longs
from ghostpoi.draw.channel import Channel
from ghostpoi.draw.methods import METHODS, FreeDraw
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
    released: Longs  # (N,)
    clean: Longs  # (N,)
    ids: list[str]  # (P+1,)
    channel: Channel
    shows_popularity: bool


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
    months, clean = _together([_read(*place, limit) for place in where])
    rows, habits = months[0].channel.symbols, len(clean)
    in_month = np.stack([np.bincount(month.habit, minlength=habits) for month in months])  # visits by release and habit
    visits = np.where((in_month > 0).sum(axis=0) > 1, in_month, 0)  # of habits that recur in another release
    used = np.flatnonzero(visits.sum(axis=1))
    if not len(used):
        raise InputError(
            f"{option('series', folder)}: no visit recurs from release to release, so there is nothing to combine"
        )
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

    found = {
        "releases": [_shown(release) for release, _ in where], "not_compared": absent,
        "kept_crowds": (folder / NOTE).exists(), "recurring_visits": int(visits.sum()),
        "restored": shares(lambda left: left.right(clean)), "pinned": shares(lambda left: left.size(habits) == 1),
    }  # fmt: skip
    return found | {"verdict": _verdict(found)}


def _shown(place: Path) -> str:
    """Return a path or, of a copy, the URL."""
    return with_urls(str(place))


def _verdict(found: dict[str, Any]) -> str:
    only, only_one, back, back_one = (
        f"{found[measure][name]['mean']:.0%}" for measure in ("pinned", "restored") for name in ("together", "alone")
    )
    shown = (
        f"{only} of recurring visits can be at one venue only, {only_one} by one release alone; A19 recovers {back} of "
        f"them, {back_one} from one release alone"
    )
    gone, verdict, remedy = ", ".join(found["not_compared"]), f"{NOTHING.capitalize()} beyond one release", ""
    if found["pinned"]["gain"]["clear"] or found["restored"]["gain"]["clear"]:
        verdict = "Gives away more than one release"
        remedy = "" if found["kept_crowds"] else " Make releases of the same people with protect --series."
    absent = f" Not compared, because no longer in place: {gone}." if gone else ""
    return f"{verdict} ({len(found['releases'])} releases): {shown}.{remedy}{absent}"


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
    number = {name: n for n, name in enumerate(table.venue_ids)}
    return Known(
        [str(written.user_ids[n]) for n in written.user],
        np.array([number[pairs.ids[n]] for n in pairs.released], np.int64), table.venue.astype(np.int64),
        [str(name) for name in table.venue_ids], settings.method.channel(whole.venue_sets, v.lat, v.lon),
        settings.method.popularity_power > 0,
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


def _together(known: list[Known]) -> tuple[list[Month], Longs]:
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
