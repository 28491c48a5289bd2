"""Portions of studies are prepared side by side, task by task, and arrive in order. Threads stand for processes."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ghostpoi.audits.grid import Contest
from ghostpoi.errors import InputError
from ghostpoi.study import workers as study_workers
from ghostpoi.study.workers import Portion, Task, prepared

PATIENCE_S = 600


@dataclass
class Clerk:
    """A maker that notes what it was asked for, with what it found done."""

    folder: Path

    def train(self, methods: Sequence[str]) -> None:
        self._note(f"train {','.join(methods)}", once=True)

    def published(self, method: str, seed: int) -> None:
        if method == "broken":
            raise InputError("this method is broken")
        if method == "ghost":
            assert "train ghost" in self.notes()
        self._note(f"{method} {seed}")

    def restoration(self, contest: Contest, seed: int) -> None:
        assert f"{contest.release} {seed}" in self.notes()
        self._note(f"{contest.adversary} on {contest.release} {seed}")

    def answer(self, contest: Contest, seed: int) -> None:
        assert f"{contest.release} {seed}" in self.notes()
        self._note(f"answer of {contest.victim} to {contest.adversary} on {contest.release} {seed}")

    def measures(self, method: str, seed: int) -> None:
        assert {f"{method} {seed}", "train ghost"} <= set(self.notes())
        self._note(f"measures of {method} {seed}")

    def notes(self) -> list[str]:
        return [path.name for path in self.folder.iterdir()]

    def wait_for(self, note: str) -> None:
        """Return as soon as another process has made a note."""
        end = time.monotonic() + PATIENCE_S
        while note not in self.notes():
            if time.monotonic() > end:
                raise InputError(f"{note} was never done")
            time.sleep(0.01)

    def _note(self, text: str, once: bool = False) -> None:
        (self.folder / text).touch(exist_ok=not once)


class SlowTrainer(Clerk):
    """Its training ends after a release that needs none."""

    def train(self, methods: Sequence[str]) -> None:
        self.wait_for("random 0")
        super().train(methods)


class SlowPublisher(Clerk):
    """Its release ends after the restoration of another one."""

    def published(self, method: str, seed: int) -> None:
        if method == "pgd":
            self.wait_for("none on random 0")
        super().published(method, seed)


class Patient(Clerk):
    """Its releases end after the controls were measured."""

    def published(self, method: str, seed: int) -> None:
        self.wait_for("controls")
        super().published(method, seed)


def contest(method: str) -> Contest:
    return Contest(method, "none", None, "markov")


def portion(maker: int, seed: int, method: str = "random") -> Portion:
    return Portion(maker, [seed], [(method, seed)], [(contest(method), seed)])


def with_model(seed: int) -> Portion:
    """A portion with a method that needs a trained model, one that does not, and measures of both."""
    releases = [("ghost", seed), ("random", seed)]
    return Portion(0, [seed], releases, [(contest(name), seed) for name, _ in releases], ["ghost"], releases)


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start threads: a process takes seconds to import torch."""

    @contextmanager
    def pool(workers: int, start: Callable[..., None], arguments: tuple[Any, ...]) -> Iterator[ThreadPoolExecutor]:
        with ThreadPoolExecutor(workers, initializer=start, initargs=arguments) as opened:
            yield opened

    monkeypatch.setattr(study_workers, "process_pool", pool)


@pytest.mark.parametrize("workers", [1, 2])
def test_portions_arrive_in_order_and_complete(tmp_path: Path, workers: int) -> None:
    makers = [Clerk(tmp_path / name) for name in ("a", "b")]
    for maker in makers:
        maker.folder.mkdir()
    asked = [portion(0, 0), portion(0, 1), Portion(1, [5], [], []), portion(1, 2), portion(1, 3)]
    seen = 0
    for one in prepared(makers, iter(asked), workers):
        assert one == asked[seen]
        seen += 1
        for release, seed in one.releases:
            assert {f"{release} {seed}", f"none on {release} {seed}"} <= set(makers[one.maker].notes())
    assert seen == len(asked)


def test_a_portion_that_needs_nothing_does_not_wait_for_the_next(tmp_path: Path) -> None:
    controls = Portion(0, [0, 1], [], [], controls=True)
    for one in prepared([Patient(tmp_path)], iter([controls, portion(0, 0), portion(0, 1)]), 2):
        if one == controls:
            (tmp_path / "controls").touch()
    assert "none on random 1" in Clerk(tmp_path).notes()


@pytest.mark.parametrize("workers", [1, 2])
def test_what_goes_wrong_in_a_worker_is_raised(tmp_path: Path, workers: int) -> None:
    found = prepared([Clerk(tmp_path)], iter([portion(0, 0), portion(0, 1, "broken")]), workers)
    with pytest.raises(InputError, match="this method is broken"):
        list(found)


def test_a_plan_that_fails_is_raised(tmp_path: Path) -> None:
    def asked() -> Iterator[Portion]:
        yield portion(0, 0)
        raise InputError("the plan is broken")

    with pytest.raises(InputError, match="the plan is broken"):
        list(prepared([Clerk(tmp_path)], asked(), 2))


@pytest.mark.parametrize("workers", [1, 3])
def test_a_model_is_trained_once_for_all_portions(tmp_path: Path, workers: int) -> None:
    asked = [with_model(seed) for seed in range(3 if workers > 1 else 1)]
    assert list(prepared([Clerk(tmp_path)], iter(asked), workers)) == asked  # a second training would raise
    done = [note for p in asked for name, seed in p.releases for note in (f"none on {name} {seed}", f"{name} {seed}")]
    measured = [f"measures of {name} {seed}" for p in asked for name, seed in p.measured]
    assert sorted(Clerk(tmp_path).notes()) == sorted([*done, *measured, "train ghost"])


def test_what_needs_no_model_does_not_wait_for_it(tmp_path: Path) -> None:
    assert list(prepared([SlowTrainer(tmp_path)], iter([with_model(0)]), 2)) == [with_model(0)]


def test_a_restoration_waits_for_its_own_release_alone(tmp_path: Path) -> None:
    asked = Portion(0, [0], [("pgd", 0), ("random", 0)], [(contest("pgd"), 0), (contest("random"), 0)])
    assert list(prepared([SlowPublisher(tmp_path)], iter([asked]), 2)) == [asked]


def test_a_restoration_waits_for_all_releases_that_its_adversary_holds() -> None:
    several, held = Contest("random", "multi-release-2", 0.1, "markov"), [("random", 3), ("random", 1003)]
    tasks = Portion(0, [3], [*held, ("random", 4), ("pgd", 3)], [(several, 3)]).tasks
    assert tasks[Task("restoration", (several, 3))] == {Task("published", one) for one in held}


def test_a_counting_victim_waits_for_what_it_counts_and_a_predictor_for_its_release() -> None:
    restored, counted = (Contest("random", "habits", 0.1, victim) for victim in ("transformer", "counting"))
    predictor = Contest("random", "posterior", 0.1, "itself")
    asked = Portion(0, [3], [("random", 3)], [(restored, 3)], answers=[(counted, 3), (predictor, 3)])
    assert asked.tasks[Task("answer", (counted, 3))] == {Task("restoration", (restored, 3))}
    assert asked.tasks[Task("answer", (predictor, 3))] == {Task("published", ("random", 3))}


@pytest.mark.parametrize("workers", [1, 2])
def test_answers_arrive_with_their_portion(tmp_path: Path, workers: int) -> None:
    asked = portion(0, 0)._replace(answers=[(Contest("random", "posterior", 0.1, "itself"), 0)])
    assert list(prepared([Clerk(tmp_path)], iter([asked]), workers)) == [asked]
    assert "answer of itself to posterior on random 0" in Clerk(tmp_path).notes()
