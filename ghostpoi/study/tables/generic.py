"""The tables that every study gets, whatever its plan names: rows are methods, columns follow the plan."""

from collections.abc import Callable, Sequence
from itertools import product

from ghostpoi.attack.victims import VICTIMS
from ghostpoi.evaluate.controls import CLEAN, LEAK_MIXED, LEAK_ONLY, RANDOM
from ghostpoi.evaluate.measures.gaps import spread
from ghostpoi.study import labels
from ghostpoi.study.measures import MEASURES
from ghostpoi.study.results import MANY, WORST_CASE, Results
from ghostpoi.study.tables.table import NONE, Row, Table, percent, show

SPREAD_NOTE = (
    "± is the standard deviation over seeds. An arrow marks a clear difference: taken seed by seed, its 95% interval "
    "excludes 0."
)
CONTROLS_NOTE = (
    "leak-only: a victim trained on the leaked sessions alone. leak-mixed: one trained on the release with the leaked "
    "sessions swapped in."
)


def tables(results: Results) -> list[Table]:
    """Make all of them."""
    made = [accuracy(results), worst_cases(results), recovered(results)]
    made += [several_releases(results)] if results.study.releases else []
    return [*made, release_measures(results), controls(results)]


def accuracy(results: Results) -> Table:
    """Show every method against every adversary, between its controls."""
    keys = (*results.adversaries, LEAK_MIXED, LEAK_ONLY, CLEAN)
    heads, rows = _rows(results, lambda here, m, leak: [show(here.value(m, key, leak)) for key in keys])
    columns = (*heads, *map(labels.heading, keys))
    return Table(f"Accuracy, acc@1 ({labels.place(results)})", columns, rows, (SPREAD_NOTE, CONTROLS_NOTE))


def worst_cases(results: Results) -> Table:
    """Show the strongest adversary against each method, and how far it is from the controls."""

    def row(here: Results, method: str, leak: float) -> list[str]:
        first, second = (*here.attacks(method, leak), None, None)[:2]
        ahead = here.minus(method, first.adversary, second.adversary, leak) if first and second else None
        mixed, alone = (here.minus(method, WORST_CASE, control, leak) for control in (LEAK_MIXED, LEAK_ONLY))
        shown = (first, second, ahead, here.without_leak(method), here.value(method, LEAK_MIXED, leak), mixed, alone)
        return [*map(show, shown), percent(here.share_of_lead(method, leak))]

    heads, rows = _rows(results, row)
    controls = ("worst without leak", "leak-mixed", "minus leak-mixed", "minus leak-only", "share of clean's lead")
    note = (
        "Worst case: the adversary with the highest mean over seeds. Share of clean's lead: what the worst case has "
        "beyond leak-only, as a share of what clean sessions have beyond it."
    )
    columns = (*heads, WORST_CASE, "next", "minus next", *controls)
    return Table(f"Worst case, acc@1 ({labels.place(results)})", columns, rows, (note,))


def recovered(results: Results) -> Table:
    """Show how many positions each adversary restores."""
    heads, rows = _rows(
        results,
        lambda here, m, leak: [_recovered(here, m, a, leak) for a in here.adversaries],
        results.study.victims[:1],
    )
    note = "Positions of leaked sessions do not count. A1 shows what the publisher left unchanged."
    columns = (*heads, *map(labels.heading, results.adversaries))
    return Table(f"Recovered share of positions ({labels.place(results)})", columns, rows, (note,))


def several_releases(results: Results) -> Table:
    """Show A11 by the number of releases of the same rows that it holds."""
    names = [f"{MANY}{count}" for count in results.study.releases]
    rows = list[Row]()
    for method in results.methods:
        for name in names:
            shown = (results.value(method, name), results.minus(method, name, LEAK_ONLY))
            more = NONE if name == names[0] else show(results.minus(method, name, names[0]))
            first = (labels.method(method, results.study), name.removeprefix(MANY))
            rows.append((*first, *map(show, shown), more, _recovered(results, method, name, results.leak)))
    columns = ("method", "releases", "A11 acc@1", "minus leak-only", f"minus {names[0].removeprefix(MANY)} release")
    title = f"Several releases of the same rows ({labels.place(results)})"
    return Table(title, (*columns, "recovered share"), tuple(rows), (SPREAD_NOTE,))


def release_measures(results: Results) -> Table:
    """Show what each release keeps and costs, with the clean sessions as reference."""
    keys = [k for k in MEASURES if k != "speed_violations_clean" and any(results.value(m, k) for m in results.methods)]

    def row(method: str) -> Row:
        worse = [k for k in keys if method not in (CLEAN, RANDOM) and results.is_worse(method, k)]
        shown = (show(results.value(method, k), 3) + (" (worse)" if k in worse else "") for k in keys)
        return labels.method(method, results.study), *shown

    note = (
        "worse: clearly worse than the random control. The radius of gyration is judged by its distance to the clean "
        "one; no substitution rate is better than another. AUC .5: released sessions cannot be told from clean ones."
    )
    rows, columns = tuple(map(row, (CLEAN, RANDOM, *results.methods[:-1]))), ("method", *map(labels.heading, keys))
    return Table(f"The release itself ({labels.place(results)})", columns, rows, (note,))


def controls(results: Results) -> Table:
    """Show what belongs to no method: ceiling, leak-only, floors."""
    clean = results.series(CLEAN, CLEAN) or []
    floors = {"popularity floor": results.floor("popularity"), "Markov floor, clean sessions": results.floor("markov")}
    found = {"clean victim (ceiling)": clean}
    found |= {f"leak-only, {leak:.0%}": results.series(CLEAN, LEAK_ONLY, leak) or [] for leak in results.study.leak}
    found |= {name: [] if value is None else [value] for name, value in floors.items()}
    rows = list[Row]()
    for name, seeds in found.items():
        same = seeds * len(clean) if len(seeds) == 1 else seeds  # a floor has no seeds
        gap = [c - v for c, v in zip(clean, same, strict=False)]
        rows.append((name, *(show(spread(values)) if values else NONE for values in (seeds, gap))))
    return Table(f"Controls, acc@1 ({labels.place(results)})", ("control", "acc@1", "below clean by"), tuple(rows))


def _recovered(results: Results, method: str, adversary: str, leak: float) -> str:
    shares = results.measures(method, adversary, leak).get("restored")
    return show(spread(shares), 3) if shares else NONE


def _rows(
    results: Results, make: Callable[[Results, str, float], Sequence[str]], victims: Sequence[str] = ()
) -> tuple[Row, tuple[Row, ...]]:
    """Head and rows of a table with one row per victim, leak ratio and method; what is single gets no column."""
    victims, leaks = victims or results.study.victims, results.study.leak or (results.leak,)
    counts = {"victim": len(victims), "leak": len(leaks), "method": 2}
    heads, rows = tuple(name for name, count in counts.items() if count > 1), list[Row]()
    for victim, leak, method in product(victims, leaks, results.methods):
        names = (VICTIMS[victim].label, f"{leak:.0%}", labels.method(method, results.study))
        shown = (name for name, head in zip(names, counts, strict=True) if head in heads)
        rows.append((*shown, *make(results.of(victim), method, leak)))
    return heads, tuple(rows)
