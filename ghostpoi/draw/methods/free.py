"""Methods that draw freely, without candidate sets: geo-indistinguishability and synthetic sessions."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.data.geo import EARTH_RADIUS_KM, unit_sphere
from ghostpoi.data.places import Places
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.draw.channel import Channel, channel_of
from ghostpoi.draw.methods.base import FreeDraw, LanguageModel
from ghostpoi.draw.noise import Noise
from ghostpoi.settings import setting

GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))
QUADRATURE = 128  # points that stand for the surroundings of a venue
NEIGHBOURS = 8  # of a position; the surroundings reach as far as the last of them
LIKELIEST = 128  # clean venues that a channel lists for each released one, at most
LEAST = 1e-4  # it leaves out those less likely than this, compared with the likeliest


def radius_km(uniform: Floats, epsilon: float) -> Floats:
    """Return the distance of the noise at these quantiles: the inverse of 1 - (1 + epsilon r) exp(-epsilon r).

    That is a gamma distribution. The inverse by Lambert's W, as usually given, is not a number at 0.
    """
    return scipy.special.gammaincinv(2, uniform) / epsilon


def moved(lat: Floats, lon: Floats, km: Floats, angle: Floats) -> Floats:
    """Return the points this far away in these directions, as unit vectors; arguments broadcast."""
    here = unit_sphere(lat, lon)
    phi, theta = np.radians(lat), np.radians(lon)
    east = np.stack([-np.sin(theta), np.cos(theta), 0 * theta], axis=-1)
    north = np.stack([-np.sin(phi) * np.cos(theta), -np.sin(phi) * np.sin(theta), np.cos(phi)], axis=-1)
    way = north * np.cos(angle)[..., None] + east * np.sin(angle)[..., None]
    arc = (km / EARTH_RADIUS_KM)[..., None]
    return here * np.cos(arc) + way * np.sin(arc)


class NearestVenues:
    """Venues by position. Row 0 is padding. Several venues at one position are equally near."""

    def __init__(self, lat: Floats, lon: Floats) -> None:
        spots, self.spot_of = np.unique(np.stack([lat[1:], lon[1:]], axis=1), axis=0, return_inverse=True)
        self.spot_of = self.spot_of.reshape(-1)
        self.lat, self.lon = spots.T  # (S,)
        self.members = np.argsort(self.spot_of, kind="stable") + 1  # venues, position by position
        self.count: Longs = np.bincount(self.spot_of)
        self.first = np.cumsum(self.count) - self.count

    @cached_property
    def tree(self) -> "scipy.spatial.cKDTree":
        return scipy.spatial.cKDTree(unit_sphere(self.lat, self.lon))

    def draw(self, point: Floats, uniform: Floats) -> Longs:
        """Return the venue nearest to each point (N, 3); uniform numbers decide between those at one position."""
        _, spot = self.tree.query(point)
        return self.members[self.first[spot] + (uniform * self.count[spot]).astype(np.int64)]

    def channel(self, epsilon: float) -> Channel:
        """Return K(q|p) of noise and snapping, for the `LIKELIEST` venues p behind each q; the rest is left out.

        K(q|p) is the integral of the noise around p over the points that are nearest to q. Points in a disc around q
        stand for these. At the edge of a city, what lies beyond the disc is missing.
        """
        spots = len(self.lat)
        near = self.tree.query(self.tree.data, [min(NEIGHBOURS + 1, spots)])[0][:, 0]
        reach = 2 * np.arcsin(near / 2) * EARTH_RADIUS_KM if spots > 1 else np.full(1, 10 / epsilon)  # (S,) km
        step = np.arange(QUADRATURE)
        disc = reach[:, None] * np.sqrt((step + 0.5) / QUADRATURE)  # (S, X)
        points = moved(self.lat[:, None], self.lon[:, None], disc, np.broadcast_to(step * GOLDEN_ANGLE, disc.shape))
        inside = self.tree.query(points.reshape(-1, 3))[1].reshape(disc.shape) == np.arange(spots)[:, None]
        behind = self.tree.query(self.tree.data, min(LIKELIEST, spots))[1].reshape(spots, -1)  # (S, L)
        spot, place = np.nonzero(inside)
        area = np.pi * reach**2 / QUADRATURE  # that a point stands for
        probability = np.zeros(behind.shape)
        for column, origin in enumerate(behind.T):
            chord = np.linalg.norm(points[spot, place] - self.tree.data[origin[spot]], axis=1)
            density = np.exp(-epsilon * 2 * np.arcsin(np.minimum(chord / 2, 1)) * EARTH_RADIUS_KM)
            probability[:, column] = np.bincount(spot, density, spots) * area * epsilon**2 / (2 * np.pi)
        return self._of_venues(behind, probability)

    def _of_venues(self, behind: Longs, probability: Floats) -> Channel:
        """Turn probabilities of positions into those of venues: the venues at one position share its probability."""
        venue = np.arange(1, len(self.spot_of) + 1)
        spot, column = np.broadcast_arrays(self.spot_of[:, None], np.arange(behind.shape[1]))
        origin = behind[spot, column]  # (P, L) positions behind each released venue
        size = self.count[origin]
        released = np.repeat(np.broadcast_to(venue[:, None], origin.shape).ravel(), size.ravel())
        within = np.arange(len(released)) - np.repeat(np.cumsum(size) - size.ravel(), size.ravel())
        clean = self.members[np.repeat(self.first[origin].ravel(), size.ravel()) + within]
        share = np.repeat((probability[spot, column] / self.count[spot]).ravel(), size.ravel())
        best = np.append(0.0, probability.max(axis=1)[self.spot_of] / self.count[self.spot_of])
        real = share > LEAST * best[released]
        return Channel.of(clean[real], released[real], share[real], len(venue) + 1)


@dataclass(frozen=True)
class GeoIndistinguishability(FreeDraw):
    """Move p by noise with density epsilon^2 / (2 pi) exp(-epsilon r) and release the nearest venue."""

    label = "geo-indistinguishability"
    summary = "Add planar Laplace noise to the position and release the nearest venue."
    exact_channel = True

    epsilon: float = setting(2.0, "privacy loss per km; noise moves a visit by 2 / epsilon km on average", 1e-3, 1e6)

    def release(self, sessions: Sessions, vocabulary: Vocabulary, lm: LanguageModel, noise: Noise) -> Ints:
        uniform = noise.several(3, "planar laplace")
        return self._draw(vocabulary.lat, vocabulary.lon, sessions.poi, uniform)

    def release_outside(self, places: Places, anchor: Ints, noise: Noise) -> Ints:
        uniform = noise.several(3, "planar laplace", "outside")
        return self._draw(places.lat, places.lon, anchor, uniform)

    def channel(self, candidates: Candidates, lat: Floats | None = None, lon: Floats | None = None) -> Channel:
        if lat is None or lon is None or len(lat) < 2:
            return channel_of(candidates)
        return NearestVenues(lat, lon).channel(self.epsilon)

    def _draw(self, lat: Floats, lon: Floats, anchor: Ints, uniform: Floats) -> Ints:
        distance, angle, which = uniform
        point = moved(lat[anchor], lon[anchor], radius_km(distance, self.epsilon), 2 * np.pi * angle)
        return NearestVenues(lat, lon).draw(point, which).astype(np.int32)


@dataclass(frozen=True)
class Synthetic(FreeDraw):
    """Draw p'_i with P = T_psi(p'_i | p'_0 .. p'_{i-1})."""

    label = "synthetic"
    summary = "Sample whole sessions from the trajectory LM, which learned from all clean sessions."

    min_visits: int = setting(5, "outside sessions, a venue counts as having at least this many visits", 1)

    @property
    def needs_trajectory_lm(self) -> bool:
        return True

    @property
    def published_aggregates(self) -> tuple[str, ...]:
        few = self.min_visits
        return ("what follows what in sessions", f"visits per venue, where fewer than {few} count as {few}")

    def release(self, sessions: Sessions, vocabulary: Vocabulary, lm: LanguageModel, noise: Noise) -> Ints:
        from ghostpoi.models.trajectory_lm import sample_sessions  # torch

        if lm is None:
            raise ValueError("a synthetic release needs the trajectory LM")
        return sample_sessions(lm, sessions.start, noise.uniform("synthetic"))

    def release_outside(self, places: Places, anchor: Ints, noise: Noise) -> Ints:
        share = np.cumsum(np.maximum(places.visits[1:], self.min_visits), dtype=float)
        uniform = noise.uniform("synthetic", "outside")
        return (np.searchsorted(share / share[-1], uniform, side="right") + 1).astype(np.int32)
