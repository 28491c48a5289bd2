"""Charts of an audit: accuracy lost by adversary, and protection against resistance and naturalness by method."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import plotly.graph_objects as go

from ghostpoi.audits.controls import CONTROLS, LEAK_ONLY, RANDOM, RANDOM_MATCHED
from ghostpoi.audits.measures.gaps import Spread
from ghostpoi.reports import charts
from ghostpoi.reports.audit_view import AuditView
from ghostpoi.reports.charts import Chart, axis, bars, chart, draw, line, scatter, vertical
from ghostpoi.reports.page_data import PageData
from ghostpoi.reports.texts import TEXTS, label, victim_label

ROW_PX = 48
HEIGHT = 440


def verdict_chart(audit: AuditView) -> Chart:
    """The accuracy lost under each adversary, next to the controls."""
    lost = {name: scores.accuracy_lost for name, scores in audit.adversaries.items()}
    random, matched = (
        {name: scores.accuracy_lost for name in lost if (scores := control(name)) is not None}
        for control in (audit.random, audit.matched)
    )
    rows = {name: label(victim_label(name)) for name in lost}
    traces: list[Any] = [_lost_bars(list(rows.values()), list(lost.values()))]
    if audit.seeds > 1:
        each = [100 * value for spread in lost.values() for value in spread["seeds"]]
        places = [row for row in rows.values() for _ in range(audit.seeds)]
        marker = {"color": charts.INK, "size": 5, "line": {"color": charts.INSIDE, "width": 1}}
        traces.append(scatter(each, places, "single seeds", "%{y}: %{x:.1f}%", "one seed", marker=marker))
    for control, found, colour, symbol in (
        (RANDOM, random, charts.VERMILLION, "diamond"), (RANDOM_MATCHED, matched, charts.GREEN, "circle"),
    ):  # fmt: skip
        if found:
            means = [100 * value["mean"] for value in found.values()]
            marker = {"color": colour, "symbol": symbol, "size": 13, "line": {"color": charts.SURFACE, "width": 1.5}}
            traces.append(
                scatter(means, [rows[name] for name in found], CONTROLS[control], "%{y}: %{x:.1f}% lost",
                        error_x=_whiskers(list(found.values()), 100), marker=marker)
            )  # fmt: skip
    shapes = [
        vertical(100 * audit.controls[n].accuracy_lost["mean"], CONTROLS[n], colour, dash, layer="above")
        for n, colour, dash in ((LEAK_ONLY, charts.PURPLE, "dash"), (audit.best_floor, charts.MUTED, "dot"))
        if n in audit.controls
    ]
    ends = [100 * (v["mean"] - v["std"]) for v in (*lost.values(), *random.values(), *matched.values())]
    low = min(0.0, *ends, *(shape["x0"] for shape in shapes))
    x = axis("accuracy lost", range=[low * 1.08, 104], ticksuffix="%", dtick=25)
    # Two short lines leave room for the bars on a phone.
    short = [wrap(victim_label(name), 16, max_lines=2, placeholder="…") for name in lost]
    y = axis(
        "", categoryorder="array", categoryarray=list(rows.values())[::-1], showgrid=False,
        tickvals=list(rows.values()), ticktext=["<br>".join(map(label, parts)) for parts in short],
    )  # fmt: skip
    whiskers = " Whiskers show one standard deviation over seeds." if audit.seeds > 1 else ""
    figure = draw(traces, x, y, 130 + ROW_PX * len(rows), shapes=shapes, bargap=0.42)
    matched_text = TEXTS["charts"]["verdict"]["matched"] if matched else ""
    return chart("verdict", figure, whiskers=whiskers, matched=matched_text, floor=audit.floor_text)


def _lost_bars(rows: list[str], lost: list[Spread]) -> go.Bar:
    return bars(
        [100 * value["mean"] for value in lost], rows, "this release", charts.BLUE, "%{y}: %{x:.1f}% lost",
        orientation="h", error_x=_whiskers(lost, 100), text=[f"<b>{100 * value['mean']:.0f}%</b>" for value in lost],
        textposition=["inside" if value["mean"] > 0.15 else "outside" for value in lost], insidetextanchor="start",
        textangle=0, constraintext="none", insidetextfont={"color": charts.INSIDE, "size": 15},
        outsidetextfont={"color": charts.INK, "size": 15},
    )  # fmt: skip


def _whiskers(values: Sequence[Spread], scale: float = 1) -> dict[str, Any]:
    deviations, several = [scale * v["std"] for v in values], any(len(v["seeds"]) > 1 for v in values)
    return {"array": deviations, "visible": several, "color": charts.INK, "thickness": 1.4, "width": 5}


@dataclass(frozen=True)
class MethodPoint:
    """One audited method, the random control, or the best floor."""

    name: str
    protection: Spread  # gap of the release as it is
    worst: Spread  # gap under the strongest adversary
    naturalness: float | None = None
    control: str = ""  # the symbol of a control


def method_points(data: PageData) -> list[MethodPoint]:
    """Every method with an audit, and the random control and the best floor of the first one."""
    points = [
        MethodPoint(name, a.gap([a.adversaries["none"]]), a.gap(a.adversaries.values()), a.naturalness)
        for name, release in data.releases.items()
        if (a := release.audit) is not None and "none" in a.adversaries
    ]
    main = data.main.audit
    if main is not None and RANDOM in main.controls:
        draws = [v for name, v in main.controls.items() if name == RANDOM or name.startswith(f"{RANDOM}+")]
        gaps = main.gap([main.controls[RANDOM]]), main.gap(draws)
        points.append(MethodPoint(f"{CONTROLS[RANDOM]} (control)", *gaps, control="diamond-open"))
    if main is not None:
        gap = main.gap([main.controls[main.best_floor]])
        points.append(MethodPoint(CONTROLS[main.best_floor], gap, gap, control="x-open"))
    return points


def tradeoff_charts(points: list[MethodPoint]) -> list[Chart]:
    """The trade-off of all methods; naturalness only where there are two to compare."""
    if not points:
        return []
    natural = [(number, p) for number, p in enumerate(points) if p.naturalness is not None]
    return [_gap_chart(points), *([_naturalness_chart(natural)] if len(natural) > 1 else [])]


def _gap_chart(points: list[MethodPoint]) -> Chart:
    hover = "as released %{x:.3f}<br>strongest adversary %{y:.3f}"
    traces = [
        _method_trace(number, p, p.worst["mean"], hover, error_y=_whiskers([p.worst]))
        for number, p in enumerate(points)
    ]
    most = max(value["mean"] + value["std"] for p in points for value in (p.protection, p.worst))
    least = min(0.0, *(p.worst["mean"] - p.worst["std"] for p in points))
    top = max(most * 1.12, 0.01)
    diagonal = line((0, 0), (top, top), "nothing regained", charts.MUTED, "dot", layer="below")
    x = axis("protection gap: release used as it is", range=[least * 1.1, top], tickformat=".2f")
    y = axis("worst gap: strongest adversary", range=[least * 1.1, top], tickformat=".2f")
    return chart("tradeoff", draw(traces, x, y, HEIGHT, shapes=[diagonal]))


def _naturalness_chart(points: list[tuple[int, MethodPoint]]) -> Chart:
    hover = "protection gap %{x:.3f}<br>naturalness %{y:.3f}"
    traces = [_method_trace(number, p, p.naturalness, hover) for number, p in points]
    x = axis("protection gap: release used as it is", rangemode="tozero", tickformat=".2f")
    y = axis("mean log-likelihood of a check-in", tickformat=".2f")
    return chart("naturalness", draw(traces, x, y, HEIGHT))


def _method_trace(number: int, point: MethodPoint, y: float | None, hover: str, **more: Any) -> go.Scatter:
    colour = charts.MUTED if point.control else charts.SERIES[number % len(charts.SERIES)]
    symbol = point.control or charts.SYMBOLS[number % len(charts.SYMBOLS)]
    return scatter(
        [point.protection["mean"]], [y], label(point.name), hover, "%{fullData.name}",
        error_x=_whiskers([point.protection]),
        marker={"color": colour, "symbol": symbol, "size": 15, "line": {"color": colour, "width": 2}}, **more,
    )  # fmt: skip
