"""Verdicts of releases of one file that are noise in part: more noise never gets a worse word."""

from noisy_releases import SHARES, words_are_monotone
from small_city import scratch

from ghostpoi.data.synthetic_files import write_city


def test_a_synthetic_city() -> None:
    path = scratch() / "monotone.txt"
    write_city(path, 100, 200, 90, 3)
    words_are_monotone(path, SHARES[::2], "--victim", "markov")
