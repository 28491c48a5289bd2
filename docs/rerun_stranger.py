"""Attack releases with what their ids, times and a second release say: the figures of docs/explanation/threat-model.md.

    head -n 35000 nyc.txt > nyc35.txt
    ghostpoi protect nyc35.txt -o one --seed 1 --allow-short-seed
    ghostpoi protect nyc35.txt -o two --seed 2 --allow-short-seed
    python docs/rerun_stranger.py nyc35.txt one two

`two` may be left out; releases with coarser times need the private folder next to them, which says which row is which.
Clean rows serve for scores and as one of two sources of crowds. The attacks:

- Creation: ids of the venues hold the time of their creation. A row that was made at most some seconds later, and is
  released near the venue, is called a visit to it.
- Crowds: the venues that two releases show in one row are of one crowd, and so are a clean venue and the released one.
- Minutes: check-ins of a person at most 10 minutes apart are at venues near each other. Forward-backward over the
  venues of the crowds, with released popularity.
"""

import sys
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ghostpoi.data.checkins import Bools, Floats, Ints, Longs, by_user_and_time
from ghostpoi.data.created import creation_times
from ghostpoi.data.geo import haversine_km
from ghostpoi.formats import CheckinFile, read
from ghostpoi.release.identity import RESOLUTION_S, read_map
from ghostpoi.release.manifest import read_data, read_manifest, settings_of

WINDOWS, REACH_KM = (15, 60, 300), (1.0, 3.0)
CLOSE_S, MINUTE_S = 600, 60
KMH, LEAST_KM, AGAIN, ANYHOW = 8.0, 0.15, 0.3, 1e-6  # of a step: its scale, and the weights of staying and of all else


def creation(shown: CheckinFile, clean: Ints, resolution: int) -> None:
    """Print how many rows are named by the creation of a venue, and how many rightly. `clean` (M,), by shown venue."""
    table = shown.table
    by_time, venues = np.argsort(table.time, kind="stable"), table.venues
    made = np.append(np.nan, creation_times(table.venue_ids[1:].tolist(), table.time.max()))
    new = np.flatnonzero(made >= table.time.min() - MINUTE_S)
    genuine = (table.venue == clean).mean()
    print(f"released venues created in the period: {len(new):,}; rows that show their clean venue: {genuine:.1%}")
    for window in WINDOWS:
        first = np.searchsorted(table.time[by_time], made[new] - resolution + 1)
        last = np.searchsorted(table.time[by_time], made[new] + window, side="right")
        venue = np.repeat(new, last - first)
        row = np.concatenate([by_time[:0], *(by_time[a:b] for a, b in zip(first, last, strict=True))])
        km = haversine_km(table.lat[row], table.lon[row], venues.lat[venue], venues.lon[venue])
        cost = km + np.maximum(0, table.time[row] - made[venue]) / MINUTE_S
        for reach in REACH_KM:
            order = np.argsort(cost, kind="stable")
            order = order[km[order] <= reach]
            named, at = np.unique(row[order], return_index=True)
            right = (clean[named] == venue[order][at]).sum()
            people = len(np.unique(table.user[named]))
            print(
                f"  {window} s, {reach:.0f} km: {len(named):,} rows of {people:,} people named, {right:,} right "
                f"({right / max(1, len(named)):.0%})"
            )


def crowds_of(one: Ints, two: Ints, size: int) -> Ints:
    """Number the crowds of venues, (V+1,), given pairs of venues of one crowd."""
    pairs = coo_array((np.ones(len(one)), (one, two)), (size, size))
    number: Ints = connected_components(pairs, directed=False)[1]
    return number


def close_checkins(shown: CheckinFile, clean: Ints, crowd: Ints) -> None:
    """Print how many venues of check-ins within minutes are found, given the crowd of each venue, (V+1,)."""
    table, visits = shown.table, np.bincount(shown.table.venue, minlength=len(crowd))
    order = by_user_and_time(table.user, table.time)
    near = (np.diff(table.user[order]) == 0) & (np.diff(table.time[order]) <= CLOSE_S)
    chains = [one for one in np.split(order, np.flatnonzero(~near) + 1) if len(one) > 1]
    members = {number: np.flatnonzero((crowd == number) & (visits > 0)) for number in np.unique(crowd[table.venue])}
    found, popular = np.zeros(len(table), np.int64), np.zeros(len(table), np.int64)
    for chain in chains:
        sets = [members[number] for number in crowd[table.venue[chain]]]
        weights = posterior(shown, chain, sets, [visits[one] / visits[one].sum() for one in sets])
        found[chain] = [one[weight.argmax()] for one, weight in zip(sets, weights, strict=True)]
        popular[chain] = [one[visits[one].argmax()] for one in sets]
    rows = np.concatenate(chains)
    in_crowd = (crowd[np.maximum(clean, 0)] == crowd[table.venue]) & (clean > 0)
    print(
        f"  clean venue in the crowd: {in_crowd.mean():.1%} of rows; close check-ins: {len(rows):,} "
        f"({len(rows) / len(table):.0%}); found {(found == clean)[rows].mean():.1%}, most popular of the crowd "
        f"{(popular == clean)[rows].mean():.1%}, released venue {(table.venue == clean)[rows].mean():.1%}"
    )


def posterior(shown: CheckinFile, chain: Longs, sets: list[Longs], prior: list[Floats]) -> list[Floats]:
    """Return the probability of each venue of the sets of a chain of rows, by forward-backward."""
    venues, steps = shown.table.venues, []
    for gap, a, b in zip(np.diff(shown.table.time[chain]), sets, sets[1:], strict=False):
        km = haversine_km(venues.lat[a][:, None], venues.lon[a][:, None], venues.lat[b], venues.lon[b])
        step = np.exp(-km / max(LEAST_KM, gap / 3600 * KMH)) + ANYHOW
        steps.append(np.where(a[:, None] == b, AGAIN * step, step))
    ahead, behind = [prior[0]], [np.ones(len(sets[-1]))]
    for step, one in zip(steps, prior[1:], strict=True):
        ahead.append(_normal(ahead[-1] @ step * one))
    for step, one in zip(steps[::-1], prior[:0:-1], strict=True):
        behind.append(_normal(step @ (behind[-1] * one)))
    return [a * b for a, b in zip(ahead, behind[::-1], strict=True)]


def _normal(weight: Floats) -> Floats:
    normal: Floats = weight / weight.sum()
    return normal


def released(folder: Path) -> tuple[CheckinFile, int, Longs | None]:
    """Read a release: its rows, the seconds to which its times are rounded, and the clean row of each, if it moved."""
    manifest = read_manifest(folder)
    kind = settings_of(manifest).identity.times
    private = folder.with_name(f"{folder.name}.private")
    moved = read_map(private).row if settings_of(manifest).reorders else None
    return read_data(folder, manifest), RESOLUTION_S.get(kind, 1), moved


def venues_of(shown: CheckinFile, other: CheckinFile) -> Ints:
    """Return the venue of each row of another table, in the numbers of the shown one; -1: it is not shown."""
    number = {one: venue for venue, one in enumerate(shown.table.venue_ids)}
    renumbered = np.array([number.get(one, -1) for one in other.table.venue_ids], np.int32)
    found: Ints = renumbered[other.table.venue]
    return found


def main() -> None:
    """Print what the attacks find."""
    clean, folders = read(Path(sys.argv[1])), [Path(one) for one in sys.argv[2:4]]
    shown, resolution, moved = released(folders[0])
    true = venues_of(shown, clean)
    true = true if moved is None else true[moved]
    creation(shown, true, resolution)
    known = [("clean rows", true), *(("two releases", venues_of(shown, released(one)[0])) for one in folders[1:])]
    for what, other in known:
        both: Bools = other > 0
        crowd = crowds_of(shown.table.venue[both], other[both], len(shown.table.venue_ids))
        print(f"crowds from {what}:")
        close_checkins(shown, true, crowd)


if __name__ == "__main__":
    main()
