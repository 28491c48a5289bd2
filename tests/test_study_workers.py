"""Portions of studies are prepared in parallel processes, step by step, and arrive in order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from ghostpoi.errors import InputError
from ghostpoi.evaluate.restoration import Contest
from ghostpoi.study.workers import Portion, prepared


@dataclass
class Clerk:
    """A maker that notes what it was asked for, with what it found done."""

    folder: Path

    def train(self, methods: Sequence[str]) -> None:
        self._note(f"train {','.join(methods)}")

    def published(self, method: str, seed: int) -> None:
        if method == "broken":
            raise InputError("this method is broken")
        assert any(f"train {method}" in note for note in self.notes())
        self._note(f"{method} {seed}")

    def restoration(self, contest: Contest, seed: int) -> None:
        assert f"{contest.release} {seed}" in self.notes()
        self._note(f"{contest.adversary} on {contest.release} {seed}")

    def notes(self) -> list[str]:
        return [path.name for path in self.folder.iterdir()]

    def _note(self, text: str) -> None:
        (self.folder / text).touch()


def portion(maker: int, seed: int, method: str = "random") -> Portion:
    return Portion(maker, [seed], [(method, seed)], [(Contest(method, "none", None, "markov"), seed)])


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
