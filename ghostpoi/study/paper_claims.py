"""The claims of the paper, answered by the cells of a city under a protocol.

An answer is a difference with the sign that the paper claims, or a fact. All differences of one city and protocol are
one family of Holm's correction.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from ghostpoi.evaluate.measures.accuracy_gaps import against, holm, spread
from ghostpoi.study import labels, paper
from ghostpoi.study.answers import NOT_YET, Answer, verdict
from ghostpoi.study.claim_checks import ranking
from ghostpoi.study.labels import ARROWS, show
from ghostpoi.study.results import GOWALLA, MEASURES, NYC, PAPER_ADVERSARIES, PROTOCOLS, Results

FOUR = ("ghost", "pgd", "em", "ts-ue")  # the methods of the paper's Table I
EQUAL, FLOOR = "ghost method.alpha=1.0 method.beta=1.0", "ghost method.eta=3.0"
MOST_ABOVE = 0.005  # "within 0.5 pp of the lowest in every cell"
MOST_SURVIVAL = 0.04  # of A3 at a leak of 20%
ALIKE = 1.1  # largest mean displacement over smallest: "a tight band"
PLACES = ("", "second ", "third ", "fourth ")

Study = Callable[[str], Results]  # the studies of one city under one protocol, by name
Respond = Callable[[Study], Answer | None]  # None: not measured yet


class PaperClaim(NamedTuple):
    """A claim of the paper, its own figure for NYC, and how cells answer it."""

    text: str
    printed: str
    answer: Respond


def answers(claims: Sequence[PaperClaim], study: Study) -> list[Answer | None]:
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


def _difference(one: str, two: str, key: str, wanted: int, name: str = "main") -> Respond:
    def answer(study: Study) -> Answer | None:
        found = study(name).against(one, two, key)
        return Answer(None, (found,), (wanted,)) if found else None

    return answer


def _placed(values: dict[str, float], method: str, wanted: int, digits: int = 4) -> str:
    """Write a value with its place: `.0716, lowest of 4`."""
    place = sorted(values, key=lambda m: values[m]).index(method)
    above = len(values) - 1 - place
    words = f"{PLACES[place]}lowest" if wanted < 0 and above else f"{PLACES[above]}highest" if place else "lowest"
    return f"{show(values[method], digits)}, {words} of {len(values)}"


def _of_four(answer: Answer, measured: Collection[str]) -> Answer | None:
    """A claim about all four methods can fail with some of them, but it holds only with all."""
    return answer if answer.outcome == "no" or len(measured) == len(FOUR) else None


def _extreme(method: str, key: str, wanted: int) -> Respond:
    """A method's place among the paper's four, and its difference to the best of the others."""

    def answer(study: Study) -> Answer | None:
        results = study("main")
        values = _means(results, key)
        others = [m for m in values if m != method]
        if method not in values or not others:
            return None
        rival = max(others, key=lambda m: wanted * values[m])
        found = results.against(method, rival, key)
        digits = 2 if key in MEASURES else 4
        return _of_four(Answer(_placed(values, method, wanted, digits), (found,), (wanted,)), values) if found else None

    return answer


def _means(results: Results, key: str) -> dict[str, float]:
    return {m: value["mean"] for m in FOUR if m in results.methods and (value := results.value(m, key))}


def _above_lowest(values: Sequence[dict[str, float]]) -> float:
    return max(here["ghost"] - min(here.values()) for here in values)


def _never_far(study: Study) -> Answer | None:
    values = [_means(study("main"), a) for a in PAPER_ADVERSARIES]
    if not all("ghost" in here for here in values):
        return None
    most = _above_lowest(values)
    return _of_four(Answer(show(most), fact=most <= MOST_ABOVE), values[0])


def _pareto(study: Study) -> Answer | None:
    results = study("main")
    denied, kept = _means(results, "prot"), _means(results, "worst")
    if "ghost" not in denied or "ghost" not in kept:
        return None
    above = [m for m in denied if m != "ghost" and denied[m] >= denied["ghost"] and kept[m] >= kept["ghost"]]
    text = f"dominated by {', '.join(map(labels.method, above))}" if above else "undominated"
    return _of_four(Answer(text, fact=not above), denied)


def _by_leak(key: str) -> Respond:
    """GHOST minus PGD at every leak ratio; the claim is that all are negative."""

    def answer(study: Study) -> Answer | None:
        results = study("leak")
        found = [results.against("ghost", "pgd", key, leak) for leak in results.study.leak]
        known = [difference for difference in found if difference]
        if not known:
            return None
        lower = sum(difference.difference["mean"] < 0 for difference in known)
        return Answer(f"{lower} of {len(known)}", tuple(known), (-1,) * len(known))

    return answer


def _crossing(study: Study) -> Answer | None:
    results = study("leak")
    found = [results.against("ghost", "pgd", "surv_bridge", leak) for leak in (0.05, 0.1)]
    return Answer(None, tuple(f for f in found if f), (-1, 1)) if all(found) else None


def _at_a_fifth(study: Study) -> Answer | None:
    value = study("leak").value("ghost", "surv_frequency", 0.2)
    return Answer(show(value["mean"]), fact=value["mean"] < MOST_SURVIVAL) if value else None


def _harmed(study: Study) -> Answer | None:
    found = study("leak").minus("ghost", "bridge", "none", 0.01)
    return Answer(None, (found,), (-1,)) if found else None


def _ranked_alike(study: Study) -> Answer | None:
    results = study("main")
    methods = list(_means(results, "none"))
    if len(methods) < len(FOUR):
        return None
    orders = [[ranking(results, methods, a, metric) for metric in ("acc@1", "acc@5", "mrr")] for a in PAPER_ADVERSARIES]
    same = sum(one == two == three for one, two, three in orders)
    return Answer(f"{same} of {len(orders)}", fact=same == len(orders))


def _beats_counting(study: Study) -> Answer | None:
    clean, floor = study("main").value("clean", "clean"), study("main").floor("markov")
    if not clean or floor is None:
        return None
    sign = "above" if clean["mean"] > floor else "below"
    return Answer(f"{show(clean['mean'])}, {sign} {show(floor)}", fact=clean["mean"] > floor)


def _near_identity(study: Study) -> Answer | None:
    shares = study("main").measures("ghost", "bridge").get("denoiser_identity")
    share = _mean([steps[1] for steps in shares]) if shares else None
    return Answer(show(share, 2), fact=share > 0.5) if share is not None else None


def _near_uniform(study: Study) -> Answer | None:
    one, two = (study("main").measures(m, "frequency").get("table_entropy_bits") for m in ("ghost", "pgd"))
    found = against(one, two)
    return Answer(None, (found,), (1,)) if found else None


def _displaced_alike(study: Study) -> Answer | None:
    results = study("main")
    km, kept = (_means(results, key).values() for key in ("mean_km", "category_match"))
    if not km:
        return None
    fact = max(km) <= ALIKE * min(km) and set(kept) == {1.0}
    return _of_four(Answer(f"{show(min(km), 3)} to {show(max(km), 3)}", fact=fact), km)


def _best_weights(study: Study) -> Answer | None:
    results = study("weights")
    others = {m: value["mean"] for m in results.methods[:-1] if m != "ghost" and (value := results.value(m, "mean"))}
    found = results.against("ghost", max(others, key=lambda m: others[m]), "mean") if others else None
    return Answer(None, (found,), (1,)) if found else None


def _rounds_alike(study: Study) -> Answer | None:
    results = study("rounds")
    means = [value["mean"] for m in results.methods[:-1] if (value := results.value(m, "mean"))]
    if len(means) < 2:
        return None
    clear = [d for d in holm([results.against(m, "ghost", "mean") for m in results.methods[:-1]]) if d and d.sign]
    return Answer(f"{show(max(means) - min(means))}, {len(clear) or 'none'} clear", fact=not clear)


def _fresh_releases(study: Study) -> Answer | None:
    found = study("releases").minus("ghost", "multi-release-4", "multi-release-1")
    return Answer(show(found.difference["mean"], sign="+") + ARROWS[found.sign], fact=found.sign < 1) if found else None


def _mean(values: Sequence[float]) -> float:
    return spread(values)["mean"]


def _printed(method: str, key: str, wanted: int, section: str = "main", digits: int = 4) -> str:
    """The paper's own value with its place among the four."""
    rows = paper.section("nyc", section)
    return _placed({m: rows[m][key][0] for m in FOUR}, method, wanted, digits)


def _minus(section: str, one: str, two: str, key: str) -> str:
    """The difference of two printed values."""
    rows = paper.section("nyc", section)
    return show(rows[one][key][0] - rows[two][key][0], sign="+")


MAIN, LEAKS = paper.section("nyc", "main"), paper.leak_section("nyc")
PROTECTION = (
    PaperClaim("GHOST protects better than a uniform draw (Δmean, GHOST minus random)", "no such control",
               _difference("ghost", "random", "mean", 1)),
    PaperClaim("GHOST beats PGD (Δmean, GHOST minus PGD)", _minus("main", "ghost", "pgd", "mean"),
               _difference("ghost", "pgd", "mean", 1)),
    PaperClaim("GHOST has the lowest accuracy as released (A1)", _printed("ghost", "none", -1),
               _extreme("ghost", "none", -1)),
    PaperClaim("GHOST has the lowest accuracy under A3", _printed("ghost", "frequency", -1),
               _extreme("ghost", "frequency", -1)),
    PaperClaim("GHOST has the lowest accuracy under A4", _printed("ghost", "bigram", -1),
               _extreme("ghost", "bigram", -1)),
    PaperClaim("GHOST is nowhere more than .005 above the lowest of the four (most over A1 to A4)",
               show(_above_lowest([{m: MAIN[m][a][0] for m in FOUR} for a in PAPER_ADVERSARIES])), _never_far),
    PaperClaim("GHOST is Pareto-optimal (Δprot and Δworst)", "undominated", _pareto),
    PaperClaim("GHOST is harder to invert: smaller Δsurv A3 than PGD (number of leak ratios)", "4 of 4",
               _by_leak("surv_frequency")),
    PaperClaim("The same for the accuracy under A3", "1 of 1", _by_leak("frequency")),
    PaperClaim("GHOST's Δsurv A3 stays under .04 at 20% leak", show(LEAKS["0.2"]["ghost"]["surv_frequency"][0]),
               _at_a_fifth),
    PaperClaim("A2: GHOST survives better than PGD at 5% leak, worse at 10% (Δsurv A2, GHOST minus PGD)",
               f"{_minus('main', 'ghost', 'pgd', 'surv_bridge')}, "
               + show(LEAKS["0.1"]["ghost"]["surv_bridge"][0] - LEAKS["0.1"]["pgd"]["surv_bridge"][0], sign="+"),
               _crossing),
    PaperClaim("TS-UE collapses under A3", _printed("ts-ue", "frequency", 1), _extreme("ts-ue", "frequency", 1)),
    PaperClaim("EM protects least (A1)", _printed("em", "none", 1), _extreme("em", "none", 1)),
    PaperClaim("acc@1, acc@5 and MRR rank the methods alike (number of adversaries)", "4 of 4", _ranked_alike),
    PaperClaim("The victim is competitive (clean acc@1, beside a Markov model)", show(MAIN["ghost"]["clean"][0]),
               _beats_counting),
)  # fmt: skip
OTHERS = (
    PaperClaim("GHOST is the most natural (mean log p)", _printed("ghost", "naturalness", 1, "naturalness", 2),
               _extreme("ghost", "naturalness", 1)),
    PaperClaim("All keep the category and move check-ins about equally far (mean km)",
               " to ".join(show(f(row["mean_km"][0] for row in paper.section("nyc", "plausibility").values()), 3)
                           for f in (min, max)), _displaced_alike),
    PaperClaim("The manifold prior protects (A1, GHOST minus GHOST-EF)",
               _minus("manifold", "ghost", "ghost-ef", "none"), _difference("ghost", "ghost-ef", "none", -1)),
    PaperClaim("Weights α 2, β 0.5 are best (Δmean, minus the best other)",
               _minus("weights", "ghost", EQUAL, "mean"), _best_weights),
    PaperClaim("An entropy floor harms (Δprot, none minus 3 bits)", _minus("entropy", "ghost", FLOOR, "prot"),
               _difference("ghost", FLOOR, "prot", 1, "entropy")),
    PaperClaim("The number of rounds hardly matters (range of Δmean; rounds that differ from 5)",
               show(paper.contents()["claims"]["mean_gap_band_over_rounds"]), _rounds_alike),
    PaperClaim("A2 finds nothing to denoise (share of positions it leaves)", "near 1", _near_identity),
    PaperClaim("A3's table is near uniform (entropy in bits, GHOST minus PGD)", "higher", _near_uniform),
    PaperClaim("A2 harms at 1% leak (GHOST, Δsurv A2)", "below 0", _harmed),
    PaperClaim("A fresh draw for each release is safe (A11, 4 releases minus 1)", "recommended", _fresh_releases),
)  # fmt: skip
