"""Distances on the sphere and the speed that a step implies."""

import numpy as np
from numpy.typing import NDArray

EARTH_RADIUS_KM = 6371.0088

Floats = NDArray[np.float64]


def haversine_km(lat1: Floats, lon1: Floats, lat2: Floats, lon2: Floats) -> Floats:
    """Great-circle distance in km between points in degrees; arguments broadcast."""
    lat1, lon1, lat2, lon2 = (np.radians(a) for a in (lat1, lon1, lat2, lon2))
    h = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    km: Floats = 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.minimum(h, 1.0)))
    return km


def unit_sphere(lat: Floats, lon: Floats) -> Floats:
    """Points in degrees as unit vectors, (n, 3): straight-line distance there grows with distance on the ground."""
    lat, lon = np.radians(lat), np.radians(lon)
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)


def chord(km: float) -> float:
    """The straight-line distance on the unit sphere of two points `km` apart on the ground."""
    return 2 * float(np.sin(min(km / EARTH_RADIUS_KM, np.pi) / 2))


def speed_kmh(distance_km: Floats, gap_s: NDArray[np.int64], min_gap_s: float) -> Floats:
    """Implied speed of a step. A gap counts as at least `min_gap_s`, so that equal timestamps do not divide by zero."""
    return distance_km / (np.maximum(gap_s, min_gap_s) / 3600)


def over_limit(
    lat: Floats, lon: Floats, time: NDArray[np.int64], limit_kmh: float, min_gap_s: float
) -> NDArray[np.bool_]:
    """Which steps (N-1,) between consecutive check-ins (N,) imply a speed over the limit."""
    km = haversine_km(lat[:-1], lon[:-1], lat[1:], lon[1:])
    return speed_kmh(km, np.diff(time), min_gap_s) > limit_kmh
