"""randomised-response: keep the venue with a fixed probability, else draw another venue of its crowd evenly.

Inside a crowd, this is local differential privacy of each single visit: for any two venues of the crowd, no released
venue is more than exp(epsilon) times as likely from one as from the other. Each visit is drawn again, so the visits of
a user to one venue, taken together, reveal it.
"""

from dataclasses import dataclass, replace

import numpy as np

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Bools, Floats
from ghostpoi.data.places import Places
from ghostpoi.publish.methods.crowd_draw import CrowdDraw
from ghostpoi.publish.public_channel import Channel, channel_of
from ghostpoi.settings import CandidateSettings, setting


@dataclass(frozen=True)
class RandomisedResponse(CrowdDraw):
    """Keep p with P = e^epsilon / (e^epsilon + k - 1) in a crowd of k venues; every other venue gets the same share."""

    label = "randomised response"
    summary = "Keep the venue with a fixed probability, else draw another venue of its crowd evenly."

    epsilon: float = setting(1.0, "privacy loss of a visit inside its crowd; 0 draws all venues evenly", 0, 50)

    def candidate_sets(self, places: Places, rule: CandidateSettings, known: Bools | None = None) -> Candidates:
        return self._weighted(self.crowds(places, known))

    def channel(self, candidates: Candidates, lat: Floats | None = None, lon: Floats | None = None) -> Channel:
        return channel_of(self._weighted(candidates))

    def _weighted(self, crowds: Candidates) -> Candidates:
        own = crowds.poi == np.arange(len(crowds.poi))[:, None]
        return replace(crowds, weight=np.where(crowds.poi > 0, np.where(own, np.exp(self.epsilon), 1.0), 0.0))
