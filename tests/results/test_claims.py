"""How cells answer the claims of the paper, and the verdict over cities and protocols."""

import pytest

from docs.blocks import claims
from docs.blocks.claims import OTHERS, PROTECTION, Answer, Claim, answers, summary, verdict
from docs.blocks.common import measured
from ghostpoi.audits.measures.gaps import Verdict, spread
from ghostpoi.study.plan import PROTOCOLS
from ghostpoi.study.results import NYC

VERDICTS = {
    "GHOST protects better than a uniform draw": "**No**, clearly reversed in 4 of 6",
    "GHOST beats PGD": "**No**, clearly reversed in 4 of 6",
    "GHOST has the lowest accuracy as released": "**No**, clearly not the lowest in 4 of 6",
    "GHOST has the lowest accuracy under A3": "**No**, clearly not the lowest in 2 of 6",
    "GHOST has the lowest accuracy under A4": "**No**, clearly not the lowest in 3 of 6",
    "GHOST is nowhere above the lowest of the four by more than .005": "**No**",
    "TS-UE has the lowest accuracy under A2": "Mixed: 1 open, 5 no",
    "GHOST leads in Δworst": "**No**, clearly not the highest in 2 of 6",
    "Leaving data unchanged inflates Δworst": "**No**, clearly reversed in 6 of 6",
    "GHOST is Pareto-optimal": "**No**",
    "GHOST is harder to invert: smaller Δsurv A3 than PGD": "Open: the sign is right, but not clear",
    "GHOST leaves less accuracy than PGD under A3": "**No**, clearly reversed in 2 of 6",
    "GHOST's Δsurv A3 stays under .04 at 20% leak": "Mixed: 2 yes, 4 no",
    "A2's curves cross near 10% leak": "**No**, clearly reversed in 2 of 6",
    "TS-UE collapses under A3, since it is deterministic": "Not testable here",
    "EM protects least": "**No**, clearly not the highest in 5 of 6",
    "acc@1, acc@5 and MRR rank the methods equally": "**No**",
    "The victim is competitive": "Mixed: 2 yes, 4 no",
    "GHOST is the most natural": "Mixed: 5 yes, 1 open",
    "All keep the category and move check-ins about equally far": "Mixed: 4 yes, 2 no",
    "They move equally many check-ins beyond 1 km": "Mixed: 4 yes, 2 no",
    "GHOST, PGD and EM substitute equally many": "Mixed: 4 yes, 2 no",
    "The manifold prior protects": "**No**, clearly reversed in 5 of 6",
    "GHOST protects better than GHOST-Sym": "Yes",
    "GHOST resists A2 better than GHOST-Sym": "Mixed: 1 open, 5 no",
    "Weights \N{GREEK SMALL LETTER ALPHA} 2, β 0.5 are best": "Mixed: 1 yes, 5 open",
    "Weights \N{GREEK SMALL LETTER ALPHA} 1, β 1.5 inflate Δsurv A2": "Mixed: 2 open, 4 no",
    "An entropy floor harms": "Mixed: 2 open, 4 no",
    "The number of rounds hardly matters": "Mixed: 5 yes, 1 no",
    "One round has the largest Δprot": "Mixed: 3 open, 3 no",
    "One round has the smallest Δworst": "Mixed: 3 open, 3 no",
    "Five rounds have the highest Δworst": "Mixed: 1 open, 5 no",
    "A2 finds nothing to denoise": "**No**",
    "A3's table is near uniform": "Mixed: 2 open, 4 no",
    "A2 harms at 1% leak": "Mixed: 3 yes, 1 open, 2 no",
    "A fresh draw for each release is safe": "**No**",
}


def test_verdicts() -> None:
    """What we say about each claim of the paper."""
    rows = [*summary(PROTECTION, measured("main")), *summary(OTHERS, measured("main"))]
    assert {text.partition(" (")[0]: verdict for text, *_, verdict in rows} == VERDICTS
    assert {len(row) for row in rows} == {3 + len(measured("main"))}


def gap(mean: float, std: float = 1e-6) -> Verdict:
    return Verdict(spread([mean - std, mean, mean + std]))


CLEAR, UNCLEAR, WRONG = gap(0.01), gap(0.01, 0.05), gap(-0.01, 0.05)


@pytest.mark.parametrize(
    ("found", "outcome", "text"),
    [
        (Answer("", (CLEAR,), (1,)), "yes", "+.0100↑"),
        (Answer("", (UNCLEAR,), (1,)), "open", "+.0100"),
        (Answer("", (WRONG,), (1,)), "no", "-.0100"),
        (Answer("", (CLEAR,), (-1,)), "no", "+.0100↑"),
        (Answer("", (CLEAR, UNCLEAR), (1, 1)), "open", "+.0100↑, +.0100"),
        (Answer("", (CLEAR, CLEAR), (1, -1)), "no", "+.0100↑, +.0100↑"),
        (Answer("a fact"), "yes", "a fact"),
        (Answer("no fact", fact=False), "no", "no fact"),
        (Answer("another form", testable=False), "not testable here", "another form"),
    ],
)
def test_answers(found: Answer, outcome: str, text: str) -> None:
    assert (found.outcome, str(found)) == (outcome, text)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([Answer("x")], "Yes"),
        ([Answer("x", fact=False)] * 2, "**No**"),
        ([Answer("", (CLEAR,), (-1,)), Answer("", (WRONG,), (1,))], "**No**, clearly reversed in 1 of 2"),
        ([Answer("", (CLEAR,), (-1,), against="not the lowest")], "**No**, clearly not the lowest in 1 of 1"),
        ([Answer("x", testable=False)] * 2, "Not testable here"),
        ([Answer("", (UNCLEAR,), (1,))] * 2, "Open: the sign is right, but not clear"),
        ([Answer("x"), Answer("x", fact=False), Answer("", (UNCLEAR,), (1,))], "Mixed: 1 yes, 1 open, 1 no"),
    ],
)
def test_the_verdict_counts_all_that_was_measured(found: list[Answer], expected: str) -> None:
    assert verdict(found) == expected


def test_the_differences_of_a_summary_are_one_family() -> None:
    weak = Claim("x", "", lambda read: Answer("", (gap(0.01, 0.0035),), (1,)))  # p = .038
    alone, many = answers([weak], NYC, PROTOCOLS[0]), answers([weak] * 2, NYC, PROTOCOLS[0])
    assert [str(answer) for answer in alone] == ["+.0100↑"]
    assert [str(answer) for answer in many] == ["+.0100", "+.0100"]


def test_places_among_four() -> None:
    values = {"ghost": 0.1, "pgd": 0.2, "em": 0.3, "ts-ue": 0.4}
    assert [claims.placed(values, m, -1) for m in values] == [
        ".1000, lowest", ".2000, second lowest", ".3000, third lowest", ".4000, highest"
    ]  # fmt: skip
    assert [claims.placed(values, m, 1) for m in values] == [
        ".1000, lowest", ".2000, third highest", ".3000, second highest", ".4000, highest"
    ]  # fmt: skip
