"""Tables of a study: the paper's layouts for its own studies, generic ones for all others.

In a generic table rows are methods and columns follow the plan.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import product

from ghostpoi.attack.victims import VICTIMS
from ghostpoi.evaluate.controls import CLEAN, LEAK_MIXED, LEAK_ONLY, LEAK_STAY, RANDOM
from ghostpoi.evaluate.measures.accuracy_gaps import spread
from ghostpoi.study import labels
from ghostpoi.study.labels import NONE, Shown, corrected, show
from ghostpoi.study.paper_tables import LAYOUTS, NOTES
from ghostpoi.study.results import BEST_FLOOR, MANY, MEASURES, PAPER_ADVERSARIES, WITHOUT_LEAK, WORST_CASE, Results
from ghostpoi.study.text_table import Row, Table

# What publishers ask about first; `release_measures` has the rest.
KEPT = ("mean_km", "substitution_rate", "flows", "popularity", "category_match", "category_hour", "naturalness")
RIVALS = {"ghost", "pgd", RANDOM}

Cells = Sequence[Shown | str]


def tables(found: Sequence[Results]) -> list[Table]:
    """Make all tables of a study that was measured under one or more protocols."""
    name = found[0].study.name
    if name in LAYOUTS:
        compared = [duels(found)] if {*found[0].methods} >= RIVALS else []
        return [
            *(layout.table(found) for layout in LAYOUTS[name]),
            *compared,
            *map(moves, filter(_has_moves, found)),
            *map(controls, found),
        ]
    generic = [protection, accuracy, recovered, release_measures, controls]
    if found[0].study.releases:
        generic.insert(3, several_releases)
    return [make(results) for results in found for make in (*generic, *([moves] if _has_moves(results) else []))]


def duels(found: Sequence[Results]) -> Table:
    """Show GHOST minus PGD and minus the control."""
    keys, pairs = (*PAPER_ADVERSARIES, "mean"), list(product((RANDOM, "pgd"), found))
    rows = corrected([[results.against("ghost", rival, key) for key in keys] for rival, results in pairs])
    shown = tuple(
        (f"{labels.method(rival)}, {labels.data(results)}, {results.protocol}", *map(show, row))
        for (rival, results), row in zip(pairs, rows, strict=True)
        if any(row)
    )
    seeds = ", ".join(sorted({str(results.study.seeds) for results in found}))
    title = f"GHOST minus random and PGD, acc@1, {seeds} seeds"
    return Table(title, ("GHOST minus", *map(labels.heading, keys)), shown, (NOTES["family"],))


def accuracy(results: Results) -> Table:
    """Show every method against every adversary, between its controls."""
    keys = (*results.adversaries, LEAK_MIXED, *_leak(results), *_floor(results), CLEAN)
    heads, rows = _rows(results, lambda here, m, leak: [here.value(m, key, leak) for key in keys])
    title = "Accuracy, acc@1" if results.part == "all" else f"Accuracy on {results.part}, acc@1"
    return _table(title, results, [*heads, *map(labels.heading, keys)], rows, "spread", "controls", "floors")


def moves(results: Results) -> Table:
    """Show the same over steps to another POI, which nobody predicts who guesses that people stay."""
    return accuracy(results.on_moves)


def protection(results: Results) -> Table:
    """Show what each release keeps, and what the strongest adversaries get from it, beside the controls."""
    floor, alone, has_moves = _floor(results), _leak(results), _has_moves(results)
    kept = [key for key in KEPT if any(results.value(m, key) for m in results.methods)]

    def row(here: Results, method: str, leak: float) -> Cells:
        worst = here.worst(method, leak)
        moved = [here.on_moves.value(method, worst.adversary, leak) if worst else None] if has_moves else []
        shown: list[Shown] = [here.value(method, key) for key in kept]
        shown += [here.value(method, "none"), here.without_leak(method)]
        shown += [here.minus(method, WITHOUT_LEAK, key) for key in floor]
        return [*shown, worst, *(here.minus(method, WORST_CASE, key, leak) for key in alone), *moved]

    heads, rows = _rows(results, row)
    columns = [
        *heads, *map(labels.heading, (*kept, "none")), WITHOUT_LEAK, *(f"minus {key}" for key in floor),
        WORST_CASE, *(f"minus {key}" for key in alone), *(["worst case on moves"] if has_moves else []),
    ]  # fmt: skip
    return _table("What a release keeps and gives away", results, columns, rows, "worst", "spread", "floors", digits=3)


def recovered(results: Results) -> Table:
    """Show how many positions each adversary restores."""

    def row(here: Results, method: str, leak: float) -> Cells:
        return [_recovered(here, method, adversary, leak) for adversary in here.adversaries]

    heads, rows = _rows(results, row, results.study.victims[:1])
    columns = [*heads, *map(labels.heading, results.adversaries)]
    return _table("Recovered share of positions", results, columns, rows, "recovered")


def several_releases(results: Results) -> Table:
    """Show A11 by the number of releases of the same rows that it holds."""
    counts, rows = results.study.releases, list[Cells]()
    for method, count in product(results.methods, counts):
        name, first = (f"{MANY}{n}" for n in (count, counts[0]))
        beyond, more = (results.minus(method, name, other) for other in (LEAK_ONLY, first))
        shown = (results.value(method, name), beyond, NONE if name == first else more)
        rows.append((labels.method(method), str(count), *shown, _recovered(results, method, name, results.leak)))
    columns = ["method", "releases", "A11 acc@1", "minus leak-only", f"minus {counts[0]} release", "recovered share"]
    return _table("Several releases of the same rows", results, columns, rows, "spread")


def release_measures(results: Results) -> Table:
    """Show what each release keeps and costs, with the clean sessions as reference."""
    keys = [k for k in MEASURES if k != "speed_violations_clean" and any(results.value(m, k) for m in results.methods)]

    def row(method: str) -> Row:
        worse = [k for k in keys if method not in (CLEAN, RANDOM) and results.is_worse(method, k)]
        shown = (show(results.value(method, k), 3) + (" (worse)" if k in worse else "") for k in keys)
        return labels.method(method), *shown

    rows = map(row, (CLEAN, RANDOM, *results.methods[:-1]))
    return _table("The release itself", results, ["method", *map(labels.heading, keys)], rows, "measures")


def controls(results: Results) -> Table:
    """Show what belongs to no method: ceiling, what a leak gives without a release, floors."""
    found, moved = _controls(results), _controls(results.on_moves)
    clean, rows = found["clean victim (ceiling)"], list[Row]()
    for name, seeds in found.items():
        same = seeds * len(clean) if len(seeds) == 1 else seeds  # a floor has no seeds
        gap = [c - v for c, v in zip(clean, same, strict=False)]
        rows.append((name, *(show(spread(values)) if values else NONE for values in (seeds, gap, moved[name]))))
    table = _table("Controls, acc@1", results, ["control", "acc@1", "below clean by", "on moves"], rows, "floors")
    return table if any(moved.values()) else table.without("on moves")


def _controls(results: Results) -> dict[str, list[float]]:
    """The accuracies per seed of what belongs to no method; a floor has one, and what was not measured none."""
    found = {"clean victim (ceiling)": results.series(CLEAN, CLEAN) or []}
    for key, leak in product(_leak(results), results.study.leak):
        found[f"{key}, {leak:.0%}"] = results.series(CLEAN, key, leak) or []
    names = {"popularity": "popularity floor", "stay": "stay floor", "markov": "Markov, clean sessions"}
    return found | {name: [] if (x := results.floor(key)) is None else [x] for key, name in names.items()}


def _table(
    title: str, results: Results, columns: Iterable[str], rows: Iterable[Cells], *notes: str, digits: int = 4
) -> Table:
    """A table of separate questions: a reader looks up a method, so every difference stands for itself."""
    title = f"{title} ({labels.place(results)})"
    written = tuple(tuple(show(cell, digits) for cell in row) for row in rows)
    return Table(title, tuple(columns), written, tuple(NOTES[note] for note in notes))


def _floor(results: Results) -> list[str]:
    """The best floor as a column, if it was measured."""
    return [BEST_FLOOR] if results.best_floor else []


def _leak(results: Results) -> list[str]:
    """What a leak gives without a release, as columns; earlier versions measured only the first."""
    return [LEAK_ONLY, *([LEAK_STAY] if results.value(CLEAN, LEAK_STAY) else [])]


def _has_moves(results: Results) -> bool:
    return results.on_moves.value(CLEAN, CLEAN) is not None


def _recovered(results: Results, method: str, adversary: str, leak: float) -> str:
    shares = results.measures(method, adversary, leak).get("restored")
    return show(spread(shares), 3) if shares else NONE


def _rows(
    results: Results, make: Callable[[Results, str, float], Cells], victims: Sequence[str] = ()
) -> tuple[list[str], list[Cells]]:
    """Head and rows of a table with one row per victim, leak ratio and method; what is single gets no column."""
    victims, leaks = victims or results.study.victims, results.study.leak or (results.leak,)
    counts = {"victim": len(victims), "leak": len(leaks), "method": 2}
    heads, rows = [name for name, count in counts.items() if count > 1], list[Cells]()
    for victim, leak, method in product(victims, leaks, results.methods):
        names = (VICTIMS[victim].label, f"{leak:.0%}", labels.method(method))
        shown = (name for name, head in zip(names, counts, strict=True) if head in heads)
        rows.append((*shown, *make(results.of(victim), method, leak)))
    return heads, rows
