"""A6: popularity by deconvolution."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from ghostpoi.attack.adversaries.base import Evidence
from ghostpoi.attack.inference.visits import liked, popularity
from ghostpoi.data.checkins import Ints
from ghostpoi.randomness import Seed


@dataclass(frozen=True)
class Deconvolution:
    """A6 has read the publisher's code and holds no pair: it wants back the popularity of venues.

    The count of a released q is the sum over p in A(q) of visits(p) K(q|p). EM finds the visits that explain all counts
    best; every q becomes the likeliest p behind it. Where no rule is known, the release stays.
    """

    iterations: int = 60
    uses_leak: ClassVar[bool] = False

    def restore(self, evidence: Evidence, seed: Seed, device: torch.device) -> Ints:
        """The argmax over A(q) of popularity times K(q|p)."""
        poi = evidence.released.poi
        if evidence.rule is None:
            return poi
        channel = evidence.rule.channel.covering(poi)
        released = np.bincount(poi, minlength=evidence.rows).astype(float)
        prior = popularity(channel, released, liked(evidence), self.iterations)
        weight = prior[channel.clean] * channel.probability  # (M,)
        order = np.lexsort((channel.clean, -weight, channel.released))
        return channel.clean[order[channel.start[poi]]].astype(np.int32)
