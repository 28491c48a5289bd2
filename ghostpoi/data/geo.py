"""Distances on the sphere, and the speed of steps between venues."""

import numpy as np

from ghostpoi.data.checkins import Bools, Floats, Longs

EARTH_RADIUS_KM = 6371.0088
DEGREE_KM = EARTH_RADIUS_KM * np.pi / 180
MARGIN, MARGIN_KM = 1 + 1e-6, 1e-3  # far more than the rounding errors of distances and speeds


def haversine_km(lat1: Floats, lon1: Floats, lat2: Floats, lon2: Floats) -> Floats:
    """Return the great-circle distance in km between points in degrees; arguments broadcast."""
    lat1, lon1, lat2, lon2 = (np.radians(a) for a in (lat1, lon1, lat2, lon2))
    h = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    return 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.minimum(h, 1.0)))


def unit_sphere(lat: Floats, lon: Floats) -> Floats:
    """Convert degrees to unit vectors (n, 3). Their straight-line distance grows with the distance on the ground."""
    lat, lon = np.radians(lat), np.radians(lon)
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)


def chord(km: float) -> float:
    """Convert a distance on the ground to the straight-line distance on the unit sphere."""
    return 2 * float(np.sin(min(km / EARTH_RADIUS_KM, np.pi) / 2))


def speed_kmh(distance_km: Floats, gap_s: Longs, min_gap_s: float) -> Floats:
    """Return the speed of a step. A gap counts as at least `min_gap_s`, so equal timestamps do not divide by zero."""
    return distance_km / (np.maximum(gap_s, min_gap_s) / 3600)


def over_limit(lat: Floats, lon: Floats, time: Longs, limit_kmh: float, min_gap_s: float) -> Bools:
    """Mark the steps (N-1,) between consecutive check-ins (N,) that imply a speed over the limit."""
    gap_s = np.diff(time)
    at_most_km = DEGREE_KM * (np.abs(np.diff(lat)) + np.abs(np.diff(lon)))  # along a meridian and the equator
    over: Bools = speed_kmh(at_most_km * MARGIN + MARGIN_KM, gap_s, min_gap_s) > limit_kmh
    some = np.flatnonzero(over)
    km = haversine_km(lat[some], lon[some], lat[some + 1], lon[some + 1])
    over[some] = speed_kmh(km, gap_s[some], min_gap_s) > limit_kmh
    return over
