"""An audit as a person reads it in a terminal: the strongest adversary first, every figure beside its controls."""

from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from ghostpoi.report.labels import victim_label


def audited(console: Console, name: str, found: dict[str, Any]) -> None:
    """The whole audit."""
    say = partial(console.print, markup=False, emoji=False)
    best, clean = found["strongest"], found["clean"]["acc@1"]
    top = found["adversaries"][best]
    say(
        f"{name}: strongest adversary {best}: its victim reaches acc@1 {_figure(top['acc@1'])} of clean "
        f"{_figure(clean)}, {top['gone']['mean']:.0%} of the clean accuracy is gone",
        style="bold",
    )
    n = len(clean["seeds"])
    say(
        f"{n} seed{'s' if n > 1 else ''}{', so no spread is known' if n == 1 else ', mean ± standard deviation'}; leak "
        f"{found['leak']:.1%} of training sessions; protocol {found['protocol']}; "
        f"{found['test_positions']:,} clean test positions"
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in ("victim trained on", "acc@1", "acc@5", "MRR", "gone", "restored"):
        table.add_column(column, justify="left" if column == "victim trained on" else "right")
    _row(table, "clean sessions", found["clean"], clean)
    for adversary, figures in found["adversaries"].items():
        _row(table, victim_label(adversary), figures, clean)
    table.add_section()
    for control, figures in found["controls"].items():
        _row(table, victim_label(control), figures, clean)
    say(table)
    for adversary, verdict in found["verdicts"].items():
        say(f"{adversary:14} {verdict}")
    _summary(say, found)


def _summary(say: Any, found: dict[str, Any]) -> None:
    g = found["gaps"]
    surv = ", ".join(f"{name} {_figure(value)}" for name, value in g["surv"].items())
    worst = f", worst over A1-A3 {_figure(g['worst'])}" if g["worst"] else ""
    say(
        f"gaps in acc@1: protection {_figure(g['prot'])}{worst}, worst of all {_figure(g['worst_all'])}"
        + (f"; survival {surv}" if surv else "")
    )
    p, u = found["plausibility"], found["utility"]
    fast, before = p["speed_violations_released"], p["speed_violations_clean"]
    say(
        f"plausibility: {p['substitution_rate']:.1%} substituted, category match {p['category_match']:.3f}, "
        f"{p['beyond_1km']:.1%} beyond 1 km, mean {p['mean_km']:.2f} km, p95 {p['p95_km']:.2f} km, "
        f"{fast:.1%} of steps over the speed limit (clean {before:.1%})"
    )
    if (natural := found["naturalness"]) is not None:
        say(f"naturalness: {natural['released']:.3f} (clean {natural['clean']:.3f})")
    say(
        f"utility: Jensen-Shannon {u['popularity']['poi_js']:.3f} bits in POI and "
        f"{u['popularity']['category_js']:.3f} in category popularity, common part of flows "
        f"{u['flows']['common_part']:.3f}, radius of gyration "
        f"{u['gyration']['mean_km_before']:.2f} -> {u['gyration']['mean_km_after']:.2f} km, revisit rate "
        f"{u['visits']['revisit_rate_before']:.3f} -> {u['visits']['revisit_rate_after']:.3f}"
    )


def _row(table: Table, name: str, figures: dict[str, Any], clean: dict[str, Any]) -> None:
    gone = 1 - figures["acc@1"]["mean"] / clean["mean"] if clean["mean"] else 0.0
    restored = f"{figures['restored']['mean']:.1%}" if "restored" in figures else ""
    table.add_row(name, *(_figure(figures[f]) for f in ("acc@1", "acc@5", "mrr")), f"{gone:.0%}", restored)


def _figure(value: dict[str, Any]) -> str:
    several = len(value["seeds"]) > 1
    return f"{value['mean']:.4f}" + (f" ± {value['std']:.4f}" if several else "")
