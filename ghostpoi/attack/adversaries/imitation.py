"""What leaked pairs, and the release itself, tell of a channel that is not known or not quite the one in the code."""

import numpy as np
from scipy.special import gammaln

from ghostpoi.attack.inference.visits import AFRESH, summed
from ghostpoi.data.checkins import Floats, Longs
from ghostpoi.publish.channel import Channel

CONCENTRATIONS: Floats = 10.0 ** np.arange(-2, 3.01, 0.25)  # tried for K_u; the last one stands for drawing afresh


def attracted(
    channel: Channel, visits: Floats, released: Floats, pull: Floats, strength: float
) -> tuple[Channel, Floats]:
    """The channel K(q|p) in proportion to K_0(q|p) pull(q), with the pull (Q,) that explains the counts; and that.

    Methods without a channel score candidates by a model of theirs, and a candidate that scores high behind one POI
    does so behind others: how often q was released, against how often it could have been, gives its pull away. One
    number per POI can be told from the release alone, one per pair cannot. `visits` (P+1,) are the clean visits that
    the adversary believes in; `strength` is the weight, in visits, of a pull of 1. One step of minorise-maximise.
    """
    total = summed(channel.clean, channel.probability * pull[channel.released], len(visits))
    chance = channel.probability * np.divide(visits, total, out=np.zeros_like(visits), where=total > 0)[channel.clean]
    pull = (released + strength) / (summed(channel.released, chance, len(released)) + strength)
    weight = channel.probability * pull[channel.released]
    weight = weight / summed(channel.clean, weight)[channel.clean]
    return Channel(channel.clean, channel.released, weight, channel.start), pull


def learned(channel: Channel, released: Longs, clean: Longs, strength: float, exact: bool) -> Channel:
    """The channel after leaked pairs: those that it does not allow are let in, and a guess moves toward what leaked.

    A guess weighs as much as `strength` pairs of each clean POI. How many pairs it does not allow at all tells how far
    to trust the rest of it: the release of another tool may follow another rule altogether.
    """
    if not len(clean):
        return channel
    strange = channel.find(clean, released) < 0
    trust = ((~strange).sum() + 0.5) / (len(clean) + 1)
    new = strange if exact else np.ones(len(clean), bool)
    pairs = np.bincount(clean[new], minlength=int(max(channel.clean.max(initial=0), clean.max())) + 1)
    old = trust * strength * channel.probability / (strength + pairs[channel.clean])
    return Channel.of(
        np.concatenate([channel.clean, clean[new]]), np.concatenate([channel.released, released[new]]),
        np.concatenate([old, 1 / (strength + pairs[clean[new]])]), channel.symbols,
    )  # fmt: skip


def stickiness(channel: Channel, user: Longs, released: Longs, clean: Longs) -> float:
    """The concentration of K_u under which the leaked visits of one user to one POI are likeliest (Polya's urn).

    Near 0: once drawn, always released. Infinite: drawn afresh each time, or nobody leaked two visits to one POI.
    """
    rows = int(clean.max(initial=0)) + 1
    triple, count = np.unique((user * rows + clean) * channel.symbols + released, return_counts=True)
    pair, symbol = np.divmod(triple, channel.symbols)
    entry = channel.find(pair % rows, symbol)
    chance = np.where(entry >= 0, channel.probability[entry], 0.0)
    open_ = (chance > 0) & (chance < 1 - 1e-9)  # a POI that is always released alike tells nothing
    pair, count, chance = pair[open_], count[open_], chance[open_]
    total = np.bincount(np.unique(pair, return_inverse=True)[1], count)
    if not (total > 1).any():
        return AFRESH
    k = CONCENTRATIONS[:, None]
    fit = (gammaln(k) - gammaln(k + total)).sum(1) + (gammaln(k * chance + count) - gammaln(k * chance)).sum(1)
    best = int(fit.argmax())
    return AFRESH if best == len(CONCENTRATIONS) - 1 else float(CONCENTRATIONS[best])
