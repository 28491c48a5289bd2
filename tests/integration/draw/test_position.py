"""Scores from the prefix cache equal the definition for any batches; the speed mask, and sets that it empties."""

from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scored_world import WORLDS, World, last_log_prob
from speed_rule import speed_mask
from torch import Tensor

from benchmarks.slow_reference import brute_force_scores
from ghostpoi.data.geo import haversine_km
from ghostpoi.draw.scoring import Position, sample, with_entropy_floor
from ghostpoi.models.prefix_cache import Prefix
from ghostpoi.settings import SpeedSettings


@given(WORLDS, st.sampled_from(["strict", "ignore"]), st.sampled_from([None, 8]), st.booleans())
def test_scores_and_choices_follow_the_definition(
    world: World, empty: Literal["strict", "ignore"], budget: int | None, padded: bool
) -> None:
    result, scored = world.walk(empty, budget, padded=padded)
    released = result.poi
    s, v, limit = world.sessions, world.vocabulary, SpeedSettings(empty=empty)
    for a, b in zip(s.start.tolist(), s.start[1:].tolist(), strict=False):
        for i in range(a, b):
            anchor, before = int(s.poi[i]), released[a:i].tolist()
            options = world.candidates.poi[anchor]
            real = options[options > 0].tolist()
            target = int(s.poi[i + 1]) if i + 1 < b else int(s.poi[i - 1]) if i > a else 0
            previous, gap = np.array([released[i - 1] if i > a else 0]), np.array([s.time[i] - s.time[i - 1]])
            mask = speed_mask(v.lat, v.lon, previous, np.append(options, anchor)[None], gap, limit)[0]
            emptied = bool(real) and not mask[:-1].any()
            assert result.mask_emptied[i] == emptied
            if not real or (emptied and empty == "strict" and mask[-1]):
                assert released[i] == anchor
                assert not scored[i][0].any()
                continue
            feasible = mask[:-1] if not emptied else options > 0
            if emptied and empty == "strict":
                speeds = [speed_at(world, int(previous[0]), p) for p in real]
                feasible = np.arange(len(options)) == int(np.argmin(speeds))
            assert scored[i][0].tolist() == feasible.tolist()
            adv, mani = adv_mani_by_definition(world, before, real, target)
            for found, expected in zip(scored[i][1:], (adv, mani), strict=True):
                assert found[: len(real)][feasible[: len(real)]].numpy() == pytest.approx(
                    np.array(expected)[feasible[: len(real)]], abs=1e-4
                )
                assert (found[torch.from_numpy(~feasible)] == -torch.inf).all()
            assert released[i] == options[int((2 * scored[i][1] + 0.5 * scored[i][2]).argmax())]


@torch.no_grad()
def adv_mani_by_definition(
    world: World, before: list[int], options: list[int], target: int
) -> tuple[list[float], list[float]]:
    """adv and mani of each option after the released POIs `before` of its session; a target of 0 makes adv 0."""
    surrogate, lm = world.surrogate.eval(), world.trajectory_lm.eval()
    most = surrogate.settings.max_positions
    seen = before[len(before) // most * most :]  # windows start at multiples of max_positions
    adv = [-last_log_prob(surrogate, [*seen, option], target) if target else 0.0 for option in options]
    return adv, [last_log_prob(lm, [0, *seen], option) for option in options]


def speed_at(world: World, previous: int, poi: int) -> float:
    v = world.vocabulary
    return float(haversine_km(v.lat[previous], v.lon[previous], v.lat[poi], v.lon[poi]))


def test_choices_do_not_depend_on_batches_or_threads() -> None:
    world = World(5, [1, 3, 7, 2, 9, 3, 3, 12, 5] * 2)
    result, scored = world.walk()
    base = result.poi
    torch.set_num_threads(2)
    assert (world.walk()[0].poi == base).mean() > 0.98  # a tie may fall the other way and change what follows
    assert (world.walk(budget=40)[0].poi == base).mean() > 0.98
    assert (world.walk(budget=1)[0].poi == base).mean() > 0.98
    assert (world.walk(padded=True)[0].poi == base).mean() > 0.98
    first = int(world.sessions.start[1])
    keep = scored[first][0]
    for padded in (False, True):
        rough = world.walk(precision="bfloat16", padded=padded)[1]
        for found, exact in zip(rough[first][1:], scored[first][1:], strict=True):
            assert torch.allclose(found[keep], exact[keep], rtol=0.05, atol=0.2)


def test_brute_force_scores_agree() -> None:
    world = World(3, [3, 7, 1, 10, 4])
    result, scored = world.walk("ignore")
    brute = brute_force_scores(
        world.sessions, result.poi, world.candidates, world.surrogate, world.trajectory_lm, chunk=7
    )
    for i, (feasible, *fast) in scored.items():
        for slow, quick in zip(brute, fast, strict=True):
            assert slow[i][feasible.numpy()] == pytest.approx(quick[feasible].numpy(), abs=1e-4)


@pytest.mark.parametrize("pois", [30, 10])  # of ten venues, each is a target
def test_the_loss_of_an_embedding_and_its_gradient(pois: int) -> None:
    world = World(7, [6, 3, 9, 1, 5], pois, k=9, hurry=0)
    checked = []

    def choose(position: Position) -> Tensor:
        embedding = position.embedding(position.candidates[:, 0]).requires_grad_()
        loss = position.loss(embedding)
        (gradient,) = torch.autograd.grad(loss.sum(), embedding)
        first = position.feasible[:, 0]
        assert torch.allclose(loss.detach()[first], position.adv()[:, 0][first], atol=1e-4)
        step = 1e-2 * torch.randn(embedding.shape, generator=torch.Generator().manual_seed(1))
        with torch.no_grad():
            change = (position.loss(embedding + step) - position.loss(embedding - step)) / 2
        assert torch.allclose(change, (gradient * step).sum(1), atol=2e-3)
        checked.append(len(loss))
        return position.candidates[:, 0]

    world.walker(choose).run()
    assert sum(checked) == world.sessions.positions


def test_a_method_that_asks_for_no_score_costs_no_forward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(9, [5, 9])
    monkeypatch.setattr("ghostpoi.models.prefix_cache.Prefix._forward", lambda *_, **__: pytest.fail("computed"))
    done: list[int] = []
    found = world.walker(lambda position: position.candidates[:, 0]).run(done.append)
    assert (found.poi > 0).all()
    assert sum(done) == world.sessions.positions
    with pytest.raises(ValueError, match="no surrogate"):
        world.walker(lambda p: p.adv()[:, 0].long(), models=False).run()


def test_a_surrogate_without_a_prefix_predicts_nothing() -> None:
    seen = []

    def choose(position: Position) -> Tensor:
        seen.append(position.has_prefix)
        with pytest.raises(ValueError, match="needs_likelihood"):
            position.likelihood()  # the walk did not announce it
        return position.candidates[:, 0]

    World(9, [6]).walker(choose).run()
    assert seen == [False, True, True, True, False, True]  # windows hold four positions


def test_at_the_start_of_sessions_each_venue_is_scored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many sessions may release it: there, its score depends on nothing else."""
    world, scored, peek = World(9, [1] * 40, pois=10, k=9), [], Prefix.peek

    def counted(prefix: Prefix, new: Tensor, *more: Any) -> Tensor:
        scored.append(len(new))
        return peek(prefix, new, *more)

    monkeypatch.setattr(Prefix, "peek", counted)
    world.walk()
    options = world.candidates.poi[world.sessions.poi]
    assert scored == [len(np.unique(options[options > 0]))]
    assert (options > 0).sum() > 5 * scored[0]


def test_a_draw_is_by_weight_among_feasible_candidates_and_a_floor_evens_it_out() -> None:
    world, evened = World(5, [9, 7, 8], k=9), 0
    weight = np.where(world.candidates.poi > 0, 2.0 ** np.arange(9), 0.0)
    world.candidates = replace(world.candidates, weight=weight)

    def choose(position: Position) -> Tensor:
        nonlocal evened
        assert torch.allclose(position.weights().exp(), torch.from_numpy(weight)[position.anchor])
        uniform = torch.linspace(0, 0.99, len(position.anchor), dtype=torch.float64)
        feasible = position.weights().masked_fill(~position.feasible, -torch.inf)
        plain, floor = position.sample(position.weights(), uniform), position.sample(position.weights(), uniform, 3.0)
        assert torch.equal(plain, sample(feasible, uniform))
        assert torch.equal(floor, sample(with_entropy_floor(feasible, 3.0), uniform))
        evened += int((plain != floor).sum())
        return position.candidates[:, 0]

    world.walker(choose).run()
    assert evened
