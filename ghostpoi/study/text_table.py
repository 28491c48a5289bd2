"""A table as text: Markdown or LaTeX."""

import re
from dataclasses import dataclass, replace

from ghostpoi.study.labels import SYMBOLS

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
        header, *rows = (" & ".join(map(_latex, row)) + r" \\" for row in (self.columns, *self.rows))
        lines = [
            r"\begin{table}", rf"\caption{{{caption}}}", r"\centering",
            rf"\begin{{tabular}}{{ll{'c' * (len(self.columns) - 2)}}}", r"\toprule", header, r"\midrule", *rows,
            r"\bottomrule", r"\end{tabular}", r"\end{table}",
        ]  # fmt: skip
        return "\n".join(lines) + "\n"


def _latex(cell: str) -> str:
    return re.sub(r"\*\*(.+?)\*\*", r"\\textbf{\1}", cell.translate(TEX))
