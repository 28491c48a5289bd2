"""Figures of studies from fabricated cells."""

from itertools import combinations
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from fake_results import Fabricated
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from study_cells import frontier_cells, main_cells

from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.errors import InputError
from ghostpoi.study import figures
from ghostpoi.study.figures import REACHES, places
from ghostpoi.study.results import Results


@pytest.fixture
def main(tmp_path: Path) -> Fabricated:
    return main_cells(tmp_path)


@pytest.fixture
def frontier(tmp_path: Path) -> Fabricated:
    return frontier_cells(tmp_path)


@pytest.mark.parametrize("study", figures.FIGURES)
def test_figures_are_the_same_every_time(main: Fabricated, tmp_path: Path, study: str) -> None:
    cells = Fabricated(main.folder, study)
    cells.accuracy("clean", "clean", [0.13, 0.14, 0.15])
    for method in ("ghost", "pgd", "random", "ghost rounds.outer=1"):
        cells.method(method, [0.05, 0.06, 0.07])
    one, two = (figures.draw(cells.results(), folder=tmp_path / name) for name in ("one", "two"))
    assert [path.name for path in one] == [f"{figures.FIGURES[study][0]}-paper.{kind}" for kind in ("png", "svg")]
    assert one[0].read_bytes().startswith(b"\x89PNG")
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
    drawing = one[1].read_text()
    assert "prefers-color-scheme: dark" in drawing
    assert "fill: #ffffff" not in drawing  # the page shows through


def test_only_a_city_of_the_paper_has_printed_points(main: Fabricated) -> None:
    for data, count in ((main.data, 1), ("town", 0)):
        cells = Fabricated(main.folder, data=data)
        cells.accuracy("clean", "clean", [0.13, 0.14, 0.15])
        cells.method("ghost", [0.05, 0.06, 0.07])
        drawn = figures.FIGURES["main"][1](cells.results())
        texts = drawn.axes[0].get_legend_handles_labels()[1]
        assert texts.count("hollow: printed in the paper") == count
        plt.close(drawn)


def test_a_method_that_hardly_protects_does_not_squeeze_the_others(main: Fabricated) -> None:
    for method, a1 in (("ghost", 0.05), ("pgd", 0.04), ("ts-ue", 0.13)):
        main.method(method, [a1 - 0.01, a1, a1 + 0.01])
    drawn = figures.FIGURES["main"][1](main.results())
    (axes,) = drawn.axes
    left, right = axes.get_xlim()
    assert left > 0.05  # TS-UE's gap is .01, the paper's smallest .0735
    assert right > 0.1
    note = "TS-UE is far outside: Δprot .0100±.0000, most restored .1500±.0100"
    assert [text.get_text() for text in axes.texts if text.get_text()] == [note]
    assert axes.get_legend_handles_labels()[1].count("TS-UE") == 1
    plt.close(drawn)


def test_the_picture_of_the_frontier(frontier: Fabricated) -> None:
    frontier.floors({}, popularity={"acc@1": 0.01}, stay={"acc@1": 0.04}, markov={"acc@1": 0.18})
    drawn = figures.FIGURES["rivals"][1](frontier.results())
    texts = {text.get_text() for text in drawn.legends[0].get_texts()}
    assert texts == {"1  crowd (halves)", "2  GHOST", "3  random (control)", "clean", "best control"}
    for axes, worst in zip(drawn.axes, ([0.04, 0.055, 0.07], [0.07, 0.11, 0.14]), strict=True):  # crowd: staying is .04
        numbered = sorted((text.get_text(), *text.xy) for text in axes.texts if text.get_text())
        assert numbered == [(n, pytest.approx(x), pytest.approx(y))
                            for n, x, y in zip("123", (0.40, 0.40, 0.43), worst, strict=True)]  # fmt: skip
    plt.close(drawn)


def test_labels_of_the_frontier_keep_apart_on_the_scale_of_both_panels(frontier: Fabricated) -> None:
    frontier.accuracy("ghost", "habits+leak", [0.8, 0.9, 1.0], 0.05)  # so that without a leak all points are close
    drawn = figures.FIGURES["rivals"][1](frontier.results())
    for axes in drawn.axes:
        boxes = [text.get_window_extent() for text in axes.texts]
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
        marks = axes.transData.transform([text.xy for text in axes.texts])
        assert not any(box.contains(*mark) for box in boxes for mark in marks)
    plt.close(drawn)


@given(arrays(float, st.tuples(st.integers(0, 4), st.just(2)), elements=st.integers(60, 240).map(float)))
def test_labels_of_a_few_points_cover_neither_each_other_nor_points(points: np.ndarray) -> None:
    low, high, size = np.zeros(2), np.full(2, 300.0), np.array([11.0, 9.0])
    middle = places(points, low, high, size)
    assert ((middle >= low + size / 2) & (middle <= high - size / 2)).all()
    for number, label in enumerate(middle):
        assert not (np.abs(np.delete(middle, number, 0) - label) < size).all(1).any()
        assert not (np.abs(points - label) < 0.8 * size).all(1).any()


def test_a_label_is_as_near_as_it_can_be() -> None:
    points = np.array([[50.0, 50.0], [50.0, 50.0], [58.0, 53.5]])
    middle = places(points, np.zeros(2), np.full(2, 100.0))
    np.testing.assert_allclose(np.hypot(*(middle - points).T), REACHES[0])


def test_studies_without_figures(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there are no figures for the study 'weights'"):
        figures.draw(Results.read(tmp_path, "weights", "strong"), folder=tmp_path)


def test_map(tmp_path: Path) -> None:
    venues = np.arange(9)
    known = Vocabulary(
        np.append(np.nan, 40 + venues / 100), np.append(np.nan, -74 + venues / 90), np.arange(10) % 3, np.arange(10)
    )
    poi = np.array([1, 2, 1, 3, 4, 5, 6, 7, 8], np.int32)
    times = np.array([0, 10, 20, 0, 10, 20, 30, 40, 200_000])
    sessions = Sessions(np.array([0, 1]), np.array([0, 3, 9]), poi, times, np.arange(9))
    day = figures.typical_day(sessions, known)
    assert day == slice(3, 8)  # the last check-in belongs to another day
    drawn = figures.day_map(poi, known, {"ghost": poi[::-1].copy(), "random": poi}, day)
    assert [axes.get_title() for axes in drawn.axes] == [
        "clean",
        "GHOST\n4 of 5 moved here,\n89% in the whole city",
        "random (control)\n0 of 5 moved here,\n0% in the whole city",
    ]
    assert {path.suffix for path in figures.save(drawn, tmp_path, "map") if path.stat().st_size} == {".png", ".svg"}
    with pytest.raises(InputError, match="no day of 5 different venues"):
        figures.typical_day(sessions.take(np.array([True, False])), known)
