"""How far people go between check-ins, by the time between them: what A14 knows instead of leaked steps.

`step_lengths.toml` holds the counts of a public data set. For any check-in file, `python -m
ghostpoi.attack.inference.step_lengths FILE` prints such a table.
"""

import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from ghostpoi.attack.evidence import Evidence, Rule
from ghostpoi.attack.inference.hidden_markov import BANDS_KM, States, TransitionModel, Transitions, bands, length_bands
from ghostpoi.attack.inference.visits import sum_by
from ghostpoi.data.checkins import Floats, Longs
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.publish.public_channel import Channel

GAPS_S: Longs = np.array([900, 3_600, 10_800, 28_800])  # times between check-ins that are told apart
SHAPE = len(GAPS_S) + 1, len(BANDS_KM) + 2


@dataclass(frozen=True)
class KnownLengths(TransitionModel):
    """Takes the lengths of steps from the table. Steps matter as far as they differ from what A7 expects."""

    def length_weight(self, evidence: Evidence, rule: Rule, channel: Channel, s: States, e: Transitions) -> Floats:
        """Return how much likelier its length makes each step, (E,), as the table tells."""
        time, at = evidence.released.time, s.position[s.owner[e.before]]
        cell = gap_bands(time[at + 1] - time[at]) * SHAPE[1] + bands(s, e, rule)
        expected = sum_by(cell, s.weight[e.before] * s.weight[e.after], SHAPE[0] * SHAPE[1]).reshape(SHAPE)
        told = known_shares() * expected.sum(1, keepdims=True)
        weight: Floats = (told + self.band_steps) / (expected + self.band_steps)
        return np.asarray(weight.ravel()[cell])


def gap_bands(gap_s: Longs) -> Longs:
    """Return the row of the table for each time between two check-ins."""
    return np.searchsorted(GAPS_S, gap_s)


def counts(sessions: Sessions, vocabulary: Vocabulary) -> Longs:
    """Count the steps of sessions by the time between check-ins and by length, (gaps, lengths)."""
    session = sessions.session_of()
    at = np.flatnonzero(session[1:] == session[:-1])
    length = length_bands(sessions.poi[at], sessions.poi[at + 1], vocabulary.lat, vocabulary.lon)
    cell = gap_bands(sessions.time[at + 1] - sessions.time[at]) * SHAPE[1] + length
    return np.bincount(cell, minlength=SHAPE[0] * SHAPE[1]).reshape(SHAPE)


@cache
def known_shares() -> Floats:
    """Return the share of each length among the steps after each time, (gaps, lengths)."""
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    known = np.array(table["steps"], float)
    shares: Floats = known / known.sum(1, keepdims=True)
    return shares


if __name__ == "__main__":
    from ghostpoi.formats.prepare import prepare_file

    data = prepare_file(Path(sys.argv[1]))
    print("steps = [", *(f"    {row}," for row in counts(data.train, data.vocabulary).tolist()), "]", sep="\n")
