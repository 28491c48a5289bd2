"""A table of text, and how numbers are written in it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ghostpoi.evaluate.differences import Verdict
from ghostpoi.evaluate.measures.gaps import Spread
from ghostpoi.study.labels import SYMBOLS, number
from ghostpoi.study.results import Attack

Row = tuple[str, ...]
Shown = Spread | Verdict | Attack | float | None
NONE = "-"  # not measured, or not printed in the paper
ARROWS = {-1: "↓", 1: "↑", 0: ""}
TEX = {
    "±": r"$\pm$", "Δ": r"$\Delta$", "↓": r"$\downarrow$", "↑": r"$\uparrow$", SYMBOLS["method.alpha"]: r"$\alpha$",
    "β": r"$\beta$", "η": r"$\eta$", "τ": r"$\tau$", "%": r"\%", "_": r"\_", "&": r"\&", "#": r"\#",
    "\\": r"\textbackslash{}",
}  # fmt: skip


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
        rows = tuple(tuple(row[n] for n in kept) for row in self.rows)
        return replace(self, columns=tuple(self.columns[n] for n in kept), rows=rows)

    def markdown(self) -> str:
        """Write a pipe table under its title."""
        lines = [f"**{self.title}**", "", *(_pipes(r) for r in (self.columns, ["---"] * len(self.columns), *self.rows))]
        return "\n".join(lines + [line for note in self.notes for line in ("", note)]) + "\n"

    def latex(self) -> str:
        """Write a table with booktabs rules."""
        lines = [
            r"\begin{table}", rf"\caption{{{_tex(' '.join([self.title + '.', *self.notes]))}}}", r"\centering",
            rf"\begin{{tabular}}{{ll{'c' * (len(self.columns) - 2)}}}", r"\toprule", _ampersands(self.columns),
            r"\midrule", *map(_ampersands, self.rows), r"\bottomrule", r"\end{tabular}", r"\end{table}",
        ]  # fmt: skip
        return "\n".join(lines) + "\n"


def show(value: Shown, digits: int = 4, sign: str = "") -> str:
    """Write a measurement as mean±standard deviation over seeds: `.0544±.0031`; one seed has no spread.

    A difference has its sign and an arrow if it is clear, an attack the number of its adversary.
    """
    if value is None:
        return NONE
    if isinstance(value, float):
        return _fixed(value, digits, sign)
    if isinstance(value, Attack):
        return f"{show(value.accuracy, digits)} ({number(value.adversary)})"
    if isinstance(value, Verdict):
        return show(value.difference, digits, "+") + ARROWS[value.sign]
    spread = f"±{_fixed(value['std'], digits)}" if len(value["seeds"]) > 1 else ""
    return _fixed(value["mean"], digits, sign) + spread


def percent(value: Spread | None) -> str:
    """Write a share in percent."""
    spread = f"±{value['std']:.0%}" if value and len(value["seeds"]) > 1 else ""
    return f"{value['mean']:.0%}{spread}" if value else NONE


def _fixed(value: float, digits: int, sign: str = "") -> str:
    """Write a number without the zero before its point."""
    text = f"{value:{sign}.{digits}f}"
    return text.replace("0.", ".", 1) if text.lstrip("+-").startswith("0.") else text


def _pipes(row: Sequence[str]) -> str:
    return "| " + " | ".join(row) + " |"


def _ampersands(row: Sequence[str]) -> str:
    return " & ".join(map(_tex, row)) + r" \\"


def _tex(text: str) -> str:
    return "".join(TEX.get(c, c) for c in text)
