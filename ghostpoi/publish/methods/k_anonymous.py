"""k-anonymous: generalisation, as statistical offices do it. All venues of a crowd become one venue, its centre.

A released row shows the crowd and nothing else; nothing is random. The speed limit is ignored: releasing another venue
than the centre would distinguish venues of the crowd.
"""

from dataclasses import dataclass

import numpy as np

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Bools, Floats, Ints
from ghostpoi.data.geo import unit_sphere
from ghostpoi.data.places import Places
from ghostpoi.publish.methods.crowd_draw import CrowdDraw
from ghostpoi.settings import CandidateSettings


@dataclass(frozen=True)
class KAnonymous(CrowdDraw):
    """Release the medoid of the crowd, the only candidate of all its venues."""

    label = "k-anonymous"
    summary = "Release every venue as the centre venue of its crowd."

    def candidate_sets(self, places: Places, rule: CandidateSettings, known: Bools | None = None) -> Candidates:
        crowds = self.crowds(places, known)
        return Candidates(medoids(crowds.poi, places.lat, places.lon)[:, None], crowds.radius_km)


def medoids(crowds: Ints, lat: Floats, lon: Floats) -> Ints:
    """Return the member of each crowd (P+1, K) with the least sum of distances to the others, (P+1,); 0 if it is empty.

    If several members have the least sum, the first is returned.
    """
    each, place = np.unique(crowds, axis=0, return_inverse=True)
    centre = np.zeros(len(each), np.int32)
    for number, crowd in enumerate(each):
        if len(members := crowd[crowd > 0]):
            point = unit_sphere(lat[members], lon[members])
            centre[number] = members[np.sqrt(((point[:, None] - point) ** 2).sum(axis=2)).sum(axis=1).argmin()]
    return centre[place.reshape(-1)]
