"""What the manifold term costs, relative to an all-adversarial pass: the paper's own terms (11 to 14%, 1 / |C|)."""

from collections.abc import Mapping
from statistics import median

from ghostpoi.study.results import Results


def manifold_overhead(bench: Mapping[str, float]) -> float:
    """Return the time that the manifold term adds to a scoring pass without it, from `ghostpoi bench scoring`.

    The bench stores `manifold_share`, the term's share of the whole pass. A share of 20% is an overhead of 25%.
    """
    share = bench["manifold_share"]
    return share / (1 - share)


def release_overhead(results: Results, method: str = "ghost", baseline: str = "pgd") -> float | None:
    """Return the time that a release takes beyond the baseline's, relative to it; None if one was not measured.

    Both times include the refits of the surrogate. The median over seeds ignores a first release that warms up a GPU.
    """
    seconds = {
        cell["method"]: median(cell["measures"]["release_seconds"])
        for cell in results.cells
        if cell["kind"] == "release" and "release_seconds" in cell["measures"]
    }
    if method not in seconds or baseline not in seconds:
        return None
    return float(seconds[method] / seconds[baseline] - 1)
