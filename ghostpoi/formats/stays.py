"""Venues for files of raw points (--cluster-points): the places where people stay, found by clustering.

A stay is a run of a user's points near the first of them, without a pause of STAY_S seconds, that lasts for STAY_S
seconds until the user's next point. DBSCAN clusters the stays of all users. A venue is a cluster or, of a wide cluster,
a square with enough stays. Its position is rounded, and no point of the file has it.
"""

import math
from itertools import count, product

import numpy as np

from ghostpoi.data.checkins import Checkins, Floats, Longs
from ghostpoi.data.geo import EARTH_RADIUS_KM
from ghostpoi.data.ordering import by_user_and_time
from ghostpoi.errors import InputError
from ghostpoi.options import option

STAY_S = 20 * 60
MIN_STAYS = 5  # of a cluster, and of a square
MIN_PEOPLE = 3  # whose stays make a venue: where fewer stay, it may be a home
DIGITS = 4  # of a position: about 11 metres
NOWHERE = -1


def venue_positions(table: Checkins, radius_m: float) -> tuple[Floats, Floats]:
    """Return the position of the venue of every row, (N,) each, NaN where a row belongs to none."""
    stay, lat, lon = _stays(table, radius_m)
    venue = _shared(_clusters(lat, lon, radius_m), stay, table)
    taken = set(zip(table.lat.tolist(), table.lon.tolist(), strict=True))
    means = zip(_means(venue, lat).tolist(), _means(venue, lon).tolist(), strict=True)
    places = [_position(y, x, taken) for y, x in means]
    of_row = np.where(stay >= 0, venue[stay], NOWHERE) if len(venue) else stay
    at = np.array([*places, (np.nan, np.nan)])[of_row]  # the last one stands for NOWHERE
    return at[:, 0], at[:, 1]


def _shared(venue: Longs, stay: Longs, table: Checkins) -> Longs:
    """Return the venue of every stay, numbered anew, NOWHERE where fewer than MIN_PEOPLE stay."""
    user = np.zeros(len(venue), np.int64)
    user[stay[stay >= 0]] = table.user[stay >= 0]
    inside = venue >= 0
    people = np.bincount(np.unique(np.stack([venue[inside], user[inside]]), axis=1)[0], minlength=1)
    kept = people >= MIN_PEOPLE
    number = np.where(kept, np.cumsum(kept) - 1, NOWHERE)
    return np.where(inside, number[np.where(inside, venue, 0)], NOWHERE)


def place_id(lat: float, lon: float) -> str:
    """Return the id of a venue that is known by its position alone."""
    return f"{lat:.{DIGITS}f} {lon:.{DIGITS}f}"


def _stays(table: Checkins, radius_m: float) -> tuple[Longs, Floats, Floats]:
    """Return the stay of every row, NOWHERE for a row on the way, and the mean position of each stay."""
    order = by_user_and_time(table.user, table.time)
    user, time = table.user[order].tolist(), table.time[order].tolist()
    lat, lon = np.radians(table.lat[order]).tolist(), np.radians(table.lon[order]).tolist()
    stay, number, start = np.full(len(order), NOWHERE), 0, 0
    for at in range(1, len(order) + 1):
        same = at < len(order) and user[at] == user[start]
        near = same and _metres(lat[start], lon[start], lat[at], lon[at]) <= radius_m
        if near and time[at] - time[at - 1] < STAY_S:
            continue
        if not same or time[at] - time[start] >= STAY_S:
            stay[start:at], number = number, number + 1
        start = at
    of_row = np.empty(len(order), np.int64)
    of_row[order] = stay
    return of_row, _means(of_row, table.lat), _means(of_row, table.lon)


def _means(group: Longs, values: Floats) -> Floats:
    """Return the mean of each group; those of NOWHERE do not count."""
    inside = group >= 0
    mean: Floats = np.bincount(group[inside], values[inside]) / np.bincount(group[inside])
    return mean


def _metres(lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    """Return the distance of near points, given in radians, as if the ground between them was flat."""
    metres: float = 1000 * EARTH_RADIUS_KM * math.hypot(lat2 - lat1, (lon2 - lon1) * math.cos((lat1 + lat2) / 2))
    return metres


def _clusters(lat: Floats, lon: Floats, radius_m: float) -> Longs:
    """Return the venue of every stay, NOWHERE for a stay in no cluster."""
    try:
        from sklearn.cluster import DBSCAN
    except ImportError:
        raise InputError(
            f"{option('cluster_points')} needs scikit-learn; install it with pip install 'ghostpoi[cluster]'"
        ) from None
    reach = radius_m / (1000 * EARTH_RADIUS_KM)
    found = DBSCAN(eps=reach, min_samples=MIN_STAYS, metric="haversine", algorithm="ball_tree")
    cluster = found.fit(np.radians(np.stack([lat, lon], axis=1))).labels_.astype(np.int64)
    venue, venues = np.full(len(lat), NOWHERE), 0
    order = np.argsort(cluster, kind="stable")
    for stay in np.split(order, np.searchsorted(cluster[order], np.arange(cluster.max(initial=NOWHERE) + 1)))[1:]:
        square = _squares(lat[stay], lon[stay], radius_m)
        venue[stay], venues = venues + square, venues + int(square.max()) + 1
    return venue


def _squares(lat: Floats, lon: Floats, radius_m: float) -> Longs:
    """Cut a cluster wider than twice the radius into squares, numbered from 0; sparse ones join the nearest other."""
    flat = np.stack([lat, lon * math.cos(math.radians(lat.mean()))], axis=1)
    at = 1000 * EARTH_RADIUS_KM * np.radians(flat)  # metres
    if (np.ptp(at, axis=0) <= 2 * radius_m).all():
        return np.zeros(len(lat), np.int64)
    _, square, size = np.unique(np.floor(at / (2 * radius_m)), axis=0, return_inverse=True, return_counts=True)
    square, full = square.reshape(-1), np.flatnonzero(size >= MIN_STAYS)
    if not len(full):
        return np.zeros(len(lat), np.int64)
    centre = np.stack([_means(square, axis)[full] for axis in at.T], axis=1)
    lost = np.flatnonzero(size[square] < MIN_STAYS)
    found = np.searchsorted(full, square)  # right for all but the lost ones
    found[lost] = ((at[lost, None] - centre) ** 2).sum(axis=2).argmin(axis=1)
    return found


def _position(lat: float, lon: float, taken: set[tuple[float, float]]) -> tuple[float, float]:
    """Return the rounded mean position, or the nearest rounded one that is no point of the file."""
    middle = round(lat * 10**DIGITS), round(lon * 10**DIGITS)
    for width in count():
        steps = sorted(product(range(-width, width + 1), repeat=2), key=lambda step: step[0] ** 2 + step[1] ** 2)
        for y, x in steps:
            place = round((middle[0] + y) / 10**DIGITS, DIGITS), round((middle[1] + x) / 10**DIGITS, DIGITS)
            if place not in taken:
                return place
    raise AssertionError  # there are more places than points
