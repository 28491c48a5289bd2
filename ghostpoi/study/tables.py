"""Tables of a study: the paper's layouts for its own studies, generic ones for all others.

In a generic table rows are methods and columns follow the plan. A table of the paper has its printed numbers below
ours, and the controls that it lacks.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from ghostpoi.attack.victims import VICTIMS
from ghostpoi.evaluate.controls import CLEAN, LEAK_MIXED, LEAK_ONLY, LEAK_STAY, RANDOM
from ghostpoi.evaluate.measures.accuracy_gaps import spread
from ghostpoi.study import labels, paper
from ghostpoi.study.labels import NONE, SYMBOLS, Shown, show
from ghostpoi.study.results import BEST_FLOOR, MANY, MEASURES, WITHOUT_LEAK, WORST_CASE, Results

NOTES = paper.contents("table_notes")
# What publishers ask about first; `release_measures` has the rest.
KEPT = ("mean_km", "substitution_rate", "flows", "popularity", "category_match", "category_hour", "naturalness")
DIGITS = {"mean_km": 3, "p95_km": 3}  # in the paper's tables; all others: 4
TEX = str.maketrans({
    "±": r"$\pm$", "Δ": r"$\Delta$", "↓": r"$\downarrow$", "↑": r"$\uparrow$", SYMBOLS["method.alpha"]: r"$\alpha$",
    "β": r"$\beta$", "η": r"$\eta$", "τ": r"$\tau$", "%": r"\%", "_": r"\_", "&": r"\&", "#": r"\#",
    "\\": r"\textbackslash{}",
})  # fmt: skip

Row = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Text in rows and columns."""

    title: str
    columns: Row
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def without(self, *columns: str) -> "Table":
        """Leave columns out."""
        kept = [n for n, column in enumerate(self.columns) if column not in columns]
        header, *rows = (tuple(row[n] for n in kept) for row in (self.columns, *self.rows))
        return replace(self, columns=header, rows=tuple(rows))

    def markdown(self, gap: str = " ") -> str:
        """Write a pipe table under its title; a page has no gaps between cells."""
        rows = (self.columns, ["---"] * len(self.columns), *self.rows)
        lines = [f"**{self.title}**", "", *(f"|{gap}{f'{gap}|{gap}'.join(row)}{gap}|" for row in rows)]
        return "\n".join(lines + [line for note in self.notes for line in ("", note)]) + "\n"

    def latex(self) -> str:
        """Write a table with booktabs rules."""
        caption = " ".join([self.title + ".", *self.notes]).translate(TEX)
        header, *rows = (" & ".join(cell.translate(TEX) for cell in row) + r" \\" for row in (self.columns, *self.rows))
        lines = [
            r"\begin{table}", rf"\caption{{{caption}}}", r"\centering",
            rf"\begin{{tabular}}{{ll{'c' * (len(self.columns) - 2)}}}", r"\toprule", header, r"\midrule", *rows,
            r"\bottomrule", r"\end{tabular}", r"\end{table}",
        ]  # fmt: skip
        return "\n".join(lines) + "\n"


def tables(found: Sequence[Results]) -> list[Table]:
    """Make all tables of a study that was measured under one or more protocols."""
    name = found[0].study.name
    if name in LAYOUTS:
        layouts = [table for layout in LAYOUTS[name] for table in layout.tables(found)]
        return [*layouts, *map(moves, filter(_has_moves, found)), *map(controls, found)]
    generic = [protection, accuracy, recovered, release_measures, controls]
    if found[0].study.releases:
        generic.insert(3, several_releases)
    return [make(results) for results in found for make in (*generic, *([moves] if _has_moves(results) else []))]


def accuracy(results: Results) -> Table:
    """Show every method against every adversary, between its controls."""
    keys = (*results.adversaries, LEAK_MIXED, *_leak(results), *_floor(results), CLEAN)
    heads, rows = _rows(results, lambda here, m, leak: [show(here.value(m, key, leak)) for key in keys])
    title = "Accuracy, acc@1" if results.part == "all" else f"Accuracy on {results.part}, acc@1"
    return _table(title, results, [*heads, *map(labels.heading, keys)], rows, "spread", "controls", "floors")


def moves(results: Results) -> Table:
    """Show the same over steps to another POI, which nobody predicts who guesses that people stay."""
    return accuracy(results.on_moves)


def protection(results: Results) -> Table:
    """Show what each release keeps, and what the strongest adversaries get from it, beside the controls."""
    floor, alone, has_moves = _floor(results), _leak(results), _has_moves(results)
    kept = [key for key in KEPT if any(results.value(m, key) for m in results.methods)]

    def row(here: Results, method: str, leak: float) -> list[str]:
        worst = here.worst(method, leak)
        moved = [here.on_moves.value(method, worst.adversary, leak) if worst else None] if has_moves else []
        shown: list[Shown] = [here.value(method, key) for key in kept]
        shown += [here.value(method, "none"), here.without_leak(method)]
        shown += [here.minus(method, WITHOUT_LEAK, key) for key in floor]
        shown += [worst, *(here.minus(method, WORST_CASE, key, leak) for key in alone), *moved]
        return [show(value, 3) for value in shown]

    heads, rows = _rows(results, row)
    columns = [
        *heads, *map(labels.heading, (*kept, "none")), WITHOUT_LEAK, *(f"minus {key}" for key in floor),
        WORST_CASE, *(f"minus {key}" for key in alone), *(["worst case on moves"] if has_moves else []),
    ]  # fmt: skip
    return _table("What a release keeps and gives away", results, columns, rows, "worst", "spread", "floors")


def recovered(results: Results) -> Table:
    """Show how many positions each adversary restores."""

    def row(here: Results, method: str, leak: float) -> list[str]:
        return [_recovered(here, method, adversary, leak) for adversary in here.adversaries]

    heads, rows = _rows(results, row, results.study.victims[:1])
    columns = [*heads, *map(labels.heading, results.adversaries)]
    return _table("Recovered share of positions", results, columns, rows, "recovered")


def several_releases(results: Results) -> Table:
    """Show A11 by the number of releases of the same rows that it holds."""
    counts, rows = results.study.releases, list[Row]()
    for method, count in product(results.methods, counts):
        name, first = (f"{MANY}{n}" for n in (count, counts[0]))
        shown = (results.value(method, name), results.minus(method, name, LEAK_ONLY))
        more = NONE if name == first else show(results.minus(method, name, first))
        restored = _recovered(results, method, name, results.leak)
        rows.append((labels.method(method), str(count), *map(show, shown), more, restored))
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


def _table(title: str, results: Results, columns: Iterable[str], rows: Iterable[Row], *notes: str) -> Table:
    title = f"{title} ({labels.place(results)})"
    return Table(title, tuple(columns), tuple(rows), tuple(NOTES[note] for note in notes))


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
    results: Results, make: Callable[[Results, str, float], Sequence[str]], victims: Sequence[str] = ()
) -> tuple[list[str], list[Row]]:
    """Head and rows of a table with one row per victim, leak ratio and method; what is single gets no column."""
    victims, leaks = victims or results.study.victims, results.study.leak or (results.leak,)
    counts = {"victim": len(victims), "leak": len(leaks), "method": 2}
    heads, rows = [name for name, count in counts.items() if count > 1], list[Row]()
    for victim, leak, method in product(victims, leaks, results.methods):
        names = (VICTIMS[victim].label, f"{leak:.0%}", labels.method(method))
        shown = (name for name, head in zip(names, counts, strict=True) if head in heads)
        rows.append((*shown, *make(results.of(victim), method, leak)))
    return heads, rows


@dataclass(frozen=True)
class TableLayout:
    """A table of the paper; layouts.toml explains the fields."""

    title: str
    sections: list[str]
    columns: list[str]
    extra: Sequence[str] = ()
    versus: str = ""
    by_leak: bool = False

    def tables(self, found: Sequence[Results]) -> Iterator[Table]:
        """Make one per city in which the paper has such a table; data of no city of the paper stands beside NYC."""
        heads = ["method", "source", *map(labels.heading, [*self.columns, *self.extra])]
        heads += [f"A1 minus {self.versus}"] if self.versus else []
        notes = tuple(NOTES[note] for note in ("spread", "paper", "controls", "floors", "calibrated"))
        unknown = [] if any(results.best_floor for results in found) else [BEST_FLOOR]
        for city, name in paper.CITIES.items():
            here = [r for r in found if r.cells and (r.city or "nyc") == city]
            if any(section in paper.contents()[city] for section in self.sections) and (here or not self.versus):
                other = f"{here[0].data}, which is not the paper's " if here and not here[0].city else ""
                leaks = found[0].study.leak if self.by_leak else (None,)
                rows = tuple(row for leak in leaks for row in self._rows(here, city, leak))
                title = f"{self.title} ({other}{name}, {labels.protocols(found)})"
                yield Table(title, tuple(heads), rows, notes).without(*unknown)

    def _rows(self, found: Sequence[Results], city: str, leak: float | None) -> Iterator[Row]:
        known = paper.leak_section(city).get(f"{leak:g}", {}) if leak else paper.section(city, *self.sections)
        first = [CLEAN] if CLEAN in known else []
        for method in dict.fromkeys([*first, *(found[0].methods if found else known)]):
            name = labels.method(method, found[0].study if found else None)
            name = f"{leak:.0%} {name}" if leak else name
            for results in found:
                yield (name, results.protocol, *self._measured(results, method, leak))
            if printed := known.get(method):
                numbers = (
                    "±".join(show(n, DIGITS.get(k, 4)) for n in printed.get(k, ())) or NONE for k in self.columns
                )
                yield (name, "printed", *numbers, *[NONE] * (len(self.extra) + bool(self.versus)))

    def _measured(self, results: Results, method: str, leak: float | None) -> Iterator[str]:
        for key in (*self.columns, *self.extra):
            yield show(results.value(method, key, leak), DIGITS.get(key, 4))
        if self.versus:
            rival = method.split()[0] if self.versus == "plain" else self.versus
            yield NONE if rival == method else show(results.against(method, rival, "none"))


LAYOUTS = {study: [TableLayout(**layout) for layout in found] for study, found in paper.contents("layouts").items()}
