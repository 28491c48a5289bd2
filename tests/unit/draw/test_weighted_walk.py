"""Draws by weight need no torch: the walk in numpy draws what the walk with tensors draws."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from small_city import city, settings, task_of

from ghostpoi import formats
from ghostpoi.draw import walks
from ghostpoi.draw.methods import METHODS, Method
from ghostpoi.draw.methods.base import Position, Tensor
from ghostpoi.draw.methods.crowd import Crowd
from ghostpoi.draw.methods.ghost import Random
from ghostpoi.draw.model_walk import run
from ghostpoi.draw.publication import Task
from ghostpoi.draw.table import publish
from ghostpoi.draw.whole_table import prepare
from ghostpoi.randomness import Seed

BY_WEIGHT = ("random", "crowd", "k-anonymous", "randomised-response")
LIMITS = (60, 2, 0.1)  # km/h; the lower, the more positions have no candidate that the speed mask allows


def task(method: str, *more: str, protocol: str = "strong") -> Task:
    chosen = settings(method, *more, protocol=protocol)
    whole = prepare(formats.read(city()).table, chosen)
    return Task(chosen, whole.data.all, whole.data.vocabulary, whole.session_sets)


def test_these_methods_need_no_torch() -> None:
    assert {name for name in METHODS if not METHODS[name].needs_torch} == {
        *BY_WEIGHT,
        "crowd-halves",
        "geo-indistinguishability",
    }
    assert Crowd(beta=0.5).needs_torch


@pytest.mark.parametrize("protocol", ["strong", "paper"])  # they treat an empty speed mask differently
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("method", BY_WEIGHT)
def test_both_walks_draw_the_same(method: str, limit: float, protocol: str) -> None:
    small = ["method.size=4"] if METHODS[method].own_sets else []
    asked = task(method, f"speed.limit_kmh={limit}", *small, protocol=protocol)
    ours, tensors = publish(asked, Seed(901), None), run(asked, Seed(901), torch.device("cpu"))
    assert ours.poi.tobytes() == tensors.poi.tobytes()
    assert ours.mask_emptied.tobytes() == tensors.mask_emptied.tobytes()
    assert ours.mask_emptied.any() == (limit < 60)
    assert (ours.poi != asked.sessions.poi).any()


def test_how_many_draws_are_made_at_once_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = task("crowd")
    whole = publish(asked, Seed(902), None).poi
    monkeypatch.setattr(walks, "TRAILS_AT_ONCE", 3)
    monkeypatch.setattr(walks, "DRAWS_AT_ONCE", 3)
    assert (publish(asked, Seed(902), None).poi == whole).all()


def test_progress_adds_up_to_a_round() -> None:
    done: list[float] = []
    publish(task("crowd"), Seed(903), None, report=lambda label, units: done.append(units))
    assert np.isclose(sum(done), 3.0)


@pytest.mark.parametrize("base", [Method, Random, Crowd])
def test_a_method_that_chooses_by_itself_is_asked(base: type[Method]) -> None:
    @dataclass(frozen=True)
    class First(base):  # type: ignore[misc, valid-type]
        def choose(self, position: Position, uniform: Tensor) -> Tensor:
            return position.feasible.int().argmax(1)

    assert First().needs_torch
    asked = task_of(replace(settings("random"), method=First()))
    released = publish(asked, Seed(904), torch.device("cpu")).poi
    begin = np.flatnonzero(np.diff(np.repeat(np.arange(len(asked.sessions)), asked.sessions.length), prepend=-1))
    clean = asked.sessions.poi[begin]
    first = asked.candidates.poi[clean, 0]
    assert (released[begin] == np.where(first > 0, first, clean)).all()
