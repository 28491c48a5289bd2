"""The choices of TS-UE, robust and transferable unlearnable examples, and of EM by likelihood, by their definitions."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scored_world import WORLDS, World, last_log_prob
from small_city import called, city, release, sentence
from torch import Tensor

from ghostpoi.draw.methods import KEEP
from ghostpoi.draw.methods.ghost import Em
from ghostpoi.draw.methods.unlearnable import RobustUe, TransferableUe, TsUe
from ghostpoi.draw.model_walk import Walker
from ghostpoi.draw.scoring import Position
from ghostpoi.settings import SpeedSettings
from ghostpoi.study import labels, plan

CPU = torch.device("cpu")
LIKELIHOOD = ("--set", "method.score=likelihood")


def walked(world: World, check: Any, predicts: bool = False) -> int:
    """Call check(position, row) for every row with a choice; return how many there were. Each takes its first one."""
    seen = 0

    def choose(position: Position) -> Tensor:
        nonlocal seen
        for b in position.feasible.any(1).nonzero().squeeze(1).tolist():
            check(position, b)
            seen += 1
        column = position.feasible.long().argmax(1, keepdim=True)
        return position.candidates.gather(1, column).squeeze(1)

    walker = Walker(
        world.sessions, world.candidates, world.vocabulary, SpeedSettings(), (world.surrogate, None), choose, CPU,
        predicts=predicts,
    )  # fmt: skip
    walker.run()
    return seen


# EM by likelihood.


@given(WORLDS)
def test_em_by_likelihood_takes_what_the_surrogate_predicts_after_the_released_prefix(world: World) -> None:
    most, em = world.surrogate.settings.max_positions, Em(score="likelihood")
    released: dict[int, int] = {}

    def choose(position: Position) -> Tensor:
        column = em.choose(position, torch.zeros(len(position.index)))
        by_loss = Em().choose(position, torch.zeros(len(position.index)))
        for b, index in enumerate(position.index.tolist()):
            first = int(world.sessions.start[np.searchsorted(world.sessions.start, index, side="right") - 1])
            seen = [released[i] for i in range(first + (index - first) // most * most, index)]
            options = position.feasible[b].nonzero().squeeze(1).tolist()
            released[index] = int(position.candidates[b, column[b]] if options else position.anchor[b])
            if not options:
                continue
            if not seen:  # the surrogate has no start token
                assert column[b] == by_loss[b]
                continue
            with torch.no_grad():
                value = [last_log_prob(world.surrogate.eval(), seen, int(position.candidates[b, k])) for k in options]
            assert position.likelihood()[b, options].tolist() == pytest.approx(value, abs=1e-4)
            assert column[b] in options
            assert value[options.index(int(column[b]))] == pytest.approx(max(value), abs=1e-4)
        return torch.tensor([released[index] for index in position.index.tolist()])

    speed = SpeedSettings(empty="ignore")
    Walker(
        world.sessions, world.candidates, world.vocabulary, speed, (world.surrogate, None), choose, CPU, predicts=True
    ).run()


def test_a_walk_that_did_not_announce_it_refuses_the_likelihood() -> None:
    with pytest.raises(ValueError, match="needs_likelihood"):
        walked(World(3, [4, 5]), lambda position, b: position.likelihood())


def test_em_by_likelihood_on_the_command_line() -> None:
    by_loss, by_likelihood = release("em"), release("em", "txt", *LIKELIHOOD)
    assert by_likelihood.manifest["settings"]["method"] == {"score": "likelihood"}
    assert by_likelihood.data.read_bytes() != by_loss.data.read_bytes()
    refused = called("protect", city(), "-o", "unused", "--method", "em", "--set", "method.score=guess")
    assert "method.score must be one of loss, likelihood" in sentence(refused)


# TS-UE.


def test_ts_ue_moves_down_the_loss_inside_the_ball_and_takes_the_nearest() -> None:
    moved = kept = 0
    one, none = TsUe(reach=3.0, steps=1, step_size=1.0), TsUe(steps=0)

    def check(position: Position, b: int) -> None:
        nonlocal moved, kept
        u = torch.rand(len(position.index), generator=torch.Generator().manual_seed(b))
        choice = one.choose(position, u)
        assert torch.equal(choice, one.choose(position, 1 - u))  # nothing is drawn
        assert not position.anchor_feasible[b] or none.choose(position, u)[b] == KEEP
        clean = position.embedding(position.anchor)
        spot = clean.clone().requires_grad_(True)
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(position.loss(spot).sum(), spot)
        options = position.feasible[b].nonzero().squeeze(1)
        places = position.embedding(position.candidates[b, options])
        radius = 3.0 * (places - clean[b]).norm(dim=1).max()
        there = clean[b] - radius * gradient[b] / gradient[b].norm().clamp(min=1e-12)
        away = (places - there).norm(dim=1)
        if position.anchor_feasible[b] and (clean[b] - there).norm() <= away.min():
            assert choice[b] == KEEP
        else:
            assert choice[b] == options[away.argmin()]
        moved, kept = moved + int(choice[b] != KEEP), kept + int(choice[b] == KEEP)

    assert walked(World(5, [1, 3, 7, 2, 9, 3, 3, 12, 5] * 4), check) > 50
    assert moved
    assert kept


def test_steps_of_ts_ue_lower_the_loss_and_never_leave_the_ball() -> None:
    before, after = list[float](), list[float]()

    def check(position: Position, b: int) -> None:
        clean, loss, visited = position.embedding(position.anchor), position.loss, list[Tensor]()

        def watched(embedding: Tensor) -> Tensor:
            visited.append(embedding.detach())
            return loss(embedding)

        with patch.object(position, "loss", watched):
            for method in (TsUe(reach=0.2, steps=6, step_size=0.2), TsUe(steps=6, step_size=1.0)):
                visited.clear()
                method.choose(position, torch.zeros(len(clean)))
                options = position.embedding(position.candidates[b, position.feasible[b]])
                radius = method.reach * float((options - clean[b]).norm(dim=1).max())
                assert torch.equal(visited[0], clean)
                assert max(float((spot[b] - clean[b]).norm()) for spot in visited) <= radius * (1 + 1e-5)
                if method.step_size < 1:
                    before.append(float(loss(visited[0])[b].detach()))
                    after.append(float(loss(visited[-1])[b].detach()))

    assert walked(World(6, [3, 7, 5] * 3), check) > 10
    assert np.mean(after) < np.mean(before) - 0.01


# Robust unlearnable examples.


@given(WORLDS, st.sampled_from([0.0, 0.3, 0.5, 1.0]))
def test_robust_ue_minimises_the_worst_loss_over_the_nearest_candidates(world: World, share: float) -> None:
    def check(position: Position, b: int) -> None:
        u = torch.zeros(len(position.index))
        choice, adv = int(RobustUe(share=share).choose(position, u)[b]), position.adv()[b]
        options = position.feasible[b].nonzero().squeeze(1).tolist()
        place = position.embedding(position.candidates[b]).double()
        reached = int(share * (len(options) - 1))
        worst = {}
        for k in options:
            others = sorted((o for o in options if o != k), key=lambda o: float((place[o] - place[k]).norm()))
            worst[k] = max(float(adv[o]) for o in (k, *others[:reached]))
        best = [k for k in options if worst[k] == min(worst.values())]
        assert choice == min(best, key=lambda k: float(adv[k]))
        if share == 0:
            assert choice == Em().choose(position, u)[b]

    walked(world, check)


# Transferable unlearnable examples.


def chosen(target: list[int], candidates: Tensor, feasible: Tensor | None = None) -> Tensor:
    """The POIs that the method takes."""
    mask = candidates > 0 if feasible is None else feasible
    position: Any = SimpleNamespace(target=torch.tensor(target), candidates=candidates, feasible=mask)
    column = TransferableUe().choose(position, torch.zeros(len(target)))
    return candidates.gather(1, column[:, None]).squeeze(1)


def test_positions_with_the_same_next_poi_agree_as_often_as_their_sets_overlap() -> None:
    n = 20_000
    target = [*range(1, n + 1)]
    one = torch.arange(1, 9).expand(n, 8)  # 8 candidates each, 4 in common: 4 of 12 are
    two = torch.arange(5, 13).expand(n, 8)
    agree = float((chosen(target, one) == chosen(target, two)).double().mean())
    assert abs(agree - 4 / 12) < 3 * (4 / 12 * 8 / 12 / n) ** 0.5
    assert torch.equal(chosen(target, one), chosen(target, one.flip(1)))  # the place in the set does not matter
    other = float((chosen(target, one) == chosen([*target[1:], n + 1], one)).double().mean())
    assert abs(other - 1 / 8) < 3 * (1 / 8 * 7 / 8 / n) ** 0.5  # by chance
    counts = torch.bincount(chosen(target, one), minlength=9)[1:].double()
    assert float(((counts - n / 8) ** 2 / (n / 8)).sum()) < 24.3  # 7 degrees of freedom, p = .001


def test_transferable_ue_takes_feasible_candidates_alone() -> None:
    sets = torch.tensor([[3, 5, 7, 0], [3, 5, 7, 0]])
    mask = torch.tensor([[False, True, False, False], [False, False, True, False]])
    assert chosen([9, 9], sets, mask).tolist() == [5, 7]


# What tables call them.


def test_labels_of_the_variants_in_the_main_study() -> None:
    names = [labels.method(variant.text) for variant in plan.load("main").methods]
    assert names[2:8] == [
        "EM", "EM (score=likelihood)", "TS-UE", "TS-UE (calibrated)", "Robust UE", "Transferable UE",
    ]  # fmt: skip
