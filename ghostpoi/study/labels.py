"""How methods, settings, adversaries, measures and numbers are written in tables, figures and pages."""

from collections.abc import Sequence
from typing import TypeVar

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.audits.controls import CLEAN, CONTROLS, LEAK_ONLY, MARKOV
from ghostpoi.audits.measures.gaps import Spread, Verdict, holm
from ghostpoi.draw.methods import METHODS
from ghostpoi.study.paper import CITIES
from ghostpoi.study.plan import Study, Variant
from ghostpoi.study.results import GAPS, GOWALLA, MANY, MEASURES, SURVIVAL, TOKYO, Attack, Results

SYMBOLS = {  # of settings that tables do not write as `--set` does
    "method.alpha": "\N{GREEK SMALL LETTER ALPHA}", "method.beta": "β", "method.eta": "η", "method.tau": "τ",
    "method.reach_km": "reach km", "rounds.outer": "T", "surrogate.feed_forward": "feed-forward",
}  # fmt: skip
NONE = "-"  # not measured, or not printed in the paper
WITHOUT_RELEASE = {  # rows of tables that belong to no method
    CLEAN: "clean (reference)", LEAK_ONLY: "leak-only (no release)", "stay": "stay (floor)",
    "popularity": "popularity (floor)", MARKOV: "Markov floor (clean)",
}  # fmt: skip
DATA = {GOWALLA: "Gowalla-CA", TOKYO: "Foursquare-TKY, order only"}  # names of data that is no city as in the paper
ARROWS = {-1: "↓", 1: "↑", 0: ""}

Shown = Spread | Verdict | Attack | float | None
Cell = TypeVar("Cell", bound=Shown | str)


def method(text: str, study: Study | None = None) -> str:
    """Write a variant with its changed settings: `ghost method.eta=1.0` is GHOST (η=1).

    With a study, the plain method gets its own values of the settings that other variants in the study change.
    """
    if text in WITHOUT_RELEASE:
        return WITHOUT_RELEASE[text]
    variant = Variant(text)
    label = METHODS[variant.method].label
    values = dict(change.split("=", 1) for change in variant.changes)
    if not values and study:
        others = [v for v in study.methods if v.method == text]
        known = variant.settings("strong").public()
        for key in dict.fromkeys(change.split("=")[0] for other in others for change in other.changes):
            section, _, name = key.partition(".")
            values[key] = str(known[section][name])
    inside = ", ".join(
        f"{SYMBOLS.get(key, key.partition('.')[2])}={value.removesuffix('.0')}" for key, value in values.items()
    )
    if not inside:
        return label
    return f"{label[:-1]}, {inside})" if label.endswith(")") else f"{label} ({inside})"


def number(adversary: str) -> str:
    """Write an adversary in short: A9; a control has no number."""
    if adversary in CONTROLS:
        return adversary
    return f"A{ADVERSARIES['multi-release' if adversary.startswith(MANY) else adversary].number}"


def heading(key: str) -> str:
    """Write whatever a table can have as a column."""
    if key.startswith(MANY):
        return f"{number(key)}, {key.removeprefix(MANY)} releases"
    if key.startswith(SURVIVAL):
        return f"Δsurv {number(key.removeprefix(SURVIVAL))}"
    if key in ADVERSARIES:
        return ADVERSARIES[key].label
    return f"Δ{key}" if key in GAPS else MEASURES[key].heading if key in MEASURES else key.replace("markov", "Markov")


def protocols(found: Sequence[Results]) -> str:
    """Write under which protocols something was measured."""
    return f"protocol{'s' if len(found) > 1 else ''} {' and '.join(results.protocol for results in found)}"


def place(*found: Results) -> str:
    """Write which data was measured, under which protocols."""
    return f"{data(found[0])}, {protocols(found)}"


def data(results: Results) -> str:
    """Write the name of the data."""
    return DATA.get(results.data) or CITIES.get(results.city or "", results.data)


def corrected(rows: Sequence[Sequence[Cell]]) -> list[list[Cell]]:
    """Return the rows of a table, its differences as one family of Holm's correction."""
    flat = [cell for row in rows for cell in row]
    new = iter(holm([cell if isinstance(cell, Verdict) else None for cell in flat]))
    return [[found if (found := next(new)) is not None else cell for cell in row] for row in rows]  # type: ignore[misc]


def show(value: Shown | str, digits: int = 4, sign: str = "") -> str:
    """Write a measurement as mean±standard deviation over seeds: `.0544±.0031`; one seed has no spread.

    A difference has its sign and an arrow if it is clear, an attack the number of its adversary.
    """
    if value is None or isinstance(value, str):
        return value or NONE
    if isinstance(value, float):
        return _fixed(value, digits, sign)
    if isinstance(value, Attack):
        return f"{show(value.accuracy, digits)} ({number(value.adversary)})"
    if isinstance(value, Verdict):
        return show(value.difference, digits, "+") + ARROWS[value.sign]
    spread = f"±{_fixed(value['std'], digits)}" if len(value["seeds"]) > 1 else ""
    return _fixed(value["mean"], digits, sign) + spread


def _fixed(value: float, digits: int, sign: str = "") -> str:
    """Write a number without the zero before its point."""
    text = f"{value:{sign}.{digits}f}"
    return text.replace("0.", ".", 1) if text.lstrip("+-").startswith("0.") else text
