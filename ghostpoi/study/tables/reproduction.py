"""The paper's tables: its printed numbers below ours, with the controls that it lacks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ghostpoi.evaluate.controls import CLEAN
from ghostpoi.study import labels, paper
from ghostpoi.study.results import Results
from ghostpoi.study.tables.generic import CONTROLS_NOTE, SPREAD_NOTE, controls
from ghostpoi.study.tables.table import NONE, Row, Table, show

DIGITS = {"mean_km": 3, "p95_km": 3}  # all others: 4
NOTES = (
    SPREAD_NOTE,
    "Gaps are taken per seed, then averaged. printed: the paper's numbers. Markov: counted from the release.",
    CONTROLS_NOTE,
    "TS-UE was calibrated to the printed substitution rate and displacement, so its plausibility is not a result.",
)


@dataclass(frozen=True)
class Layout:
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
        for city, name in paper.CITIES.items():
            here = [r for r in found if r.cells and (r.city or "nyc") == city]
            if any(section in paper.contents()[city] for section in self.sections) and (here or not self.versus):
                other = f"{here[0].data}, which is not the paper's " if here and not here[0].city else ""
                leaks = found[0].study.leak if self.by_leak else (None,)
                rows = tuple(row for leak in leaks for row in self._rows(here, city, leak))
                yield Table(f"{self.title} ({other}{name}, {labels.protocols(found)})", tuple(heads), rows, NOTES)

    def _rows(self, found: Sequence[Results], city: str, leak: float | None) -> Iterator[Row]:
        known = paper.leak_section(city).get(f"{leak:g}", {}) if leak else paper.section(city, *self.sections)
        first = [CLEAN] if CLEAN in known else []
        for method in dict.fromkeys([*first, *(found[0].methods if found else known)]):
            name = labels.method(method, found[0].study if found else None)
            name = f"{leak:.0%} {name}" if leak else name
            for results in found:
                yield (name, results.protocol, *self._measured(results, method, leak))
            if known.get(method):
                yield (name, "printed", *self._printed(known[method]))

    def _measured(self, results: Results, method: str, leak: float | None) -> Iterator[str]:
        for key in (*self.columns, *self.extra):
            yield show(results.value(method, key, leak), DIGITS.get(key, 4))
        if self.versus:
            rival = method.split()[0] if self.versus == "plain" else self.versus
            yield NONE if rival == method else show(results.against(method, rival, "none"))

    def _printed(self, row: Mapping[str, paper.Printed]) -> Iterator[str]:
        for key in self.columns:
            yield "±".join(show(value, DIGITS.get(key, 4)) for value in row.get(key, ())) or NONE
        yield from [NONE] * (len(self.extra) + bool(self.versus))


LAYOUTS = {study: [Layout(**layout) for layout in found] for study, found in paper.contents("layouts").items()}


def tables(found: Sequence[Results]) -> list[Table]:
    """Make all tables of one of the paper's studies, measured under one or more protocols."""
    made = [table for layout in LAYOUTS[found[0].study.name] for table in layout.tables(found)]
    return [*made, *map(controls, found)]
