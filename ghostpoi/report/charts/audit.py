"""Charts of an audit: accuracy lost by adversary, and protection against resistance and naturalness by method."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import plotly.graph_objects as go

from ghostpoi.evaluate.controls import CONTROLS, LEAK_ONLY, RANDOM
from ghostpoi.evaluate.measures.gaps import Spread
from ghostpoi.report.audit_view import AuditView
from ghostpoi.report.charts.base import Chart, axis, bars, draw, line, vertical
from ghostpoi.report.charts.theme import BLUE, INK, INSIDE, MUTED, PURPLE, SERIES, SURFACE, SYMBOLS, VERMILLION
from ghostpoi.report.escaping import label
from ghostpoi.report.labels import victim_label
from ghostpoi.report.page_data import PageData

ROW_PX = 48
HEIGHT = 440
LINES = ((LEAK_ONLY, PURPLE, "dash"), ("popularity", MUTED, "dot"))  # controls beside every adversary


def verdict_chart(audit: AuditView) -> Chart:
    """The accuracy lost under each adversary, beside the controls."""
    lost = {name: scores.accuracy_lost for name, scores in audit.adversaries.items()}
    random = {name: scores.accuracy_lost for name in lost if (scores := audit.random(name)) is not None}
    rows = {name: label(victim_label(name)) for name in lost}
    traces: list[Any] = [_lost_bars(list(rows.values()), list(lost.values()))]
    if audit.seeds > 1:
        points = [(100 * value, rows[name]) for name in lost for value in lost[name]["seeds"]]
        traces.append(
            go.Scatter(
                x=[p[0] for p in points], y=[p[1] for p in points], mode="markers", name="single seeds",
                marker={"color": INK, "size": 5, "line": {"color": INSIDE, "width": 1}},
                hovertemplate="%{y}: %{x:.1f}%<extra>one seed</extra>",
            )
        )  # fmt: skip
    if random:
        traces.append(
            go.Scatter(
                x=[100 * value["mean"] for value in random.values()], y=[rows[name] for name in random], mode="markers",
                name=CONTROLS[RANDOM], error_x=_whiskers(list(random.values()), 100),
                marker={"color": VERMILLION, "symbol": "diamond", "size": 13, "line": {"color": SURFACE, "width": 1.5}},
                hovertemplate=f"%{{y}}: %{{x:.1f}}% lost<extra>{CONTROLS[RANDOM]}</extra>",
            )
        )  # fmt: skip
    shapes = [
        vertical(100 * audit.controls[n].accuracy_lost["mean"], CONTROLS[n], colour, dash, layer="above")
        for n, colour, dash in LINES
        if n in audit.controls
    ]
    ends = [100 * (v["mean"] - v["std"]) for v in (*lost.values(), *random.values())]
    low = min(0.0, *ends, *(shape["x0"] for shape in shapes))
    x = axis("accuracy lost", range=[low * 1.08, 104], ticksuffix="%", dtick=25)
    # Two short lines leave room for the bars on a phone.
    ticks = {"tickvals": list(rows.values()), "ticktext": [_wrapped(victim_label(name)) for name in lost]}
    y = axis("", categoryorder="array", categoryarray=list(rows.values())[::-1], showgrid=False, **ticks)
    whiskers = " Whiskers show one standard deviation over seeds." if audit.seeds > 1 else ""
    return Chart(
        "verdict", "Accuracy lost by adversary",
        "Longer bars mean better protection. Diamonds show the control: a random release under the same adversary. The "
        "dashed line shows a victim trained on the leaked sessions alone. An adversary who holds them can "
        f"always do that well by ignoring the release.{whiskers}",
        draw(traces, x, y, 130 + ROW_PX * len(rows), shapes=shapes, bargap=0.42),
    )  # fmt: skip


def _wrapped(name: str) -> str:
    return "<br>".join(label(part) for part in wrap(name, 16, max_lines=2, placeholder="…"))


def _lost_bars(rows: list[str], lost: list[Spread]) -> go.Bar:
    return bars(
        [100 * value["mean"] for value in lost], rows, "this release", BLUE, "%{y}: %{x:.1f}% lost", orientation="h",
        error_x=_whiskers(lost, 100), text=[f"<b>{100 * value['mean']:.0f}%</b>" for value in lost],
        textposition=["inside" if value["mean"] > 0.15 else "outside" for value in lost], insidetextanchor="start",
        textangle=0, constraintext="none", insidetextfont={"color": INSIDE, "size": 15},
        outsidetextfont={"color": INK, "size": 15},
    )  # fmt: skip


def _whiskers(values: Sequence[Spread], scale: float = 1) -> dict[str, Any]:
    several = any(len(value["seeds"]) > 1 for value in values)
    return {"array": [scale * v["std"] for v in values], "visible": several, "color": INK, "thickness": 1.4, "width": 5}


@dataclass(frozen=True, kw_only=True)
class MethodPoint:
    """One audited method, or the random control."""

    name: str
    protection: Spread  # gap of the release as it is
    worst: Spread  # gap under the strongest adversary
    naturalness: float | None = None
    control: bool = False


def method_points(data: PageData) -> list[MethodPoint]:
    """Every method with an audit, and the random control of the first one."""
    points = [
        MethodPoint(
            name=name,
            protection=audit.gap([audit.adversaries["none"]]),
            worst=audit.gap(list(audit.adversaries.values())),
            naturalness=audit.naturalness,
        )
        for name, release in data.releases.items()
        if (audit := release.audit) is not None and "none" in audit.adversaries
    ]
    control = data.main.audit
    if control is not None and RANDOM in control.controls:
        draws = [v for name, v in control.controls.items() if name == RANDOM or name.startswith(f"{RANDOM}+")]
        protection, worst = control.gap([control.controls[RANDOM]]), control.gap(draws)
        points.append(
            MethodPoint(name=f"{CONTROLS[RANDOM]} (control)", protection=protection, worst=worst, control=True)
        )
    return points


def tradeoff_charts(points: list[MethodPoint]) -> list[Chart]:
    """The trade-off of all methods; naturalness only where there are two to compare."""
    if not points:
        return []
    natural = [(number, p) for number, p in enumerate(points) if p.naturalness is not None]
    return [_gap_chart(points), *([_naturalness_chart(natural)] if len(natural) > 1 else [])]


def _gap_chart(points: list[MethodPoint]) -> Chart:
    traces = [
        _scatter(number, p, p.worst["mean"], "as released %{x:.3f}<br>strongest adversary %{y:.3f}",
                 error_y=_whiskers([p.worst]))
        for number, p in enumerate(points)
    ]  # fmt: skip
    most = max(value["mean"] + value["std"] for p in points for value in (p.protection, p.worst))
    least = min(0.0, *(p.worst["mean"] - p.worst["std"] for p in points))
    top = max(most * 1.12, 0.01)
    diagonal = line((0, 0), (top, top), "nothing regained", MUTED, "dot", layer="below")
    x = axis("protection gap: release used as it is", range=[least * 1.1, top], tickformat=".2f")
    y = axis("worst gap: strongest adversary", range=[least * 1.1, top], tickformat=".2f")
    return Chart(
        "tradeoff", "Protection and resistance",
        "Up and to the right is better. A gap is the clean acc@1 minus that of the victim. On the dotted line the "
        "strongest adversary regains nothing; it regains more the farther a method lies below. A method is worth using "
        "only if it is clearly better than the random release.",
        draw(traces, x, y, HEIGHT, shapes=[diagonal]),
    )  # fmt: skip


def _naturalness_chart(points: list[tuple[int, MethodPoint]]) -> Chart:
    hover = "protection gap %{x:.3f}<br>naturalness %{y:.3f}"
    traces = [_scatter(number, p, p.naturalness, hover) for number, p in points]
    x = axis("protection gap: release used as it is", rangemode="tozero", tickformat=".2f")
    y = axis("mean log-likelihood of a check-in", tickformat=".2f")
    return Chart(
        "naturalness", "Naturalness and protection",
        "Higher is more natural. Likelihoods are those of a trajectory LM trained on clean sessions.",
        draw(traces, x, y, HEIGHT),
    )  # fmt: skip


def _scatter(number: int, point: MethodPoint, y: float | None, hover: str, **more: Any) -> go.Scatter:
    colour = MUTED if point.control else SERIES[number % len(SERIES)]
    symbol = "diamond-open" if point.control else SYMBOLS[number % len(SYMBOLS)]
    return go.Scatter(
        x=[point.protection["mean"]], y=[y], mode="markers", name=label(point.name),
        error_x=_whiskers([point.protection]), hovertemplate=f"{hover}<extra>%{{fullData.name}}</extra>",
        marker={"color": colour, "symbol": symbol, "size": 15, "line": {"color": colour, "width": 2}}, **more,
    )  # fmt: skip
