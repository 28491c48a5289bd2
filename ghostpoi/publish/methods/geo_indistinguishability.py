"""geo-indistinguishability: planar Laplace noise on the position of each visit, snapped to the nearest venue.

This is the usual way to blur positions with a guarantee for each single visit. It ignores categories, the speed limit
and the user's other visits.
"""

from dataclasses import dataclass

import numpy as np

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Floats, Ints
from ghostpoi.data.places import Places
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.publish.methods.free_draw import FreeDraw, LanguageModel
from ghostpoi.publish.planar_laplace import NearestVenues, moved, radius_km
from ghostpoi.publish.public_channel import Channel, channel_of
from ghostpoi.randomness import Seed
from ghostpoi.settings import setting


@dataclass(frozen=True)
class GeoIndistinguishability(FreeDraw):
    """Move p by noise with density epsilon^2 / (2 pi) exp(-epsilon r) and release the nearest venue."""

    label = "geo-indistinguishability"
    summary = "Add planar Laplace noise to the position and release the nearest venue."
    exact_channel = True

    epsilon: float = setting(2.0, "privacy loss per km; noise moves a visit by 2 / epsilon km on average", 1e-3, 1e6)

    def release(self, sessions: Sessions, vocabulary: Vocabulary, lm: LanguageModel, seed: Seed) -> Ints:
        uniform = seed.generator("planar laplace").random((3, sessions.positions))
        return self._draw(vocabulary.lat, vocabulary.lon, sessions.poi, uniform)

    def release_outside(self, places: Places, anchor: Ints, seed: Seed) -> Ints:
        uniform = seed.generator("planar laplace", "outside").random((3, len(anchor)))
        return self._draw(places.lat, places.lon, anchor, uniform)

    def channel(self, candidates: Candidates, lat: Floats | None = None, lon: Floats | None = None) -> Channel:
        if lat is None or lon is None or len(lat) < 2:
            return channel_of(candidates)
        return NearestVenues(lat, lon).channel(self.epsilon)

    def _draw(self, lat: Floats, lon: Floats, anchor: Ints, uniform: Floats) -> Ints:
        distance, angle, which = uniform
        point = moved(lat[anchor], lon[anchor], radius_km(distance, self.epsilon), 2 * np.pi * angle)
        return NearestVenues(lat, lon).draw(point, which).astype(np.int32)
