"""What all charts share: axes, series and the SVG that they become.

Places are percentages of the plot, so a chart fits every width without a script. Colours are classes of the page's
style, so a chart is dark, light or on paper as the page is. A chart library would be most of the page.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup, escape

from ghostpoi.data.checkins import Ints
from ghostpoi.reports.page_data import PageData
from ghostpoi.reports.texts import TEXTS

# Okabe-Ito, distinct with any colour vision; style.css says what they are in light and in the dark.
BLUE, VERMILLION, GREEN, PURPLE, INK, MUTED = "blue", "vermillion", "green", "purple", "ink", "muted"
SERIES = (BLUE, VERMILLION, GREEN, PURPLE, INK)
SYMBOLS = {  # paths around their centre
    "circle": "M-6 0a6 6 0 1 0 12 0a6 6 0 1 0-12 0z", "diamond": "M0-8L8 0L0 8L-8 0z", "square": "M-6-6H6V6H-6z",
    "triangle": "M0-7L7 6H-7z", "cross": "M-7-2H-2V-7H2V-2H7V2H2V7H-2V2H-7z", "x": "M-6-6L6 6M-6 6L6-6",
    "ring": "M-11 0a11 11 0 1 0 22 0a11 11 0 1 0-22 0z", "dot": "M-2.5 0a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0z",
}  # fmt: skip
TICKS = 5
MOST_VALUES = 80  # of a chart that lists them
ROW_PX = 46  # of a horizontal bar with its label above it


class Axis(NamedTuple):
    """From a value to a percentage of the plot, with what stands next to it."""

    title: str
    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    log: bool = False
    rows: bool = False  # the labels stand in the plot, each above its bars
    tilted: bool = False

    def at(self, value: float) -> float:
        low, high, at = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        return round(100 * (at - low) / (high - low), 2)


class Mark(NamedTuple):
    """A rectangle from corner to corner in the units of the axes, or a point where both corners are the same."""

    x0: float
    y0: float
    x1: float
    y1: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Series:
    """What a legend names: bars, points, or a line through points."""

    name: str
    colour: str
    kind: str  # bars, points, line, rule
    marks: Sequence[Mark]
    values: Sequence[float] = ()  # as they were given
    symbol: str = "circle"  # of points; "-open" after it leaves them empty
    dash: str = ""

    @property
    def classes(self) -> str:
        is_open = "open" if self.symbol.endswith("-open") else ""
        return " ".join(filter(None, (self.colour, self.kind, self.dash, is_open)))

    def point(self, x: str, y: str, said: str = "") -> str:
        """The symbol at a place."""
        return f'<use href="#{self.symbol.removesuffix("-open")}" x="{x}" y="{y}"{said}/>'


@dataclass(frozen=True)
class Figure:
    """Series on two axes."""

    series: Sequence[Series]
    x: Axis
    y: Axis
    height: int = 300

    def svg(self) -> Markup:
        """The plot without its legend, as wide as its place."""
        left = 0 if self.y.rows else 12 + 7 * max((len(text) for _, text in self.y.ticks), default=0)
        parts = [*_vertical_axis(self.y), *_horizontal_axis(self.x)]
        parts += [_marks(one, self.x, self.y) for one in self.series]
        style = f"margin-left:{left}px;width:calc(100% - {left}px);height:{self.height}px"
        below = " tilted" if self.x.tilted else ""
        title = f'<p class="axis">{escape(self.y.title)}</p>' if self.y.title else ""
        under = f'<p class="axis under">{escape(self.x.title)}</p>' if self.x.title else ""
        return Markup(  # every text in it is escaped
            f'{title}<svg class="plot{below}" style="{style}" aria-hidden="true">{"".join(parts)}</svg>{under}'
        )

    def key(self) -> Markup:
        shown = "".join(f"<li>{_swatch(one)}{escape(one.name)}</li>" for one in self.series if one.name)
        return Markup(f'<ul class="legend">{shown}</ul>')

    def values(self) -> list[tuple[str, list[str]]]:
        """What each mark says, by series, for readers who do not see the plot; nothing where there are too many."""
        found = [(one.name, [mark.text for mark in one.marks if mark.text]) for one in self.series]
        return found if 0 < sum(len(texts) for _, texts in found) <= MOST_VALUES else []


@dataclass(frozen=True)
class Chart:
    """A figure with a title and a caption that describes it."""

    id: str
    title: str
    caption: str
    figure: Figure


def chart(name: str, figure: Figure, **values: object) -> Chart:
    """A chart with its texts from assets/texts.toml, filled with these values."""
    title, caption = (TEXTS["charts"][name][key].format(**values) for key in ("title", "caption"))
    return Chart(name.removesuffix("_private"), title, caption, figure)


def numbers(
    title: str, values: Sequence[float], form: str = "{:g}", log: bool = False, zero: bool = True, least: float = 0
) -> Axis:
    """An axis from zero, or from the lowest value, beyond the highest one, and at least to `least`."""
    low, high = min(values, default=0.0), max([least, *values])
    if log:
        bottom, top = 10 ** math.floor(math.log10(max(low, 1))), max(high * 1.3, 10)
        places = range(round(math.log10(bottom)), math.floor(math.log10(top)) + 1)
        return Axis(title, bottom, top, [(10**k, f"{10**k:,}") for k in places], log=True)
    low = min(0.0, low) if zero else low - 0.1 * (high - low or 1)
    high += 0.06 * (high - low or 1)
    width = (high - low) / TICKS
    power = 10.0 ** math.floor(math.log10(width))
    step = next(power * n for n in (1.0, 2.0, 2.5, 5.0, 10.0) if power * n >= width * (1 - 1e-9))  # a round number
    ticks = [k * step for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]
    return Axis(title, low, high, [(round(t, 10), form.format(round(t, 10))) for t in ticks])


def slots(labels: Sequence[str], title: str = "", every: int = 1, tilted: bool = False) -> Axis:
    """An axis of categories from left to right, of which every so many is labelled."""
    ticks = [(k + 0.5, text) for k, text in enumerate(labels) if k % every == 0]
    return Axis(title, 0, len(labels), ticks, tilted=tilted)


def rows(labels: Sequence[str]) -> Axis:
    """An axis of categories from top to bottom, each with its label above its bars."""
    return Axis("", max(1, len(labels)), 0, [(float(k), text) for k, text in enumerate(labels)], rows=True)


def columns(name: str, colour: str, values: Sequence[float], texts: Sequence[str], place: int = 0, of: int = 1,
            edges: Sequence[float] | None = None) -> Series:  # fmt: skip
    """Vertical bars in slots, the `place`-th of so many in each, or between edges."""
    width = 0.8 / of
    slots = ((k + 0.1 + place * width, k + 0.1 + (place + 1) * width) for k in range(len(values)))
    spans = slots if edges is None else pairwise(edges)
    marks = [Mark(a, 0, b, value, text) for (a, b), value, text in zip(spans, values, texts, strict=True)]
    return Series(name=name, colour=colour, kind="bars", marks=marks, values=list(values))


def strips(name: str, colour: str, values: Sequence[float], texts: Sequence[str], place: int = 0, of: int = 1,
           base: Sequence[float] | None = None) -> Series:  # fmt: skip
    """Horizontal bars in rows, the `place`-th of so many in each, from zero or from a base."""
    height = 0.5 / of
    marks = [
        Mark(start, k + 0.42 + place * height, start + value, k + 0.42 + (place + 1) * height, text)
        for k, (start, value, text) in enumerate(zip(base or [0.0] * len(values), values, texts, strict=True))
    ]
    return Series(name=name, colour=colour, kind="bars", marks=marks, values=list(values))


Sides = Sequence[tuple[str, str, Sequence[float]]]  # name, colour and values of what stands side by side


def grouped(bars: Callable[..., Series], sides: Sides, text: Callable[[int, float, str], str]) -> list[Series]:
    """Bars of several sides next to each other; `text` is that of a place, a value and the name of a side."""
    return [
        bars(name, colour, values, [text(k, v, name) for k, v in enumerate(values)], place, len(sides))
        for place, (name, colour, values) in enumerate(sides)
    ]


def every(series: Sequence[Series]) -> list[float]:
    """The values of all series, for an axis."""
    return [value for one in series for value in one.values]


def points(name: str, colour: str, x: Sequence[float], y: Sequence[float], texts: Sequence[str],
           symbol: str = "circle") -> Series:  # fmt: skip
    """Points with what hovering over them shows."""
    marks = [Mark(a, b, a, b, text) for a, b, text in zip(x, y, texts, strict=True)]
    return Series(name=name, colour=colour, kind="points", marks=marks, values=list(y), symbol=symbol)


def curve(name: str, colour: str, x: Sequence[float], y: Sequence[float], dash: str = "") -> Series:
    marks = [Mark(a, b, a, b, "") for a, b in zip(x, y, strict=True)]
    return Series(name=name, colour=colour, kind="line", marks=marks, values=list(y), dash=dash)


def rule(name: str, colour: str, start: tuple[float, float], end: tuple[float, float], dash: str = "") -> Series:
    """A line across the plot, with its own entry in the legend."""
    return Series(name=name, colour=colour, kind="rule", marks=[Mark(*start, *end, name)], dash=dash)


def upright(name: str, colour: str, x: float, y: Axis, dash: str = "") -> Series:
    """A vertical line from bottom to top."""
    return rule(name, colour, (x, y.low), (x, y.high), dash)


def whiskers(spans: Sequence[tuple[float, float, float]], across: bool = True) -> Series:
    """Thin lines from low to high at a place; across or upright."""
    marks = [Mark(low, at, high, at, "") if across else Mark(at, low, at, high, "") for low, high, at in spans]
    return Series(name="", colour=INK, kind="rule", marks=marks, dash="thin")


def _vertical_axis(y: Axis) -> list[str]:
    """Lines across the plot with numbers left of it; for rows, labels in the plot."""
    if y.rows:
        return [f'<text class="row" y="{100 - y.at(k + 0.3):g}%">{escape(text)}</text>' for k, text in y.ticks]
    places = [(f"{100 - y.at(t):g}%", escape(text)) for t, text in y.ticks]
    lines = [f'<line class="grid" x2="100%" y1="{at}" y2="{at}"/>' for at, _ in places]
    return lines + [f'<text class="tick" x="-8" y="{at}" dy=".35em" text-anchor="end">{t}</text>' for at, t in places]


def _horizontal_axis(x: Axis) -> list[str]:
    """Lines from bottom to top with numbers below; for categories, labels alone."""
    parts = ['<line class="base" x2="100%" y1="100%" y2="100%"/>']
    for t, text in x.ticks:
        at, end = f"{x.at(t):g}%", x.tilted or x.at(t) > 97  # the last number may not leave the chart
        anchor = f'text-anchor="{"end" if end else "middle"}"'
        turned = f'{anchor} transform="rotate(-40)"' if x.tilted else anchor
        words = f'<text class="tick" y="18" {turned}>{escape(text)}</text>'
        parts.append(f'<svg x="{at}" y="100%" overflow="visible">{words}</svg>')
    return parts


def _marks(one: Series, x: Axis, y: Axis) -> str:
    if one.kind == "line":
        path = " ".join(f"{x.at(m.x0):g} {100 - y.at(m.y0):g}" for m in one.marks)
        drawn = f'<path class="{one.classes}" vector-effect="non-scaling-stroke" d="M{path}"/>'
        return f'<svg viewBox="0 0 100 100" preserveAspectRatio="none" width="100%" height="100%">{drawn}</svg>'
    made = []
    for m in one.marks:
        said = f' data-t="{escape(m.text)}"' if m.text else ""
        a, b = sorted((x.at(m.x0), x.at(m.x1)))
        low, high = sorted((100 - y.at(m.y0), 100 - y.at(m.y1)))
        if one.kind == "bars":
            made.append(f'<rect x="{a:g}%" y="{low:g}%" width="{b - a:.2f}%" height="{high - low:.2f}%"{said}/>')
        elif one.kind == "points":
            made.append(one.point(f"{a:g}%", f"{low:g}%", said))
        else:
            ends = f'x1="{x.at(m.x0):g}%" y1="{100 - y.at(m.y0):g}%" x2="{x.at(m.x1):g}%" y2="{100 - y.at(m.y1):g}%"'
            made.append(f"<line {ends}{said}/>")
    return f'<g class="{one.classes}">{"".join(made)}</g>'


def _swatch(one: Series) -> str:
    shapes = {"bars": '<rect x="2" y="3" width="16" height="10"/>', "points": one.point("10", "8")}
    drawn = shapes.get(one.kind, '<line x1="0" y1="8" x2="20" y2="8"/>')
    return f'<svg class="{one.classes}" width="20" height="16" aria-hidden="true">{drawn}</svg>'


def symbols() -> Markup:
    """The shapes of points, which the charts of a page use."""
    shapes = "".join(f'<path id="{name}" d="{path}"/>' for name, path in SYMBOLS.items())
    return Markup(f'<svg width="0" height="0" aria-hidden="true"><defs>{shapes}</defs></svg>')


def percent(value: float, digits: int = 1) -> str:
    return f"{100 * value:.{digits}f}%"


def sides(data: PageData) -> list[tuple[str, Ints, str, str]]:
    """Name, venues, colour and line style of what a chart shows: the released side, the clean one before it."""
    released = ("released", data.released, BLUE, "")
    return [released] if data.clean is None else [("clean", data.clean, VERMILLION, "dash"), released]
