"""Verdicts of releases of NYC's first 35,000 rows that are noise in part: more noise never gets a worse word."""

import lzma
from itertools import islice
from pathlib import Path

from noisy_releases import SHARES, words_are_monotone
from small_city import scratch

ROWS = 35_000
# All venues stay, however rare noise makes them, and three weeks leave few sessions per person.
FILTERS = (
    "--set", "filters.min_poi_checkins=1", "--set", "filters.train_share=0.6", "--set", "filters.val_share=0.2",
)  # fmt: skip


def test_more_noise_never_gets_a_worse_word(nyc: Path) -> None:
    path = scratch() / "nyc-35000.txt"
    with lzma.open(nyc, "rt", encoding="latin-1") as lines:
        path.write_text("".join(islice(lines, ROWS)), "latin-1")
    words_are_monotone(path, SHARES, *FILTERS)
