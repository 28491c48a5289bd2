"""The claims of the paper, answered by the cells of each city under each protocol.

An answer is a difference with the sign that the paper claims, or a fact. All differences of one city and protocol are
one family of Holm's correction.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ghostpoi.evaluate.measures.accuracy_gaps import holm
from ghostpoi.study import claim_responses as respond
from ghostpoi.study import labels, paper
from ghostpoi.study.answers import NOT_YET, Answer, verdict
from ghostpoi.study.labels import SYMBOLS, show
from ghostpoi.study.results import GOWALLA, NYC, PAPER_ADVERSARIES, PROTOCOLS, Results

EQUAL, FLOOR = "ghost method.alpha=1.0 method.beta=1.0", "ghost method.eta=3.0"


class PaperClaim(NamedTuple):
    """A claim of the paper, its own figure for NYC, and how cells answer it."""

    text: str
    printed: str
    answer: respond.Respond


def answers(claims: Sequence[PaperClaim], study: respond.Study) -> list[Answer | None]:
    """Answer claims from the cells of one city and protocol; their differences are one family."""
    found = [claim.answer(study) for claim in claims]
    tested = iter(holm([d for answer in found if answer for d in answer.differences]))
    return [
        replace(answer, differences=tuple(d for _ in answer.differences if (d := next(tested)))) if answer else None
        for answer in found
    ]


def summary(claims: Sequence[PaperClaim], study: Callable[[str, str, str], Results]) -> list[tuple[str, ...]]:
    """Return a row for each claim: text, the paper's figure, ours for each city (`strong / paper`), and the verdict.

    `study` reads a study by name, protocol and name of the data.
    """
    by_city = [[_of(claims, study, protocol, data) for protocol in PROTOCOLS] for data in (NYC, GOWALLA)]
    rows = []
    for number, claim in enumerate(claims):
        found = [[answers[number] for answers in protocols] for protocols in by_city]
        cells = [" / ".join(str(a or labels.NONE) for a in city) if any(city) else NOT_YET for city in found]
        rows.append((claim.text, claim.printed, *cells, verdict([answer for city in found for answer in city])))
    return rows


def _of(
    claims: Sequence[PaperClaim], study: Callable[[str, str, str], Results], protocol: str, data: str
) -> list[Answer | None]:
    return answers(claims, lambda name: study(name, protocol, data))


def _printed(method: str, key: str, wanted: int, section: str = "main", digits: int = 4) -> str:
    """The paper's own value with its place among the four."""
    rows = paper.section("nyc", section)
    return respond.placed({m: rows[m][key][0] for m in respond.PRINTED}, method, wanted, digits)


def _minus(section: str, one: str, two: str, key: str) -> str:
    """The difference of two printed values."""
    rows = paper.section("nyc", section)
    return show(rows[one][key][0] - rows[two][key][0], sign="+")


MAIN, LEAKS = paper.section("nyc", "main"), paper.leak_section("nyc")
PROTECTION = (
    PaperClaim("GHOST protects better than a uniform draw (Δmean, GHOST minus random)", "no such control",
               respond.difference("ghost", "random", "mean", 1)),
    PaperClaim("GHOST beats PGD (Δmean, GHOST minus PGD)", _minus("main", "ghost", "pgd", "mean"),
               respond.difference("ghost", "pgd", "mean", 1)),
    PaperClaim("GHOST has the lowest accuracy as released (A1)", _printed("ghost", "none", -1),
               respond.extreme("ghost", "none", -1)),
    PaperClaim("GHOST has the lowest accuracy under A3", _printed("ghost", "frequency", -1),
               respond.extreme("ghost", "frequency", -1)),
    PaperClaim("GHOST has the lowest accuracy under A4", _printed("ghost", "bigram", -1),
               respond.extreme("ghost", "bigram", -1)),
    PaperClaim("GHOST is nowhere above the lowest of the four by more than .005 (largest gap)",
               show(respond.above_lowest([{m: MAIN[m][a][0] for m in respond.PRINTED} for a in PAPER_ADVERSARIES])),
               respond.never_far),
    PaperClaim("GHOST is Pareto-optimal (Δprot and Δworst)", "undominated", respond.pareto),
    PaperClaim("GHOST is harder to invert: smaller Δsurv A3 than PGD (number of leak ratios)",
               "4 of 4 (text), not at 5% (Table I)",
               respond.by_leak("surv_frequency")),
    PaperClaim("GHOST leaves less accuracy than PGD under A3 (number of leak ratios)", "1 of 1",
               respond.by_leak("frequency")),
    PaperClaim("GHOST's Δsurv A3 stays under .04 at 20% leak", show(LEAKS["0.2"]["ghost"]["surv_frequency"][0]),
               respond.at_a_fifth),
    PaperClaim("A2's curves cross near 10% leak (Δsurv A2, GHOST minus PGD at 5%, 10%)",
               f"{_minus('main', 'ghost', 'pgd', 'surv_bridge')}, "
               + show(LEAKS["0.1"]["ghost"]["surv_bridge"][0] - LEAKS["0.1"]["pgd"]["surv_bridge"][0], sign="+"),
               respond.crossing),
    PaperClaim("TS-UE collapses under A3 (Δsurv A3)", _printed("ts-ue", "surv_frequency", 1),
               respond.extreme(respond.TS_UE, "surv_frequency", 1)),
    PaperClaim("EM protects least (A1)", _printed("em", "none", 1), respond.extreme("em", "none", 1)),
    PaperClaim("acc@1, acc@5 and MRR rank the methods alike (number of adversaries)", "4 of 4", respond.ranked_alike),
    PaperClaim("The victim is competitive (clean acc@1, beside a Markov model)", show(MAIN["ghost"]["clean"][0]),
               respond.beats_counting),
)  # fmt: skip
OTHERS = (
    PaperClaim("GHOST is the most natural (mean log p)", _printed("ghost", "naturalness", 1, "naturalness", 2),
               respond.extreme("ghost", "naturalness", 1)),
    PaperClaim("All keep the category and move check-ins about equally far (mean km)",
               " to ".join(show(f(row["mean_km"][0] for row in paper.section("nyc", "plausibility").values()), 3)
                           for f in (min, max)), respond.displaced_alike),
    PaperClaim("The manifold prior protects (A1, GHOST minus GHOST-EF)",
               _minus("manifold", "ghost", "ghost-ef", "none"), respond.difference("ghost", "ghost-ef", "none", -1)),
    PaperClaim(f"Weights {SYMBOLS['method.alpha']} 2, β 0.5 are best (Δmean, minus the best other weights tried)",
               _minus("weights", "ghost", EQUAL, "mean"), respond.best_weights),
    PaperClaim("An entropy floor harms (Δprot, none minus 3 bits)", _minus("entropy", "ghost", FLOOR, "prot"),
               respond.difference("ghost", FLOOR, "prot", 1, "entropy")),
    PaperClaim("The number of rounds hardly matters (range of Δmean; rounds that differ from 5)",
               show(paper.contents()["claims"]["mean_gap_band_over_rounds"]), respond.rounds_alike),
    PaperClaim("A2 finds nothing to denoise (share of positions it leaves)", "near 1", respond.near_identity),
    PaperClaim("A3's table is near uniform (entropy in bits, GHOST minus PGD)", "higher", respond.near_uniform),
    PaperClaim("A2 harms at 1% leak (GHOST, Δsurv A2)", "below 0", respond.harmed),
    PaperClaim("A fresh draw for each release is safe (A11, 4 releases minus 1)", "recommended",
               respond.fresh_releases),
)  # fmt: skip
