"""The numbers that decide draws: Philox against numpy's, and what a row's number depends on."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import checkins
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.data.checkins import Checkins
from ghostpoi.draw import noise
from ghostpoi.draw.noise import ByContent, ByPosition, philox, plain
from ghostpoi.randomness import Seed

WORD = st.integers(0, 2**64 - 1)


@given(st.lists(st.tuples(WORD, WORD, WORD, WORD), min_size=1, max_size=5), st.integers(0, 2**128 - 1))
def test_philox_is_that_of_numpy(counters: list[tuple[int, int, int, int]], key: int) -> None:
    found = np.stack(philox(tuple(np.array(counters, np.uint64).T), key), axis=1)  # type: ignore[arg-type]
    for counter, words in zip(counters, found, strict=True):
        number = sum(word << 64 * place for place, word in enumerate(counter))
        slow = np.random.Philox(key=key, counter=(number - 1) % 2**256)  # it counts before its first block
        assert slow.random_raw(4).tolist() == words.tolist()


def table(*rows: tuple[str, int]) -> Checkins:
    return checkins([(user, "v", time, "c", 0.0, 0.0) for user, time in rows])


def test_a_number_depends_on_seed_stage_user_and_time_alone() -> None:
    rows = [("a", 5), ("b", 5), ("a", 6), ("a", -7)]
    one = ByContent.of(table(*rows), Seed(1))
    assert len(set(one.uniform("x").tolist())) == 4
    other = ByContent.of(table(*rows[::-1], ("c", 1)), Seed(1))
    assert (other.uniform("x")[3::-1] == one.uniform("x")).all()
    assert (other.several(3, "x")[:, 3::-1] == one.several(3, "x")).all()
    assert (one.several(3, "x")[0] == one.uniform("x")).all()
    assert (one.uniform("y") != one.uniform("x")).all()
    assert (ByContent.of(table(*rows), Seed(2)).uniform("x") != one.uniform("x")).all()
    assert (one.take(np.array([2, 0])).uniform("x") == one.uniform("x")[[2, 0]]).all()
    assert (replace(one, place=one.place + np.uint64(1)).uniform("x") != one.uniform("x")).all()


def test_numbers_are_even_and_do_not_depend_on_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    some = ByContent.of(table(*((f"u{n % 50}", n) for n in range(20_000))), Seed(3))
    uniform = some.several(4, "x")
    assert ((uniform >= 0) & (uniform < 1)).all()
    assert abs(uniform.mean() - 0.5) < 5 / np.sqrt(12 * uniform.size)
    counts = np.stack([np.bincount((row * 100).astype(int), minlength=100) for row in uniform])
    assert (((counts - 200) ** 2 / 200).sum(axis=1) < 160).all()  # chi square, 99 degrees of freedom
    assert np.abs(np.corrcoef(uniform) - np.eye(4)).max() < 0.04
    monkeypatch.setattr(noise, "CHUNK", 777)
    assert (some.several(4, "x") == uniform).all()


def test_a_counter_gives_four_numbers() -> None:
    with pytest.raises(ValueError, match="4 numbers"):
        ByContent.of(table(("a", 1)), Seed(1)).several(5, "x")


def test_positions_draw_as_one_generator_does() -> None:
    expected = Seed(4).generator("round", 2).random(6)
    assert (ByPosition(Seed(4), 6).uniform("round", 2) == expected).all()
    assert (ByPosition(Seed(4), 2).several(3, "round", 2) == expected.reshape(3, 2)).all()


@pytest.mark.parametrize(
    ("written", "means"),
    [("7", "7"), ("007", "7"), ("7.0", "7"), ("+7", "7"), (" 7 ", "7"), ("-07", "-7"), ("0", "0"), ("00.", "0"),
     ("7.5", "7.5"), ("u007", "u007"), ("1e3", "1e3"), ("0x7", "0x7"), ("", "")],
)  # fmt: skip
def test_user_ids_are_compared_by_what_they_mean(written: str, means: str) -> None:
    assert plain(written) == means
