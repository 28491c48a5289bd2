"""What all charts share: colours, the figure with its texts, axes, bars, points and lines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from ghostpoi.data.checkins import Ints
from ghostpoi.reports.page_data import PageData
from ghostpoi.reports.texts import TEXTS

# Okabe-Ito, distinct with any colour vision. The dark page uses the brighter ones of the same palette.
BLUE, VERMILLION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#a8497f"
INK, MUTED, GRID, SURFACE, FAINT, INSIDE = "#1b2126", "#57616b", "#e3e6e8", "#ffffff", "#b9c0c6", "#fffffe"

DARK = {
    BLUE: "#56b4e9", VERMILLION: "#e69f00", GREEN: "#1bbf90", PURPLE: "#e39cc4", INK: "#e9ecee", MUTED: "#a7b1ba",
    GRID: "#343b42", SURFACE: "#1a1e22", FAINT: "#4d565e", INSIDE: "#101316",  # INSIDE: text on a bar
}  # fmt: skip
SERIES = (BLUE, VERMILLION, GREEN, PURPLE, INK)
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "x", "star", "hexagon")
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"


CLEAR = "rgba(0,0,0,0)"
HEIGHT = 340


@dataclass(frozen=True)
class Chart:
    """A plotly figure with a title and a caption that describes it."""

    id: str
    title: str
    caption: str
    figure: go.Figure

    def json(self) -> dict[str, Any]:
        made: dict[str, Any] = self.figure.to_plotly_json()
        return {"id": self.id, "data": made["data"], "layout": made["layout"]}


def chart(name: str, figure: go.Figure, **values: Any) -> Chart:
    """A chart with its texts from assets/texts.toml, filled with these values."""
    title, caption = (TEXTS["charts"][name][key].format(**values) for key in ("title", "caption"))
    return Chart(name.removesuffix("_private"), title, caption, figure)


def axis(title: str, **more: Any) -> dict[str, Any]:
    """An axis with a light grid and room for its labels. It cannot zoom, which would trap a finger on a phone."""
    return {
        "title": {"text": title, "font": {"size": 13, "color": MUTED}, "standoff": 10}, "gridcolor": GRID,
        "zeroline": False, "linecolor": FAINT, "tickfont": {"color": INK, "size": 12}, "automargin": True,
        "fixedrange": True, **more,
    }  # fmt: skip


def share_axis() -> dict[str, Any]:
    return axis("", tickformat=".0%", rangemode="tozero")


def draw(traces: Sequence[Any], x: dict[str, Any], y: dict[str, Any], height: int = HEIGHT, **layout: Any) -> go.Figure:
    """A figure in the fonts and colours of the page."""
    base = {
        "template": go.layout.Template(), "height": height, "paper_bgcolor": CLEAR, "plot_bgcolor": CLEAR,
        "font": {"family": FONT, "size": 13, "color": INK}, "margin": {"l": 8, "r": 16, "t": 12, "b": 8},
        "xaxis": x, "yaxis": y, "autosize": True, "dragmode": False, "barcornerradius": 2,
        "hoverlabel": {"bgcolor": SURFACE, "bordercolor": FAINT, "font": {"color": INK, "family": FONT}},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
    }  # fmt: skip
    return go.Figure(list(traces), base | layout)


def bars(x: Sequence[Any], y: Sequence[Any], name: str, colour: str, hover: str, **more: Any) -> go.Bar:
    """Bars with the text that hovering shows."""
    return go.Bar(
        x=x, y=y, name=name, hovertemplate=f"{hover}<extra>{name}</extra>", **({"marker": {"color": colour}} | more)
    )


def scatter(
    x: Sequence[Any], y: Sequence[Any], name: str, hover: str, extra: str | None = None, **more: Any
) -> go.Scatter:
    """Points with the text that hovering shows; next to it stands the name or `extra`."""
    text = f"{hover}<extra>{name if extra is None else extra}</extra>"
    return go.Scatter(x=x, y=y, name=name, hovertemplate=text, **({"mode": "markers"} | more))


def line(
    start: tuple[float, float], end: tuple[float, float], name: str, colour: str, dash: str, **more: Any
) -> dict[str, Any]:
    """A line across a figure, with its own entry in the legend."""
    return {
        "type": "line", "x0": start[0], "y0": start[1], "x1": end[0], "y1": end[1], "showlegend": True, "name": name,
        "line": {"color": colour, "width": 2, "dash": dash}, **more,
    }  # fmt: skip


def vertical(x: float, name: str, colour: str, dash: str, **more: Any) -> dict[str, Any]:
    """A vertical line from bottom to top."""
    return line((x, 0), (x, 1), name, colour, dash, xref="x", yref="paper", **more)


def sides(data: PageData) -> list[tuple[str, Ints, str, str]]:
    """Name, venues, colour and line style of what a chart shows: the released side, the clean one before it."""
    released = ("released", data.released, BLUE, "solid")
    return [released] if data.clean is None else [("clean", data.clean, VERMILLION, "dash"), released]
