"""Axes, bars and points as SVG: where marks lie, in percent of the plot."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.reports.charts import (
    BLUE,
    Figure,
    columns,
    curve,
    numbers,
    points,
    rows,
    rule,
    slots,
    strips,
    upright,
)  # fmt: skip


def test_an_axis_ends_beyond_its_values_and_has_round_ticks() -> None:
    axis = numbers("km", [0.0, 9.4], "{:g} km")
    assert [text for _, text in axis.ticks] == ["0 km", "2 km", "4 km", "6 km", "8 km"]
    assert axis.at(0) == 0
    assert axis.at(9.4) == pytest.approx(94.34, abs=0.01)
    assert [text for _, text in numbers("visits", [1, 4200], log=True).ticks] == ["1", "10", "100", "1,000"]


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=9))
def test_every_value_and_tick_lies_on_its_axis(values: list[float]) -> None:
    axis = numbers("", values)
    places = [axis.at(v) for v in (*values, *(tick for tick, _ in axis.ticks))]
    assert min(places) >= 0
    assert max(places) <= 100
    assert 2 <= len(axis.ticks) <= 7


def test_bars_fill_their_slots_and_rows_run_from_top_to_bottom() -> None:
    y = numbers("visits", [10.0])
    two = [columns(name, BLUE, [10.0, 5.0], ["a", "b"], place, 2) for place, name in enumerate(("clean", "released"))]
    svg = str(Figure(two, slots(["x", "y"]), y).svg())
    assert re.findall(r'<rect x="([\d.]+)%" y="[\d.]+%" width="([\d.]+)%"', svg) == [
        ("5", "20.00"), ("55", "20.00"), ("25", "20.00"), ("75", "20.00"),
    ]  # fmt: skip
    across = strips("released", BLUE, [4.0, 8.0], ["a", "b"], base=[0.0, 2.0])
    assert [(m.x0, m.x1) for m in across.marks] == [(0, 4), (2, 10)]
    svg = str(Figure([across], numbers("", [10.0]), rows(["first", "second"])).svg())
    first, second = (float(y) for y in re.findall(r'<rect x="[\d.]+%" y="([\d.]+)%"', svg))
    assert first < second


def test_texts_are_escaped_everywhere() -> None:
    bad = "<b onclick='x'>&\""
    x, y = numbers(bad, [1.0]), rows([bad])
    series = [strips(bad, BLUE, [1.0], [bad]), points(bad, BLUE, [1], [0.5], [bad]), upright(bad, BLUE, 1, y)]
    figure = Figure(series, x, y)
    assert "<b" not in figure.svg() + figure.key()
    assert "&lt;b" in figure.svg()


def test_values_are_listed_unless_there_are_too_many_or_none() -> None:
    x = y = numbers("", [100.0])
    few = points("p", BLUE, [1, 2], [1, 2], ["one", "two"])
    assert Figure([few], x, y).values() == [("p", ["one", "two"])]
    many = points("p", BLUE, range(99), range(99), ["text"] * 99)
    assert Figure([many], x, y).values() == []
    assert Figure([curve("c", BLUE, [1, 2], [1, 2])], x, y).values() == []


def test_lines_run_from_corner_to_corner() -> None:
    x = y = numbers("", [100.0])
    svg = str(Figure([rule("same", BLUE, (0, 0), (106, 106))], x, y).svg())
    assert '<line x1="0%" y1="100%" x2="100%" y2="0%"' in svg
