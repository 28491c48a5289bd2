"""Plausibility and utility: how far substitutes move check-ins, and what statistics that planners draw lose."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data.checkins import Bools, Floats, Ints, Longs
from ghostpoi.data.displacement import displacement
from ghostpoi.data.geo import EARTH_RADIUS_KM, haversine_km, over_limit, unit_sphere
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.settings import SpeedSettings

PLAUSIBILITY_VERSION = 1  # raised whenever the same input gives other measures


def plausibility(clean: Sessions, released: Ints, vocabulary: Vocabulary, speed: SpeedSettings) -> dict[str, float]:
    """Compare clean sessions with the released POIs (N,) of the same positions; every POI lies in 1..P.

    Speed violations are the share of steps inside sessions that are faster than the limit.
    """
    if released.shape != clean.poi.shape:
        raise ValueError("the release needs one POI per clean position")
    found = displacement(vocabulary, clean.poi, released)
    for name, poi in (("clean", clean.poi), ("released", released)):
        over = steps_over_limit(clean, poi, vocabulary, speed)
        found[f"speed_violations_{name}"] = float(over.mean()) if len(over) else 0.0
    return found


def steps_over_limit(sessions: Sessions, poi: Ints, vocabulary: Vocabulary, speed: SpeedSettings) -> Bools:
    """Mark the steps inside sessions that are faster than the limit, if these POIs (N,) stand at their positions."""
    over: Bools = over_limit(vocabulary.lat[poi], vocabulary.lon[poi], sessions.time, speed.limit_kmh, speed.min_gap_s)
    inside: Bools = np.diff(sessions.session_of()) == 0
    return over[inside]


UTILITY_VERSION = 1  # raised whenever the same input gives other measures
SQUARE_KM = 1.0
HOURS = 24
STILL_KM = 1e-3  # a smaller radius of gyration is a rounding error of 0


@dataclass(frozen=True)
class Profile:
    """What is counted in the clean data or in the release: one number per visit or step, equal for equal things."""

    poi: Longs  # (N,)
    category: Longs  # (N,)
    category_hour: Longs  # (N,)
    square_hour: Longs  # (N,)
    flow: Longs  # (N - S,) from square to square, steps inside sessions
    leaves: NDArray[np.bool_]  # (N - S,) steps that end in another square than they start
    gyration_km: Floats  # (users,)
    unique: Longs  # (users,) POIs
    revisits: float  # share of check-ins at a POI that the user has visited before


def profile(sessions: Sessions, poi: Ints, vocabulary: Vocabulary) -> Profile:
    """Count the POIs (N,), each in 1..P, at the positions of `sessions`."""
    user = np.unique(sessions.user, return_inverse=True)[1][sessions.session_of()]  # (N,)
    hour = sessions.time // 3600 % HOURS  # UTC; another time zone would only rename the hours
    category, squares = vocabulary.category[poi].astype(np.int64), _squares(vocabulary)
    square, step = squares[poi], sessions.steps()
    here, there = square[step], square[step + 1]
    visited = np.unique(user * len(vocabulary) + poi)  # one per user and POI
    return Profile(
        poi.astype(np.int64), category, category * HOURS + hour, square * HOURS + hour,
        here * (int(squares.max()) + 1) + there, here != there,
        _gyration(user, vocabulary.lat[poi], vocabulary.lon[poi]), np.bincount(visited // len(vocabulary)),
        1 - len(visited) / len(poi) if len(poi) else 0.0,  # every visit but a user's first to each POI
    )  # fmt: skip


def utility(
    clean: Sessions, released: Ints, vocabulary: Vocabulary, hidden: Bools | None = None
) -> dict[str, dict[str, float]]:
    """Return the measures by group. Divergences are Jensen-Shannon in bits: 0 for equal, 1 for disjoint.

    `common_part` is the common part of commuters between 1 km squares, 1 for equal; `common_part_between` leaves out
    steps that stay in their square. A relative change is the mean over users of |after - before| / before; that of the
    radius of gyration leaves out users who never moved. Popularity is that of venues that may appear: visits to
    `hidden` ones (P+1,) do not count.
    """
    if released.shape != clean.poi.shape:
        raise ValueError("the release needs one POI per clean position")
    before, after = profile(clean, clean.poi, vocabulary), profile(clean, released, vocabulary)
    may = slice(None) if hidden is None else ~hidden[clean.poi]
    a, b = before.gyration_km, after.gyration_km
    moves = a > 0
    return {
        "popularity": {
            "poi_js": _js(before.poi[may], after.poi), "category_js": _js(before.category[may], after.category),
        },
        "flows": {
            "common_part": _common_part(before.flow, after.flow),
            "common_part_between": _common_part(before.flow[before.leaves], after.flow[after.leaves]),
        },
        "hours": {
            "category_hour_js": _js(before.category_hour, after.category_hour),
            "cell_hour_js": _js(before.square_hour, after.square_hour),
        },
        "gyration": {
            "mean_km_before": _mean(a), "mean_km_after": _mean(b),
            "wasserstein_km": _mean(np.abs(np.sort(a) - np.sort(b))),  # both have the same users
            "relative_change": _mean(np.abs(b - a)[moves] / a[moves]),
        },
        "visits": {
            "revisit_rate_before": before.revisits, "revisit_rate_after": after.revisits,
            "unique_pois_before": _mean(before.unique), "unique_pois_after": _mean(after.unique),
            "unique_pois_relative_change": _mean(np.abs(after.unique - before.unique) / before.unique),
        },
    }  # fmt: skip


def utility_with_control(
    clean: Sessions, released: Ints, vocabulary: Vocabulary, hidden: Bools | None = None
) -> dict[str, dict[str, float]]:
    """Return the measures and, as `common_part_shuffled`, the flows that survive if released visits change places."""
    found = utility(clean, released, vocabulary, hidden)
    shuffled = np.random.default_rng(0).permutation(released)  # public: it permutes what everybody has
    flows = (profile(clean, poi, vocabulary).flow for poi in (clean.poi, shuffled))
    found["flows"]["common_part_shuffled"] = _common_part(*flows)
    return found


def _squares(v: Vocabulary) -> Longs:
    """The square of every POI, (P+1,), on an equirectangular map that is true at the mean latitude.

    The grid depends on the vocabulary alone, so clean data and release share it.
    """
    km = np.pi / 180 * EARTH_RADIUS_KM
    x = np.floor(v.lon[1:] * km * np.cos(np.radians(v.lat[1:].mean())) / SQUARE_KM).astype(np.int64)
    y = np.floor(v.lat[1:] * km / SQUARE_KM).astype(np.int64)
    name = (x - x.min()) * (int(y.max() - y.min()) + 1) + y - y.min()
    return np.concatenate([[0], np.unique(name, return_inverse=True)[1]])


def _gyration(user: Longs, lat: Floats, lon: Floats) -> Floats:
    """Root mean square distance of each user's visits from their mean on the sphere, (users,)."""
    visits = np.bincount(user)
    x, y, z = (np.bincount(user, axis) for axis in unit_sphere(lat, lon).T)
    centre = np.degrees(np.arctan2(z, np.hypot(x, y))), np.degrees(np.arctan2(y, x))
    km = haversine_km(lat, lon, centre[0][user], centre[1][user])
    radius = np.sqrt(np.bincount(user, km**2) / visits)
    return np.where(radius < STILL_KM, 0.0, radius)


def _counts(before: Longs, after: Longs) -> tuple[Longs, Longs]:
    """How often each thing occurs before and after, over everything that occurs at all."""
    things, which = np.unique(np.concatenate([before, after]), return_inverse=True)
    one, two = np.split(which, [len(before)])
    return np.bincount(one, minlength=len(things)), np.bincount(two, minlength=len(things))


def _js(before: Longs, after: Longs) -> float:
    if not len(before) or not len(after):
        return 0.0 if len(before) == len(after) else 1.0
    a, b = _counts(before, after)
    p, q = a / a.sum(), b / b.sum()
    # A sum of terms p log(p/m) is exactly 0 for equal inputs; a difference of entropies would not be.
    divergence = sum(float((r[r > 0] * np.log2(2 * r[r > 0] / (p + q)[r > 0])).sum()) for r in (p, q)) / 2
    return min(max(divergence, 0.0), 1.0)


def _common_part(before: Longs, after: Longs) -> float:
    """2 sum of min / (sum + sum) of the flows before and after; 1 if there are none."""
    if not len(before) and not len(after):
        return 1.0
    a, b = _counts(before, after)
    return float(2 * np.minimum(a, b).sum() / (a.sum() + b.sum()))


def _mean(values: Floats | Longs) -> float:
    return float(values.mean()) if len(values) else 0.0
