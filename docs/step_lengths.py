"""Count how far people go between check-ins, by the time between them: the table that A14 knows.

python docs/step_lengths.py FILE > ghostpoi/attack/adversaries/step_lengths.toml
"""

import sys
from pathlib import Path

import numpy as np

from ghostpoi.attack.adversaries.hidden_markov import SHAPE, gap_bands, length_bands
from ghostpoi.data.checkins import Longs
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.study import prepare_file


def counts(sessions: Sessions, vocabulary: Vocabulary) -> Longs:
    """Count the steps of sessions by the time between check-ins and by length, (gaps, lengths)."""
    session = sessions.session_of()
    at = np.flatnonzero(session[1:] == session[:-1])
    length = length_bands(sessions.poi[at], sessions.poi[at + 1], vocabulary.lat, vocabulary.lon)
    cell = gap_bands(sessions.time[at + 1] - sessions.time[at]) * SHAPE[1] + length
    return np.bincount(cell, minlength=SHAPE[0] * SHAPE[1]).reshape(SHAPE)


if __name__ == "__main__":
    data = prepare_file(Path(sys.argv[1]))
    print("steps = [", *(f"    {row}," for row in counts(data.train, data.vocabulary).tolist()), "]", sep="\n")
