"""The claims of the paper, and how the cells of each city answer them under each protocol.

An answer is a difference with the sign that the paper claims, or a fact. All differences of one city and protocol are
one family of Holm's correction.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from docs.blocks.common import known, mean, measured, study
from ghostpoi.audits.measures.gaps import Verdict, against, holm, spread
from ghostpoi.study import labels, paper
from ghostpoi.study.labels import ARROWS, NONE, SYMBOLS, show
from ghostpoi.study.plan import PROTOCOLS
from ghostpoi.study.results import MEASURES, PAPER_ADVERSARIES, TOKYO, Results

PRINTED = ("ghost", "pgd", "em", "ts-ue")  # the methods of the paper's Table I
TS_UE = "ts-ue-calibrated"  # of our two forms, the one that substitutes as many check-ins as the paper's
FOUR = (*PRINTED[:3], TS_UE)
MOST_ABOVE = 0.005  # "within 0.5 pp of the lowest in every cell"
MOST_SURVIVAL = 0.04  # of A3 at a leak of 20%
EQUALLY_FAR = 1.1  # largest over smallest: "a tight band"
EQUALLY_OFTEN = 0.001  # largest difference of substitution rates that are printed as equal
NOT_THE = {1: "not the highest", -1: "not the lowest"}
PLACES = ("", "second ", "third ", "fourth ")
EQUAL, FLOOR = "ghost method.alpha=1.0 method.beta=1.0", "ghost method.eta=3.0"
NATURAL, ONCE = "ghost method.alpha=1.0 method.beta=1.5", "ghost rounds.outer=1"

Read = Callable[[str], Results]  # the studies of one city under one protocol, by name


@dataclass(frozen=True)
class Answer:
    """What the cells say to a claim: differences and the signs that the claim asks for, or a fact."""

    text: str = ""  # without it, the differences are shown
    differences: tuple[Verdict, ...] = ()
    wanted: tuple[int, ...] = ()
    fact: bool = True
    against: str = "reversed"  # what a difference with the other sign shows
    testable: bool = True

    @property
    def outcome(self) -> str:
        """`yes` or `no`; `open` if all differences have the sign claimed, but not all of them clearly; or no answer."""
        if not self.testable:
            return "not testable here"
        pairs = list(zip(self.differences, self.wanted, strict=True))
        if not self.fact or any(d.difference["mean"] * sign <= 0 for d, sign in pairs):
            return "no"
        return "yes" if all(d.sign == sign for d, sign in pairs) else "open"

    @property
    def reversed(self) -> bool:
        """Whether a difference clearly has the other sign."""
        return any(d.sign == -sign for d, sign in zip(self.differences, self.wanted, strict=True))

    def __str__(self) -> str:
        return self.text or ", ".join(show(d.difference["mean"], sign="+") + ARROWS[d.sign] for d in self.differences)


class Unmeasured(LookupError):
    """A city has no cells of a study."""


Respond = Callable[[Read], Answer | None]  # None: the study was not planned


class Claim(NamedTuple):
    """A claim of the paper, its own figure for NYC, and how cells answer it."""

    text: str
    printed: str
    answer: Respond


def summary(claims: Sequence[Claim], cities: Sequence[str]) -> list[tuple[str, ...]]:
    """Return a row for each claim: text, the paper's figure, ours for each city (`strong / paper`), and the verdict."""
    by_city = [[answers(claims, data, protocol) for protocol in PROTOCOLS] for data in cities]
    rows = []
    for number, claim in enumerate(claims):
        found = [[answers[number] for answers in protocols] for protocols in by_city]
        cells = [" / ".join(str(answer or NONE) for answer in city) for city in found]
        rows.append((claim.text, claim.printed, *cells, verdict([a for city in found for a in city if a])))
    return rows


def answers(claims: Sequence[Claim], data: str, protocol: str) -> list[Answer | None]:
    """Answer claims from the cells of one city and protocol; their differences are one family."""

    def read(name: str) -> Results:
        if data not in measured(name, protocol):
            raise Unmeasured
        return study(name, protocol, data)

    found = [_asked(claim, read) for claim in claims]
    tested = iter(holm([d for answer in found if answer for d in answer.differences]))
    return [
        replace(answer, differences=tuple(known(next(tested)) for _ in answer.differences)) if answer else None
        for answer in found
    ]


def _asked(claim: Claim, read: Read) -> Answer | None:
    try:
        return claim.answer(read)
    except Unmeasured:
        return None


def verdict(found: Sequence[Answer]) -> str:
    """Sum up the answers of all cities and protocols that were measured."""
    outcomes, reverse = [answer.outcome for answer in found], sum(answer.reversed for answer in found)
    if not all(answer.testable for answer in found):
        return outcomes[0].capitalize()
    if set(outcomes) == {"yes"}:
        return "Yes"
    if set(outcomes) == {"no"}:
        return "**No**" + (f", clearly {found[0].against} in {reverse} of {len(found)}" if reverse else "")
    if set(outcomes) == {"open"}:
        return "Open: the sign is right, but not clear"
    return "Mixed: " + ", ".join(f"{outcomes.count(o)} {o}" for o in ("yes", "open", "no") if o in outcomes)


def difference(one: str, two: str, key: str, wanted: int, name: str = "main") -> Respond:
    """One method minus another."""
    return lambda read: Answer("", (known(read(name).against(one, two, key)),), (wanted,))


def placed(values: dict[str, float], method: str, wanted: int, digits: int = 4) -> str:
    """Write a value with its place among the paper's four: `.0716, lowest`."""
    place = sorted(values, key=lambda m: values[m]).index(method)
    above = len(values) - 1 - place
    words = f"{PLACES[place]}lowest" if wanted < 0 and above else f"{PLACES[above]}highest" if place else "lowest"
    return f"{show(values[method], digits)}, {words}"


def extreme(method: str, key: str, wanted: int) -> Respond:
    """A method's place among the paper's four, and its difference to the best of the others."""

    def answer(read: Read) -> Answer:
        values = _means(read("main"), key)
        rival = max((m for m in values if m != method), key=lambda m: wanted * values[m])
        text = placed(values, method, wanted, digits=2 if key in MEASURES else 4)
        return Answer(text, (known(read("main").against(method, rival, key)),), (wanted,), against=NOT_THE[wanted])

    return answer


def second_lowest(key: str) -> Respond:
    """Whether GHOST has the second lowest value of the four."""

    def answer(read: Read) -> Answer:
        text = placed(_means(read("main"), key), "ghost", -1)
        return Answer(text, fact=text.endswith("second lowest"))

    return answer


def tied(key: str) -> Respond:
    """GHOST minus PGD; the claim is that there is no clear difference."""

    def answer(read: Read) -> Answer:
        gap = known(read("main").against("ghost", "pgd", key))
        return Answer(show(gap.difference["mean"], sign="+") + ARROWS[gap.sign], fact=gap.sign == 0)

    return answer


def more_natural(*methods: str) -> Respond:
    """The naturalness of methods minus that of GHOST."""
    return lambda read: Answer(
        "", tuple(known(read("main").against(m, "ghost", "naturalness")) for m in methods), (1,) * len(methods)
    )


def random_starts(read: Read) -> Answer:
    """TS-UE's survival gap under A3, which the paper explains by a form without random starts."""
    return Answer(placed(_means(read("main"), "surv_frequency"), TS_UE, 1), testable=False)


def _means(results: Results, key: str) -> dict[str, float]:
    return {m: mean(results, m, key) for m in FOUR}


def above_lowest(values: Sequence[dict[str, float]]) -> float:
    """Return GHOST's largest distance to the lowest, from the values of the methods under each adversary."""
    return max(here["ghost"] - min(here.values()) for here in values)


def never_far(read: Read) -> Answer:
    """GHOST's largest distance to the lowest of the four."""
    most = above_lowest([_means(read("main"), a) for a in PAPER_ADVERSARIES])
    return Answer(show(most), fact=most <= MOST_ABOVE)


def pareto(read: Read) -> Answer:
    """Which of the four are better than GHOST both as released and under the strongest of A1 to A3."""
    denied, kept = (_means(read("main"), key) for key in ("prot", "worst"))
    above = [m for m in denied if m != "ghost" and denied[m] >= denied["ghost"] and kept[m] >= kept["ghost"]]
    text = f"dominated by {', '.join(map(labels.method, above))}" if above else "undominated"
    return Answer(text, fact=not above)


def by_leak(key: str) -> Respond:
    """GHOST minus PGD at every leak ratio; the claim is that all are negative."""

    def answer(read: Read) -> Answer:
        leak, main = read("leak"), read("main")  # main has more seeds at one of the ratios
        found = tuple(
            known((main if ratio in main.study.leak else leak).against("ghost", "pgd", key, ratio))
            for ratio in leak.study.leak
        )
        lower = sum(difference.difference["mean"] < 0 for difference in found)
        return Answer(f"{lower} of {len(found)}", found, (-1,) * len(found))

    return answer


def crossing(read: Read) -> Answer:
    """GHOST minus PGD under A2, at 5% and at 10% leak."""
    found = tuple(known(read("leak").against("ghost", "pgd", "surv_bridge", leak)) for leak in (0.05, 0.1))
    return Answer("", found, (-1, 1))


def at_a_fifth(read: Read) -> Answer:
    """The survival gap of A3 at 20% leak."""
    value = mean(read("leak"), "ghost", "surv_frequency", 0.2)
    return Answer(show(value), fact=value < MOST_SURVIVAL)


def harmed(read: Read) -> Answer:
    """The survival gap of A2 at 1% leak."""
    return Answer("", (known(read("leak").minus("ghost", "bridge", "none", 0.01)),), (-1,))


def ranked_alike(read: Read) -> Answer:
    """Under how many adversaries the metrics rank the four equally."""
    main, metrics = read("main"), ("acc@1", "acc@5", "mrr")
    orders = [[ranking(main, adversary, metric) for metric in metrics] for adversary in PAPER_ADVERSARIES]
    same = sum(one == two == three for one, two, three in orders)
    return Answer(f"{same} of {len(orders)}", fact=same == len(orders))


def ranking(results: Results, adversary: str, metric: str) -> list[str]:
    """Order the four by their mean accuracy under an adversary, best protected first."""
    return sorted(FOUR, key=lambda m: sum(known(results.accuracy(m, adversary, metric=metric))))


def beats_counting(read: Read) -> Answer:
    """The clean victim and the Markov floor."""
    clean, floor = mean(read("main"), "clean", "clean"), known(read("main").floor("markov"))
    return Answer(f"{show(clean)}, {'above' if clean > floor else 'below'} {show(floor)}", fact=clean > floor)


def near_identity(read: Read) -> Answer:
    """The share of positions that one pass of A2's denoiser leaves."""
    steps = read("main").measures("ghost", "bridge")["denoiser_identity"]
    share = spread([one[1] for one in steps])["mean"]
    return Answer(show(share, 2), fact=share > 0.5)


def near_uniform(read: Read) -> Answer:
    """The entropy of A3's table."""
    one, two = (read("main").measures(m, "frequency")["table_entropy_bits"] for m in ("ghost", "pgd"))
    return Answer("", (known(against(one, two)),), (1,))


def displaced_alike(key: str) -> Respond:
    """A distance of the four; all must keep the category."""

    def answer(read: Read) -> Answer:
        moved, kept = (_means(read("main"), k) for k in (key, "category_match"))
        least, most = min(moved.values()), max(moved.values())
        fact = most <= EQUALLY_FAR * least and set(kept.values()) == {1.0}
        return Answer(f"{show(least, 3)} to {show(most, 3)}", fact=fact)

    return answer


def substituted_alike(read: Read) -> Answer:
    """The substitution rates of GHOST, PGD and EM."""
    rates = [mean(read("main"), m, "substitution_rate") for m in FOUR[:3]]
    text = " to ".join(dict.fromkeys(show(f(rates)) for f in (min, max)))
    return Answer(text, fact=max(rates) - min(rates) <= EQUALLY_OFTEN)


def leads(name: str, method: str, key: str, wanted: int) -> Respond:
    """A variant minus the best other variant of its study."""

    def answer(read: Read) -> Answer:
        results = read(name)
        rivals = (m for m in results.methods[:-1] if m != method)
        best = max(rivals, key=lambda m: wanted * mean(results, m, key))
        return Answer("", (known(results.against(method, best, key)),), (wanted,), against=NOT_THE[wanted])

    return answer


def rounds_alike(read: Read) -> Answer:
    """The range over rounds, and how many differ clearly from the default."""
    results = read("rounds")
    means = [mean(results, m, "mean") for m in results.methods[:-1]]
    clear = [d for d in holm([results.against(m, "ghost", "mean") for m in results.methods[:-1]]) if d and d.sign]
    return Answer(f"{show(max(means) - min(means))}, {len(clear) or 'none'} clear", fact=not clear)


def fresh_releases(read: Read) -> Answer | None:
    """What four releases give beyond one; measured under `strong` alone."""
    found = read("releases").minus("ghost", "multi-release-4", "multi-release-1")
    return Answer(show(found.difference["mean"], sign="+") + ARROWS[found.sign], fact=found.sign < 1) if found else None


def _printed(method: str, key: str, wanted: int, section: str = "main", digits: int = 4, city: str = "nyc") -> str:
    """The paper's own value with its place among the four."""
    rows = paper.section(city, section)
    return placed({m: rows[m][key][0] for m in PRINTED}, method, wanted, digits)


def _range(key: str) -> str:
    """The lowest and the highest of the paper's own values of a measure of releases."""
    values = [row[key][0] for row in paper.section("nyc", "plausibility").values()]
    return f"{show(min(values), 3)} to {show(max(values), 3)}"


def _minus(section: str, one: str, two: str, key: str, city: str = "nyc") -> str:
    """The difference of two printed values."""
    rows = paper.section(city, section)
    return show(rows[one][key][0] - rows[two][key][0], sign="+")


MAIN, LEAKS = paper.section("nyc", "main"), paper.leak_section("nyc")
PROTECTION = (
    Claim("GHOST protects better than a uniform draw (Δmean, GHOST minus random)", "no such control",
          difference("ghost", "random", "mean", 1)),
    Claim("GHOST beats PGD (Δmean, GHOST minus PGD)", _minus("main", "ghost", "pgd", "mean"),
          difference("ghost", "pgd", "mean", 1)),
    Claim("GHOST has the lowest accuracy as released (A1)", _printed("ghost", "none", -1),
          extreme("ghost", "none", -1)),
    Claim("GHOST has the lowest accuracy under A3", _printed("ghost", "frequency", -1),
          extreme("ghost", "frequency", -1)),
    Claim("GHOST has the lowest accuracy under A4", _printed("ghost", "bigram", -1), extreme("ghost", "bigram", -1)),
    Claim("GHOST is nowhere above the lowest of the four by more than .005 (largest gap)",
          show(above_lowest([{m: MAIN[m][a][0] for m in PRINTED} for a in PAPER_ADVERSARIES])), never_far),
    Claim("TS-UE has the lowest accuracy under A2", _printed("ts-ue", "bridge", -1), extreme(TS_UE, "bridge", -1)),
    Claim("GHOST leads in Δworst", _printed("ghost", "worst", 1), extreme("ghost", "worst", 1)),
    Claim("Leaving data unchanged inflates Δworst (deterministic TS-UE minus GHOST)", "argued, not measured",
          difference("ts-ue", "ghost", "worst", 1)),
    Claim("GHOST is Pareto-optimal (Δprot and Δworst)", "undominated", pareto),
    Claim("GHOST is harder to invert: smaller Δsurv A3 than PGD (number of leak ratios)",
          "4 of 4 (text), not at 5% (Table I)", by_leak("surv_frequency")),
    Claim("GHOST leaves less accuracy than PGD under A3 (number of leak ratios)", "1 of 1", by_leak("frequency")),
    Claim("GHOST's Δsurv A3 stays under .04 at 20% leak", show(LEAKS["0.2"]["ghost"]["surv_frequency"][0]),
          at_a_fifth),
    Claim("A2's curves cross near 10% leak (Δsurv A2, GHOST minus PGD at 5%, 10%)",
          f"{_minus('main', 'ghost', 'pgd', 'surv_bridge')}, "
          + show(LEAKS["0.1"]["ghost"]["surv_bridge"][0] - LEAKS["0.1"]["pgd"]["surv_bridge"][0], sign="+"), crossing),
    Claim("TS-UE collapses under A3, since it is deterministic (Δsurv A3)", _printed("ts-ue", "surv_frequency", 1),
          random_starts),
    Claim("EM protects least (A1)", _printed("em", "none", 1), extreme("em", "none", 1)),
    Claim("acc@1, acc@5 and MRR rank the methods equally (number of adversaries)", "4 of 4", ranked_alike),
    Claim("The victim is competitive (clean acc@1, next to a Markov model)", show(MAIN["ghost"]["clean"][0]),
          beats_counting),
)  # fmt: skip
OTHERS = (
    Claim("GHOST is the most natural (mean log p)", _printed("ghost", "naturalness", 1, "naturalness", 2),
          extreme("ghost", "naturalness", 1)),
    Claim("All keep the category and move check-ins about equally far (mean km)",
          _range("mean_km"), displaced_alike("mean_km")),
    Claim("They move equally many check-ins beyond 1 km", _range("beyond_1km"), displaced_alike("beyond_1km")),
    Claim("GHOST, PGD and EM substitute equally many", show(paper.section("nyc", "plausibility")["em"]
          ["substitution_rate"][0]), substituted_alike),
    Claim("The manifold prior protects (A1, GHOST minus GHOST-EF)", _minus("manifold", "ghost", "ghost-ef", "none"),
          difference("ghost", "ghost-ef", "none", -1)),
    Claim("GHOST protects better than GHOST-Sym (A1)", _minus("manifold", "ghost", "ghost-sym", "none"),
          difference("ghost", "ghost-sym", "none", -1)),
    Claim("GHOST resists A2 better than GHOST-Sym (A2)", _minus("manifold", "ghost", "ghost-sym", "bridge"),
          difference("ghost", "ghost-sym", "bridge", -1)),
    Claim(f"Weights {SYMBOLS['method.alpha']} 2, β 0.5 are best (Δmean, minus the best other weights tried)",
          _minus("weights", "ghost", EQUAL, "mean"), leads("weights", "ghost", "mean", 1)),
    Claim(f"Weights {SYMBOLS['method.alpha']} 1, β 1.5 inflate Δsurv A2 (minus weights 1, 1)",
          _minus("weights", NATURAL, EQUAL, "surv_bridge"),
          difference(NATURAL, EQUAL, "surv_bridge", 1, "weights")),
    Claim("An entropy floor harms (Δprot, none minus 3 bits)", _minus("entropy", "ghost", FLOOR, "prot"),
          difference("ghost", FLOOR, "prot", 1, "entropy")),
    Claim("The number of rounds hardly matters (range of Δmean; rounds that differ from 5)",
          show(paper.contents()["claims"]["mean_gap_band_over_rounds"]), rounds_alike),
    Claim("One round has the largest Δprot (T = 1 minus the best other)", "largest (figure)",
          leads("rounds", ONCE, "prot", 1)),
    Claim("One round has the smallest Δworst (T = 1 minus the smallest other)", "smallest (figure)",
          leads("rounds", ONCE, "worst", -1)),
    Claim("Five rounds have the highest Δworst (T = 5 minus the best other)", "highest (figure)",
          leads("rounds", "ghost", "worst", 1)),
    Claim("A2 finds nothing to denoise (share of positions it leaves)", "near 1", near_identity),
    Claim("A3's table is near uniform (entropy in bits, GHOST minus PGD)", "higher", near_uniform),
    Claim("A2 harms at 1% leak (GHOST, Δsurv A2)", "below 0", harmed),
    Claim("A fresh draw for each release is safe (A11, 4 releases minus 1)", "recommended", fresh_releases),
)  # fmt: skip
OF_TOKYO = (
    Claim("GHOST and PGD are tied (Δmean, GHOST minus PGD)", _minus("main", "ghost", "pgd", "mean", "tky"),
          tied("mean")),
    Claim("GHOST has the lowest accuracy under A2", _printed("ghost", "bridge", -1, city="tky"),
          extreme("ghost", "bridge", -1)),
    Claim("GHOST has the second lowest accuracy as released (A1)", _printed("ghost", "none", -1, city="tky"),
          second_lowest("none")),
    Claim("GHOST has the lowest accuracy under A4", _printed("ghost", "bigram", -1, city="tky"),
          extreme("ghost", "bigram", -1)),
    Claim("EM and TS-UE are more natural than GHOST (mean log p, each minus GHOST)", ", ".join(
          _minus("naturalness", m, "ghost", "naturalness", "tky") for m in ("em", "ts-ue")),
          more_natural("em", TS_UE)),
)  # fmt: skip
GROUPS = {  # title, claims, the city of the paper's figures, our data
    "protection": ("claim on protection", PROTECTION, "nyc", measured("main")),
    "others": ("other claims", OTHERS, "nyc", measured("main")),
    "tokyo": ("claim on Tokyo", OF_TOKYO, "tky", [TOKYO]),
}
