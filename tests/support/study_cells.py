"""Fabricated cells that several tests of tables share, and how to find rows in tables."""

import re
from pathlib import Path

from fake_results import Fabricated

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.study import plan
from ghostpoi.study.results import Results
from ghostpoi.study.tables import Table, tables

ROTATED = "crowd-halves identity.pseudonyms=session"
FRONTIER = f"""
methods = ["crowd-halves", "{ROTATED}", "crowd-halves method.category=group", "ghost"]
adversaries = "all"
"""
STEPS = [-0.001, 0.0, 0.001]


def around(mean: float) -> list[float]:
    """Three seeds with the same steps everywhere, so that the difference of two series has no spread."""
    return [mean + step for step in STEPS]


def row(table: Table, *first: str) -> dict[str, str]:
    """A row by how it begins."""
    (found,) = [r for r in table.rows if r[: len(first)] == first]
    return dict(zip(table.columns, found, strict=True))


def made(*found: Results) -> dict[str, Table]:
    """All tables by the beginning of their titles."""
    return {re.split(r"[,(]", t.title)[0].strip(): t for t in tables(found)}


def main_cells(folder: Path) -> Fabricated:
    """The main study: clean .14, PGD and random next to GHOST, the other methods missing."""
    cells = Fabricated(folder)
    cells.accuracy("clean", "clean", [0.13, 0.14, 0.15])
    cells.accuracy("clean", "leak-only", [0.03, 0.03, 0.03], 0.05)
    cells.method("ghost", [0.05, 0.06, 0.07])
    cells.method("pgd", [0.06, 0.06, 0.06])
    cells.method("random", [0.05, 0.06, 0.07])
    plausibility = {"substitution_rate": [0.8] * 3, "category_match": [1.0] * 3, "beyond_1km": [0.5, 0.6, 0.7]}
    plausibility |= {"mean_km": [1.0, 2.0, 3.0], "p95_km": [4.0] * 3}
    plausibility |= {"speed_violations_clean": [0.01] * 3, "speed_violations_released": [0.02] * 3}
    for method, natural in (("ghost", -10.0), ("random", -9.0)):
        cells.release(method, plausibility=plausibility, naturalness=[natural] * 3, clean_naturalness=[-4.0] * 3)
    markov = {"ghost": [0.01, 0.02, 0.03], "random": [0.01] * 3}
    cells.floors(markov, popularity={"acc@1": 0.01}, markov={"acc@1": 0.18})
    return cells


def frontier_cells(folder: Path) -> Fabricated:
    """A9 is the strongest against crowd, A8 against GHOST and random; all others restore half as much."""
    (path := folder / "frontier.toml").write_text(FRONTIER)
    cells = Fabricated(folder, str(path), "strong")
    cells.accuracy("clean", "clean", around(0.19))
    cells.accuracy("clean", "leak-only", around(0.05), 0.05)
    for method, most in {"ghost": 0.11, "crowd-halves": 0.07, ROTATED: 0.06, "random": 0.14}.items():
        for name in plan.load(str(path)).attackers(method):
            top = "hidden-markov" if method == "crowd-halves" else "habits+leak"
            leak = 0.05 if ADVERSARIES[name].uses_leak else None
            acc = around(most if name == top else most / 2)
            cells.accuracy(method, name, acc, leak, restored=[0.2, 0.3, 0.4])
        cells.accuracy(method, "leak-mixed", around(0.055), 0.05)
        gyration = {"mean_km_before": [4.0] * 3, "mean_km_after": around(5.0 if method == "random" else 4.5)}
        flows = around(0.43 if method == "random" else 0.40)
        cells.release(
            method, naturalness=around(-7.5 if method == "ghost" else -8.4), clean_naturalness=[-4.0] * 3,
            utility={
                "popularity": {"poi_js": [0.15] * 3}, "flows": {"common_part": flows}, "gyration": gyration,
                "hours": {"category_hour_js": [0.3] * 3},
            },
            plausibility={
                "substitution_rate": [0.7 if method == "random" else 0.8] * 3, "mean_km": [1.0, 1.5, 2.0],
                "category_match": [1.0 if method != "crowd-halves" else 0.05] * 3,
            },
            detector={"auc": [0.9 if method == "ghost" else 0.8] * 3},
        )  # fmt: skip
    return cells
