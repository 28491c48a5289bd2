"""The public rule of a release: what the manifest and the code tell everyone about the substitution."""

from dataclasses import dataclass

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Floats
from ghostpoi.data.sessions import Vocabulary
from ghostpoi.publish.channel import Channel, uniform
from ghostpoi.publish.methods import Method


@dataclass(frozen=True)
class Rule:
    """How the publisher substitutes, as far as it is public."""

    candidates: Candidates
    channel: Channel
    exact: bool  # False: the channel is a first guess that an adversary may refine
    lat: Floats | None = None  # (P+1,) coordinates of the venues, as the release shows them
    lon: Floats | None = None
    popularity_power: float = 0.0  # see Method.popularity_power


def rule_of(method: Method | None, candidates: Candidates, vocabulary: Vocabulary | None = None) -> Rule:
    """Return the rule of a method over its candidate sets; for an unknown method, guess a uniform draw.

    The speed mask is ignored: it only removes some candidates where check-ins follow each other closely.
    """
    lat, lon = (vocabulary.lat, vocabulary.lon) if vocabulary else (None, None)
    if method is None:
        return Rule(candidates, uniform(candidates), False, lat, lon)
    channel = method.channel(candidates)
    return Rule(candidates, channel, method.exact_channel, lat, lon, method.popularity_power)
