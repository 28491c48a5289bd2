"""How cells answer the claims of the paper: one small function for each kind of claim. None: not measured yet."""

from collections.abc import Callable, Collection, Sequence

from ghostpoi.evaluate.measures.accuracy_gaps import against, holm, spread
from ghostpoi.study import labels
from ghostpoi.study.answers import Answer
from ghostpoi.study.claim_checks import ranking
from ghostpoi.study.labels import ARROWS, show
from ghostpoi.study.results import MEASURES, PAPER_ADVERSARIES, Results

PRINTED = ("ghost", "pgd", "em", "ts-ue")  # the methods of the paper's Table I
TS_UE = "ts-ue-calibrated"  # of our two forms, the one that substitutes as many check-ins as the paper's
FOUR = (*PRINTED[:3], TS_UE)
MOST_ABOVE = 0.005  # "within 0.5 pp of the lowest in every cell"
MOST_SURVIVAL = 0.04  # of A3 at a leak of 20%
ALIKE = 1.1  # largest mean displacement over smallest: "a tight band"
PLACES = ("", "second ", "third ", "fourth ")

Study = Callable[[str], Results]  # the studies of one city under one protocol, by name
Respond = Callable[[Study], Answer | None]


def difference(one: str, two: str, key: str, wanted: int, name: str = "main") -> Respond:
    """One method minus another."""

    def answer(study: Study) -> Answer | None:
        found = study(name).against(one, two, key)
        return Answer(None, (found,), (wanted,)) if found else None

    return answer


def placed(values: dict[str, float], method: str, wanted: int, digits: int = 4) -> str:
    """Write a value with its place among the paper's four: `.0716, lowest`. Of fewer, it says so."""
    place = sorted(values, key=lambda m: values[m]).index(method)
    above = len(values) - 1 - place
    words = f"{PLACES[place]}lowest" if wanted < 0 and above else f"{PLACES[above]}highest" if place else "lowest"
    return f"{show(values[method], digits)}, {words}" + (f" of {len(values)}" if len(values) < len(FOUR) else "")


def _of_four(answer: Answer, measured: Collection[str]) -> Answer | None:
    """A claim about all four methods can fail with some of them, but it holds only with all."""
    return answer if answer.outcome == "no" or len(measured) == len(FOUR) else None


def extreme(method: str, key: str, wanted: int) -> Respond:
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
        return _of_four(Answer(placed(values, method, wanted, digits), (found,), (wanted,)), values) if found else None

    return answer


def _means(results: Results, key: str) -> dict[str, float]:
    return {m: value["mean"] for m in FOUR if m in results.methods and (value := results.value(m, key))}


def above_lowest(values: Sequence[dict[str, float]]) -> float:
    """Return GHOST's largest distance to the lowest, from the values of the methods under each adversary."""
    return max(here["ghost"] - min(here.values()) for here in values)


def never_far(study: Study) -> Answer | None:
    """GHOST's largest distance to the lowest of the four."""
    values = [_means(study("main"), a) for a in PAPER_ADVERSARIES]
    if not all("ghost" in here for here in values):
        return None
    most = above_lowest(values)
    return _of_four(Answer(show(most), fact=most <= MOST_ABOVE), values[0])


def pareto(study: Study) -> Answer | None:
    """Which of the four are better than GHOST both as released and under the strongest of A1 to A3."""
    results = study("main")
    denied, kept = _means(results, "prot"), _means(results, "worst")
    if "ghost" not in denied or "ghost" not in kept:
        return None
    above = [m for m in denied if m != "ghost" and denied[m] >= denied["ghost"] and kept[m] >= kept["ghost"]]
    text = f"dominated by {', '.join(map(labels.method, above))}" if above else "undominated"
    return _of_four(Answer(text, fact=not above), denied)


def by_leak(key: str) -> Respond:
    """GHOST minus PGD at every leak ratio; the claim is that all are negative."""

    def answer(study: Study) -> Answer | None:
        results = study("leak")
        main = study("main")  # has more seeds at one of the ratios
        found = [
            (main if leak in main.study.leak else results).against("ghost", "pgd", key, leak)
            for leak in results.study.leak
        ]
        known = [difference for difference in found if difference]
        if len(known) < len(found):
            return None
        lower = sum(difference.difference["mean"] < 0 for difference in known)
        return Answer(f"{lower} of {len(known)}", tuple(known), (-1,) * len(known))

    return answer


def crossing(study: Study) -> Answer | None:
    """GHOST minus PGD under A2, at 5% and at 10% leak."""
    results = study("leak")
    found = [results.against("ghost", "pgd", "surv_bridge", leak) for leak in (0.05, 0.1)]
    return Answer(None, tuple(f for f in found if f), (-1, 1)) if all(found) else None


def at_a_fifth(study: Study) -> Answer | None:
    """The survival gap of A3 at 20% leak."""
    value = study("leak").value("ghost", "surv_frequency", 0.2)
    return Answer(show(value["mean"]), fact=value["mean"] < MOST_SURVIVAL) if value else None


def harmed(study: Study) -> Answer | None:
    """The survival gap of A2 at 1% leak."""
    found = study("leak").minus("ghost", "bridge", "none", 0.01)
    return Answer(None, (found,), (-1,)) if found else None


def ranked_alike(study: Study) -> Answer | None:
    """Under how many adversaries the metrics rank the four alike."""
    results = study("main")
    methods = list(_means(results, "none"))
    if len(methods) < len(FOUR):
        return None
    orders = [[ranking(results, methods, a, metric) for metric in ("acc@1", "acc@5", "mrr")] for a in PAPER_ADVERSARIES]
    same = sum(one == two == three for one, two, three in orders)
    return Answer(f"{same} of {len(orders)}", fact=same == len(orders))


def beats_counting(study: Study) -> Answer | None:
    """The clean victim beside the Markov floor."""
    clean, floor = study("main").value("clean", "clean"), study("main").floor("markov")
    if not clean or floor is None:
        return None
    sign = "above" if clean["mean"] > floor else "below"
    return Answer(f"{show(clean['mean'])}, {sign} {show(floor)}", fact=clean["mean"] > floor)


def near_identity(study: Study) -> Answer | None:
    """The share of positions that one pass of A2's denoiser leaves."""
    shares = study("main").measures("ghost", "bridge").get("denoiser_identity")
    share = _mean([steps[1] for steps in shares]) if shares else None
    return Answer(show(share, 2), fact=share > 0.5) if share is not None else None


def near_uniform(study: Study) -> Answer | None:
    """The entropy of A3's table."""
    one, two = (study("main").measures(m, "frequency").get("table_entropy_bits") for m in ("ghost", "pgd"))
    found = against(one, two)
    return Answer(None, (found,), (1,)) if found else None


def displaced_alike(study: Study) -> Answer | None:
    """The mean displacements of the four; all must keep the category."""
    results = study("main")
    moved, kept = (_means(results, key) for key in ("mean_km", "category_match"))
    if not moved:
        return None
    least, most = min(moved.values()), max(moved.values())
    fact = most <= ALIKE * least and set(kept.values()) == {1.0}
    return _of_four(Answer(f"{show(least, 3)} to {show(most, 3)}", fact=fact), moved)


def best_weights(study: Study) -> Answer | None:
    """The recommended weights minus the best others."""
    results = study("weights")
    others = {m: value["mean"] for m in results.methods[:-1] if m != "ghost" and (value := results.value(m, "mean"))}
    found = results.against("ghost", max(others, key=lambda m: others[m]), "mean") if others else None
    return Answer(None, (found,), (1,)) if found else None


def rounds_alike(study: Study) -> Answer | None:
    """The range over rounds, and how many differ clearly from the default."""
    results = study("rounds")
    means = [value["mean"] for m in results.methods[:-1] if (value := results.value(m, "mean"))]
    if len(means) < 2:
        return None
    clear = [d for d in holm([results.against(m, "ghost", "mean") for m in results.methods[:-1]]) if d and d.sign]
    return Answer(f"{show(max(means) - min(means))}, {len(clear) or 'none'} clear", fact=not clear)


def fresh_releases(study: Study) -> Answer | None:
    """What four releases give beyond one."""
    found = study("releases").minus("ghost", "multi-release-4", "multi-release-1")
    return Answer(show(found.difference["mean"], sign="+") + ARROWS[found.sign], fact=found.sign < 1) if found else None


def _mean(values: Sequence[float]) -> float:
    return spread(values)["mean"]
