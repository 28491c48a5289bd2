"""The paper's own tables: ours with the controls that it lacks, then its printed numbers. The best value is bold."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ghostpoi.evaluate.controls import CLEAN
from ghostpoi.evaluate.measures.accuracy_gaps import Spread
from ghostpoi.study import labels, paper
from ghostpoi.study.labels import NONE, Shown, corrected, show
from ghostpoi.study.results import GAPS, MEASURES, Results
from ghostpoi.study.text_table import Row, Table

NOTES = paper.contents("table_notes")
DIGITS = {"mean_km": 3, "p95_km": 3}  # all others: 4


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
