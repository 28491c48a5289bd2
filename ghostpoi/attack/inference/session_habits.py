"""Habits of users and of single sessions, combined: the model of A15."""

from dataclasses import dataclass, replace

import numpy as np

from ghostpoi.attack.evidence import Evidence, Rule
from ghostpoi.attack.inference.habit_model import HabitModel
from ghostpoi.attack.inference.visits import likeliest, sum_by
from ghostpoi.data.checkins import Bools, Floats, Ints
from ghostpoi.publish.public_channel import Channel


@dataclass(frozen=True)
class SessionModel:
    """Multiplies what both levels say about a position, the less telling one with a smaller power.

    Where all options have the same channel, as in a crowd, a user's repeated draws tell nothing, but a session's area
    does. Elsewhere repeated draws tell most.
    """

    habits: HabitModel = HabitModel()
    less: float = 0.5

    def restore(self, evidence: Evidence, rule: Rule) -> Ints:
        """Return the likeliest clean POI of every position given the release alone, (N,)."""
        alone = replace(evidence.released, user=np.arange(len(evidence.released), dtype=np.int32))
        channel = self.habits.channel(evidence, rule)
        alike = ~tells_apart(channel.covering(evidence.symbol))[evidence.symbol]
        score: Floats | float = 0.0
        for known, telling in ((evidence, ~alike), (replace(evidence, released=alone), alike)):
            visits, _, share = self.habits.explain(known, channel, evidence.symbol)
            # The options of a position are the same at both levels, in the same order.
            size = np.diff(visits.first, append=len(visits.owner))[visits.group]
            first = np.cumsum(size) - size
            owner = np.repeat(np.arange(len(size)), size)
            option = visits.first[visits.group][owner] + np.arange(len(owner)) - first[owner]
            score = score + np.where(telling, 1.0, self.less)[owner] * np.log(share[option])
            clean = visits.clean[option]
        return likeliest(np.asarray(score), clean, owner, first)


def tells_apart(channel: Channel) -> Bools:
    """Whether the POIs behind each released POI differ in what they are released as, (Q,)."""
    # Channels that differ have different sums of such numbers, up to chance.
    mark = sum_by(channel.clean, channel.probability * np.sin(1.0 + channel.released.astype(float) ** 1.5))
    apart = np.zeros(channel.symbols, bool)
    first = np.flatnonzero(np.diff(channel.released, prepend=-1))
    marks = mark[channel.clean]
    if len(first):
        apart[channel.released[first]] = np.maximum.reduceat(marks, first) - np.minimum.reduceat(marks, first) > 1e-9
    return apart
