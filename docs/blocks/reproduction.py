"""The blocks of docs/results/reproduction.md."""

import json
from dataclasses import replace
from itertools import chain
from statistics import fmean

from docs import rerun_flashback
from docs.blocks import claims
from docs.blocks.common import (
    RESULTS,
    Block,
    commands,
    known,
    mains,
    mean,
    measured,
    printed,
    study,
    table,
    values,
)
from ghostpoi.audits.measures.gaps import holm, spread
from ghostpoi.study import labels, paper
from ghostpoi.study.labels import NONE, corrected, show
from ghostpoi.study.plan import PROTOCOLS
from ghostpoi.study.results import NYC, PAPER_ADVERSARIES, WITHOUT_LEAK, WORST_CASE, Attack, Results
from ghostpoi.study.tables import duels

STEPS = ("main", "weights", "entropy", "rounds", "leak")  # studies of `study reproduce` whose time is counted
SECONDS = ("victim_seconds", "adversary_seconds", "release_seconds")
KNOWN = ("ghost", "pgd", "random")
TERMS = {"random": "none", "ghost-ef": "none", "ghost": "β 0.5, α 2", "ghost-sym": "β 1, α 1"}  # noqa: RUF001


def headline() -> str:
    """GHOST against its rivals in the paper's headline score."""
    found = corrected([[r.against("ghost", rival, "mean") for rival in ("pgd", "random")] for r in mains()])
    rows = [(_name(r), *map(show, row)) for r, row in zip(mains(), found, strict=True)]
    for city, name in paper.CITIES.items():
        text = paper.section(city, "main")
        gap = text["ghost"]["mean"][0] - text["pgd"]["mean"][0]
        rows.append((f"the paper, {name}", show(gap, sign="+"), NONE))
    return table(("Δmean, higher protects more", "GHOST minus PGD", "GHOST minus random"), rows)


def answers() -> str:
    """Whether GHOST protects better than PGD and random, for each city and kind of adversary."""
    rows = []
    for data in measured("main"):
        found = [r for r in mains() if r.data == data]
        paper_s = [_better(*(known(r.against("ghost", rival, "mean")).sign for r in found)) for rival in KNOWN[1:]]
        knows = ["not measured"] * 2
        if data == NYC:
            r, keys = study("constraints"), (WORST_CASE, WITHOUT_LEAK)
            signs = [[-known(gap).sign for gap in holm([r.against("ghost", m, k) for k in keys])] for m in KNOWN[1:]]
            knows = [" / ".join(map(_better, each)) for each in signs]
        rows.append((labels.data(found[0]), *paper_s, *knows))
    heads = [
        f"{m}, against {who}"
        for who in ("the paper's adversaries A1 to A3", "adversaries that know how it draws, with 5% leak / without")
        for m in ("PGD", "random")
    ]
    return table(("does GHOST protect better than ...", *heads), rows)


def _better(*signs: int) -> str:
    return "**yes**" if set(signs) == {1} else "no, worse" if set(signs) == {-1} else "not clearly"


def knowing() -> str:
    """GHOST against its rivals where the strongest adversary knows the rule."""
    r, shown = study("constraints"), {WORST_CASE: "5% leak", WITHOUT_LEAK: "no leak"}
    found = [holm([r.against("ghost", rival, key) for key in shown]) for rival in ("pgd", "random")]
    rows = [(f"{_name(r)}, {words}", *map(show, gaps), *(show(_strongest(r, m, key)) for m in KNOWN))
            for (key, words), *gaps in zip(shown.items(), *found, strict=True)]  # fmt: skip
    head = ("acc@1 under the strongest adversary, lower protects more", "GHOST minus PGD", "GHOST minus random")
    return table((*head, *map(labels.method, KNOWN)), rows)


def _strongest(r: Results, m: str, key: str) -> Attack | None:
    return r.worst(m) if key == WORST_CASE else r.without_leak(m)


def verdicts(which: str) -> str:
    """The claims of the paper with our answers."""
    title, those, city, cities = claims.GROUPS[which]
    ours = [f"ours, {labels.data(study('main', data=data))}" for data in cities]
    return table((title, f"paper, {paper.CITIES[city]}", *ours, "verdict"), claims.summary(those, cities))


def manifold() -> str:
    """Naturalness and accuracy by the weight of the manifold term."""
    strong = [study("main", data=data) for data in measured("main")]
    head = [text for r in strong for text in (f"log p, {labels.data(r)}", f"A1, {labels.data(r)}")]
    rows = [
        (labels.method(m), term, *(show(r.value(m, key), digits) for r in strong
                                   for key, digits in (("naturalness", 2), ("none", 4))))
        for m, term in TERMS.items()
    ]  # fmt: skip
    return table(("release", "manifold term", *head), rows)


def purifiers() -> str:
    """A2 and its two variants of the paper's outlook."""
    r = study("purifiers")
    keys = ("leak-mixed", *r.study.adversaries)
    rows = [(labels.method(m), *(show(r.value(m, key)) for key in keys)) for m in r.methods]
    return table(("acc@1", *map(labels.heading, keys)), rows)


READINGS = {  # of PGD, EM and TS-UE: a method, or a row of readings.json
    "ours: PGD takes the highest loss, EM the lowest": ("pgd", "em", "ts-ue-calibrated"),
    "EM takes the likeliest venue; TS-UE without random starts": ("pgd", "em method.score=likelihood", "ts-ue"),
    'PGD takes the lowest loss ("argmin"), EM the likeliest venue': (
        "em", "em method.score=likelihood", "ts-ue-calibrated"
    ),
}  # fmt: skip
OTHER_READINGS = {  # each with the methods of ours, and with those of "argmin"
    "one map": "one map: a venue always gets its most frequent substitute",
    "own ends": "other ends: a session's first and last visit aim at their own venue",
    "one round": "one round: the surrogate is not trained again",
    "no widening": "no widening: candidates stay within 1 km",
}


def readings() -> str:
    """How far readings of PGD, EM and TS-UE are from the printed rows under A1 to A4."""
    stored = json.loads((RESULTS / "readings.json").read_text("utf-8"))["rows"]
    other = {f"{row['method']}, {row['reading']}": row["acc@1"] for row in stored}
    r, text, names = study("main", "paper"), paper.section("nyc", "main"), ("pgd", "em", "ts-ue")
    all_readings: dict[str, tuple[str, ...]] = dict(READINGS)
    for name, told in OTHER_READINGS.items():
        for ours, end in zip([*READINGS.values()][::2], ("", '; "argmin"'), strict=True):
            all_readings[told + end] = tuple(f"{m}, {name}" for m in ours)
    theirs = [[text[name][a][0] for a in PAPER_ADVERSARIES] for name in names]
    rows = []
    for reading, those in all_readings.items():
        found = [
            [spread(other[m][a])["mean"] if m in other else mean(r, m, a) for a in PAPER_ADVERSARIES] for m in those
        ]
        far = [[abs(v - p) for v, p in zip(*pair, strict=True)] for pair in zip(found, theirs, strict=True)]
        cells = [f"{' '.join(map(show, ours))} ({show(fmean(gaps))})" for ours, gaps in zip(found, far, strict=True)]
        rows.append((reading, *cells, show(fmean(chain.from_iterable(far)))))
    printed = [" ".join(show(text[name][a][0]) for a in PAPER_ADVERSARIES) for name in names]
    head = ("acc@1 under A1, A2, A3, A4", "PGD", "EM", "TS-UE", "distance of all three")
    return table(head, [*rows, ("printed", *printed, NONE)])


def flashback() -> str:
    """What Flashback learns from releases."""
    return rerun_flashback.table(json.loads((RESULTS / "flashback.json").read_text("utf-8")))


def rivals() -> str:
    """GHOST minus random and PGD under each adversary."""
    shown = replace(duels(mains()).without("Δmean"), notes=(commands("main", "both"),))
    return shown.markdown(gap="")


def favourable() -> str:
    """The differences to random that are clearly in a method's favour."""
    return table(("method", "adversary", "city, protocol", "minus random"), favours()[1])


def favours() -> tuple[int, list[tuple[str, ...]]]:
    """Count the differences between a method and random; list those clearly in the method's favour."""
    count, rows = 0, list[tuple[str, ...]]()
    for r in mains():
        names = [m for m in r.methods if m != "random"]
        found = corrected([[r.against(m, "random", a) for a in PAPER_ADVERSARIES] for m in names])
        for m, row in zip(names, found, strict=True):
            count += len(row)
            rows += [
                (labels.method(m), labels.number(a), _name(r), show(known(gap).difference["mean"]))
                for a, gap in zip(PAPER_ADVERSARIES, row, strict=True)
                if known(gap).sign == -1
            ]
    return count, rows


def cities(name: str, title: str, *without: str) -> str:
    """A table of a study, for each city."""
    return "\n".join(printed(name, title, *without, data=data) for data in measured(name))


def plausibility(protocol: str) -> str:
    """Table II of each city under a protocol."""
    kept = "category kept"
    return "\n".join(
        printed("main", "Table II:", kept, data=data, protocol=protocol) for data in measured("main", protocol)
    )


def naturalness() -> str:
    """Table III of all cities under both protocols, and as printed."""
    text = {name: paper.section(city, "naturalness") for city, name in paper.CITIES.items()}
    columns = [(r, max(r.methods, key=lambda m: mean(r, m, "naturalness"))) for r in mains()]
    rows = []
    for m in (*mains()[0].methods, "clean"):
        ours = [_bold(show(r.value(m, "naturalness"), 2), m == best) for r, best in columns]
        theirs = [show(found[m]["naturalness"][0], 2) if m in found else NONE for found in text.values()]
        rows.append((labels.method(m), *ours, *theirs))
    head = ("method", *(f"{labels.data(r)}, {r.protocol}" for r in mains()), *(f"printed, {name}" for name in text))
    return f"{table(head, rows)}\n{commands('main', 'both')}\n"


def leaks(protocol: str) -> str:
    """Accuracies by leak ratio for each city; under `strong` with survival gaps."""
    made = []
    for data in measured("leak", protocol):
        made.append(_leaks(study("leak", protocol, data), gaps=protocol == "strong"))
        made += [f"{commands('leak', protocol, data)}\n"] if protocol == "strong" else []
    return "\n".join(made)


def _leaks(r: Results, gaps: bool) -> str:
    ratios, rows = r.study.leak, []
    for a in ("bridge", "frequency"):
        for m in r.methods:
            cells = []
            for leak in ratios:
                lowest = all(mean(r, m, a, leak) <= mean(r, other, a, leak) for other in r.methods)
                gap = f" ({show(mean(r, m, f'surv_{a}', leak))})" if gaps else ""
                cells.append(_bold(show(mean(r, m, a, leak)), lowest) + gap)
            rows.append((f"{labels.number(a)}, {labels.method(m)}", *cells))
    for name, m, key in (("leak-mixed, random", "random", "leak-mixed"), ("leak-only", "clean", "leak-only")):
        rows.append((name, *(show(mean(r, m, key, leak)) for leak in ratios)))
    return table((_name(r), *(f"{leak:.0%} leak" for leak in ratios)), rows)


def short() -> str:
    """Means of all studies under `paper`, for each city."""
    keys = (*PAPER_ADVERSARIES, "mean", "worst")
    made = []
    for data in measured("main", "paper"):
        names = ("main", "weights", "entropy", "rounds")
        studies = [study(name, "paper", data) for name in names if data in measured(name, "paper")]
        order = dict.fromkeys(m for r in studies for m in r.methods)
        found = {m: r for r in studies[::-1] for m in r.methods}
        rows = [(labels.method(m), *(show(v["mean"]) if (v := found[m].value(m, key)) else NONE for key in keys))
                for m in order]  # fmt: skip
        head = (_name(study("main", "paper", data)), "A1", "A2", "A3", "A4", "Δmean", "Δworst")
        made.append(table(head, rows))
    return "\n".join(made)


def provenance() -> str:
    """The hardware, time, commits and seeds of the cells."""
    made = [study(name, p, data) for name in STEPS for p in PROTOCOLS for data in measured(name, p)]
    commit = values("commit", *made)
    surrogate = values("commit", study("surrogate", "paper")).replace(f"{commit}, ", "")
    others = values("commit", study("constraints"), study("releases")).replace(f"{commit}, ", "")
    seeds = [known(study(name)).study.seeds for name in ("main", "leak")]
    return (
        f"Hardware: {values('hardware', *mains())}. The steps of `reproduce` took {seconds(*made) / 3600:.1f} hours "
        f"together.\nCommits: {commit} (`reproduce`), {surrogate} (`surrogate`), {others} (`constraints`, `releases`). "
        f"Seeds: {seeds[0]} (`main`), {seeds[1]} (others).\n"
    )


def seconds(*found: Results) -> float:
    """Return what victims, adversaries and releases took together."""
    return sum(sum(cell["measures"].get(key, [])) for r in found for cell in r.cells for key in SECONDS)


def _name(r: Results) -> str:
    return f"{labels.data(r)}, `{r.protocol}`"


def _bold(text: str, best: bool) -> str:
    return f"**{text}**" if best else text


BLOCKS: dict[str, Block] = {
    "answers": answers,
    "headline": headline,
    "knowing": knowing,
    "verdicts": verdicts,
    "manifold": manifold,
    "rivals": rivals,
    "purifiers": purifiers,
    "readings": readings,
    "flashback": flashback,
    "favourable": favourable,
    "cities": cities,
    "plausibility": plausibility,
    "naturalness": naturalness,
    "leaks": leaks,
    "short": short,
    "provenance": provenance,
}
FIGURES = [(name, data) for name in ("main", "rounds", "leak") for data in measured(name)]
