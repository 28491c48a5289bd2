"""What the release is still good for: statistics that planners and researchers draw from check-ins, before and after.

The paper claims utility and never measures it. Before is the clean data and after the release, at the same positions,
by the same users, at the same times: substitution changes nothing but the place. So visits per hour are the same by
construction, and what is measured instead is which category, and which 1 km cell, is visited at which hour. A method
that keeps every category also keeps all category figures by construction: they check it, they do not praise it.

Figures that end in `_before`, and all of `distributions`, are statistics of the clean data. They belong in the
publisher's private report, never in a release.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.data.geo import EARTH_RADIUS_KM, haversine_km, unit_sphere
from ghostpoi.data.sessions import Sessions, Vocabulary

CELL_KM = 1.0
HOURS = 24
STILL_KM = 1e-3  # a radius of gyration below this is rounding: the user never moved


@dataclass(frozen=True)
class Profile:
    """What is counted on one side. Anything counted is a number per visit or step; equal numbers are one thing."""

    poi: Longs  # (N,)
    category: Longs  # (N,)
    category_hour: Longs  # (N,)
    cell_hour: Longs  # (N,)
    flow: Longs  # (N - S,) from cell to cell, steps inside sessions
    leaves: NDArray[np.bool_]  # (N - S,) steps that end in another cell than they start
    gyration_km: Floats  # (users,)
    unique: Longs  # (users,) POIs
    revisits: float  # share of check-ins at a POI that the user had visited before


def profile(sessions: Sessions, poi: Ints, vocabulary: Vocabulary) -> Profile:
    """Of the POIs (N,), each in 1..P, at the positions of `sessions`."""
    user = np.unique(sessions.user, return_inverse=True)[1][sessions.session_of()]  # (N,)
    hour = sessions.time // 3600 % HOURS  # UTC: another zone only renames the hours
    category = vocabulary.category[poi].astype(np.int64)
    cells = _cells(vocabulary)
    cell = cells[poi]
    step = np.flatnonzero(np.diff(sessions.session_of()) == 0)
    visited = np.unique(user * len(vocabulary) + poi)  # one per user and POI
    return Profile(
        poi.astype(np.int64),
        category,
        category * HOURS + hour,
        cell * HOURS + hour,
        cell[step] * (int(cells.max()) + 1) + cell[step + 1],
        cell[step] != cell[step + 1],
        _gyration(user, vocabulary.lat[poi], vocabulary.lon[poi]),
        np.bincount(visited // len(vocabulary)),
        1 - len(visited) / len(poi) if len(poi) else 0.0,  # all but the first visit of each user to each POI
    )


def utility(clean: Sessions, released: Ints, vocabulary: Vocabulary) -> dict[str, dict[str, float]]:
    """Single figures by group. Divergences are Jensen-Shannon in bits: 0 the same, 1 nothing in common.

    `common_part` is the common part of commuters between 1 km cells, 1 the same; `common_part_between` leaves out steps
    that stay in their cell on both sides of the comparison. Relative changes are means over users of |after - before|
    / before; users who never moved have no relative change of their radius of gyration and are left out of it.
    """
    if released.shape != clean.poi.shape:
        raise ValueError("the release needs one POI per clean position")
    before, after = profile(clean, clean.poi, vocabulary), profile(clean, released, vocabulary)
    a, b = before.gyration_km, after.gyration_km
    moves = a > 0
    return {
        "popularity": {
            "poi_js": _js(before.poi, after.poi),
            "category_js": _js(before.category, after.category),
        },
        "flows": {
            "common_part": _common_part(before.flow, after.flow),
            "common_part_between": _common_part(before.flow[before.leaves], after.flow[after.leaves]),
        },
        "hours": {
            "category_hour_js": _js(before.category_hour, after.category_hour),
            "cell_hour_js": _js(before.cell_hour, after.cell_hour),
        },
        "gyration": {
            "mean_km_before": _mean(a),
            "mean_km_after": _mean(b),
            "wasserstein_km": _mean(np.abs(np.sort(a) - np.sort(b))),  # as many users on both sides
            "relative_change": _mean(np.abs(b - a)[moves] / a[moves]),
        },
        "visits": {
            "revisit_rate_before": before.revisits,
            "revisit_rate_after": after.revisits,
            "unique_pois_before": _mean(before.unique),
            "unique_pois_after": _mean(after.unique),
            "unique_pois_relative_change": _mean(np.abs(after.unique - before.unique) / before.unique),
        },
    }


def distributions(clean: Sessions, released: Ints, vocabulary: Vocabulary) -> dict[str, dict[str, list[float]]]:
    """What lies behind the figures, as {name: {before, after}}: for the publisher's own eyes.

    Visits of every POI (by number, from 1) and category (ascending), and every user's (ascending) radius of gyration
    and number of POIs.
    """
    before, after = profile(clean, clean.poi, vocabulary), profile(clean, released, vocabulary)
    pois, categories = len(vocabulary), int(vocabulary.category.max()) + 1
    sides = {"before": before, "after": after}
    return {
        "poi_visits": {k: np.bincount(s.poi, minlength=pois)[1:].tolist() for k, s in sides.items()},
        "category_visits": {k: np.bincount(s.category, minlength=categories).tolist() for k, s in sides.items()},
        "gyration_km": {k: s.gyration_km.tolist() for k, s in sides.items()},
        "unique_pois": {k: s.unique.tolist() for k, s in sides.items()},
    }


def _cells(v: Vocabulary) -> Longs:
    """The cell of every POI, (P+1,): a square grid on an equirectangular map that is true at the mean latitude.

    It rests on the vocabulary alone, so that before and after share it.
    """
    km = np.pi / 180 * EARTH_RADIUS_KM
    x = np.floor(v.lon[1:] * km * np.cos(np.radians(v.lat[1:].mean())) / CELL_KM).astype(np.int64)
    y = np.floor(v.lat[1:] * km / CELL_KM).astype(np.int64)
    name = (x - x.min()) * (int(y.max() - y.min()) + 1) + y - y.min()
    return np.concatenate([[0], np.unique(name, return_inverse=True)[1]])


def _gyration(user: Longs, lat: Floats, lon: Floats) -> Floats:
    """Root mean square distance of each user's visits from their centre, the mean on the sphere, (users,)."""
    visits = np.bincount(user)
    x, y, z = (np.bincount(user, axis) for axis in unit_sphere(lat, lon).T)
    centre = np.degrees(np.arctan2(z, np.hypot(x, y))), np.degrees(np.arctan2(y, x))
    km = haversine_km(lat, lon, centre[0][user], centre[1][user])
    radius = np.sqrt(np.bincount(user, km**2) / visits)
    return np.where(radius < STILL_KM, 0.0, radius)


def _counts(before: Longs, after: Longs) -> tuple[Longs, Longs]:
    """How often each thing occurs on either side, over all that occur on any."""
    things, which = np.unique(np.concatenate([before, after]), return_inverse=True)
    n = len(things)
    return np.bincount(which[: len(before)], minlength=n), np.bincount(which[len(before) :], minlength=n)


def _js(before: Longs, after: Longs) -> float:
    """Jensen-Shannon divergence in bits of what occurs on the two sides."""
    if not len(before) or not len(after):
        return 0.0 if len(before) == len(after) else 1.0
    a, b = _counts(before, after)
    p, q = a / a.sum(), b / b.sum()
    # The sum of non-negative terms p log(p/m): unlike a difference of entropies it is exactly 0 for equal sides.
    divergence = sum(float((r[r > 0] * np.log2(2 * r[r > 0] / (p + q)[r > 0])).sum()) for r in (p, q)) / 2
    return min(max(divergence, 0.0), 1.0)


def _common_part(before: Longs, after: Longs) -> float:
    """2 sum of min / (sum + sum) of the flows on the two sides; 1 where there are none."""
    if not len(before) and not len(after):
        return 1.0
    a, b = _counts(before, after)
    return float(2 * np.minimum(a, b).sum() / (a.sum() + b.sum()))


def _mean(values: Floats | Longs) -> float:
    return float(values.mean()) if len(values) else 0.0
