"""The result of an audit as text: the strongest adversary first, every measure next to its controls."""

from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.evaluate.controls import CONTROLS, RANDOM


def audited(console: Console, name: str, found: dict[str, Any]) -> None:
    """Print a whole audit."""
    say = partial(console.print, markup=False, emoji=False)
    best, clean = found["strongest"], found["clean"]["acc@1"]
    top, seeds = found["adversaries"][best], len(clean["seeds"])
    say(
        f"{name}: strongest adversary {best}: acc@1 {_spread(top['acc@1'])} against {_spread(clean)} on clean data, "
        f"{top['accuracy_lost']['mean']:.0%} of the accuracy lost",
        style="bold",
    )
    say(
        f"{'one seed, so the spread is unknown' if seeds == 1 else f'{seeds} seeds, mean ± standard deviation'}; "
        f"leak {found['leak']:.1%} of the training sessions; victim {found['victim']}, protocol {found['protocol']}; "
        f"{found['test_positions']:,} clean test positions"
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("victim trained on")
    for column in ("acc@1", "acc@5", "MRR", "lost", "recovered"):
        table.add_column(column, justify="right")
    _row(table, "clean sessions", found["clean"])
    for adversary, measures in found["adversaries"].items():
        _row(table, label(adversary), measures)
    table.add_section()
    for control, measures in found["controls"].items():
        _row(table, label(control), measures)
    say(table)
    for adversary, verdict in found["verdicts"].items():
        say(f"{adversary:14} {verdict}")
    _summary(say, found)


def label(name: str) -> str:
    """Return the label of an adversary, a control, or the random release under an adversary."""
    if name in ADVERSARIES:
        return str(getattr(ADVERSARIES[name], "label", name))
    _, random, adversary = name.partition(f"{RANDOM}+")
    return f"{CONTROLS[RANDOM]}, {label(adversary)}" if random else CONTROLS.get(name, name)


def _summary(say: Any, found: dict[str, Any]) -> None:
    gaps, p, u = found["gaps"], found["plausibility"], found["utility"]
    worst = f", worst over A1-A3 {_spread(gaps['worst'])}" if gaps["worst"] else ""
    survival = ", ".join(f"{name} {_spread(value)}" for name, value in gaps["surv"].items())
    say(
        f"gaps in acc@1: protection {_spread(gaps['prot'])}{worst}, worst over all {_spread(gaps['worst_all'])}"
        + (f"; survival {survival}" if survival else "")
    )
    say(
        f"plausibility: {p['substitution_rate']:.1%} substituted, category match {p['category_match']:.3f}, "
        f"{p['beyond_1km']:.1%} beyond 1 km, mean {p['mean_km']:.2f} km, p95 {p['p95_km']:.2f} km, "
        f"{p['speed_violations_released']:.1%} of steps over the speed limit (clean {p['speed_violations_clean']:.1%})"
    )
    if (natural := found["naturalness"]) is not None:
        say(f"naturalness: {natural['released']:.3f} (clean {natural['clean']:.3f})")
    say(
        f"utility: Jensen-Shannon divergence {u['popularity']['poi_js']:.3f} bits in venue and "
        f"{u['popularity']['category_js']:.3f} bits in category popularity, common part of flows "
        f"{u['flows']['common_part']:.3f}, radius of gyration "
        f"{u['gyration']['mean_km_before']:.2f} -> {u['gyration']['mean_km_after']:.2f} km, revisit rate "
        f"{u['visits']['revisit_rate_before']:.3f} -> {u['visits']['revisit_rate_after']:.3f}"
    )


def _row(table: Table, name: str, measures: dict[str, Any]) -> None:
    recovered = f"{measures['restored']['mean']:.1%}" if "restored" in measures else ""
    accuracies = (_spread(measures[metric]) for metric in ("acc@1", "acc@5", "mrr"))
    table.add_row(name, *accuracies, f"{measures['accuracy_lost']['mean']:.0%}", recovered)


def _spread(value: dict[str, Any]) -> str:
    return f"{value['mean']:.4f}" + (f" ± {value['std']:.4f}" if len(value["seeds"]) > 1 else "")
