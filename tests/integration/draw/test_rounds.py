"""The publisher's loop: nothing but the seed decides, and a run goes on as if it had never stopped."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from small_city import prepared, settings, task_of

from ghostpoi.draw import model_walk
from ghostpoi.draw.methods import METHODS
from ghostpoi.draw.model_walk import Substituter
from ghostpoi.draw.noise import ByPosition
from ghostpoi.draw.publication import Checkpoint, Task
from ghostpoi.draw.table import publish, units
from ghostpoi.draw.walks import Substitution
from ghostpoi.errors import InputError
from ghostpoi.models import fit
from ghostpoi.models import trajectory_lm as vault
from ghostpoi.models.training_windows import next_poi
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.progress import BEFORE, no_report
from ghostpoi.randomness import Seed

CPU, SEED = torch.device("cpu"), Seed(11)
MORE = ("rounds.outer=3", "method.beta=0")


@cache
def task(tied: bool = False, *more: str) -> Task:
    return task_of(settings("ghost", *MORE, f"surrogate.tied={tied}", *more))


@cache
def undisturbed(tied: bool = False) -> Substitution:
    return publish(task(tied), SEED, CPU)


class Killed(Exception):
    pass


def kill_at(patch: pytest.MonkeyPatch, name: str, count: int, after: bool) -> None:
    """Raise at the count-th refit or round, before it does anything or after all that it does."""
    owner = model_walk if name == "_refit" else Substituter
    real: Callable[..., object] = getattr(owner, name)
    calls = 0

    def dies(*words: object) -> object:
        nonlocal calls
        calls += 1
        if calls == count and not after:
            raise Killed
        result = real(*words)
        if calls == count:
            raise Killed
        return result

    patch.setattr(owner, name, dies)


def killed(checkpoint: Checkpoint, name: str, count: int, after: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, name, count, after)
        with pytest.raises(Killed):
            publish(task(), SEED, CPU, checkpoint)


POINTS = [
    *(("_refit", n, after) for n in (1, 2, 3) for after in (False, True)),
    *(("round", n, False) for n in (1, 2, 3)),
    ("round", 3, True),
]


@pytest.mark.parametrize(("name", "count", "after"), POINTS)
def test_a_run_goes_on_after_any_round(name: str, count: int, after: bool, tmp_path: Path) -> None:
    said: list[str] = []
    checkpoint = Checkpoint(tmp_path / "c.safetensors", "key", said.append)
    killed(checkpoint, name, count, after)
    warm = (name, count) != ("_refit", 1)
    assert checkpoint.path.exists() == warm
    done: list[str] = []
    result = publish(task(), SEED, CPU, checkpoint, lambda label, units: done.append(label))
    assert result.poi.tobytes() == undisturbed().poi.tobytes()
    assert (BEFORE in done) == warm
    assert said == []


@pytest.mark.parametrize("tied", [False, True])
def test_a_checkpoint_gives_back_weights_and_optimizer(tied: bool, tmp_path: Path) -> None:
    words, s = prepared().data.vocabulary, task(tied)
    pairs = next_poi(s.sessions, 100)

    def model(seed: int) -> tuple[CausalTransformer, torch.optim.AdamW]:
        made = CausalTransformer(len(words), s.settings.surrogate, seed)
        return made, fit.adamw(made, s.settings.training)

    one, one_steps = model(1)
    checkpoint = Checkpoint(tmp_path / "c.safetensors", "key", print)
    assert checkpoint.load(one, one_steps) is None
    fit.epoch(one, one_steps, pairs, s.settings.training, SEED, ("a",), 0)
    checkpoint.store(one, one_steps, 4)
    assert (tmp_path / "c.safetensors").stat().st_mode & 0o777 == 0o600
    two, two_steps = model(2)
    assert checkpoint.load(two, two_steps) == 4
    for m, o in ((one, one_steps), (two, two_steps)):
        fit.epoch(m, o, pairs, s.settings.training, SEED, ("a",), 1)
    assert one.state_dict().keys() == two.state_dict().keys()
    assert all(torch.equal(a, b) for a, b in zip(one.state_dict().values(), two.state_dict().values(), strict=True))
    assert undisturbed(tied).poi.tobytes() != undisturbed(not tied).poi.tobytes()


def damage(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-9] ^= 1
    path.write_bytes(data)


HARM: dict[str, tuple[Callable[[Path], object], str]] = {
    "a flipped bit": (damage, "is damaged (its checksum is wrong); starting again from the first round"),
    "cut": (lambda p: p.write_bytes(p.read_bytes()[:-7]), "is damaged ("),
    "empty": (lambda p: p.write_bytes(b""), "is damaged ("),
    "no tensors at all": (lambda p: p.write_bytes(b"x" * 5000), "is damaged ("),
    "of another run": (
        lambda p: vault.write_tensors(p, {"a": torch.ones(2)}, {"key": "other"}),
        "belongs to other data or settings",
    ),
    "of nothing": (lambda p: vault.write_tensors(p, {"a": torch.ones(2)}, {}), "belongs to other data or settings"),
}


@pytest.mark.parametrize("harm", HARM)
def test_a_bad_checkpoint_is_noticed_said_and_rebuilt(harm: str, tmp_path: Path) -> None:
    said: list[str] = []
    checkpoint = Checkpoint(tmp_path / "c.safetensors", "key", said.append)
    killed(checkpoint, "round", 2, False)
    HARM[harm][0](checkpoint.path)
    assert publish(task(), SEED, CPU, checkpoint).poi.tobytes() == undisturbed().poi.tobytes()
    assert len(said) == 1
    assert HARM[harm][1] in said[0]
    assert str(checkpoint.path) in said[0]


def numbers(task: Task) -> ByPosition:
    return ByPosition(SEED, task.sessions.positions)


def test_without_a_surrogate_one_round_is_all_and_no_checkpoint_is_written(tmp_path: Path) -> None:
    control = replace(task(), settings=replace(task().settings, method=METHODS["random"]))
    result = publish(control, SEED, CPU, Checkpoint(tmp_path / "c", "key", print))
    assert not list(tmp_path.iterdir())
    assert (result.poi == Substituter(control, None, CPU).round(numbers(control), 3, no_report).poi).all()


def test_threads_and_batches_change_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    surrogate = CausalTransformer(len(prepared().data.vocabulary), task().settings.surrogate, 5)
    every = prepared().data.all
    few = replace(task(), sessions=every.take(np.arange(len(every)) < 40))

    def once() -> np.ndarray:
        return Substituter(few, surrogate, CPU).round(numbers(few), 1, no_report).poi

    alone = once()
    try:
        for threads in (1, 3):  # of which each walks batches of its own
            torch.set_num_threads(threads)
            for budget in (33, 500, 10**6):
                monkeypatch.setitem(model_walk.BUDGET, "cpu", budget)
                assert (once() == alone).all(), (threads, budget)
    finally:
        torch.set_num_threads(1)


def test_all_work_is_reported() -> None:
    done: list[float] = []
    publish(task(), SEED, CPU, report=lambda label, amount: done.append(amount))
    assert sum(done) == pytest.approx(units(task().settings.method, task().settings.rounds))


@pytest.mark.parametrize("more", [("rounds.inner=0",), ("rounds.outer=1",), ("rounds.precision=bfloat16",)])
def test_short_runs(more: tuple[str, ...], tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "c", "key", print)
    one = publish(task(False, *more), SEED, CPU, checkpoint)
    assert checkpoint.path.exists()
    assert publish(task(False, *more), SEED, CPU, checkpoint).poi.tobytes() == one.poi.tobytes()


def test_a_training_that_diverges_is_said_in_a_sentence() -> None:
    with pytest.raises(InputError, match=r"diverged; lower --set training\.learning_rate"):
        publish(task(False, "training.learning_rate=1e30", "rounds.inner=3"), SEED, CPU)
