"""How cells answer the claims of the paper, and the verdict over cities and protocols."""

from functools import cache
from pathlib import Path

import fake_results
import pytest
from fake_results import Fabricated

from ghostpoi.evaluate.measures.accuracy_gaps import Verdict, spread
from ghostpoi.study.answers import NOT_YET, Answer, verdict
from ghostpoi.study.paper_claims import OTHERS, PROTECTION, PaperClaim, answers, summary
from ghostpoi.study.results import GOWALLA, Results


def gap(mean: float, std: float = 1e-6) -> Verdict:
    return Verdict(spread([mean - std, mean, mean + std]))


CLEAR, UNCLEAR, WRONG = gap(0.01), gap(0.01, 0.05), gap(-0.01, 0.05)


@pytest.mark.parametrize(
    ("found", "outcome", "text"),
    [
        (Answer(None, (CLEAR,), (1,)), "yes", "+.0100↑"),
        (Answer(None, (UNCLEAR,), (1,)), "open", "+.0100"),
        (Answer(None, (WRONG,), (1,)), "no", "-.0100"),
        (Answer(None, (CLEAR,), (-1,)), "no", "+.0100↑"),
        (Answer(None, (CLEAR, UNCLEAR), (1, 1)), "open", "+.0100↑, +.0100"),
        (Answer(None, (CLEAR, CLEAR), (1, -1)), "no", "+.0100↑, +.0100↑"),
        (Answer("a fact"), "yes", "a fact"),
        (Answer("no fact", fact=False), "no", "no fact"),
    ],
)
def test_answers(found: Answer, outcome: str, text: str) -> None:
    assert (found.outcome, str(found)) == (outcome, text)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([], NOT_YET),
        ([None, None], NOT_YET),
        ([Answer("x"), None], "Yes"),
        ([Answer("x", fact=False)] * 2, "**No**"),
        ([Answer(None, (CLEAR,), (-1,)), Answer(None, (WRONG,), (1,))], "**No**, clearly reversed in 1 of 2"),
        ([Answer(None, (UNCLEAR,), (1,))] * 2, "Open: the sign is right, but not clear"),
        ([Answer("x"), Answer("x", fact=False), Answer(None, (UNCLEAR,), (1,))], "Mixed: 1 yes, 1 open, 1 no"),
    ],
)
def test_the_verdict_counts_all_that_was_measured(found: list[Answer | None], expected: str) -> None:
    assert verdict(found) == expected


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cells")
    fake_results.reproduction(folder)
    return folder


@cache
def rows(folder: Path, claims: tuple[PaperClaim, ...] = PROTECTION) -> dict[str, tuple[str, ...]]:
    """The summary by the first words of its claims."""
    found = summary(claims, lambda name, protocol, data: Results.read(folder, name, protocol, data).measured)
    return {text.partition(" (")[0]: rest for text, *rest in found}


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("GHOST beats PGD", ("+.0029", "-.0197↓ / -.0197↓", NOT_YET, "**No**, clearly reversed in 2 of 2")),
        ("GHOST protects better than a uniform draw", ("no such control", "-.0230↓ / -.0230↓")),
        ("GHOST has the lowest accuracy under A4", (".0733, lowest", ".0880, highest / .0880, highest")),
        ("GHOST is nowhere above the lowest of the four by more than .005", (".0004", ".0230 / .0230")),
        ("GHOST is Pareto-optimal", ("undominated", " / ".join(["dominated by PGD, EM, TS-UE (calibrated)"] * 2))),
        (
            "GHOST is harder to invert: smaller Δsurv A3 than PGD",
            ("4 of 4 (text), not at 5% (Table I)", "4 of 4 / 4 of 4", NOT_YET, "Yes"),
        ),
        ("GHOST leaves less accuracy than PGD under A3", ("1 of 1", "0 of 4 / 0 of 4")),
        ("GHOST's Δsurv A3 stays under .04 at 20% leak", (".0346", ".0300 / .0300", NOT_YET, "Yes")),
        ("A2's curves cross near 10% leak", ("-.0013, +.0060", "+.0000, +.0000 / +.0000, +.0000", NOT_YET, "**No**")),
        ("TS-UE collapses under A3", (".0263, highest",)),
        (
            "The victim is competitive",
            (".1379", ".2000, above .1900 / .1400, below .1900", NOT_YET, "Mixed: 1 yes, 1 no"),
        ),
    ],
)
def test_claims_on_protection(measured: Path, claim: str, expected: tuple[str, ...]) -> None:
    assert tuple(rows(measured)[claim])[: len(expected)] == expected


def test_every_claim_has_a_verdict(measured: Path, tmp_path: Path) -> None:
    for folder in (measured, tmp_path):
        for claims in (PROTECTION, OTHERS):
            found = rows(folder, claims)
            assert len(found) == len(claims)
            for text, row in found.items():
                assert len(row) == 4, text
                assert all(row), text
                assert row[-1].split(":")[0].split(",")[0] in ("Yes", "**No**", "Open", "Mixed", NOT_YET), text
    assert {row[-1] for row in rows(tmp_path).values()} == {NOT_YET}


def test_a_second_city_fills_its_column_and_counts(measured: Path, tmp_path: Path) -> None:
    fake_results.reproduction(tmp_path)
    fake_results.reproduction(tmp_path, GOWALLA)
    assert rows(tmp_path)["GHOST beats PGD"] == [
        "+.0029", "-.0197↓ / -.0197↓", "-.0197↓ / -.0197↓", "**No**, clearly reversed in 4 of 4",
    ]  # fmt: skip


def test_a_claim_about_four_methods_holds_only_with_four(tmp_path: Path) -> None:
    cells = Fabricated(tmp_path, protocol="strong")
    cells.accuracy("clean", "clean", [0.19, 0.191, 0.192])
    for method, a1 in (("ghost", 0.03), ("pgd", 0.05)):
        cells.method(method, [a1 - 0.001, a1, a1 + 0.001])
    lowest = "GHOST has the lowest accuracy as released"
    assert rows(tmp_path)[lowest][1] == NOT_YET
    cells.method("pgd", [0.02, 0.021, 0.022])  # one better method is enough to say no
    rows.cache_clear()
    assert rows(tmp_path)[lowest][1:] == [".0300, highest of 2 / -", NOT_YET, "**No**, clearly reversed in 1 of 1"]


def test_the_differences_of_a_summary_are_one_family() -> None:
    weak = PaperClaim("x", "", lambda study: Answer(None, (gap(0.01, 0.0035),), (1,)))  # p = .038

    def nothing(name: str) -> Results:
        raise AssertionError(name)

    alone, many = answers([weak], nothing), answers([weak] * 2, nothing)
    assert [str(a) for a in alone] == ["+.0100↑"]
    assert [str(a) for a in many] == ["+.0100", "+.0100"]
