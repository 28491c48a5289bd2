"""The Transformer: packed and cached passes agree with plain ones; tiled losses equal plain losses."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from ghostpoi.models import output_layer
from ghostpoi.models.prefix_cache import Layout, Prefix
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.settings import ModelSettings

ROWS = 23
LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=7)


def small(tied: bool = False, seed: int = 0, spread: float = 20.0) -> CausalTransformer:
    """A tiny model with weights large enough that every part matters."""
    model = CausalTransformer(ROWS, ModelSettings(8, 2, 2, 12, max_positions=9, dropout=0.0, tied=tied), seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.02 * spread * torch.randn(weight.shape, generator=generator)
    return model.eval()


def tokens_of(lengths: list[int], seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).integers(1, ROWS, sum(lengths)))


@given(LENGTHS, st.booleans())
def test_packed_sessions_do_not_see_each_other(lengths: list[int], tied: bool) -> None:
    model, tokens = small(tied), tokens_of(lengths)
    alone = [model.hidden(part, np.array([len(part)])) for part in tokens.split(lengths)]
    assert torch.allclose(model.hidden(tokens, np.array(lengths)), torch.cat(alone), atol=1e-5)


def test_packed_gradients_equal_those_of_single_sessions() -> None:
    lengths = [5, 1, 9, 3, 6]
    tokens, weight = tokens_of(lengths), torch.randn(sum(lengths), 8, generator=torch.Generator().manual_seed(1))
    packed, single = small(), small()
    (packed.hidden(tokens, np.array(lengths)) * weight).sum().backward()
    for part, w in zip(tokens.split(lengths), weight.split(lengths), strict=True):
        (single.hidden(part, np.array([len(part)])) * w).sum().backward()
    for (name, a), b in zip(packed.named_parameters(), single.parameters(), strict=True):
        assert (a.grad is None) == (b.grad is None), name
        if a.grad is not None and b.grad is not None:
            assert torch.allclose(a.grad, b.grad, atol=1e-4), name


@given(LENGTHS)
def test_the_prefix_cache_equals_whole_passes_as_sessions_end(lengths: list[int]) -> None:
    lengths = sorted(lengths, reverse=True)
    model, tokens = small(), tokens_of(lengths)
    whole = model.hidden(tokens, np.array(lengths))
    start = np.cumsum(lengths) - lengths
    prefix = Prefix(model, len(lengths), max(lengths))
    with torch.no_grad():
        for i in range(max(lengths)):
            index = torch.tensor([s + i for s, n in zip(start, lengths, strict=True) if n > i])
            one = prefix.peek(model.embedding[tokens[index]])
            many = prefix.peek(tokens[index].repeat_interleave(2), pairs_layout(len(index)))
            cached = prefix.append(tokens[index])
            assert torch.allclose(cached, whole[index], atol=1e-5)
            assert torch.allclose(one, cached, atol=1e-6)
            assert torch.allclose(many.view(len(index), 2, -1), cached[:, None].expand(-1, 2, -1), atol=1e-5)


def pairs_layout(sessions: int) -> Layout:
    """Two tokens in each session; even sessions share one grid, odd sessions a wider one."""
    groups = [(torch.arange(first, sessions, 2), width) for first, width in ((0, 2), (1, 3)) if first < sessions]
    first, width, rows = torch.zeros(sessions, dtype=torch.int64), torch.zeros(sessions, dtype=torch.int64), 0
    for members, w in groups:
        first[members], width[members] = rows + torch.arange(len(members)) * w, w
        rows += len(members) * w
    twice = torch.arange(sessions).repeat_interleave(2)
    return Layout(groups, rows, first[twice], torch.arange(2 * sessions) % 2, width[twice])


@pytest.mark.parametrize("spread", [5.0, 300.0])  # the second exceeds the bound below which exp needs no maximum
def test_log_probs_exclude_padding(spread: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_layer, "TILE_ROWS", 7)
    monkeypatch.setattr(output_layer, "TILE_LOGITS", 50)
    model = small(spread=spread)
    output = model.readout()
    assert output.bound is not None
    assert (output.bound > output_layer.SAFE_LOGIT) == (spread > 100)
    tokens = tokens_of([9, 9, 9])
    hidden, target = model.hidden(tokens, np.array([9, 9, 9])), tokens.roll(1)
    logits = hidden.double() @ model.output[1:].double().t()
    assert logits.abs().max() <= output.bound
    expected = F.log_softmax(logits, 1)
    assert torch.allclose(model.log_probs(hidden)[:, 1:].double(), expected, rtol=1e-5, atol=1e-3)
    assert (model.log_probs(hidden)[:, 0] == -torch.inf).all()
    chosen = expected.gather(1, target[:, None] - 1).squeeze(1)
    assert torch.allclose(output.log_prob_of(hidden, target).double(), chosen, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("spread", [5.0, 300.0])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_tiled_losses_equal_cross_entropy(
    tied: bool, spread: float, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_layer, "LOSS_LOGITS", 5 * ROWS)
    near = 1e-5 if precision == "float32" else 0.05
    model = small(tied, spread=spread)
    hidden = model.hidden(tokens_of([9, 4]), np.array([9, 4])).detach().requires_grad_()
    target = tokens_of([13], seed=1)
    plain = F.cross_entropy(hidden @ model.output[1:].t(), target - 1)
    expected = torch.autograd.grad(plain, [hidden, model.output])
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
        tiled = model.losses(hidden, target).mean()
    found = torch.autograd.grad(tiled, [hidden, model.output])
    assert torch.allclose(plain, tiled, rtol=near)
    for a, b in zip(expected, found, strict=True):
        assert torch.allclose(a, b, rtol=near, atol=near * float(a.abs().max()))


def test_initial_weights_depend_only_on_the_seed() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = CausalTransformer(ROWS, ModelSettings(8, 2), 5)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(2)
    again, other = CausalTransformer(ROWS, ModelSettings(8, 2), 5), CausalTransformer(ROWS, ModelSettings(8, 2), 6)
    assert torch.equal(first.embedding, again.embedding)
    assert not torch.equal(first.embedding, other.embedding)
