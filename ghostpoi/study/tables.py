"""The paper's tables from the cells of a study, every figure of ours beside the paper's, controls in each of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ghostpoi.errors import InputError
from ghostpoi.evaluate.measures.gaps import Spread, spread
from ghostpoi.study import paper
from ghostpoi.study.adaptive.tables import SPECS as ADAPTIVE
from ghostpoi.study.adaptive.tables import Spec as AdaptiveSpec
from ghostpoi.study.cells import LEAK, Cells, Series
from ghostpoi.study.table import CONTROL, MISSING, NONE, Table, control_last, label, shown
from ghostpoi.study.verdict import against

HEADINGS = {
    "clean": "clean", "none": "A1 none", "bridge": "A2 bridge", "frequency": "A3 frequency", "bigram": "A4 bigram",
    "prot": "Δprot", "surv_bridge": "Δsurv A2", "surv_frequency": "Δsurv A3", "surv_bigram": "Δsurv A4",
    "mean": "Δmean", "worst": "Δworst", "leak-mixed": "leak-mixed", "leak-only": "leak-only", "markov": "Markov",
    "substitution_rate": "substituted", "category_match": "category kept", "beyond_1km": "beyond 1 km",
    "mean_km": "mean km", "p95_km": "P95 km", "speed_violations_clean": "over speed limit, clean",
    "speed_violations_released": "over speed limit, released", "naturalness": "mean log p",
}  # fmt: skip
DIGITS = {"mean_km": 3, "p95_km": 3}  # of all others 4
GAPS_NOTE = "Gaps are taken per seed, then averaged; ± is the standard deviation over seeds (n - 1)."
EXTRA_NOTE = (
    "leak-mixed: the release with the leaked sessions swapped in and no purifier. Markov: a first-order Markov model "
    "counted from the release, acc@1. The paper has neither, nor the random control."
)
TSUE_NOTE = (
    "TS-UE's form and settings were chosen with the paper's substitution rate and displacements on NYC in view, so its "
    "plausibility figures are no result of ours."
)


@dataclass(frozen=True)
class Contest:
    """A table of accuracies and gaps: which columns, of which study."""

    number: str
    caption: str
    study: str
    columns: tuple[str, ...]

    def tables(self, cells: Cells) -> list[Table]:
        """One per city that the paper has in this table, then the controls that belong to no method."""
        made = []
        for city in _cities(self.study):
            rows = _rows(cells, city, self.study, self.columns, ("leak-mixed", "markov"), cells.row)
            title = _title(self, cells, city)
            made.append(Table(title, _heads((*self.columns, "leak-mixed", "markov")), rows, (GAPS_NOTE, EXTRA_NOTE)))
        return [*made, controls(cells)]


@dataclass(frozen=True)
class OfRelease:
    """A table of figures of the release itself."""

    number: str
    caption: str
    study: str
    section: str
    columns: tuple[str, ...]
    extra: tuple[str, ...] = ()

    def tables(self, cells: Cells) -> list[Table]:
        """One per city."""

        def row(method: str) -> dict[str, Spread]:
            if self.section == "naturalness":
                key = "clean_naturalness" if method == "clean" else "naturalness"
                found = {"naturalness": cells.release(CONTROL if method == "clean" else method, key)}
            else:
                found = {key: cells.release(method, self.section, key) for key in (*self.columns, *self.extra)}
            return {key: value for key, value in found.items() if value is not None}

        notes = () if self.section == "naturalness" else (TSUE_NOTE,)
        return [
            Table(
                _title(self, cells, city), _heads((*self.columns, *self.extra)),
                _rows(cells, city, self.section, self.columns, self.extra, row), notes,
            )
            for city in _cities(self.section)
        ]  # fmt: skip


@dataclass(frozen=True)
class Leak:
    """The points of the leak-ratio figure."""

    number: str = "Leak-ratio figure"
    caption: str = "survival gaps as more leaks"
    study: str = "leak"

    def tables(self, cells: Cells) -> list[Table]:
        """One row per ratio and method, leak-only beside each."""
        printed = paper.leak_section("nyc")
        columns = ("bridge", "frequency", "surv_bridge", "surv_frequency")
        rows: list[tuple[str, ...]] = []
        for ratio in sorted({float(r) for r in printed} | {r for _, _, r in cells.contests if r is not None}):
            known = printed.get(f"{ratio:g}", {})
            for method in _ordered(known, cells.methods):
                row = cells.row(method, ratio) if _is_of(cells, "nyc") else {}
                pair = _pair(
                    f"{ratio:.0%} {label(method)}", row, known.get(method), columns, ("leak-mixed", "leak-only")
                )
                rows += pair
        return [
            Table(_title(self, cells, "nyc"), _heads((*columns, "leak-mixed", "leak-only")), tuple(rows), (GAPS_NOTE,))
        ]


@dataclass(frozen=True)
class Whole:
    """A release's plausibility and what is learned from it in one table, each row against its rival under A1.

    For studies that the paper lacks: its figures for a plain method stand below ours.
    """

    caption: str
    study: str
    columns: tuple[str, ...]
    rival: Callable[[str], str]
    whose: str  # the rival's, in words
    note: str

    def tables(self, cells: Cells) -> list[Table]:
        """One of the city that was measured, then the controls that belong to no method."""
        city = cells.city or "nyc"
        printed = paper.section(city, "plausibility")
        for method, accuracies in paper.section(city, "main").items():
            printed[method] = printed.get(method, {}) | accuracies
        methods = _ordered(printed, cells.methods)
        families = list(dict.fromkeys(m.split()[0] for m in methods))
        rows: list[tuple[str, ...]] = []
        for method in sorted(methods, key=lambda m: families.index(m.split()[0])):
            found = {c: cells.release(method, "plausibility", c) for c in self.columns}
            row = cells.row(method) | {c: value for c, value in found.items() if value is not None}
            ours, *theirs = _pair(label(method, self.study), row, printed.get(method), self.columns, ("leak-mixed",))
            rival = self.rival(method)
            verdict = against(cells.series(method, "none"), cells.series(rival, "none"))
            rows.append((*ours, NONE if rival == method else verdict.text if verdict else MISSING))
            rows += [(*line, NONE) for line in theirs]
        heads = (*_heads((*self.columns, "leak-mixed")), f"A1 minus {self.whose}")
        notes = (self.note, GAPS_NOTE, TSUE_NOTE)
        title = f"{self.caption} ({_place(cells, city)}, protocol {cells.protocol})"
        return [Table(title, heads, tuple(rows), notes), controls(cells)]


Spec = Contest | OfRelease | Leak | Whole
MOVED = ("substitution_rate", "beyond_1km", "mean_km", "p95_km")
ALL = ("clean", "none", "bridge", "frequency", "bigram")
SPECS: dict[str, tuple[Spec | AdaptiveSpec, ...]] = {
    "main": (
        Contest(
            "Table I", "main protection matrix, acc@1", "main",
            (*ALL, "prot", "surv_bridge", "surv_frequency", "surv_bigram", "mean", "worst"),
        ),
        OfRelease(
            "Table II", "plausibility", "main", "plausibility",
            ("substitution_rate", "category_match", "beyond_1km", "mean_km", "p95_km"),
            ("speed_violations_clean", "speed_violations_released"),
        ),
        OfRelease("Table III", "naturalness under the frozen trajectory LM", "main", "naturalness", ("naturalness",)),
    ),
    "manifold": (Contest("Table IV", "manifold-prior ablation, acc@1", "manifold", ALL[1:4]),),
    "weights": (
        Contest("Table V", "score weights", "weights", ("prot", "surv_bridge", "surv_frequency", "mean")),
    ),
    "entropy": (Contest("Table VI", "entropy floor", "entropy", ("prot", "mean", "worst")),),
    "rounds": (Contest("Convergence figure", "outer rounds", "rounds", ("prot", "mean", "worst")),),
    "leak": (Leak(),),
    "surrogate": (
        Whole(
            "What hangs on the surrogate's settings that the paper leaves open", "surrogate",
            (*MOVED, "none", "frequency"), lambda method: method.split()[0], "the plain method's",
            "A plain row has the protocol's settings, the others differ from it in what stands in brackets. Measured "
            "after the protocol was fixed, to see what hangs on it: nothing was chosen by this table.",
        ),
    ),
    "seeds": (
        Whole(
            "The paper's methods over many seeds", "seeds", (*MOVED, "none", "frequency", "bigram"),
            lambda method: CONTROL, "random's",
            "Three seeds tell a mean from a neighbour's only where they lie far apart; these are more.",
        ),
    ),
    **ADAPTIVE,
}  # fmt: skip


def require(study: str) -> None:
    """Refuse a study that has no tables, before any work is put into it."""
    if study not in SPECS:
        raise InputError(f"there are no tables for the study {study!r}; there are for {', '.join(SPECS)}")


def tables(cells: Cells) -> list[Table]:
    """All tables of a study."""
    require(cells.study)
    return [table for spec in SPECS[cells.study] for table in spec.tables(cells)]


def controls(cells: Cells) -> Table:
    """What stands for itself: ceiling, leak-only, popularity floor, Markov."""
    clean = cells.clean()
    found: list[tuple[str, Series | None]] = [("clean victim (ceiling)", clean)]
    ratios = sorted({r for _, a, r in cells.contests if a == "leak-only" and r is not None}) or [LEAK]
    found += [(f"leak-only: a victim on the leaked {ratio:.0%} alone", cells.leak_only(ratio)) for ratio in ratios]
    for name, text in (("popularity", "popularity floor"), ("markov", "first-order Markov on clean sessions")):
        value = cells.floors.get(name)
        found.append((text, [value["acc@1"]] if value else None))
    rows = []
    for text, values in found:
        same = values * len(clean) if clean and values and len(values) == 1 else values  # counting has no seeds
        gap = [c - v for c, v in zip(clean, same, strict=True)] if clean and same else None
        rows.append((text, shown(spread(values) if values else None), shown(spread(gap) if gap else None)))
    title = f"Controls of the study {cells.study}, protocol {cells.protocol}"
    return Table(title, ("control", "acc@1", "below clean by"), tuple(rows))


def _rows(
    cells: Cells, city: str, section: str, columns: Sequence[str], extra: Sequence[str],
    row: Callable[[str], Mapping[str, Spread]],
) -> tuple[tuple[str, ...], ...]:  # fmt: skip
    printed = paper.section(city, section)
    mine = _is_of(cells, city)
    out: list[tuple[str, ...]] = []
    for method in _ordered(printed, cells.methods if mine else []):
        found = row(method) if mine else {}
        out += _pair(label(method, section), found, printed.get(method), columns, extra)
    return tuple(out)


def _pair(
    name: str, measured: Mapping[str, Spread], printed: Mapping[str, paper.Printed] | None,
    columns: Sequence[str], extra: Sequence[str],
) -> list[tuple[str, ...]]:  # fmt: skip
    """Our row and, where the paper prints anything of it, the paper's below."""
    ours = (name, "measured", *(shown(measured.get(c), DIGITS.get(c, 4)) for c in (*columns, *extra)))
    if not printed:
        return [ours]
    theirs = (name, "paper", *(_printed(printed.get(c), DIGITS.get(c, 4)) for c in columns), *[NONE] * len(extra))
    return [ours, theirs]


def _printed(value: paper.Printed | None, digits: int) -> str:
    return NONE if not value else " ± ".join(f"{v:.{digits}f}" for v in value)


def _ordered(printed: Mapping[str, object], found: Sequence[str]) -> list[str]:
    """The paper's methods in its order, then ours, the control last and always."""
    return control_last([*printed, *found])


def _cities(section: str) -> list[str]:
    return [city for city in paper.CITIES if paper.section(city, section)]


def _is_of(cells: Cells, city: str) -> bool:
    """Whether the cells belong beside this city's figures; data of no city of the paper stands beside NYC's."""
    return bool(cells.about) and (cells.city or "nyc") == city


def _title(spec: Contest | OfRelease | Leak, cells: Cells, city: str) -> str:
    return f"{spec.number}: {spec.caption} ({_place(cells, city)}, protocol {cells.protocol})"


def _place(cells: Cells, city: str) -> str:
    if _is_of(cells, city) and cells.city is None:
        return f"measured on {cells.data}, which is not the paper's {paper.CITIES[city]}"
    return paper.CITIES[city]


def _heads(columns: Sequence[str]) -> tuple[str, ...]:
    return ("method", "source", *(HEADINGS[c] for c in columns))
