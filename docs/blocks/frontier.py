"""The blocks of docs/results/frontier.md."""

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import product
from math import hypot
from typing import NamedTuple

from scipy import special

from docs.blocks.common import RESULTS, Block, commands, known, mean, printed, study, table, values
from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.victims import VICTIMS
from ghostpoi.audits.controls import DISTANCE, FLOORS, LEAK_MIXED, LEAK_ONLY, LEAK_STAY
from ghostpoi.audits.measures.gaps import PRACTICAL, SIGNIFICANCE, Spread, Verdict, against, holm, spread
from ghostpoi.study import labels
from ghostpoi.study.labels import ARROWS, corrected, show
from ghostpoi.study.results import GOWALLA, LEAK, NO_LEAK, NYC, WORST_CASE, Attack, Results, uses_leak

STUDIES = ("frontier", "rivals", "constraints", "learned", "victims", "leaks", "releases")
DEFAULT = "crowd"
CITIES = (NYC, GOWALLA)
PUBLISHED, TRUE = "what is public", "also the true popularity and hours"
LEAKS = {NO_LEAK: "no leak", LEAK: "5% leak"}
MOST = {NO_LEAK: 0.006, LEAK: 0.010}  # that the default may give away; twice that in the second city
SHARES = ("within_0.5km", "within_1km", "within_2km", *(f"far_moves_within_{km}km" for km in ("0.5", "1", "2")))
KEPT = (("mean_km", 2), ("flows", 3), ("popularity", 3))
PERCENT = (("near_precision", "precision"), ("near_recall", "recall"), ("visits_none", "visits without candidate"))


def half(gap: Verdict, level: float = SIGNIFICANCE) -> float:
    """Half of the interval in which a difference lies at 1 - level, over seeds and over test steps."""
    n, over_seeds = len(gap.difference["seeds"]), 0.0
    if n > 1:
        over_seeds = float(special.stdtrit(n - 1, 1 - level / 2)) * gap.difference["std"] / n**0.5
    return hypot(over_seeds, float(special.ndtri(1 - level / 2)) * (gap.sampling_error or 0.0))


def at_most(gap: Verdict, limit: float, level: float = SIGNIFICANCE) -> bool:
    """Whether a one-sided test shows that a difference is not above a limit: half of an equivalence test."""
    return gap.difference["mean"] + half(gap, 2 * level) <= limit


def strongest(
    r: Results, method: str, leak: float | None = None, among: Collection[str] = ()
) -> tuple[Results, Attack] | None:
    """The strongest adversary before any victim of the study, with the results of that victim."""
    found = [(of, one) for of in map(r.of, r.study.victims) if (one := of.worst(method, leak, among))]
    return max(found, key=lambda one: one[1].accuracy["mean"], default=None)


def control(r: Results, leak: float | None = None) -> Attack | None:
    """The best of what needs no release, for any victim of the study."""
    found = [one for victim in r.study.victims if (one := r.of(victim).control(leak))]
    return max(found, key=lambda one: one.accuracy["mean"], default=None)


def gives_away(r: Results, method: str, leak: float | None = None, among: Collection[str] = ()) -> Verdict | None:
    """The strongest adversary minus the best control."""
    found, alone = strongest(r, method, leak, among), control(r, leak)
    if not (found and alone):
        return None
    gap = against(found[1].accuracy["seeds"], alone.accuracy["seeds"], least=PRACTICAL)
    return gap and replace(gap, sampling_error=_over_stay(found[0], method, found[1], leak, alone))


def _over_stay(r: Results, method: str, found: Attack, leak: float | None, control: Attack) -> float | None:
    """The standard error over test steps of the difference to staying; None if steps were not counted.

    Staying is right at all steps but moves, so its right guesses and an adversary's can be paired.
    """
    steps, moved = near(r, "clean", "stay", "steps"), r.on_moves.accuracy(method, found.adversary, leak)
    if control.adversary != "stay" or not (steps and moved):
        return None
    stay, right = control.accuracy["mean"], found.accuracy["mean"]
    gained = spread(moved)["mean"] * (1 - stay)
    lost = stay - (right - gained)
    return float(((gained + lost - (right - stay) ** 2) / steps["mean"]) ** 0.5)


def ignore_users(r: Results) -> tuple[Results, list[str]]:
    """The results of the victim that ignores users, and the adversaries that it trains after."""
    victim = next(victim for victim in r.study.victims if not VICTIMS[victim].knows_users)
    return r.of(victim), [LEAK_MIXED, *(a for a in r.study.adversaries if not ADVERSARIES[a].predicts)]


def near(r: Results, method: str, adversary: str, share: str, leak: float | None = None) -> Spread | None:
    """How often a guess is near: `share` is a key of `attack.victims.distances`. A floor has no seeds."""
    if adversary in FLOORS:
        found = r.floors.get(DISTANCE, {}).get(adversary, {}).get(share)
        return None if found is None else spread([found])
    found = r.measures(method, adversary, leak).get(DISTANCE, {}).get(share)
    return spread(found) if found else None


def nearest(
    r: Results, method: str, share: str, leak: float | None = None, among: Collection[str] = ()
) -> Attack | None:
    """The adversary or the control whose guesses are near most often."""
    adversaries = among or (*r.study.adversaries, LEAK_MIXED)
    names = [(method, a) for a in adversaries] + [("clean", name) for name in FLOORS]
    names += [("clean", name) for name in (LEAK_ONLY, LEAK_STAY) if leak != NO_LEAK]
    made = (Attack(name, found) for m, name in names if (found := near(r, m, name, share, leak)))
    return max(made, key=lambda one: one.accuracy["mean"], default=None)


class Given(NamedTuple):
    """What the default gives away in a city to adversaries with some knowledge."""

    data: str
    knowledge: str
    leak: float
    strongest: Attack
    control: Attack
    gap: Verdict

    @property
    def limit(self) -> float:
        return MOST[self.leak] * (1 if self.data == NYC else 2)

    @property
    def highest(self) -> Attack:
        """What an adversary reaches who may also ignore the release."""
        return max(self.strongest, self.control, key=lambda attack: attack.accuracy["mean"])

    @property
    def row(self) -> tuple[str, ...]:
        """The row of the table."""
        around = half(self.gap)
        low, high = (show(self.gap.difference["mean"] + side * around, 3, "+") for side in (-1, 1))
        return (
            labels.data(study("frontier", data=self.data)), LEAKS[self.leak], self.knowledge, show(self.strongest, 4),
            show(self.control, 4), show(self.gap.difference["mean"], 4, "+") + ARROWS[self.gap.sign],
            f"{low} to {high}", show(self.limit, 3), "yes" if self.gap.difference["mean"] <= self.limit else "**no**",
            "yes" if at_most(self.gap, self.limit, SIGNIFICANCE / 8) else "no",
        )  # fmt: skip


def given() -> list[Given]:
    """Return what the default gives away; the differences are one family of Holm's correction."""
    found = []
    for data, leak, knowledge in product(CITIES, LEAKS, (PUBLISHED, TRUE)):
        r = study("frontier", data=data)
        among = [a for a in (*r.study.adversaries, "leak-mixed")
                 if knowledge == TRUE or a == "leak-mixed" or not ADVERSARIES[a].needs_outside]  # fmt: skip
        gap = known(gives_away(r, DEFAULT, leak, among))
        attack = known(strongest(r, DEFAULT, leak, among))[1]
        found.append(Given(data, knowledge, leak, attack, known(control(r, leak)), gap))
    gaps = holm([one.gap for one in found])
    return [one._replace(gap=known(gap)) for one, gap in zip(found, gaps, strict=True)]


def headline() -> str:
    """How often the next venue is guessed right without the release, with it, and from the clean data."""
    found = {(one.data, one.leak): one for one in given() if one.knowledge == TRUE}
    names = {data: labels.data(study("frontier", data=data)) for data in CITIES}
    clean = [known(study("frontier", data=data).of("counting").value("clean", "clean")) for data, _ in found]
    rows = [
        ("without the release", *(show(one.control, 3) for one in found.values())),
        ("with the default release", *(show(one.highest, 3) for one in found.values())),
        ("with the clean data", *(show(one, 3) for one in clean)),
    ]
    return table(("next venue guessed right", *(f"{names[data]}, {LEAKS[leak]}" for data, leak in found)), rows)


def given_away() -> str:
    """What the default gives away, to whom."""
    head = "city,leak,adversary knows,strongest,best without the release,given away,95% interval,limit,met,shown"
    return table(head.split(","), [one.row for one in given()])


def goals() -> list[tuple[str, str, str, bool]]:
    """Return each limit for the default with what was measured, and whether it is met."""
    r, rows = study("frontier"), []
    for leak, words in LEAKS.items():
        gap = max((one.gap for one in given() if (one.data, one.leak) == (NYC, leak)),
                  key=lambda gap: gap.difference["mean"])  # fmt: skip
        found = gap.difference["mean"]
        rows.append((f"given away, {words}", f"at most {show(MOST[leak], 3)}", show(found, 4, "+"),
                     found <= MOST[leak]))  # fmt: skip
    for key, words, limit, sign, digits in (
        ("mean_km", "mean displacement, km", 1.9, 1, 2), ("flows", "common part of flows", 0.49, -1, 3),
        ("popularity", "popularity (JS, bits)", 0.03, 1, 3),
    ):  # fmt: skip
        value = known(r.value(DEFAULT, key))
        asked = f"at {'most' if sign > 0 else 'least'} {show(limit, digits=1 if limit > 1 else 2)}"
        rows.append((words, asked, show(value, digits), sign * value["mean"] <= sign * limit))
    best, clean = far_moves_without_users()
    share = best.accuracy["mean"] / clean["mean"]
    rows.append(("far moves within 1 km, no leak, for victims that ignore users", "at most 50% of clean",
                 f"{share:.0%} ({labels.number(best.adversary)})", share <= 0.5))  # fmt: skip
    return rows


def far_moves_without_users() -> tuple[Attack, Spread]:
    """How often a victim that ignores users guesses far moves within 1 km on NYC: without a leak, and of clean data."""
    (r, among), share = ignore_users(study("frontier")), "far_moves_within_1km"
    return known(nearest(r, DEFAULT, share, NO_LEAK, among)), known(near(r, "clean", "clean", share))


def limits() -> str:
    """The limits for the default on NYC, and whether it meets them."""
    rows = [(name, limit, shown, "yes" if met else "**no**") for name, limit, shown, met in goals()]
    return table(("limit for the default, NYC", "set", "measured", "met"), rows)


def distances() -> str:
    """How often guesses lie near the next venue."""
    rows = []
    for data, share in product(CITIES, SHARES):
        r = study("frontier", data=data)
        clean, stay = known(near(r, "clean", "clean", share)), known(near(r, "clean", "stay", share))
        cells = []
        for leak in LEAKS:
            best = known(nearest(r, DEFAULT, share, leak))
            cells += [show(best, 3), f"{best.accuracy['mean'] / clean['mean']:.0%}"]
        name = share.replace("_", " ").replace("km", " km").replace("0.5", ".5")
        rows.append((labels.data(r), name, show(clean, 3), show(stay, 3), *cells))
    head = ("city", "guess", "clean data", "staying", "no leak", "of clean", "5% leak", "of clean")
    return table(head, rows)


PRIORS = {  # of the bound: what it stands for, and the adversary with this knowledge and no leak
    "published": ("the published visits of each venue", "posterior-no-leak"),
    "city": ("also the true popularity and hours", "posterior-informed-no-leak"),
    "habits": ("each person's true number of visits to each venue", ""),
}


def bound() -> str:
    """How often the clean venue of a past visit can be named, next to how often adversaries name it."""
    facts, rows = json.loads((RESULTS / "data-facts.json").read_text("utf-8")), list[tuple[str, ...]]()
    for data, (prior, (knows, adversary)) in product(CITIES, PRIORS.items()):
        r, limit = study("frontier", data=data), facts[data]["bound"]
        shown = labels.data(r), knows, show(limit[f"{prior}_vulnerability"], 3), f"{limit[f'{prior}_guesses']:.1f}"
        restored = r.measures(DEFAULT, adversary)["restored"] if adversary else None
        attack = Attack(adversary, spread(restored)) if restored else None
        rows.append((*shown, show(attack, 3)))
    head = ("city", "known beforehand", "first guess right", "guesses", "recovered without a leak")
    return table(head, rows)


def everyone() -> str:
    """The default against every adversary, before a victim that ignores users and before one that knows them."""
    columns = [(study("frontier", data=data), victim) for data in CITIES for victim in ("transformer", "counting")]
    rows = []
    for key in ("clean", LEAK_ONLY, LEAK_STAY, *study("frontier").study.adversaries, LEAK_MIXED):
        predicts = key in ADVERSARIES and ADVERSARIES[key].predicts
        cells = [show(None if predicts and victim == "transformer" else r.of(victim).value(DEFAULT, key), 3)
                 for r, victim in columns]  # fmt: skip
        holds = "" if key == "clean" else "5% leak" if uses_leak(key) else "no leak"
        rows.append((ADVERSARIES[key].label if key in ADVERSARIES else key, holds, *cells))
    head = ["adversary", "holds", *(f"{labels.data(r)}, {'knows' if VICTIMS[v].knows_users else 'ignores'} users"
                                    for r, v in columns)]  # fmt: skip
    return table(head, rows)


def aware() -> str:
    """Releases under the same constraints, against adversaries that know users."""
    return _side_by_side([(study("rivals"), m) for m in study("rivals").methods])


def blind() -> str:
    """Releases under the same constraints, against victims that ignore users."""
    free = [(study("learned"), f"{m} candidates.category=any") for m in ("ghost", "random")]
    return _side_by_side([(study("constraints"), m) for m in study("constraints").methods] + free)


def _side_by_side(releases: Sequence[tuple[Results, str]]) -> str:
    """A table of releases, those that keep the category first; all differences are one family."""
    kept = {m: mean(r, m, "category_match") for r, m in releases}
    ordered = sorted(releases, key=lambda one: kept[one[1]] < 1)
    gaps = corrected([[gives_away(r, m, leak) for leak in LEAKS] for r, m in ordered])
    rows = []
    for (r, m), gap in zip(ordered, gaps, strict=True):
        cells = [text for leak, one in zip(LEAKS, gap, strict=True)
                 for text in (show(r.worst_case(m, leak), 3), show(one, 3))]  # fmt: skip
        measured = [show(known(r.value(m, key))["mean"], digits) for key, digits in KEPT]
        rows.append((labels.method(m), "exact" if kept[m] == 1 else "any", *measured, *cells))
    head = (
        "release,category,mean km,flows,popularity (JS),no leak: worst case,given away,5% leak: worst case,given away"
    )
    return table(head.split(","), rows)


def adversaries() -> str:
    """What each adversary holds and does, and in which studies it took part."""
    took = {name: study(name).study.adversaries for name in ("frontier", "rivals", "constraints")}
    rows = []
    for key in ADVERSARIES.builtin:
        where = [name for name, those in took.items() if key in those and not ADVERSARIES[key].needs_pseudonyms]
        if where:
            rows.append((ADVERSARIES[key].label, ADVERSARIES[key].holds, ADVERSARIES[key].does, ", ".join(where)))
    return table(("adversary", "holds", "does", "studies"), rows)


def every_release(name: str) -> str:
    """Every release of a study against every adversary, without a leak (0%) and with one."""
    r = study(name)
    keys = [(a, leak) for a in (*r.study.adversaries, "leak-mixed") for leak in LEAKS
            if any(_of(r, m, a, leak) for m in r.methods)]  # fmt: skip
    rows = []
    for m in r.methods:
        shown = [_of(r, m, a, leak) for a, leak in keys]
        top = {leak: known(r.worst(m, leak)).adversary for leak in LEAKS}
        rows.append((labels.method(m), *(_bold(show(value and value["mean"], 3), a == top[leak])
                                         for (a, leak), value in zip(keys, shown, strict=True))))  # fmt: skip
    head = ("release", *(f"{labels.number(a)}, {LEAKS[leak]}" for a, leak in keys))
    return f"{table(head, rows)}\n{commands(name)}\n"


def _of(r: Results, m: str, adversary: str, leak: float) -> Spread | None:
    """What an adversary reaches with exactly this leak."""
    if leak and adversary != "leak-mixed" and not ADVERSARIES[adversary].uses_leak:
        return None
    return r.value(m, adversary, leak)


def _bold(text: str, best: bool) -> str:
    return f"**{text}**" if best else text


def thresholds() -> str:
    """How far learned candidate sets agree with categories, by threshold."""
    found = json.loads((RESULTS / "data-facts.json").read_text("utf-8"))[NYC]["learned"]
    rows = [(words, *(percent(one[key]) for one in found.values())) for key, words in PERCENT]
    return table(("threshold", *("none" if name == "-1" else name for name in found)), rows)


def learned() -> str:
    """Candidate sets that are learned, compared with those of one category and of any."""
    r = study("learned")
    keys = (*r.study.adversaries, "leak-mixed")
    measures = (("substitution_rate", 2), ("mean_km", 2), ("category_match", 2), ("naturalness", 1))
    rows = [
        (labels.method(m, r.study), *(show(mean(r, m, key), digits) for key, digits in measures),
         *_accuracies(r, m, keys))
        for m in r.methods
    ]  # fmt: skip
    head = ("release", "substituted", "mean km", "category kept", "naturalness", *map(labels.number, keys))
    return f"{table(head, rows)}\n{commands('learned')}\n"


def victims() -> str:
    """The worst case against each victim, minus what the leak alone gives that victim."""
    others = study("victims")
    columns = [others.of(name) for name in others.study.victims]
    rows = [
        (f"{key}, acc@1", *(show(here.value("clean", key), 3) for here in columns)) for key in ("clean", "leak-only")
    ]
    among = (*others.study.adversaries, "leak-mixed")
    for m in others.methods:
        rows.append((labels.method(m), *(show(_beyond_leak(here, m, among), 3) for here in columns)))
    return table(("", *(VICTIMS[here.victim].label for here in columns)), rows)


def leaks() -> str:
    """The worst case by leak ratio."""
    r = study("leaks")
    ratios, floors = r.study.leak, ("leak-only", "leak-stay")
    rows = [(key, *(show(r.value("clean", key, leak), 3) for leak in ratios)) for key in floors]
    for m in (DEFAULT, "ghost"):
        rows.append((labels.method(m), *(_worst(r, m, leak) for leak in ratios)))
        rows += [(f"minus {key}", *(show(r.minus(m, WORST_CASE, key, leak), 3) for leak in ratios)) for key in floors]
    return table(("leak", *(f"{leak:.0%}" for leak in ratios)), rows)


def releases() -> str:
    """What several releases of the same rows give."""
    return printed("releases", "Several releases", "minus leak-only")


def provenance() -> str:
    """The hardware and commits of the cells."""
    found = [study(name) for name in STUDIES]
    return f"Hardware: {values('hardware', *found)}. Commits: {values('commit', *found)}.\n"


def percent(share: float) -> str:
    """Write a share with one decimal if it is small."""
    return f"{100 * share:.{1 if share < 0.2 else 0}f}%"


def _accuracies(r: Results, m: str, keys: Sequence[str]) -> list[str]:
    """The mean accuracy under each adversary, that of the worst case in bold."""
    worst = known(r.worst(m)).adversary
    shown = [show(value["mean"] if (value := r.value(m, key)) else None, 3) for key in keys]
    return [f"**{text}**" if key == worst else text for key, text in zip(keys, shown, strict=True)]


def _worst(r: Results, m: str, leak: float | None = None) -> str:
    return show(r.worst(m, leak), 3)


def _beyond_leak(r: Results, m: str, among: Sequence[str]) -> Verdict | None:
    return against(known(r.worst(m, among=among)).accuracy["seeds"], r.series("clean", "leak-only"), least=PRACTICAL)


BLOCKS: dict[str, Block] = {
    "headline": headline,
    "given-away": given_away,
    "limits": limits,
    "distances": distances,
    "bound": bound,
    "everyone": everyone,
    "aware": aware,
    "blind": blind,
    "adversaries": adversaries,
    "every-release": every_release,
    "thresholds": thresholds,
    "learned": learned,
    "victims": victims,
    "leaks": leaks,
    "releases": releases,
    "provenance": provenance,
}
FIGURES = [("rivals", NYC)]
