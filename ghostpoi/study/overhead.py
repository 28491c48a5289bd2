"""What the manifold term costs, relative to an all-adversarial pass: the paper's own terms (11 to 14%, 1 / |C|)."""

from collections.abc import Mapping, Sequence
from statistics import median


def manifold_overhead(bench: Mapping[str, Sequence[float]]) -> tuple[float, float, float]:
    """Return the time that the manifold term adds to a scoring pass without it: median, lowest and highest.

    `python -m benchmarks scoring` stores `manifold_shares`, the term's share of the whole pass in several turns.
    A share of 20% is an overhead of 25%.
    """
    added = [share / (1 - share) for share in bench["manifold_shares"]]
    return median(added), min(added), max(added)
