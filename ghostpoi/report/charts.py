"""Charts of the verdict and of the trade-off between protection and what it costs, as plotly figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from ghostpoi.report.collect import Collected
from ghostpoi.report.figures import LEAK_ONLY, POPULARITY, RANDOM, Audit, Spread, Victim
from ghostpoi.report.safe import label
from ghostpoi.report.theme import (
    BLUE,
    FAINT,
    FONT,
    GRID,
    INK,
    INSIDE,
    MUTED,
    PURPLE,
    SERIES,
    SURFACE,
    SYMBOLS,
    VERMILLION,
)
from ghostpoi.report.trajectories import method_names
from ghostpoi.report.words import short

CLEAR = "rgba(0,0,0,0)"
ROW_PX = 48


@dataclass(frozen=True)
class Chart:
    """A figure with the words that stand in for it."""

    id: str
    title: str
    caption: str
    figure: go.Figure

    def json(self) -> dict[str, Any]:
        made: dict[str, Any] = self.figure.to_plotly_json()
        return {"id": self.id, "data": made["data"], "layout": made["layout"]}

    @property
    def height(self) -> int:
        return int(self.figure.layout.height)


def axis(title: str, **more: Any) -> dict[str, Any]:
    """An axis that keeps quiet: a light grid, room for its labels, no zoom that would trap a finger on a phone."""
    return {
        "title": {"text": title, "font": {"size": 13, "color": MUTED}, "standoff": 10}, "gridcolor": GRID,
        "zeroline": False, "linecolor": FAINT, "tickfont": {"color": INK, "size": 12}, "automargin": True,
        "fixedrange": True, **more,
    }  # fmt: skip


def figure(traces: Sequence[Any], height: int, x: dict[str, Any], y: dict[str, Any], **layout: Any) -> go.Figure:
    """A figure in the page's own type and colours."""
    base = {
        "template": go.layout.Template(), "height": height, "paper_bgcolor": CLEAR, "plot_bgcolor": CLEAR,
        "font": {"family": FONT, "size": 13, "color": INK}, "margin": {"l": 8, "r": 16, "t": 12, "b": 8},
        "xaxis": x, "yaxis": y, "autosize": True, "dragmode": False, "barcornerradius": 2,
        "hoverlabel": {"bgcolor": SURFACE, "bordercolor": FAINT, "font": {"color": INK, "family": FONT}},
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"},
    }  # fmt: skip
    return go.Figure(list(traces), base | layout)


def verdict_chart(audit: Audit) -> Chart:
    """What share of the clean accuracy is gone under each adversary, beside the controls."""
    names = list(audit.adversaries)
    rows = [label(short(n)) for n in names]
    gone = [audit.adversaries[n].gone(audit.clean.acc1) for n in names]
    controls = {n: c.gone(audit.clean.acc1) for n in names if (c := audit.random(n)) is not None}
    traces: list[Any] = [_bars(rows, gone)]
    if audit.seeds > 1:
        points = [(100 * v, row) for row, g in zip(rows, gone, strict=True) for v in g.seeds]
        traces.append(
            go.Scatter(
                x=[p[0] for p in points], y=[p[1] for p in points], mode="markers", name="each seed",
                marker={"color": INK, "size": 5, "line": {"color": INSIDE, "width": 1}},
                hovertemplate="%{y}: %{x:.1f}%<extra>one seed</extra>",
            )
        )  # fmt: skip
    if controls:
        traces.append(_random_marks(controls))
    shapes = [
        _line(audit.controls[name], audit, text, colour, dash)
        for name, text, colour, dash in (
            (LEAK_ONLY, "the leaked rows alone", PURPLE, "dash"),
            (POPULARITY, "guessing by popularity", MUTED, "dot"),
        )
        if name in audit.controls
    ]
    every = [*gone, *controls.values()]
    low = min(0.0, *(g.mean - g.std for g in every)) * 100
    x = axis("share of the accuracy gone", range=[low * 1.08, 104], ticksuffix="%", dtick=25)
    ticks = {"tickvals": rows, "ticktext": [label(_shortened(short(n))) for n in names]}
    y = axis("", categoryorder="array", categoryarray=rows[::-1], showgrid=False, **ticks)
    made = figure(traces, 130 + ROW_PX * len(rows), x, y, shapes=shapes, bargap=0.42)
    return Chart(
        "verdict", "Accuracy gone, adversary by adversary",
        "Longer bars are better for the publisher. Diamonds are the control: a random draw of near venues. The "
        "dashed line is a victim that saw nothing but the leaked rows: whoever holds such a leak does at least that "
        "well, whatever is released." + (" Whiskers are one standard deviation over seeds." if audit.seeds > 1 else ""),
        made,
    )  # fmt: skip


def _shortened(name: str, most: int = 16) -> str:
    """A long name would leave no room for its bar on a phone; hovering tells it whole."""
    return name if len(name) <= most else name[: most - 1] + "…"


def _bars(rows: list[str], gone: list[Spread]) -> go.Bar:
    wide = [g.mean > 0.15 for g in gone]
    return go.Bar(
        x=[100 * g.mean for g in gone], y=rows, orientation="h", name="this release",
        marker={"color": BLUE}, error_x=_whisker(gone), text=[f"<b>{100 * g.mean:.0f}%</b>" for g in gone],
        textposition=["inside" if w else "outside" for w in wide], insidetextanchor="start", textangle=0,
        constraintext="none", insidetextfont={"color": INSIDE, "size": 15}, outsidetextfont={"color": INK, "size": 15},
        hovertemplate="%{y}: %{x:.1f}% gone<extra>this release</extra>",
    )  # fmt: skip


def _random_marks(controls: dict[str, Spread]) -> go.Scatter:
    return go.Scatter(
        x=[100 * g.mean for g in controls.values()], y=[label(short(n)) for n in controls], mode="markers",
        name="random draw", error_x=_whisker(list(controls.values())),
        marker={"color": VERMILLION, "symbol": "diamond", "size": 13, "line": {"color": SURFACE, "width": 1.5}},
        hovertemplate="%{y}: %{x:.1f}% gone<extra>random draw</extra>",
    )  # fmt: skip


def _whisker(figures: list[Spread]) -> dict[str, Any]:
    several = any(len(f.seeds) > 1 for f in figures)
    return {"array": [100 * f.std for f in figures], "visible": several, "color": INK, "thickness": 1.4, "width": 5}


def _line(control: Victim, audit: Audit, text: str, colour: str, dash: str) -> dict[str, Any]:
    x = 100 * control.gone(audit.clean.acc1).mean
    return {
        "type": "line", "x0": x, "x1": x, "xref": "x", "y0": 0, "y1": 1, "yref": "paper", "layer": "above",
        "line": {"color": colour, "width": 2, "dash": dash}, "showlegend": True, "name": text,
    }  # fmt: skip


@dataclass(frozen=True)
class Method:
    """One method that was measured, on the trade-off plane."""

    name: str
    protection: Spread
    resistance: Spread
    naturalness: float | None
    control: bool = False


def measured(found: Collected) -> list[Method]:
    """Every method with an audit, and the random control of the first one."""
    out = []
    for name, release in zip(method_names(found), [found.main, *found.others], strict=True):
        if (audit := release.audit) is not None and "none" in audit.adversaries:
            everyone = list(audit.adversaries.values())
            protection = audit.denied([audit.adversaries["none"]])
            out.append(Method(name, protection, audit.denied(everyone), audit.naturalness))
    audit = found.main.audit
    if audit is not None and RANDOM in audit.controls:
        draws = [v for n, v in audit.controls.items() if n == RANDOM or n.startswith(f"{RANDOM}+")]
        protection = audit.denied([audit.controls[RANDOM]])
        out.append(Method("random draw (control)", protection, audit.denied(draws), None, True))
    return out


def tradeoff_chart(methods: list[Method]) -> Chart:
    """Protection against purification resistance."""
    traces: list[Any] = [
        go.Scatter(
            x=[m.protection.mean], y=[m.resistance.mean], mode="markers", name=label(m.name),
            error_x=_bar(m.protection), error_y=_bar(m.resistance), marker=_mark(number, m),
            hovertemplate="denied to a naive learner %{x:.3f}<br>to the strongest %{y:.3f}"
            "<extra>%{fullData.name}</extra>",
        )
        for number, m in enumerate(methods)
    ]  # fmt: skip
    most = max(max(m.protection.mean + m.protection.std, m.resistance.mean + m.resistance.std) for m in methods)
    least = min(0.0, *(m.resistance.mean - m.resistance.std for m in methods))
    top = max(most * 1.12, 0.01)
    shape = {
        "type": "line", "x0": 0, "y0": 0, "x1": top, "y1": top, "layer": "below",
        "line": {"color": MUTED, "width": 1.5, "dash": "dot"}, "showlegend": True, "name": "nothing is won back",
    }  # fmt: skip
    x = axis("protection: denied to a naive learner", range=[min(0.0, least) * 1.1, top], tickformat=".2f")
    y = axis("resistance: denied to the strongest", range=[least * 1.1, top], tickformat=".2f")
    return Chart(
        "tradeoff", "Protection and resistance",
        "Up and to the right is better. Both axes are lost accuracy (acc@1, clean minus victim). On the dotted line "
        "the strongest adversary wins nothing back; the further below it, the more. A method that does not stand clear "
        "of the random draw has earned nothing by being clever.",
        figure(traces, 440, x, y, shapes=[shape]),
    )  # fmt: skip


def naturalness_chart(methods: list[Method]) -> Chart | None:
    """How natural released sessions look to a trajectory language model, against protection."""
    some = [(n, m) for n, m in enumerate(methods) if m.naturalness is not None]
    if len(some) < 2:  # a lone figure stands in the table
        return None
    traces = [
        go.Scatter(
            x=[m.protection.mean], y=[m.naturalness], mode="markers", name=label(m.name), marker=_mark(n, m),
            error_x=_bar(m.protection),
            hovertemplate="protection %{x:.3f}<br>naturalness %{y:.3f}<extra>%{fullData.name}</extra>",
        )
        for n, m in some
    ]  # fmt: skip
    x = axis("protection: denied to a naive learner", rangemode="tozero", tickformat=".2f")
    y = axis("mean log-likelihood of a check-in", tickformat=".2f")
    return Chart(
        "naturalness", "Naturalness and protection",
        "Up is more natural: how likely the released sessions are to a language model of clean ones.",
        figure(traces, 440, x, y),
    )  # fmt: skip


def _mark(number: int, method: Method) -> dict[str, Any]:
    colour = MUTED if method.control else SERIES[number % len(SERIES)]
    symbol = "diamond-open" if method.control else SYMBOLS[number % len(SYMBOLS)]
    return {"color": colour, "symbol": symbol, "size": 15, "line": {"color": colour, "width": 2}}


def _bar(figure: Spread) -> dict[str, Any]:
    return {"array": [figure.std], "visible": len(figure.seeds) > 1, "thickness": 1.2, "width": 4}
