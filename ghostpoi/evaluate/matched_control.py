"""The control `random-matched`: a random release that differs from the audited one in nothing but how it chooses.

The paper's control `random` draws from the paper's candidate sets, whatever the method's own sets are. The matched
control draws uniformly and independently from the method's own sets, exactly where the release has a substitute.
"""

import numpy as np

from ghostpoi.attack.evidence import Rule
from ghostpoi.data.checkins import Ints
from ghostpoi.publish.methods import METHODS, AnyMethod
from ghostpoi.publish.public_channel import Channel, uniform
from ghostpoi.randomness import Seed


def differs_from_random(method: AnyMethod | None) -> bool:
    """Whether a release needs this control. That of `random` or of another tool would be the random release again."""
    return method is not None and type(method) is not type(METHODS["random"])


def matched_draw(rule: Rule, clean: Ints, released: Ints, seed: Seed) -> Ints:
    """Draw a release, (N,), from the clean POIs (N,) and the audited release (N,).

    Where the audit knows no other venue of the set, the released venue stays.
    """
    generator = seed.generator("audit", "random-matched")
    if rule.candidates.everywhere:  # any POI but the clean one
        other = generator.integers(1, max(2, len(rule.candidates.poi) - 1), len(clean))
        return np.where(released != clean, other + (other >= clean), released).astype(np.int32)
    sets = rule.candidates.poi[clean]  # (N, K)
    other = (sets > 0) & (sets != clean[:, None])
    size = other.sum(axis=1)
    k = (generator.random(len(clean)) * size).astype(np.int64)  # take the k-th other
    column = (np.cumsum(other, axis=1) <= k[:, None]).sum(axis=1)
    drawn = (released != clean) & (size > 0)
    return np.where(drawn, sets[np.arange(len(clean)), np.where(drawn, column, 0)], released).astype(np.int32)


def matched_rule(method: AnyMethod, rule: Rule, clean: Ints, released: Ints) -> Rule:
    """Return what an adversary knows about the control: the method's sets and the share of venues that stay."""
    sets = rule.candidates
    if method.own_sets:  # they hold the venue itself, which stays as often as any other is drawn
        channel = uniform(sets)
    else:
        has = sets.size[clean] > 0
        channel = _staying(uniform(sets), float((released == clean)[has].mean()) if has.any() else 0.0)
    return Rule(sets, channel, True, rule.lat, rule.lon)


def _staying(channel: Channel, share: float) -> Channel:
    """Let every POI that is substituted at all stay with this probability."""
    moves = channel.clean != channel.released
    anchors = np.unique(channel.clean[moves])
    if not share or not len(anchors):
        return channel
    probability = np.where(moves, (1 - share) * channel.probability, channel.probability)
    return Channel.of(
        np.concatenate([channel.clean, anchors]), np.concatenate([channel.released, anchors]),
        np.concatenate([probability, np.full(len(anchors), share)]), channel.symbols,
    )  # fmt: skip
