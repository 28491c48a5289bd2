"""A6: popularity by deconvolution."""

from dataclasses import dataclass

import numpy as np

from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Ints, Seed
from ghostpoi.attack.inference.visits import estimate_popularity, popularity_hint


@dataclass(frozen=True)
class Deconvolution(Adversary):
    """A6 knows the public rule alone and estimates how popular each venue is.

    EM finds the visits to each p that explain best how often each q was released. Without a rule, the release stays.
    """

    number = 6
    title = "popularity deconvolution"
    holds = "the public rule; no leak"
    does = "estimates venue popularity by expectation maximisation and takes the likeliest clean venue"
    uses_leak = False

    iterations: int = 60

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        poi = evidence.released.poi
        if evidence.rule is None:
            return poi
        channel = evidence.rule.channel.covering(poi)
        released = np.bincount(poi, minlength=evidence.rows).astype(float)
        prior = estimate_popularity(channel, released, popularity_hint(evidence), self.iterations)
        weight = prior[channel.clean] * channel.probability  # (M,)
        order = np.lexsort((channel.clean, -weight, channel.released))
        return channel.clean[order[channel.start[poi]]].astype(np.int32)
