"""Checks that stand beside the sentences of a page: a sentence that the results do not bear out stops the build."""

from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

from ghostpoi.evaluate.controls import CLEAN, LEAK_MIXED, LEAK_ONLY
from ghostpoi.evaluate.measures.accuracy_gaps import holm
from ghostpoi.study import labels
from ghostpoi.study.labels import Shown, show
from ghostpoi.study.results import Results

SIGNS = {-1: "clearly below", 0: "not clearly different from", 1: "clearly above"}


class CheckedClaim(NamedTuple):
    """A claim with its numbers, and whether it holds."""

    holds: bool
    text: str


def compare(
    signs: Sequence[int], results: Results, one: str, two: str, under: str | Sequence[str], leak: float | None = None
) -> CheckedClaim:
    """Check how one method compares with another in all keys, for instance `under` several adversaries."""
    keys = [under] if isinstance(under, str) else under
    found = dict(zip(keys, holm([results.against(one, two, key, leak) for key in keys]), strict=True))
    text = f"{one} is {' or '.join(SIGNS[s] for s in signs)} {two} in {results.study.name}-{results.protocol}: "
    numbers = ", ".join(f"{labels.heading(key)} {show(gap)}" for key, gap in found.items())
    return CheckedClaim(all(gap is not None and gap.sign in signs for gap in found.values()), text + numbers)


clearly_lower, clearly_higher = partial(compare, [-1]), partial(compare, [1])
unclear, not_lower = partial(compare, [0]), partial(compare, [0, 1])


def holds(text: str, condition: bool, *numbers: Shown) -> CheckedClaim:
    """Check anything that a template can compute; the numbers are for the message."""
    return CheckedClaim(bool(condition), f"{text}: {', '.join(show(n) for n in numbers)}" if numbers else text)


def complete(*found: Results) -> CheckedClaim:
    """Check that no cell of the plans is missing."""
    missing = [
        f"{r.study.name}-{r.protocol}: {victim}, {method}, {key}, leak {leak}"
        for r in found
        for victim, method, leak in product(r.study.victims, r.methods, r.study.leak)
        for key in (*r.attackers(method), LEAK_MIXED, LEAK_ONLY, CLEAN, "naturalness")
        if r.of(victim).series(method, key, leak) is None
    ]
    return CheckedClaim(not missing, f"no cell is missing: {len(missing)} are, first {''.join(missing[:1])}")


def ranking(results: Results, methods: Sequence[str], adversary: str, metric: str = "acc@1") -> list[str]:
    """Order methods by their mean accuracy under an adversary, best protected first."""
    return sorted(methods, key=lambda m: sum(results.accuracy(m, adversary, metric=metric) or []))


def facts(key: str, *found: Results) -> str:
    """List the different values of a field of all cells, commits in short."""
    values = {str(cell.get(key, "unknown")) for results in found for cell in results.cells}
    return ", ".join(sorted({value[:7] if key == "commit" else value for value in values}))
