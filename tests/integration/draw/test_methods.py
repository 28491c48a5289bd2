"""Methods: one contract for all of them, and the exact choices of each."""

import re
import subprocess
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_city import prepared, settings, task_of
from speed_rule import speed_mask

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.places import of_sessions, slot_of
from ghostpoi.draw.methods import KEEP, METHODS, Method
from ghostpoi.draw.methods.ghost import Ghost, Random
from ghostpoi.draw.methods.unlearnable import TsUeCalibrated
from ghostpoi.draw.model_walk import BrokenMethod, Substituter, Walker
from ghostpoi.draw.noise import ByPosition
from ghostpoi.draw.publication import Task, publication
from ghostpoi.draw.scoring import Position, sample, with_entropy_floor
from ghostpoi.draw.table import publish
from ghostpoi.draw.walks import Substitution
from ghostpoi.errors import InputError
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.progress import no_report
from ghostpoi.randomness import Seed

CPU = torch.device("cpu")
NOTHING_RANDOM = {"k-anonymous", "transferable-ue"}


@cache
def lm() -> CausalTransformer:
    return CausalTransformer(len(prepared().data.vocabulary), settings().lm, 1).requires_grad_(False)


def task(method: Method, *more: str) -> Task:
    return replace(task_of(replace(settings("ghost", *more), method=method), lm()), candidates=sets(method))


@cache
def sets(method: Method) -> Candidates:
    data = prepared().data
    return method.candidate_sets(of_sessions(data.all, data.vocabulary), settings().candidates)


@cache
def published(name: str, seed: int) -> Substitution:
    return publish(task(METHODS[name]), Seed(seed), CPU)


@pytest.mark.parametrize("name", METHODS)
def test_contract(name: str) -> None:
    result, data, own = published(name, 1), prepared().data, sets(METHODS[name])
    clean, poi = data.all.poi, result.poi
    changed, has = poi != clean, own.size[clean] > 0
    assert poi.min() >= 1  # padding is never released
    free = own.everywhere
    assert free or (own.poi[clean[changed]] == poi[changed][:, None]).any(1).all()
    if METHODS[name].keeps_category == "exact":
        assert (data.vocabulary.category[clean] == data.vocabulary.category[poi]).all()
    assert not changed[~has].any()
    assert changed.any()
    assert free or not (too_fast(poi) & has & ~result.mask_emptied).any()  # the speed mask, by its definition
    again = publish(task(METHODS[name]), Seed(1), CPU)
    assert again.poi.tobytes() == poi.tobytes()
    assert again.mask_emptied.tobytes() == result.mask_emptied.tobytes()
    assert (published(name, 2).poi.tobytes() != poi.tobytes()) == (name not in NOTHING_RANDOM)


def feasible(released: np.ndarray, options: np.ndarray) -> np.ndarray:
    """Which options (N, K) the speed mask allows after the released check-in before each position."""
    v, s = prepared().data.vocabulary, prepared().data.all
    previous, gap = np.append(0, released[:-1]), np.append(0, np.diff(s.time))
    previous[s.start[:-1]] = 0
    return speed_mask(v.lat, v.lon, previous, options, gap, settings().speed)


def too_fast(poi: np.ndarray) -> np.ndarray:
    return ~feasible(poi, poi[:, None])[:, 0]


def choosable(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The positions at which a method had a choice, and those of them that it kept."""
    result, clean = published(name, 1), prepared().data.all.poi
    free = (sets(METHODS[name]).size[clean] > 0) & ~result.mask_emptied
    return free, free & (result.poi == clean)


MAY_KEEP = {"crowd", "crowd-halves", "ts-ue", "ts-ue-calibrated"}
IN_OTHER_FILES = {
    "geo-indistinguishability",
    "k-anonymous",
    "randomised-response",
    "synthetic",
}  # tests/test_what_users_pick.py


def test_each_method_is_in_one_of_the_three_tests_below() -> None:
    assert {name for name, method in METHODS.items() if method.may_keep} == MAY_KEEP | IN_OTHER_FILES


@pytest.mark.parametrize("name", [name for name in METHODS if name not in MAY_KEEP | IN_OTHER_FILES])
def test_a_method_that_may_not_keep_changes_every_position_with_a_choice(name: str) -> None:
    free, kept = choosable(name)
    assert free.sum() > 500
    assert not kept.any()


@pytest.mark.parametrize("name", ["crowd", "crowd-halves"])
def test_crowds_keep_the_clean_venue_as_often_as_its_weight_says(name: str) -> None:
    (free, kept), clean = choosable(name), prepared().data.all.poi
    own = sets(METHODS[name]).poi[clean]
    assert (own[free] == clean[free, None]).any(1).all()  # every crowd includes the clean venue
    weight = sets(METHODS[name]).draw_weights(clean, slot_of(prepared().data.all.time))
    assert weight is not None
    allowed = feasible(published(name, 1).poi, own) * weight
    p = (np.where(own == clean[:, None], allowed, 0).sum(1) / allowed.sum(1))[free]
    assert abs(kept.sum() - p.sum()) < 3 * np.sqrt((p * (1 - p)).sum())


def test_calibrated_ts_ue_keeps_about_a_quarter_of_the_positions_which_its_candidate_sets_do_not_offer() -> None:
    (free, kept), clean = choosable("ts-ue-calibrated"), prepared().data.all.poi
    assert not (sets(METHODS["ts-ue-calibrated"]).poi[clean[kept]] == clean[kept, None]).any()
    assert 0.15 < kept.sum() / free.sum() < 0.35  # 0.23, 0.27 and 0.29 with seeds 1 to 3


def test_every_method_describes_itself() -> None:
    for method in METHODS.values():
        assert re.fullmatch(r"\S.*\S", method.label)
        assert re.fullmatch(r"[A-Z][^.]+\.", method.summary), "one sentence"
    assert len({method.label for method in METHODS.values()}) == len(METHODS)


def test_methods_manifest_and_verify_import_without_torch() -> None:
    code = "import sys; from ghostpoi.draw import methods; from ghostpoi.release import manifest, verify; "
    code += "list(methods.METHODS.values()); "
    code += "print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


def test_the_strict_mask_keeps_a_feasible_original_and_else_takes_the_slowest() -> None:
    hard = task(Random(), "speed.limit_kmh=1")
    result, clean, own = publish(hard, Seed(1), CPU), prepared().data.all.poi, hard.candidates
    kept, taken = result.mask_emptied & (result.poi == clean), result.mask_emptied & (result.poi != clean)
    assert kept.any()
    assert taken.any()
    assert (own.poi[clean[taken]] == result.poi[taken][:, None]).any(1).all()
    loose = publish(task(Random(), "speed.limit_kmh=1", "speed.empty=ignore"), Seed(1), CPU)
    assert (loose.poi != clean)[own.size[clean] > 0].all()


class Bad(Random):
    """A method that breaks one rule."""

    def __init__(self, column: int, may_keep: bool = False) -> None:
        self.column, self.may_keep = column, may_keep  # type: ignore[misc]

    def choose(self, position: Position, uniform: torch.Tensor) -> torch.Tensor:
        if self.column == 1000:  # an infeasible column, if any
            return (~position.feasible).long().argmax(1)
        return torch.full_like(position.anchor, self.column)


@pytest.mark.parametrize("column", [KEEP, -2, 999, 1000])
def test_a_method_that_proposes_what_it_may_not_is_broken(column: int) -> None:
    with pytest.raises(BrokenMethod):
        publish(task(Bad(column)), Seed(1), CPU)


def test_a_method_that_may_keep_cannot_keep_against_the_speed_mask() -> None:
    clean = prepared().data.all.poi
    assert (publish(task(Bad(KEEP, True)), Seed(1), CPU).poi == clean)[~too_fast(clean)].all()
    with pytest.raises(BrokenMethod):
        publish(task(Bad(KEEP, True), "speed.limit_kmh=1"), Seed(1), CPU)


@pytest.mark.parametrize("name", METHODS)
def test_settings_are_the_identity(name: str) -> None:
    assert eval(repr(METHODS[name]), {type(METHODS[name]).__name__: type(METHODS[name])}) == METHODS[name]


@pytest.mark.parametrize(
    "text", ["method.alpha=inf", "method.alpha=-1", "method.tau=0", "method.eta=nan", "method.x=1"]
)
def test_settings_out_of_range(text: str) -> None:
    with pytest.raises(InputError, match=r"method\."):
        settings("ghost", text)


def test_the_named_variants() -> None:
    ghost, sym, floor = (METHODS[name] for name in ("ghost", "ghost-sym", "ghost-ef"))
    assert ghost == Ghost(alpha=2, beta=0.5, tau=0.3, eta=0)
    assert (sym.alpha, sym.beta, sym.tau, sym.eta) == (1.0, 1.0, 0.3, 0.0)
    assert (floor.alpha, floor.beta, floor.tau, floor.eta) == (2.0, 0.0, 0.3, 3.0)
    assert ghost.needs_trajectory_lm
    assert not floor.needs_trajectory_lm
    assert publication("pgd").method == METHODS["pgd"]


# Sampling.


def test_sample_inverts_the_distribution_function() -> None:
    weight = torch.tensor([0.2, 0.3, 0.5]).log().expand(6, 3)
    uniform = torch.tensor([0.0, 0.19, 0.21, 0.49, 0.51, 1 - 2**-53], dtype=torch.float64)
    assert sample(weight, uniform).tolist() == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("u", [0.0, 0.3, 0.5, 1 - 2**-53, 1.0])
def test_minus_infinity_is_never_drawn(u: float) -> None:
    hole = torch.tensor([[-torch.inf, 0.0, -torch.inf, 0.0, -torch.inf]])
    assert sample(hole, torch.tensor([u], dtype=torch.float64)).item() == (1 if u < 0.5 else 3)
    single = torch.tensor([[-torch.inf, -1e30, -torch.inf]])
    assert sample(single, torch.tensor([u], dtype=torch.float64)).item() == 1


def test_a_row_without_any_option_is_no_error() -> None:
    assert sample(torch.full((1, 3), -torch.inf), torch.tensor([0.9])).item() in range(3)


def test_frequencies() -> None:
    p = torch.tensor([0.05, 0.15, 0.3, 0.5])
    n = 20_000
    uniform = torch.from_numpy(Seed(1).generator("test").random(n))
    found = torch.bincount(sample((p.log() + 7).expand(n, 4), uniform), minlength=4)
    chi2 = float(((found - n * p) ** 2 / (n * p)).sum())
    assert chi2 < 16.3  # 3 degrees of freedom, p = .001


# The entropy floor.


def bits(p: torch.Tensor) -> float:
    return float(-(p[p > 0] * p[p > 0].log2()).sum())


def test_floor_by_hand() -> None:
    p = torch.tensor([[0.9, 0.1], [0.5, 0.5]], dtype=torch.float64)
    same = with_entropy_floor(p.log(), 0.4).exp()  # both have more than that: H(.1) is .469
    assert torch.allclose(same, p)
    full = with_entropy_floor(p.log(), 3).exp()  # min(3, log2 2) is 1: uniform
    assert torch.allclose(full, torch.full_like(p, 0.5))
    some = with_entropy_floor(p.log(), 0.8).exp()  # H(.243) is .8
    assert torch.allclose(some[0], torch.tensor([0.757, 0.243], dtype=torch.float64), atol=1e-3)
    assert torch.allclose(some[1], p[1])
    assert with_entropy_floor(torch.full((1, 3), -torch.inf).double(), 1.0).tolist() == [[-torch.inf] * 3]


@given(
    st.lists(st.lists(st.floats(-50, 50) | st.just(-np.inf), min_size=5, max_size=5), min_size=1, max_size=4),
    st.floats(0.01, 4),
)
def test_floor_is_reached_by_the_smallest_mixture(rows: list[list[float]], eta: float) -> None:
    weight = torch.tensor(rows, dtype=torch.float64)
    mixed = with_entropy_floor(weight, eta).exp()
    for row, got in zip(weight, mixed, strict=True):
        real = row > -torch.inf
        if not real.any():
            continue
        p, uniform = torch.softmax(row, 0), real.double() / real.sum()
        floor = min(eta, float(real.sum().double().log2()))
        assert bits(got) >= floor - 1e-9
        assert (got[~real] == 0).all()
        if bits(p) >= floor:
            assert torch.allclose(got, p)
            continue
        at = int((uniform - p).abs().argmax())
        share = float((got - p)[at] / (uniform - p)[at])
        assert torch.allclose(got, torch.lerp(p, uniform, share), atol=1e-9)
        assert bits(torch.lerp(p, uniform, max(0.0, share - 1e-6))) <= floor + 1e-9


# Choices from scores.


def positions(check: "object", method: Method | None = None) -> int:
    """Call check(position) at every position of a walk through the clean city with real models."""
    data, seen = prepared().data, 0
    surrogate = CausalTransformer(len(data.vocabulary), settings().surrogate, 3)

    def choose(position: Position) -> torch.Tensor:
        nonlocal seen
        rows = position.feasible.any(1)
        if rows.any():
            check(position, rows)  # type: ignore[operator]
            seen += int(rows.sum())
        column = position.feasible.long().argmax(1)
        return position.candidates.gather(1, column[:, None]).squeeze(1)

    models = (surrogate, lm())
    Walker(data.all, prepared().session_sets, data.vocabulary, settings().speed, models, choose, CPU).run()
    return seen


def test_exact_choices() -> None:
    ghost = Ghost(alpha=1.5, beta=0.7, tau=0.9)
    moved = kept = 0

    def check(position: Position, rows: torch.Tensor) -> None:
        nonlocal moved, kept
        u = torch.from_numpy(Seed(4).generator("u").random(len(rows)))
        adv, mani, feasible = position.adv().double(), position.mani().double(), position.feasible
        weight = torch.where(feasible, ((1.5 * adv + 0.7 * mani) / 0.9), -torch.inf)
        got = ghost.choose(position, u)
        even = Random().choose(position, u)
        pgd, em = METHODS["pgd"].choose(position, u), METHODS["em"].choose(position, u)
        for b in rows.nonzero().squeeze(1).tolist():
            options = feasible[b].nonzero().squeeze(1)
            p = (weight[b, options] - weight[b, options].max()).exp()
            cumulative = (p / p.sum()).cumsum(0)
            assert got[b] == options[min(int((cumulative <= u[b]).sum()), len(options) - 1)]
            assert even[b] == options[int(u[b] * len(options))]
            assert adv[b, pgd[b]] == adv[b, options].max()
            assert adv[b, em[b]] == adv[b, options].min()
        choice = TsUeCalibrated().choose(position, u)
        clean = position.embedding(position.anchor)
        moved += int((choice[rows] != KEEP).sum())
        kept += int((choice[rows] == KEEP).sum())
        assert (TsUeCalibrated(reach=0.0).choose(position, u)[rows & position.anchor_feasible] == KEEP).all()
        # A small step along the sphere lowers the loss: what it does before it looks for the nearest venue.
        spot = clean.clone().requires_grad_(True)
        with torch.enable_grad():
            before = position.loss(spot)
            (gradient,) = torch.autograd.grad(before.sum(), spot)
        ray = clean / clean.norm(dim=1, keepdim=True)
        flat = gradient - (gradient * ray).sum(1, keepdim=True) * ray
        after = position.loss(clean - 1e-3 * flat / flat.norm(dim=1, keepdim=True).clamp(min=1e-12)).detach()
        assert float((after - before.detach()).max()) < 1e-5
        assert float((after - before.detach()).mean()) < 0

    assert positions(check) > 500
    assert moved
    assert kept


def test_one_uniform_number_decides_a_choice_alone() -> None:
    every = task(Random())
    one = Substituter(every, None, CPU).round(ByPosition(Seed(5), every.sessions.positions), 1, no_report)
    fewer = replace(every, sessions=prepared().data.all.take(np.arange(len(prepared().data.all)) < 40))
    n = fewer.sessions.positions
    part = Substituter(fewer, None, CPU).round(ByPosition(Seed(5), n), 1, no_report)
    assert (one.poi[:n] == part.poi).all()  # the first numbers of a generator do not depend on how many follow
