"""A11: several releases of the same rows."""

from collections.abc import Sequence

import numpy as np

from ghostpoi.attack.adversaries.base import Evidence
from ghostpoi.attack.adversaries.habits import MODEL, HabitModel
from ghostpoi.attack.inference.visits import filled, liked, summed
from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.publish.channel import Channel


def restore_many(evidences: Sequence[Evidence], model: HabitModel = MODEL) -> Ints:
    """A11 is A8 with K releases of the same rows and the same leak: it wants what they have in common, (N,).

    A publisher who draws again for every release hands out K draws for each visit, and only a POI that could have been
    released as all of them stands behind it. What was released together counts as one symbol, released with the product
    of the probabilities. With one release A11 is A8. Each evidence needs a rule.
    """
    first = evidences[0]
    if any(not _same(first, other) for other in evidences):
        raise ValueError("releases of the same rows with the same leak are needed")
    channels = [model.channel(e, e.rule).covering(e.released.poi) for e in evidences if e.rule is not None]
    if len(channels) < len(evidences):
        raise ValueError("every release needs its rule")
    together, symbol = np.unique(np.stack([e.released.poi for e in evidences], 1), axis=0, return_inverse=True)
    looks = np.mean([liked(e) for e in evidences], axis=0)
    found = model.explain(first, product(channels, together.astype(np.int64)), symbol, looks=looks)
    return filled(first, found.visits.argmax(found.share))


def product(channels: Sequence[Channel], together: Longs) -> Channel:
    """The channel to symbols (S, K), each the POIs that K channels released for one visit.

    Where no POI could have been released as all of them, a rule is not what it seems: the first release then decides.
    """
    owner, entry = channels[0].behind(together[:, 0])
    clean, chance = channels[0].clean[entry], channels[0].probability[entry]
    both: Floats = chance.copy()
    for k, channel in enumerate(channels[1:], 1):
        at = channel.find(clean, together[owner, k])
        both *= np.where(at >= 0, channel.probability[at], 0.0)
    some = summed(owner, both, len(together)) > 0
    both = np.where(some[owner], both, chance)
    real = both > 0
    return Channel.of(clean[real], owner[real], both[real], len(together))


def _same(one: Evidence, other: Evidence) -> bool:
    pairs = ((one.leaked, other.leaked), (one.clean, other.clean), (one.released.start, other.released.start))
    return one.rows == other.rows and all(np.array_equal(a, b) for a, b in pairs)
