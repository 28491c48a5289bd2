"""The benchmarks on small data: complete keys, ratios of the reported times, and results that can fail."""

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks import files, models, slow_reference, trace
from benchmarks.measured import Cost
from ghostpoi.data import prepared
from ghostpoi.data.prepared import Prepared
from ghostpoi.draw.publication import Task, publication
from ghostpoi.errors import InputError
from ghostpoi.models.devices import device
from ghostpoi.study import prepare_city

CPU = device("cpu")


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    path = tmp_path_factory.mktemp("bench") / "city.npz"
    prepared.save(path, prepare_city(80, 250, 40, 0))
    return models.load(path)


def quiet(text: str) -> None:
    pass


def keys(found: dict[str, Any]) -> str:
    json.dumps(found)
    return " ".join(found)


def test_scoring_compares_the_fast_path_with_the_definition(city: Prepared) -> None:
    found = models.scoring(city, 0.2, quiet)
    assert keys(found) == (
        "ratio max_abs_diff share_of_peak manifold_share manifold_shares sample_sessions definition_seconds "
        "fast_seconds pass_seconds pass_operations peak_operations_per_second positions vocabulary"
    )
    assert found["max_abs_diff"] < 1e-4
    assert found["ratio"] == found["definition_seconds"] / found["fast_seconds"]
    peak_seconds = found["pass_operations"] / found["peak_operations_per_second"]
    assert found["share_of_peak"] == pytest.approx(peak_seconds / found["pass_seconds"])
    assert found["share_of_peak"] < 1
    assert found["manifold_share"] == sorted(found["manifold_shares"])[models.TURNS // 2] < 1
    assert found["sample_sessions"] == int(0.2 * len(city.train))
    assert (found["positions"], found["vocabulary"]) == (city.train.positions, len(city.vocabulary) - 1)


def test_scoring_reports_a_wrong_score(city: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    right = slow_reference.brute_force_scores

    def wrong(*args: Any) -> tuple[np.ndarray, np.ndarray]:
        adv, mani = right(*args)
        mani[np.unravel_index(mani.argmax(), mani.shape)] += 0.5
        return adv, mani

    monkeypatch.setattr(slow_reference, "brute_force_scores", wrong)
    monkeypatch.setattr(models, "matmul_peak", lambda: 1e9)
    assert models.scoring(city, 0.05, quiet)["max_abs_diff"] == pytest.approx(0.5, abs=1e-4)


def test_packed_and_padded_training_have_the_same_losses(city: Prepared) -> None:
    found = models.training(city, 0.5, 2, quiet)
    assert keys(found) == (
        "ratio padded_seconds_per_epoch packed_seconds_per_epoch padded_losses packed_losses sessions positions"
    )
    assert found["ratio"] == found["padded_seconds_per_epoch"] / found["packed_seconds_per_epoch"]
    assert found["packed_losses"] == pytest.approx(found["padded_losses"], rel=0.05)  # dropout masks differ
    for losses in (found["packed_losses"], found["padded_losses"]):
        assert losses[1] < losses[0] < 1.1 * np.log(len(city.vocabulary) - 1)
    some = models.sample(city.train, len(city.train) // 2)
    assert found["positions"] == some.positions - len(some)  # the last check-in of a session is no input


def test_protect_times_the_whole_split_under_the_paper_protocol(
    city: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks: list[Task] = []
    original = models.publish

    def publish(task: Task, *args: Any) -> Any:
        tasks.append(task)
        return original(task, *args)

    monkeypatch.setattr(models, "publish", publish)
    monkeypatch.setattr(models, "matmul_peak", lambda: 1e9)
    found = models.protect(city, "random", CPU, quiet)
    assert keys(found) == "seconds trajectory_lm_seconds peak_bytes ratio positions device"
    settings = publication("random", "paper")
    assert tasks[-1].sessions is city.train
    used = tasks[-1].settings
    assert (used.rounds, used.speed.empty) == (settings.rounds, "ignore")
    assert tasks[-1].trajectory_lm is None
    assert found["trajectory_lm_seconds"] < found["seconds"]
    assert found["ratio"] == pytest.approx(found["seconds"] * 1e9 / models.operations(city, settings))
    # By hand: 2 layers of width 128 and 256, twice each multiply-add; 3 passes an epoch.
    token = 2 * (2 * (4 * 128**2 + 2 * 128 * 256) + 128 * (len(city.vocabulary) - 1))
    n, outer, inner = city.train.positions, settings.rounds.outer, settings.rounds.inner
    scored = n + sum((city.candidates.poi[p] > 0).sum() for p in city.train.poi)
    assert models.operations(city, settings) == token * (3 * (outer * inner + 9) * n + outer * scored)


def test_growth_scales_a_sample_to_each_city(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = ((60, 200, 30), (80, 250, 40))
    clock = itertools.count()
    monkeypatch.setattr(models, "CITIES", sizes)
    # Each step takes one second.
    monkeypatch.setattr(models, "time", SimpleNamespace(perf_counter=lambda: float(next(clock))))
    found = models.growth(50, CPU, quiet)
    assert keys(found) == "cities ratio"
    for row, size in zip(found["cities"], sizes, strict=True):
        data = prepare_city(*size, 0)
        scale = data.train.positions / models.sample(data.train, 50).positions
        assert row["epoch_seconds"] == row["scoring_seconds"] == pytest.approx(scale)
        assert (row["positions"], row["sessions"]) == (data.train.positions, len(data.train))
        assert row["measured_sessions"] == 50
        assert row["vocabulary"] == len(data.vocabulary) - 1
    first, last = found["cities"]
    assert found["ratio"] == last["scoring_seconds"] / first["scoring_seconds"]


def test_protect_beside_busy_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    at_work, seen = list[int](), list[int]()

    @contextmanager
    def counted() -> Iterator[None]:
        at_work.append(1)
        yield
        at_work.pop()

    def protected(city: Path, method: str) -> Cost:
        seen.append(len(at_work))
        return Cost(6.0, 5.0, 0) if at_work else Cost(4.0, 2.0, 0)

    monkeypatch.setattr(files, "_busy_process", counted)
    monkeypatch.setattr(files, "_protect", protected)
    found = files.busy(40, 2, "random", quiet)
    assert seen == [0, 2]
    assert (found["ratio"], found["cpu_ratio"]) == (1.5, 2.5)


def test_the_estimate_that_is_furthest_off_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    times = {"crowd": (1.0, 4.0), "ghost": (30.0, 20.0)}  # expected, taken
    monkeypatch.setattr(files, "write_city", lambda *given: None)
    monkeypatch.setattr(files, "_expected", lambda *words: times[words[-1]][0])
    monkeypatch.setattr(files, "measured", lambda command: Cost(times[command[-1]][1], 0.0, 0))
    found = files.estimate(40, quiet)
    assert (found["ratio"], found["within_factor"]) == (4.0, False)
    assert found["ghost"] == {"expected": 30.0, "seconds": 20.0, "expected_over_taken": 1.5}


def test_waiting_threads_sleep() -> None:
    code = "import os, ghostpoi; print(os.environ['OMP_WAIT_POLICY'])"
    for given, wanted in ({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE"):  # what the user asks for wins
        env = {k: v for k, v in os.environ.items() if k != "OMP_WAIT_POLICY"} | given
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
        assert done.stdout.strip() == wanted


def test_a_sample_has_the_asked_number_of_sessions(city: Prepared) -> None:
    everything = models.sample(city.train, len(city.train) + 5)
    assert np.array_equal(everything.poi, city.train.poi)
    assert [len(models.sample(city.train, n)) for n in (0, 1, 7)] == [1, 1, 7]
    assert np.array_equal(models.sample(city.train, 7).poi, models.sample(city.train, 7).poi)


def test_bad_data_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(b"nonsense")
    with pytest.raises(InputError, match="not prepared data"):
        models.load(tmp_path / "x.npz")
    with pytest.raises(InputError, match="does not exist"):
        models.load(tmp_path / "y.npz")


def test_a_trace_counts_what_a_row_passes_through(capfd: pytest.CaptureFixture[str]) -> None:
    found = trace.trace(30, quiet)
    for engine in ("memory", "local"):
        assert 20 < found[engine]["files"] < found[engine]["functions"]
        assert found[engine]["reads"] >= 1
    assert found["ratio"] == found["local"]["functions"] / found["memory"]["functions"]
    with trace.counted() as calls:
        models.sample(prepare_city(30, 60, 20, 0).train, 1)
    assert calls[prepare_city.__code__] == 1
    assert models.sample.__code__ not in calls  # no function of the package
    assert capfd.readouterr().out == ""
