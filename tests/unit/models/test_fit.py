"""Training: windows, reproducible and resumable epochs, early stopping, accuracy."""

import copy
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from ring_model import ROWS, SEED, TRAIN, TRAINING, model_of, ring_walks

from benchmarks.slow_reference import padded_epoch
from ghostpoi.data.checkins import Longs
from ghostpoi.models import cuda_graphs, fit
from ghostpoi.models.fit import adamw, epoch, epochs, likeliest, train
from ghostpoi.models.training_windows import Windows, from_start, next_poi
from ghostpoi.settings import Training


@given(st.lists(st.integers(1, 12), min_size=1, max_size=6), st.integers(2, 5))
def test_windows_hold_every_pair_once(lengths: list[int], most: int) -> None:
    sessions = ring_walks(lengths)
    by_session = [sessions.poi[a:b].tolist() for a, b in zip(sessions.start, sessions.start[1:], strict=False)]
    windows = next_poi(sessions, most)
    assert windows.token.tolist() == [p for s in by_session for p in s[:-1]]
    assert windows.target.tolist() == [p for s in by_session for p in s[1:]]
    starts = from_start(sessions, most)
    assert starts.target.tolist() == sessions.poi.tolist()
    assert starts.token.tolist() == [s[i - 1] if i % most else 0 for s in by_session for i in range(len(s))]
    for w in (windows, starts):
        assert w.length.max(initial=0) <= most
        assert w.length.min(initial=1) > 0
        assert w.length.sum() == len(w.token)


def test_an_epoch_is_reproducible_and_resumable_to_the_same_bytes() -> None:
    windows = next_poi(TRAIN, 10)
    torch.manual_seed(0)
    before = torch.get_rng_state()
    whole = model_of()
    optimizer = adamw(whole, TRAINING)
    for number in range(2):
        epoch(whole, optimizer, windows, TRAINING, SEED, ("s",), number)
    assert torch.equal(before, torch.get_rng_state())
    resumed, state = model_of(), copy.deepcopy(whole.state_dict())
    resumed.load_state_dict(state)
    other = adamw(resumed, TRAINING)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    torch.manual_seed(99)
    losses = [epoch(m, o, windows, TRAINING, SEED, ("s",), 2) for m, o in ((whole, optimizer), (resumed, other))]
    assert losses[0] == losses[1]
    for a, b in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert a.detach().numpy().tobytes() == b.detach().numpy().tobytes()


def test_the_next_epoch_is_laid_out_while_a_card_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """A card that is none: its results are ready when somebody waits for them."""
    windows = next_poi(TRAIN, 10)
    seen: list[str] = []
    card = SimpleNamespace(device=SimpleNamespace(type="cuda"), train=lambda: None, eval=lambda: seen.append("eval"))

    class Total:
        def __float__(self) -> float:
            seen.append("wait")
            return 2.0 * len(windows.token)

    def plan(windows: Windows, order: Longs, settings: Training) -> Longs:
        seen.append("plan")
        return order

    def launch(model: object, optimizer: object, order: Longs, settings: Training, seed: int) -> Total:
        number = len([one for one in seen if one == "wait"])
        assert order.tolist() == SEED.generator("s", "order", number).permutation(len(windows.length)).tolist()
        assert seed == SEED.torch_seed("s", "dropout", number)
        seen.append("launch")
        return Total()

    monkeypatch.setattr(cuda_graphs, "plan", plan)
    monkeypatch.setattr(cuda_graphs, "launch", launch)
    losses = list(epochs(card, None, windows, TRAINING, SEED, ("s",), range(3)))  # type: ignore[arg-type]
    assert losses == [2.0] * 3
    between = ["launch", "plan", "wait", "eval"]
    assert seen == ["plan", *between, *between, "launch", "wait", "eval"]


@pytest.mark.parametrize("windows_of", [next_poi, from_start])
@pytest.mark.parametrize("tied", [False, True])
def test_packed_epochs_equal_padded_ones(windows_of: Callable[..., Windows], tied: bool) -> None:
    windows = windows_of(TRAIN, 10)
    results = []
    for one in (epoch, padded_epoch):
        model = model_of(dropout=0.0, tied=tied)
        optimizer = adamw(model, TRAINING)
        losses = [one(model, optimizer, windows, TRAINING, SEED, ("s",), number) for number in range(2)]
        results.append((losses, model.output.detach().clone()))
    assert results[0][0] == pytest.approx(results[1][0], abs=2e-4)
    assert torch.allclose(results[0][1], results[1][1], atol=2e-3)


def test_bfloat16_learns_about_as_well() -> None:
    windows = next_poi(TRAIN, 10)
    losses = []
    for precision in ("float32", "bfloat16"):
        model = model_of(dropout=0.0)
        chosen = Training(batch_sessions=8, learning_rate=0.01, precision=precision)  # type: ignore[arg-type]
        optimizer = adamw(model, chosen)
        losses.append([epoch(model, optimizer, windows, chosen, SEED, ("s",), n) for n in range(3)][-1])
    assert losses[0] == pytest.approx(losses[1], rel=0.03)


def test_training_runs_all_epochs_and_ends_ready_to_be_asked() -> None:
    (one, two), heard = (model_of(), model_of()), list[float]()
    windows, chosen = next_poi(TRAIN, 10), Training(batch_sessions=8, learning_rate=0.05, epochs=4)
    train(one, windows, chosen, SEED, ("s",), heard.append)
    assert heard == list(epochs(two, adamw(two, chosen), windows, chosen, SEED, ("s",), range(4)))
    assert heard[-1] < heard[0]
    assert not one.training


def test_the_likeliest_pois_come_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    model, windows = model_of().eval(), next_poi(TRAIN, 10)
    expected = []
    for s, n in zip(windows.start, windows.length, strict=True):
        log_probs = model.log_probs(model.hidden(torch.from_numpy(windows.token[s : s + n]), np.array([n])))
        expected += log_probs.argmax(1).tolist()
    monkeypatch.setattr(fit, "LOGITS", (5 * ROWS, 5 * ROWS))
    monkeypatch.setattr(fit, "EVALUATION_WINDOWS", (6, 6))
    found = likeliest(model, windows, "float32")
    assert (found == expected).mean() > 0.99  # rounding may swap neighbours
    assert likeliest(model, windows.take(np.zeros(0, np.int64)), "float32").tolist() == []
