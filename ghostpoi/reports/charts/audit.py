"""Charts of an audit: accuracy by adversary, and protection against resistance and naturalness by method."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import plotly.graph_objects as go

from ghostpoi.audits.controls import CONTROLS, RANDOM, RANDOM_MATCHED
from ghostpoi.audits.measures.gaps import Spread
from ghostpoi.reports import charts
from ghostpoi.reports.audit_view import AuditView
from ghostpoi.reports.charts import Chart, axis, bars, chart, draw, line, scatter, vertical
from ghostpoi.reports.page_data import PageData
from ghostpoi.reports.texts import TEXTS, label, victim_label

ROW_PX = 48
HEIGHT = 440


def verdict_chart(audit: AuditView) -> Chart:
    """The accuracy under each adversary, next to the controls."""
    reached = {name: scores.acc1 for name, scores in audit.adversaries.items()}
    random, matched = (
        {name: scores.acc1 for name in reached if (scores := control(name)) is not None}
        for control in (audit.random, audit.matched)
    )
    rows = {name: label(victim_label(name)) for name in reached}
    traces: list[Any] = [_accuracy_bars(list(rows.values()), list(reached.values()))]
    if audit.seeds > 1:
        each = [100 * value for spread in reached.values() for value in spread["seeds"]]
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
                scatter(means, [rows[name] for name in found], CONTROLS[control], "%{y}: %{x:.1f}%",
                        error_x=_whiskers(list(found.values()), 100), marker=marker)
            )  # fmt: skip
    alone = audit.without_release
    names = {leak: victim_label(name) for leak, name in alone.items()}
    lines = [
        ("clean sessions", audit.clean, charts.INK, "solid"),
        (names["no_leak"], audit.controls[alone["no_leak"]], charts.MUTED, "dot"),
        (names["with_leak"], audit.controls[alone["with_leak"]], charts.PURPLE, "dash"),
    ]
    shapes = [
        vertical(100 * scores.acc1["mean"], name, colour, dash, layer="above") for name, scores, colour, dash in lines
    ]
    ends = [100 * (v["mean"] + v["std"]) for v in (*reached.values(), *random.values(), *matched.values())]
    x = axis(
        "right guesses of the next venue", range=[0, 1.08 * max(*ends, *(s["x0"] for s in shapes))], ticksuffix="%"
    )
    # Two short lines leave room for the bars on a phone.
    short = [wrap(victim_label(name), 16, max_lines=2, placeholder="…") for name in reached]
    y = axis(
        "", categoryorder="array", categoryarray=list(rows.values())[::-1], showgrid=False,
        tickvals=list(rows.values()), ticktext=["<br>".join(map(label, parts)) for parts in short],
    )  # fmt: skip
    whiskers = " Whiskers show one standard deviation over seeds." if audit.seeds > 1 else ""
    figure = draw(traces, x, y, 130 + ROW_PX * len(rows), shapes=shapes, bargap=0.42)
    matched_text = TEXTS["charts"]["verdict"]["matched"] if matched else ""
    return chart("verdict", figure, whiskers=whiskers, matched=matched_text, **names)


def _accuracy_bars(rows: list[str], reached: list[Spread]) -> go.Bar:
    most = max(value["mean"] for value in reached)
    return bars(
        [100 * value["mean"] for value in reached], rows, "this release", charts.BLUE, "%{y}: %{x:.1f}%",
        orientation="h", error_x=_whiskers(reached, 100),
        text=[f"<b>{100 * value['mean']:.1f}%</b>" for value in reached],
        textposition=["inside" if value["mean"] > most / 4 else "outside" for value in reached],
        insidetextanchor="start", textangle=0, constraintext="none",
        insidetextfont={"color": charts.INSIDE, "size": 15}, outsidetextfont={"color": charts.INK, "size": 15},
    )  # fmt: skip


def _whiskers(values: Sequence[Spread], scale: float = 1) -> dict[str, Any]:
    deviations, several = [scale * v["std"] for v in values], any(len(v["seeds"]) > 1 for v in values)
    return {"array": deviations, "visible": several, "color": charts.INK, "thickness": 1.4, "width": 5}


@dataclass(frozen=True)
class MethodPoint:
    """One audited method, a random control, or what an adversary has without the release."""

    name: str
    protection: Spread  # gap of the release as it is
    worst: Spread  # gap under the strongest adversary
    naturalness: float | None = None
    control: str = ""  # the symbol of a control


def method_points(data: PageData) -> list[MethodPoint]:
    """Every method with an audit, and the controls of the first one: random releases, and doing without a release.

    An adversary can ignore the release, so the worst case of a method includes what adversaries have without it.
    """
    points = [
        MethodPoint(name, a.gap([a.adversaries["none"]]), a.gap([*a.adversaries.values(), *a.alone]), a.naturalness)
        for name, release in data.releases.items()
        if (a := release.audit) is not None and "none" in a.adversaries
    ]
    main = data.main.audit
    if main is None:
        return points
    for control, symbol in ((RANDOM, "diamond-open"), (RANDOM_MATCHED, "circle-open")):
        if control in main.controls:
            draws = [v for name, v in main.controls.items() if name == control or name.startswith(f"{control}+")]
            gaps = main.gap([main.controls[control]]), main.gap(draws)
            points.append(MethodPoint(f"{CONTROLS[control]} (control)", *gaps, control=symbol))
    for name in dict.fromkeys(main.without_release.values()):
        gap = main.gap([main.controls[name]])
        points.append(MethodPoint(victim_label(name), gap, gap, control="x-open"))
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
