"""What the manifold term costs, relative to an all-adversarial pass: the paper's own terms (11 to 14%, 1 / |C|)."""

from collections.abc import Mapping


def manifold_overhead(bench: Mapping[str, float]) -> float:
    """Return the time that the manifold term adds to a scoring pass without it, from `ghostpoi bench scoring`.

    The bench stores `manifold_share`, the term's share of the whole pass. A share of 20% is an overhead of 25%.
    """
    share = bench["manifold_share"]
    return share / (1 - share)
