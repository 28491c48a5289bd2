"""Text in rows and columns, and how methods and figures are written in it."""

from collections.abc import Sequence
from dataclasses import dataclass

from ghostpoi.evaluate.measures.gaps import Spread

MISSING, NONE = "not measured", "n/a"
CONTROL = "random"
ALPHA = "\N{GREEK SMALL LETTER ALPHA}"
METHODS = {
    "ghost": "GHOST", "ghost-sym": "GHOST-Sym", "ghost-ef": "GHOST-EF", "pgd": "PGD", "em": "EM",
    "ts-ue": "TS-UE (calibrated)", "random": "random (control)", "clean": "clean (reference)",
}  # fmt: skip
SETTINGS = {
    "method.alpha": ALPHA, "method.beta": "β", "method.eta": "η", "method.tau": "τ", "rounds.outer": "T",
    "method.size": "size", "method.reach_km": "reach km", "surrogate.start": "start", "surrogate.dropout": "dropout",
    "surrogate.feed_forward": "feed-forward", "training.clip": "clip",
}  # fmt: skip
CATEGORIES = "crowd method.size=1000000 method.reach_km=20000.0"  # one crowd for each category
VARIANTS = {CATEGORIES: "categories alone (bound)"}  # variants that have a name of their own
DEFAULTS = {
    "weights": f"{ALPHA}=2.0, β=0.5",
    "entropy": "η=0.0",
    "rounds": "T=5",
}  # what a plain `ghost` is in these studies


@dataclass(frozen=True)
class Table:
    """Text in rows and columns."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        """As a pipe table under its title."""
        lines = [f"**{self.title}**", "", _pipes(self.columns), _pipes(["---"] * len(self.columns))]
        lines += [_pipes(row) for row in self.rows]
        return "\n".join(lines + [line for note in self.notes for line in ("", note)]) + "\n"

    def latex(self) -> str:
        """As a table with booktabs rules."""
        head = " & ".join(_tex(c) for c in self.columns) + r" \\"
        lines = [
            r"\begin{table}", rf"\caption{{{_tex(' '.join([self.title + '.', *self.notes]))}}}", r"\centering",
            rf"\begin{{tabular}}{{ll{'c' * (len(self.columns) - 2)}}}", r"\toprule", head, r"\midrule",
        ]  # fmt: skip
        lines += [" & ".join(_tex(cell) for cell in row) + r" \\" for row in self.rows]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def label(method: str, study: str = "") -> str:
    """A method's text as a reader wants it: `ghost method.eta=1.0` is GHOST (η=1.0)."""
    if method in VARIANTS:
        return VARIANTS[method]
    name, *changes = method.split()
    shown = METHODS.get(name, name)
    pairs = [change.partition("=") for change in changes]
    inside = ", ".join(f"{SETTINGS.get(key, key)}={value}" for key, _, value in pairs)
    inside = inside or (DEFAULTS.get(study, "") if name == "ghost" else "")
    if not inside:
        return shown
    return f"{shown[:-1]}, {inside})" if shown.endswith(")") else f"{shown} ({inside})"


def show(value: Spread, digits: int = 4) -> str:
    """mean ± std; the mean alone for one seed."""
    mean = f"{value['mean']:.{digits}f}"
    return f"{mean} ± {value['std']:.{digits}f}" if len(value["seeds"]) > 1 else mean


def shown(value: Spread | None, digits: int = 4) -> str:
    """The same, or that there is none."""
    return show(value, digits) if value else MISSING


def control_last(methods: Sequence[str]) -> list[str]:
    """In their order, the control last and always."""
    return [m for m in dict.fromkeys(methods) if m != CONTROL] + [CONTROL]


def _pipes(row: Sequence[str]) -> str:
    return "| " + " | ".join(row) + " |"


TEX = {
    "±": r"$\pm$", "Δ": r"$\Delta$", ALPHA: r"$\alpha$", "β": r"$\beta$", "η": r"$\eta$", "τ": r"$\tau$",
    "%": r"\%", "_": r"\_", "&": r"\&", "#": r"\#", "\\": r"\textbackslash{}",
}  # fmt: skip


def _tex(text: str) -> str:
    return "".join(TEX.get(c, c) for c in text)
