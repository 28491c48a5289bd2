"""Whether a method keeps the bounds that were set before anything was measured, line by line, from the cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ghostpoi.evaluate.measures.gaps import spread
from ghostpoi.study.adaptive import outside
from ghostpoi.study.adaptive.worst import COSTS, Attack, comparable, over_leak_only, untried, worst
from ghostpoi.study.cells import Cells, Series
from ghostpoi.study.table import CONTROL, MISSING, NONE, Table, control_last, label, show
from ghostpoi.study.verdict import against

HOLDS, WITHIN, BARELY, FAILS = (
    "holds", "holds within the spread", "does not hold, but within the spread", "does not hold",
)  # fmt: skip
SEVERITY = (NONE, HOLDS, WITHIN, MISSING, BARELY, FAILS)  # of several lines, what comes last here decides
KEPT = ("naturalness", "popularity", "flows")  # what must be no worse than the control's


@dataclass(frozen=True)
class Line:
    """One bound for one method: what may be said, and the figures that say it."""

    word: str
    figures: str = ""

    @property
    def text(self) -> str:
        return f"{self.word}: {self.figures}" if self.figures else self.word


def lines(cells: Cells, victims: Mapping[str, Cells], method: str) -> dict[str, Line]:
    """All lines of the target for one method; `victims` has the contests of each victim."""
    return {
        headings()[0]: worst_case(cells, method),
        **{f"{key} no worse than random's": no_worse(cells, method, key) for key in KEPT},
        headings()[-1]: all_victims(victims, method),
    }


def headings() -> tuple[str, ...]:
    """The names of the lines."""
    first = f"worst case at most {outside.target('worst'):.3f}"
    last = f"no victim more than {outside.target('over_leak_only'):.3f} over its own leak-only"
    return (first, *(f"{key} no worse than random's" for key in KEPT), last)


def worst_case(cells: Cells, method: str) -> Line:
    """Over A1 to A10: as long as one of them is missing, the line can fail but not hold."""
    found, absent = worst(cells, method), untried(cells, method)
    if found is None:
        return Line(MISSING)
    word = at_most(found.seeds, outside.target("worst"))
    figures = f"{show(found.accuracy)} ({found.name})"
    if absent and word in (HOLDS, WITHIN):
        return Line(MISSING, f"{', '.join(absent)}; without, {figures}")
    return Line(word, figures)


def no_worse(cells: Cells, method: str, key: str) -> Line:
    """Not clearly worse than the control in this figure of the release."""
    if method == CONTROL:
        return Line(NONE)
    found = COSTS[key].beside_control(cells, method)
    if found is None:
        return Line(MISSING)
    better = found.difference["mean"] * COSTS[key].better
    word = (HOLDS if better > 0 else FAILS) if found.clear else WITHIN
    return Line(word, found.text)


def all_victims(victims: Mapping[str, Cells], method: str) -> Line:
    """The worst case of every victim minus its own leak-only."""
    bound = outside.target("over_leak_only")
    found = {victim: over_leak_only(cells, method) for victim, cells in victims.items()}
    known = {victim: v for victim, v in found.items() if v}
    if not known:
        return Line(MISSING)
    words = {victim: at_most(v.difference["seeds"], bound) for victim, v in known.items()}
    word = _last(list(words.values()))
    furthest = max(known, key=lambda victim: known[victim].difference["mean"])
    # A victim less far from its leak-only, but with a wider spread, may be the one that leaves the line open.
    shown = [furthest] if words[furthest] == word else [furthest, next(v for v in known if words[v] == word)]
    each = ", ".join(f"{victim} {show(known[victim].difference)}" for victim in shown)
    figures = f"{each}, of {len(known)} victim{'s' if len(known) > 1 else ''}"
    absent = [victim for victim in victims if victim not in known]
    if (absent or len(known) == 1) and word in (HOLDS, WITHIN):
        return Line(MISSING, f"{', '.join(absent) or 'other victims'}; without, {figures}")
    return Line(word, figures)


def at_most(values: Series, bound: float) -> str:
    """Whether the mean keeps the bound, and whether that is beyond the spread."""
    found = against(values, [bound] * len(values))
    if found is None or found.difference["mean"] == 0:
        return WITHIN
    if found.difference["mean"] < 0:
        return HOLDS if found.clear else WITHIN
    return FAILS if found.clear else BARELY


def together(each: Mapping[str, Line]) -> str:
    """What may be said of all lines at once."""
    return _last([line.word for line in each.values()])


def table(cells: Cells, victims: Mapping[str, Cells], where: str) -> Table:
    """Every method's lines."""
    rows = []
    for method in control_last(cells.methods):
        each = lines(cells, victims, method)
        rows.append((label(method), *(line.text for line in each.values()), together(each)))
    notes = (
        "holds and does not hold: beyond the spread, in a difference taken seed by seed whose 95% interval leaves out "
        "0. Within the spread: the mean says so, or shows no difference, and the seeds do not settle it.",
    )
    return Table(f"The target, method by method ({where})", ("method", *headings(), "all of it"), tuple(rows), notes)


def summary(cells: Cells, victims: Mapping[str, Cells]) -> str:
    """Who keeps the whole target; else how near the lowest worst case comes."""
    found = {m: w for m in comparable(cells) if (w := worst(cells, m))}
    if not found:
        return f"The target: {MISSING}."
    each = {m: lines(cells, victims, m) for m in found}
    met = {word: [label(m) for m in found if together(each[m]) == word] for word in (HOLDS, WITHIN)}
    said = [f"All of it {word} for {', '.join(names)}." for word, names in met.items() if names]
    best = min(found, key=lambda m: found[m].accuracy["mean"])
    bound = outside.target("worst")
    away = found[best].accuracy["mean"] - bound
    side = f"{abs(away):.4f} {'above' if away > 0 else 'below'}" if abs(away) >= 5e-5 else "at"
    said = said or ["For no method all of it is shown to hold."]
    said.append(
        f"The lowest worst case is that of {label(best)}: {show(found[best].accuracy)} by {found[best].name}, "
        f"{side} the bound of {bound:.3f}."
    )
    rest = "; ".join(f"{name}: {line.text}" for name, line in each[best].items())
    said.append(f"Its lines: {rest}.")
    mixed = cells.series(best, "leak-mixed")
    if mixed and spread(mixed)["mean"] > found[best].accuracy["mean"]:
        over = against(mixed, [bound] * len(mixed))
        said.append(
            f"With the leaked sessions swapped in and no adversary it gives {show(spread(mixed))}, minus the bound "
            f"{over.text if over else MISSING}; no line counts that."
        )
    for rival in _rivals(found, best):
        v = against(found[best].seeds, found[rival].seeds)
        said.append(f"Its worst case minus that of {label(rival)}: {v.text if v else MISSING}.")
    return " ".join(said)


def _rivals(found: Mapping[str, Attack], best: str) -> list[str]:
    """The next best, and the control."""
    ranked = sorted((m for m in found if m != best), key=lambda m: found[m].accuracy["mean"])
    return list(dict.fromkeys([*ranked[:1], *(m for m in ranked if m == CONTROL)]))


def _last(words: Sequence[str]) -> str:
    return max(words, key=SEVERITY.index)
