"""Tables of a study as Markdown or LaTeX: the paper's layouts for its own studies, generic ones for all others.

The paper's tables show ours with the controls that it lacks, then its printed numbers; the best value is bold. In a
generic table rows are methods and columns follow the plan.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from ghostpoi.attack.victims import VICTIMS
from ghostpoi.audits.controls import CLEAN, LEAK_MIXED, LEAK_ONLY, LEAK_STAY, RANDOM
from ghostpoi.audits.measures.gaps import Spread, spread
from ghostpoi.study import labels, paper
from ghostpoi.study.labels import NONE, SYMBOLS, Shown, corrected, show
from ghostpoi.study.results import (
    BEST_FLOOR,
    GAPS,
    MANY,
    MEASURES,
    PAPER_ADVERSARIES,
    WITHOUT_LEAK,
    WORST_CASE,
    Results,
)  # fmt: skip

NOTES = paper.contents("table_notes")
DIGITS = {"mean_km": 3, "p95_km": 3}  # all others: 4
# What publishers ask about first; `release_measures` has the rest.
KEPT = ("mean_km", "substitution_rate", "flows", "popularity", "category_match", "category_hour", "naturalness")
RIVALS = {"ghost", "pgd", RANDOM}
TEX = str.maketrans({
    "±": r"$\pm$", "Δ": r"$\Delta$", "↓": r"$\downarrow$", "↑": r"$\uparrow$", SYMBOLS["method.alpha"]: r"$\alpha$",
    "β": r"$\beta$", "η": r"$\eta$", "τ": r"$\tau$", "%": r"\%", "_": r"\_", "&": r"\&", "#": r"\#",
    "\\": r"\textbackslash{}",
})  # fmt: skip

Row = tuple[str, ...]
Cells = Sequence[Shown | str]


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
        header, *rows = (" & ".join(map(_latex, row)) + r" \\" for row in (self.columns, *self.rows))
        lines = [
            r"\begin{table}", rf"\caption{{{caption}}}", r"\centering",
            rf"\begin{{tabular}}{{ll{'c' * (len(self.columns) - 2)}}}", r"\toprule", header, r"\midrule", *rows,
            r"\bottomrule", r"\end{tabular}", r"\end{table}",
        ]  # fmt: skip
        return "\n".join(lines) + "\n"


def _latex(cell: str) -> str:
    return re.sub(r"\*\*(.+?)\*\*", r"\\textbf{\1}", cell.translate(TEX))


@dataclass(frozen=True)
class TableLayout:
    """A table of the paper; layouts.toml explains the fields."""

    title: str
    sections: list[str]
    columns: list[str]
    extra: Sequence[str] = ()
    controls: Sequence[str] = ()
    versus: str = ""
    by_leak: bool = False

    def table(self, found: Sequence[Results]) -> Table:
        """Make the table of one city; printed numbers stand below ours if the paper has them for it."""
        heads = ["method", "source", *map(labels.heading, self._keys)]
        heads += [f"A1 minus {self.versus}"] if self.versus else []
        rows = tuple(row for leak in self._leaks(found) for row in self._rows(found, leak))
        printed = ("calibrated",) if self.sections else ()
        notes = tuple(NOTES[note] for note in ("family", "paper", "controls", "floors", *printed))
        measured = [key for key in self.extra if any(r.value(m, key, r.leak) for r in found for m in r.methods)]
        table = Table(f"{self.title} ({labels.place(*found)})", tuple(heads), rows, notes)
        return table.without(*(labels.heading(key) for key in self.extra if key not in measured))

    @property
    def _keys(self) -> list[str]:
        return [*self.columns, *self.extra]

    def _leaks(self, found: Sequence[Results]) -> Sequence[float | None]:
        return found[0].study.leak if self.by_leak else [None]

    def _rows(self, found: Sequence[Results], leak: float | None) -> Iterator[Row]:
        study, order, before = found[0].study, found[0].methods, f"{leak:.0%} " if leak else ""
        for results in (r for r in found if r.cells):
            names = [*order, *self.controls]
            rows = self._written([self._measured(results, m, leak) for m in names], len(order))
            for method, row in zip(names, rows, strict=True):
                if method in order or set(row) != {NONE}:
                    yield (before + labels.method(method, study), results.protocol, *row)
        known = self._printed(found[0].city, leak)
        names = sorted(known, key=lambda m: (m == CLEAN, order.index(m) if m in order else len(order)))
        printed = [[_spread(known[m].get(key)) for key in self.columns] for m in names]
        rows = self._written(printed, len(names) - (CLEAN in known))
        for method, row in zip(names, rows, strict=True):
            if set(row) != {NONE}:
                name = before + labels.method(method, study)
                yield (name, "printed", *row, *[NONE] * (len(self.extra) + bool(self.versus)))

    def _printed(self, city: str | None, leak: float | None) -> paper.Section:
        if city is None:
            return {}
        return paper.leak_section(city).get(f"{leak:g}", {}) if leak else paper.section(city, *self.sections)

    def _measured(self, results: Results, method: str, leak: float | None) -> list[Shown]:
        shown: list[Shown] = [results.value(method, key, leak) for key in self._keys]
        rival = method.split()[0] if self.versus == "plain" else self.versus
        compared = rival != method and method not in self.controls
        return [*shown, results.against(method, rival, "none") if compared else None] if self.versus else shown

    def _written(self, rows: Sequence[Sequence[Shown]], competing: int) -> list[list[str]]:
        """Write the rows of one source, the best of those that compete in bold."""
        digits = [DIGITS.get(key, 4) for key in (*self._keys, "")]
        text = [[show(value, n) for value, n in zip(row, digits, strict=False)] for row in corrected(rows)]
        for column, key in enumerate(self._keys):
            means = [_mean(row[column]) if column < len(row) else None for row in rows[:competing]]
            known = [mean for mean in means if mean is not None]
            if better(key) and len(set(known)) > 1:
                best = max(known, key=lambda mean: better(key) * mean)
                for line in (line for line, mean in zip(text, means, strict=False) if mean == best):
                    line[column] = f"**{line[column]}**"
        return text


def better(key: str) -> int:
    """Return the sign of what is better for the publisher; 0 if neither is."""
    return MEASURES[key].better if key in MEASURES else 1 if key in GAPS else -1


def _mean(value: Shown) -> float | None:
    return value["mean"] if isinstance(value, dict) else None


def _spread(printed: paper.Printed | None) -> Spread | None:
    """A printed number in the form of a measured one."""
    if not printed:
        return None
    return {"mean": printed[0], "std": printed[-1] if len(printed) > 1 else 0.0, "seeds": [printed[0]] * len(printed)}


LAYOUTS = {study: [TableLayout(**layout) for layout in found] for study, found in paper.contents("layouts").items()}


def tables(found: Sequence[Results]) -> list[Table]:
    """Make all tables of a study that was measured under one or more protocols."""
    name = found[0].study.name
    if name in LAYOUTS:
        compared = [duels(found)] if {*found[0].methods} >= RIVALS else []
        return [*(layout.table(found) for layout in LAYOUTS[name]), *compared, *map(moves, filter(_has_moves, found))]
    several = [several_releases] if found[0].study.releases else []
    generic = [protection, accuracy, recovered, *several, release_measures]
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
    """Show the same over steps to another venue, which a guess that people stay never predicts."""
    return accuracy(results.on_moves)


def protection(results: Results) -> Table:
    """Show what each release keeps, and what the strongest adversaries get from it, next to the controls."""
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
        return labels.method(method), *(show(results.value(method, k), 3) for k in keys)

    rows = map(row, (CLEAN, RANDOM, *results.methods[:-1]))
    return _table("The release itself", results, ["method", *map(labels.heading, keys)], rows, "measures")


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
