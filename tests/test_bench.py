"""The benchmarks on small data: every figure is there, and the fast paths agree with their references."""

import json
from pathlib import Path

import pytest

from ghostpoi.bench import data as bench_data
from ghostpoi.bench import growth, prepare, protect, scoring, training
from ghostpoi.data import prepared as dataset_file
from ghostpoi.errors import InputError
from ghostpoi.models.devices import device


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bench") / "city.npz"
    dataset_file.save(path, bench_data.synthetic(80, 250, 40))
    return path


def quiet(text: str) -> None:
    pass


def test_scoring_agrees_with_its_definition(city: Path) -> None:
    figures = scoring.run(bench_data.load(city), 0.2, quiet)
    assert figures["max_abs_diff"] < 1e-4
    assert figures["ratio"] > 0
    assert 0 < figures["share_of_peak"] < 1
    assert figures["manifold_share"] < 1
    json.dumps(figures)


def test_packed_and_padded_training_have_the_same_losses(city: Path) -> None:
    figures = training.run(bench_data.load(city), 0.5, 2, quiet)
    assert figures["ratio"] > 0
    # Other dropout masks, so within noise only.
    assert figures["packed_losses"] == pytest.approx(figures["padded_losses"], rel=0.05)


def test_protect_and_growth_and_prepare_run(city: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert protect.run(bench_data.load(city), "random", device("cpu"), quiet)["seconds"] > 0
    monkeypatch.setattr(growth, "CITIES", ((60, 200, 30), (80, 250, 40)))
    cities = growth.run(50, device("cpu"), quiet)["cities"]
    assert [c["measured_sessions"] <= 50 for c in cities] == [True, True]
    figures = prepare.run(3000, 500, quiet)
    assert {"ratio", "peak_over_file_size", "candidate_seconds"} <= set(figures)


def test_bad_data_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(b"nonsense")
    with pytest.raises(InputError, match="not prepared data"):
        bench_data.load(tmp_path / "x.npz")
    with pytest.raises(InputError, match="does not exist"):
        bench_data.load(tmp_path / "y.npz")
