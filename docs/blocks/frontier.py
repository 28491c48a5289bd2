"""The blocks of docs/results/frontier.md."""

import json
from collections.abc import Sequence

from docs.blocks.common import RESULTS, Block, commands, known, mean, printed, study, table, values
from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.victims import VICTIMS
from ghostpoi.audits.measures.gaps import PRACTICAL, Verdict, against
from ghostpoi.study import labels
from ghostpoi.study.labels import NONE, show
from ghostpoi.study.results import NYC, WITHOUT_LEAK, WORST_CASE, Results

DEFAULT, SESSION = "crowd-halves", " identity.pseudonyms=session"
OF_PAPER = ("ghost", "pgd", "random")
PERCENT = (("near_precision", "precision"), ("near_recall", "recall"), ("visits_none", "visits without candidate"))


def strongest() -> str:
    """The strongest adversary with and without a leak."""
    r = study("frontier")
    rows = [("5% leak", DEFAULT, _worst(r, DEFAULT)), ("5% leak", f"{DEFAULT}, a fresh pseudonym per session",
            _worst(r, DEFAULT + SESSION)), ("5% leak", labels.method("ghost"), _worst(r, "ghost")),
            ("no leak", DEFAULT, show(r.without_leak(DEFAULT), 3))]  # fmt: skip
    return table(("adversary holds", "release", "acc@1"), rows)


def below_stay() -> str:
    """The releases with kept users against which no adversary without a leak is clearly better than `stay`."""
    return "".join(f"- {labels.method(m)}\n" for m in safe(study("frontier")))


def safe(r: Results) -> list[str]:
    """Return the releases with kept users against which no adversary without a leak beats the best floor."""
    free = {m: known(r.minus(m, WITHOUT_LEAK, "best floor")) for m in r.methods if SESSION not in m}
    return [m for m, gap in free.items() if gap.sign < 1]


def limits() -> str:
    """The limits for the default, set before the study ran, and whether it meets them."""
    r = study("frontier")
    rows = [(name, limit, shown, "yes" if met else "**no**") for name, limit, shown, met in default_and_limits(r)]
    return table(("limit for the default", "set", "measured", "met"), rows)


def default_and_limits(r: Results) -> list[tuple[str, str, str, bool]]:
    """Return each limit with what was set, what was measured, and whether it is met."""
    gap = known(r.minus(DEFAULT, WORST_CASE, "leak-only"))
    rotated = known(r.minus(DEFAULT + SESSION, WORST_CASE, "leak-only"))
    free = known(r.minus(DEFAULT, WITHOUT_LEAK, "best floor"))
    moved, flows, popularity = (known(r.value(DEFAULT, key)) for key in ("mean_km", "flows", "popularity"))
    return [
        ("worst case with a 5% leak, minus leak-only", "at most .015", show(gap, 3), _at_most(gap, 0.015)),
        (
            "the same with a pseudonym per session",
            "at most .005",
            show(rotated, 3),
            rotated.difference["mean"] <= 0.005,
        ),
        ("strongest adversary without a leak, minus `stay`", "not clearly above 0", show(free, 3), free.sign < 1),
        ("mean displacement, km", "at most 1.9", show(moved, 2), moved["mean"] <= 1.9),
        ("common part of flows", "at least .50", show(flows, 3), flows["mean"] >= 0.5),
        ("popularity (JS, bits)", "at most .03", show(popularity, 3), popularity["mean"] <= 0.03),
    ]


def _at_most(gap: Verdict, limit: float) -> bool:
    return gap.difference["mean"] <= limit


def controls() -> str:
    """What belongs to no release."""
    return printed("frontier", "Controls")


def kept() -> str:
    """What each release keeps and gives away. New pseudonyms change no venue, so they have a table of their own."""
    lines = printed("frontier", "What a release").splitlines()
    return "".join(f"{line}\n" for line in lines if "pseudonyms=session" not in line)


def adversaries() -> str:
    """What each adversary holds and does."""
    every = [ADVERSARIES[key] for key in ADVERSARIES.builtin]
    found = [a for a in every if not (a.needs_columns or a.predicts)]  # as in the study
    return table(("adversary", "holds", "does"), [(a.label, a.holds, a.does) for a in found])


def every_release() -> str:
    """Every release against every adversary."""
    r = study("frontier")
    keys = (*r.study.adversaries, "leak-mixed", "markov")
    head = ("release", *(labels.number(key) if key in ADVERSARIES else labels.heading(key) for key in keys))
    return table(head, [(labels.method(m), *_accuracies(r, m, keys)) for m in r.methods])


def pseudonyms() -> str:
    """The worst case of each release with and without new pseudonyms."""
    r = study("frontier")
    rows = []
    for m in (m for m in r.methods if m + SESSION in r.methods):
        beyond = [show(r.minus(m + SESSION, WORST_CASE, key), 3) for key in ("leak-only", "leak-stay")]
        change = against(r.series(m + SESSION, WORST_CASE), r.series(m, WORST_CASE), least=PRACTICAL)
        rows.append((labels.method(m), _worst(r, m), _worst(r, m + SESSION), show(change, 3), *beyond))
    head = ("release", "worst case", "with pseudonyms", "difference", "minus leak-only", "minus leak-stay")
    return table(head, rows)


def rivals(which: str) -> str:
    """Releases compared with the default: settings of `crowd`, or what a user would pick instead."""
    r = study("frontier")
    rows = []
    for m in (DEFAULT, *(settings(r) if which == "settings" else instead(r))):
        cells = []
        for key, digits in ((WORST_CASE, 3), ("mean_km", 2), ("flows", 3)):
            cells += [show(mean(r, m, key), digits), NONE if m == DEFAULT else show(r.against(m, DEFAULT, key), digits)]
        kept = (show(mean(r, m, "popularity"), 3), show(mean(r, m, "category_match"), 2))
        rows.append((labels.method(m), *cells, *kept))
    head = "release,worst case,minus default,mean km,minus default,flows,minus default,popularity (JS),category kept"
    return table(head.split(","), rows)


def settings(r: Results) -> list[str]:
    """Return the other settings of `crowd`, without new pseudonyms."""
    return [m for m in r.methods if m.split()[0] == DEFAULT and m != DEFAULT and SESSION not in m]


def instead(r: Results) -> list[str]:
    """Return what a user would pick instead, without new pseudonyms."""
    return [m for m in r.methods if m.split()[0] not in (DEFAULT, *OF_PAPER) and SESSION not in m]


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
    r, others = study("frontier"), study("victims")
    columns = [r, *(others.of(name) for name in others.study.victims)]
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
    found = [study(name) for name in ("frontier", "victims", "leaks", "releases", "learned")]
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
    "strongest": strongest,
    "below-stay": below_stay,
    "limits": limits,
    "controls": controls,
    "kept": kept,
    "adversaries": adversaries,
    "every-release": every_release,
    "pseudonyms": pseudonyms,
    "rivals": rivals,
    "thresholds": thresholds,
    "learned": learned,
    "victims": victims,
    "leaks": leaks,
    "releases": releases,
    "provenance": provenance,
}
FIGURES = [("frontier", NYC)]
