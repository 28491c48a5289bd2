"""Learning a channel that is unknown, or not quite the one in the code, from leaked pairs and the release itself."""

import numpy as np
from scipy.special import gammaln

from ghostpoi.attack.inference.visits import INDEPENDENT, sum_by
from ghostpoi.data.checkins import Floats, Longs
from ghostpoi.publish.channel import Channel

CONCENTRATIONS: Floats = 10.0 ** np.arange(-2, 3.01, 0.25)  # tried for K_u; the last stands for independent draws


def fit_attraction(
    channel: Channel, visits: Floats, released: Floats, attraction: Floats, strength: float
) -> tuple[Channel, Floats]:
    """Take one step of minorise-maximise towards K(q|p) proportional to K_0(q|p) attraction(q); return both.

    Methods without a channel score candidates with a model, and a candidate that scores high behind one POI does so
    behind others; the release determines one number per POI, but not one per pair. `visits` (P+1,) are the clean visits
    assumed; `strength` is the weight, in visits, of an attraction of 1.
    """
    total = sum_by(channel.clean, channel.probability * attraction[channel.released], len(visits))
    chance = channel.probability * np.divide(visits, total, out=np.zeros_like(visits), where=total > 0)[channel.clean]
    attraction = (released + strength) / (sum_by(channel.released, chance, len(released)) + strength)
    weight = channel.probability * attraction[channel.released]
    weight = weight / sum_by(channel.clean, weight)[channel.clean]
    return Channel(channel.clean, channel.released, weight, channel.start), attraction


def learn_from_pairs(channel: Channel, released: Longs, clean: Longs, strength: float, exact: bool) -> Channel:
    """Add leaked pairs that the channel does not allow and, unless it is exact, move it towards all leaked pairs.

    A guess weighs as much as `strength` pairs per clean POI. The share of pairs that it allows says how far to trust
    the rest: the release of another tool may follow a different rule.
    """
    if not len(clean):
        return channel
    not_allowed = channel.find(clean, released) < 0
    trust = ((~not_allowed).sum() + 0.5) / (len(clean) + 1)
    new = not_allowed if exact else np.ones(len(clean), bool)
    pairs = np.bincount(clean[new], minlength=int(max(channel.clean.max(initial=0), clean.max())) + 1)
    old = trust * strength * channel.probability / (strength + pairs[channel.clean])
    return Channel.of(
        np.concatenate([channel.clean, clean[new]]), np.concatenate([channel.released, released[new]]),
        np.concatenate([old, 1 / (strength + pairs[clean[new]])]), channel.symbols,
    )  # fmt: skip


def concentration(channel: Channel, user: Longs, released: Longs, clean: Longs) -> float:
    """Return the concentration of K_u that makes leaked visits of one user to one POI likeliest (Polya's urn).

    Near 0 the publisher repeats its first draw. It is infinite for independent draws, and without repeated visits.
    """
    rows = int(clean.max(initial=0)) + 1
    triple, count = np.unique((user * rows + clean) * channel.symbols + released, return_counts=True)
    pair, symbol = np.divmod(triple, channel.symbols)
    entry = channel.find(pair % rows, symbol)
    chance = np.where(entry >= 0, channel.probability[entry], 0.0)
    varies = (chance > 0) & (chance < 1 - 1e-9)  # a POI that is always released as the same POI tells nothing
    pair, count, chance = pair[varies], count[varies], chance[varies]
    total = np.bincount(np.unique(pair, return_inverse=True)[1], count)
    if not (total > 1).any():
        return INDEPENDENT
    k = CONCENTRATIONS[:, None]
    fit = (gammaln(k) - gammaln(k + total)).sum(1) + (gammaln(k * chance + count) - gammaln(k * chance)).sum(1)
    best = int(fit.argmax())
    return INDEPENDENT if best == len(CONCENTRATIONS) - 1 else float(CONCENTRATIONS[best])


def joint_channel(channels: list[Channel], symbols: Longs) -> Channel:
    """Return the channel to joint symbols (S, K): the POIs that K releases show for one visit.

    If no POI could have been released as all K of them, the rule does not hold there and the first release decides.
    """
    owner, entry = channels[0].behind(symbols[:, 0])
    clean, chance = channels[0].clean[entry], channels[0].probability[entry]
    product: Floats = chance.copy()
    for k, channel in enumerate(channels[1:], 1):
        at = channel.find(clean, symbols[owner, k])
        product *= np.where(at >= 0, channel.probability[at], 0.0)
    possible = sum_by(owner, product, len(symbols)) > 0
    product = np.where(possible[owner], product, chance)
    real = product > 0
    return Channel.of(clean[real], owner[real], product[real], len(symbols))
