"""T_psi: naturalness follows its definition, and cached files are checked."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from builders import flat_sessions

from ghostpoi.data.sessions import Sessions
from ghostpoi.models import trajectory_lm
from ghostpoi.models.trajectory_lm import cache_key, load_or_train, log_likelihood, naturalness
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.settings import ModelSettings, Training, TrajectoryLM

ROWS = 13
LM = TrajectoryLM(ModelSettings(8, 2, 1, 8, 5, tied=True), Training(epochs=1, batch_sessions=4))


def any_sessions(seed: int) -> Sessions:
    return flat_sessions(np.random.default_rng(seed).integers(1, ROWS, 27), [3, 7, 4, 12, 1])


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count how often a model is trained."""
    calls: list[int] = []
    original = trajectory_lm.pretrain

    def counted(*args: object, **kwargs: object) -> CausalTransformer:
        calls.append(1)
        return original(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(trajectory_lm, "pretrain", counted)
    return calls


def same(a: CausalTransformer, b: CausalTransformer) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.parameters(), b.parameters(), strict=True))


def test_naturalness_is_the_mean_over_all_positions() -> None:
    sessions = any_sessions(0)
    model = CausalTransformer(ROWS, LM.model, 0).eval().requires_grad_(False)
    expected = []
    for a, b in zip(sessions.start, sessions.start[1:], strict=False):
        seen: list[int] = []
        for i, p in enumerate(sessions.poi[a:b].tolist()):
            seen = [0] if i % 5 == 0 else seen
            expected.append(float(model.log_probs(model.hidden(torch.tensor(seen), np.array([len(seen)])))[-1, p]))
            seen = [*seen, p]
    assert log_likelihood(model, sessions) == pytest.approx(expected, abs=1e-5)
    assert naturalness(model, sessions) == pytest.approx(np.mean(expected), abs=1e-5)


def test_the_file_is_reused_and_private(tmp_path: Path, trained: list[int]) -> None:
    folder, said = tmp_path / "cache", []
    first = load_or_train(folder, any_sessions(0), ROWS, LM, say=said.append)
    again = load_or_train(folder, any_sessions(0), ROWS, LM, say=said.append)
    assert len(trained) == 1
    assert not said
    assert same(first, again)
    assert not any(p.requires_grad for m in (first, again) for p in m.parameters())
    [file] = folder.iterdir()
    assert file.name == f"{cache_key(any_sessions(0), ROWS, LM)}.safetensors"
    assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)


@pytest.mark.parametrize("damage", ["truncate", "empty", "flip", "other data"])
def test_a_bad_file_is_noticed_and_replaced(tmp_path: Path, trained: list[int], damage: str) -> None:
    said: list[str] = []
    first = load_or_train(tmp_path, any_sessions(0), ROWS, LM, say=said.append)
    file = tmp_path / f"{cache_key(any_sessions(0), ROWS, LM)}.safetensors"
    content = bytearray(file.read_bytes())
    if damage == "other data":
        load_or_train(tmp_path, any_sessions(1), ROWS, LM)
        os.replace(tmp_path / f"{cache_key(any_sessions(1), ROWS, LM)}.safetensors", file)
    elif damage == "flip":
        content[-7] ^= 4
        file.write_bytes(content)
    else:
        file.write_bytes(content[: len(content) // 2 if damage == "truncate" else 0])
    trained.clear()
    again = load_or_train(tmp_path, any_sessions(0), ROWS, LM, say=said.append)
    assert len(trained) == 1
    assert len(said) == 1
    assert str(file) in said[0]
    assert same(first, again)
    load_or_train(tmp_path, any_sessions(0), ROWS, LM, say=said.append)
    assert len(trained) == len(said) == 1


def test_other_data_or_settings_have_other_files() -> None:
    base = cache_key(any_sessions(0), ROWS, LM)
    others = [
        cache_key(any_sessions(1), ROWS, LM),
        cache_key(any_sessions(0), ROWS + 1, LM),
        cache_key(any_sessions(0), ROWS, replace(LM, training=Training(epochs=2, batch_sessions=4))),
        cache_key(any_sessions(0).take(np.arange(5) < 4), ROWS, LM),
    ]
    assert len({base, *others}) == 5


def test_an_unwritable_folder_costs_only_the_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said: list[str] = []
    model = load_or_train(tmp_path / "file" / "cache", any_sessions(0), ROWS, LM, say=said.append)
    assert same(model, load_or_train(tmp_path / "cache", any_sessions(0), ROWS, LM))
    assert len(said) == 1
    assert said[0].startswith(f"cannot store the trajectory LM in {tmp_path / 'file' / 'cache'} (")
