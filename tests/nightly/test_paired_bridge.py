"""A10: the closed form against explicit matrices, and releases that must fall to it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from attack_evidence import unchanged
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from ghostpoi.attack.adversaries.base import purify
from ghostpoi.attack.adversaries.bridge_models import BidirectionalPacking, Chain, Support
from ghostpoi.attack.adversaries.bridges import PairedBridge
from ghostpoi.attack.evidence import Evidence, Rule, leak
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Ints
from ghostpoi.data.sessions import Sessions
from ghostpoi.draw.channel import uniform
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Training

CPU = torch.device("cpu")
SEED = Seed(7)
SMALL = ModelSettings(dim=32, heads=2, feed_forward=32, dropout=0.1)
QUICK = PairedBridge(SMALL, Training(epochs=40, batch_sessions=32, learning_rate=5e-3), steps=6, jump=0.15, samples=3)
LIGHT = replace(QUICK, training=replace(QUICK.training, epochs=2))
CHAIN = Chain(pois=7, steps=6, jump=0.15)


def matrix(chain: Chain, n: int) -> Tensor:
    """Q^n, step by step."""
    q = (1 - chain.jump) * torch.eye(chain.pois, dtype=torch.float64) + chain.jump / chain.pois
    power: Tensor = torch.linalg.matrix_power(q, n)
    return power


def normal(x: Tensor) -> Tensor:
    return x / x.sum(-1, keepdim=True)


def whole(parts: Sequence[Tensor], start: Tensor, end: Tensor, pois: int) -> Tensor:
    """Parts as probabilities of all POIs, (M, P)."""
    at = torch.arange(1, pois + 1)
    one, two = (torch.where(at == x[:, None], 1.0, 0.0).double() for x in (start, end))
    return parts[0][:, None] * one + parts[1][:, None] * two + parts[2][:, None] / pois


def pairs(pois: int) -> tuple[Tensor, Tensor]:
    """Every pair of POIs, (P*P,) each."""
    at = torch.arange(1, pois + 1)
    return at.repeat_interleave(pois), at.repeat(pois)


def everything(pois: int) -> Tensor:
    """All POIs as options, (1, P)."""
    return torch.arange(1, pois + 1)[None]


def steps(n: int, like: Tensor) -> Tensor:
    return torch.full(like.shape, float(n), dtype=torch.float64)


def explicit_divergence(chain: Chain, clean: int, now: int, n: int, belief: Tensor) -> float:
    """KL of the posterior of the truth from the mixture of posteriors over the belief (P,), by matrices."""
    one, before = matrix(chain, 1), matrix(chain, n - 1)
    posterior = normal(one[:, now - 1][None] * before)  # (x_0, x_(n-1))
    truth, mixed = posterior[clean - 1], belief @ posterior
    at = truth > 0
    return float((truth[at] * (truth[at] / mixed[at]).log()).sum())


class TestClosedForm:
    @pytest.mark.parametrize("n", range(CHAIN.steps + 1))
    def test_bridge_states(self, n: int) -> None:
        clean, released = pairs(CHAIN.pois)
        parts = CHAIN.between(clean, released, steps(n, clean), steps(CHAIN.steps - n, clean))
        wanted = normal(matrix(CHAIN, n)[clean - 1] * matrix(CHAIN, CHAIN.steps - n)[:, released - 1].T)
        torch.testing.assert_close(whole(parts, clean, released, CHAIN.pois), wanted, atol=1e-12, rtol=0)

    @pytest.mark.parametrize("n", range(1, CHAIN.steps + 1))
    def test_posteriors(self, n: int) -> None:
        clean, now = pairs(CHAIN.pois)
        parts = CHAIN.between(clean, now, steps(n - 1, clean), steps(1, clean))
        wanted = normal(matrix(CHAIN, 1)[:, now - 1].T * matrix(CHAIN, n - 1)[clean - 1])
        torch.testing.assert_close(whole(parts, clean, now, CHAIN.pois), wanted, atol=1e-12, rtol=0)

    @pytest.mark.parametrize("n", range(1, CHAIN.steps + 1))
    def test_evidence_is_bayes(self, n: int) -> None:
        """From P(x_0 | x_N) to P(x_0 | x_n, x_N), whatever the first is."""
        prior = normal(torch.rand(CHAIN.pois, dtype=torch.float64, generator=torch.Generator().manual_seed(n)))
        now, end = pairs(CHAIN.pois)
        if n == CHAIN.steps:  # after the last step the chain is at its end
            now = end
        to_now, on, whole_way = (matrix(CHAIN, k) for k in (n, CHAIN.steps - n, CHAIN.steps))
        likelihood = to_now[:, now - 1].T * on[now - 1, end - 1][:, None] / whole_way[:, end - 1].T
        logits = prior.log().expand(len(now), -1)
        padded = torch.cat([everything(CHAIN.pois), torch.zeros(1, 1, dtype=torch.long)], 1).expand(len(now), -1)
        given_ = torch.nn.functional.pad(logits, (0, 1), value=3.0)
        found = CHAIN.informed(given_, padded, now, end, steps(n, now)).log_belief.exp()
        torch.testing.assert_close(found[:, : CHAIN.pois], normal(prior * likelihood), atol=1e-12, rtol=0)

    @pytest.mark.parametrize("n", range(1, CHAIN.steps))
    def test_a_step_back_in_its_usual_form(self, n: int) -> None:
        """x_0 from the belief, then x_(n-1) from its posterior: Q[., x_n] (a_(n-1) p + (1 - a_(n-1)) / P)."""
        logits = torch.randn(CHAIN.pois, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
        now, end = pairs(CHAIN.pois)
        every = everything(CHAIN.pois).expand(len(now), -1)
        belief = CHAIN.informed(logits.expand(len(now), -1), every, now, end, steps(n, now)).log_belief.exp()
        posterior = normal(matrix(CHAIN, 1)[:, now - 1].T[:, None] * matrix(CHAIN, n - 1))  # (M, x_0, x_(n-1))
        p = normal(logits.exp() / matrix(CHAIN, CHAIN.steps)[:, end - 1].T)
        a = (1 - CHAIN.jump) ** (n - 1)
        wanted = normal(matrix(CHAIN, 1)[:, now - 1].T * (a * p + (1 - a) / CHAIN.pois))
        torch.testing.assert_close((belief[:, None] @ posterior).squeeze(1), wanted, atol=1e-12, rtol=0)

    def test_draws_have_the_stated_distribution(self) -> None:
        m = 200_000
        uniform = torch.rand(2, m, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        start, end = torch.full((m,), 2), torch.full((m,), 5)
        n = steps(3, start)
        drawn = CHAIN.draw(start, end, n, n, uniform)
        wanted = whole(CHAIN.between(start, end, n, n), start, end, CHAIN.pois)[0]
        share = torch.bincount(drawn, minlength=CHAIN.pois + 1)[1:] / m
        assert (share - wanted).abs().max() < 0.005


@st.composite
def situations(draw: st.DrawFn) -> tuple[Chain, int, int, int, Tensor]:
    chain = Chain(draw(st.integers(2, 9)), draw(st.integers(1, 8)), draw(st.floats(0.01, 0.9)))
    poi = st.integers(1, chain.pois)
    weight = draw(st.lists(st.floats(0.001, 1), min_size=chain.pois, max_size=chain.pois))
    return chain, draw(poi), draw(poi), draw(st.integers(1, chain.steps)), normal(torch.tensor(weight).double())


class TestDivergence:
    @given(situations())
    def test_as_by_matrices(self, s: tuple[Chain, int, int, int, Tensor]) -> None:
        chain, clean, now, n, belief = s
        x0, xn = torch.tensor([clean]), torch.tensor([now])
        found = chain.divergence(x0, xn, steps(n, x0), Support(everything(chain.pois), belief.log()[None]))
        assert float(found) == pytest.approx(explicit_divergence(chain, clean, now, n, belief), abs=1e-6)
        assert float(found) >= -1e-9

    @given(situations(), st.data())
    def test_a_support_is_a_belief_that_is_0_elsewhere(
        self, s: tuple[Chain, int, int, int, Tensor], data: st.DataObject
    ) -> None:
        chain, clean, now, n, belief = s
        others = data.draw(st.sets(st.integers(1, chain.pois)))
        poi = [clean, *sorted(others - {clean})]
        inside = normal(belief[torch.tensor(poi) - 1])
        everywhere = torch.zeros(chain.pois, dtype=torch.float64)
        everywhere[torch.tensor(poi) - 1] = inside
        x0, xn = torch.tensor([clean]), torch.tensor([now])
        padded = Support(torch.tensor([[*poi, 0, 0]]), torch.cat([inside.log(), torch.full((2,), -1e9)])[None].double())
        found = chain.divergence(x0, xn, steps(n, x0), padded)
        assert float(found) == pytest.approx(explicit_divergence(chain, clean, now, n, everywhere), abs=1e-6)

    @given(situations())
    def test_nothing_when_the_prediction_is_the_truth(self, s: tuple[Chain, int, int, int, Tensor]) -> None:
        chain, clean, now, n, belief = s
        x0, xn = torch.tensor([clean]), torch.tensor([now])
        sure = torch.full((1, chain.pois), -1e9, dtype=torch.float64)
        sure[0, clean - 1] = 0
        every = everything(chain.pois)
        found = [float(chain.divergence(x0, xn, steps(n, x0), Support(every, b))) for b in (sure, belief.log()[None])]
        assert found[0] == pytest.approx(0, abs=1e-9)
        assert found[1] > -1e-9

    @given(situations())
    def test_parts_are_probabilities(self, s: tuple[Chain, int, int, int, Tensor]) -> None:
        chain, clean, now, n, _ = s
        x0, xn = torch.tensor([clean]), torch.tensor([now])
        for i, j in ((n, chain.steps - n), (n - 1, 1)):
            parts = chain.between(x0, xn, steps(i, x0), steps(j, x0))
            assert min(float(p) for p in parts) >= 0
            assert sum(float(p) for p in parts) == pytest.approx(1, abs=1e-12)

    def test_gradients_are_finite_at_the_last_step(self) -> None:
        logits = torch.tensor([[80.0, -80.0, 0.0]], requires_grad=True)
        one, two = torch.tensor([1]), torch.tensor([2])
        for n in (1, 2):
            chain = Chain(3, 4, 0.03)
            lost = chain.divergence(two, one, torch.tensor([float(n)]), Support(everything(3), logits.log_softmax(1)))
            (grad,) = torch.autograd.grad(lost.sum(), logits)
            assert torch.isfinite(lost).all()
            assert torch.isfinite(grad).all()


class TestSupport:
    def test_draws_by_hand(self) -> None:
        belief = torch.tensor([[0.2, 0.5, 0.3, 0.0]]).expand(4, -1)
        uniform = torch.tensor([0.1, 0.2, 0.69, 0.999999])
        poi = torch.tensor([[9, 4, 7, 0]]).expand(4, -1)
        assert Support(poi, belief.log()).guess(uniform)[2].tolist() == [9, 4, 4, 7]
        likely, sure, drawn = Support(poi, belief.log()).guess(uniform)
        assert likely.tolist() == [4] * 4
        assert sure.tolist() == pytest.approx([0.5] * 4)
        assert drawn.tolist() == [9, 4, 4, 7]
        assert Support(poi, belief.log()).of(torch.tensor([4, 7, 1, 9])).tolist() == pytest.approx([0.5, 0.3, 0, 0.2])


def city(sessions: int, pois: int, seed: int = 0) -> Sessions:
    """Sessions of 3 to 9 check-ins; some POIs are far more popular than others."""
    g = np.random.default_rng(seed)
    weight = 1 / np.arange(1, pois + 1)
    length = g.integers(3, 10, sessions)
    poi = (g.choice(pois, size=int(length.sum()), p=weight / weight.sum()) + 1).astype(np.int32)
    n = np.arange(len(poi))
    return Sessions(np.arange(sessions, dtype=np.int32), np.append(0, np.cumsum(length)), poi, n * 3600, n)


def ring(pois: int, reach: Sequence[int]) -> Candidates:
    """The candidates of every POI are those so many places further in a ring; POI `pois` has none and is nobody's."""
    poi = np.zeros((pois + 1, len(reach)), np.int32)
    for p in range(1, pois):
        poi[p] = [(p - 1 + r) % (pois - 1) + 1 for r in reach]
    return Candidates(poi, np.ones(pois + 1))


def by_rule(clean: Sessions, candidates: Candidates, seed: int = 3) -> Sessions:
    """A uniform draw from C(p); what has no candidate stays."""
    drawn = np.random.default_rng(seed).integers(candidates.poi.shape[1], size=clean.positions)
    poi = candidates.poi[clean.poi, drawn]
    return replace(clean, poi=np.where(poi > 0, poi, clean.poi).astype(np.int32))


def restored_by(bridge: PairedBridge, evidence: Evidence, seed: Seed = SEED) -> Ints:
    return purify(bridge, evidence, seed, CPU)[0]


def right(clean: Sessions, evidence: Evidence, restored: Ints) -> float:
    at = ~evidence.positions
    return float((restored[at] == clean.poi[at]).mean())


def known_rule(sessions: int, ratio: float) -> tuple[Sessions, Evidence]:
    """Twelve POIs, each released as one of the three after it, and the rule known."""
    clean, candidates = city(sessions, 12), ring(12, (1, 2, 3))
    rule = Rule(candidates, uniform(candidates), exact=True)
    released = by_rule(clean, candidates)
    return clean, Evidence.of(released, clean.poi, leak(clean, ratio, SEED), 13, rule)


class TestRestore:
    def test_only_what_the_rule_allows_is_restored(self) -> None:
        _, evidence = known_rule(60, 0.3)
        restored = restored_by(LIGHT, evidence)
        at = ~evidence.positions
        assert (evidence.rule.channel.find(restored[at], evidence.released.poi[at]) >= 0).all()
        alone = at & (evidence.released.poi == 12)
        assert alone.any()
        assert (restored[alone] == 12).all()  # no candidates, and nobody's candidate

    def test_it_beats_a_random_option(self) -> None:
        clean, evidence = known_rule(300, 0.2)
        at_random = 1 / 3  # all but the last POI have three that may stand behind them
        assert right(clean, evidence, restored_by(QUICK, evidence)) > at_random + 0.1

    def test_a_release_that_breaks_the_rule_is_restored_as_itself(self) -> None:
        """POI 12 is nobody's candidate; a publisher that kept or wrote it anyway leaves no option but 12 itself."""
        _, evidence = known_rule(40, 0.3)
        poi = evidence.released.poi.copy()
        poi[::5] = 12
        broken = replace(evidence, released=replace(evidence.released, poi=poi))
        restored = restored_by(LIGHT, broken)
        at = ~broken.positions & (poi == 12)
        assert (restored[at] == 12).all()

    def test_same_seed_same_result(self) -> None:
        _, evidence = known_rule(40, 0.3)
        before = evidence.released.poi.copy()
        one, two = (restored_by(LIGHT, evidence) for _ in range(2))
        assert (one == two).all()
        assert (one != restored_by(LIGHT, evidence, Seed(8))).any()
        assert (evidence.released.poi == before).all()

    def test_without_a_leak_the_release_stays(self) -> None:
        _, evidence = known_rule(40, 0)
        assert (restored_by(QUICK, evidence) == evidence.released.poi).all()

    def test_leaked_sessions_without_check_ins_teach_nothing(self) -> None:
        released = Sessions(
            np.arange(3, dtype=np.int32),
            np.array([0, 0, 2, 3]),
            np.array([1, 2, 3], np.int32),
            np.arange(3),
            np.arange(3),
        )
        evidence = Evidence.of(released, released.poi, np.array([True, False, False]), 5, unchanged(5))
        assert restored_by(LIGHT, evidence).tolist() == [1, 2, 3]

    def test_with_everything_leaked_all_is_clean(self) -> None:
        clean, evidence = known_rule(40, 1)
        assert (restored_by(QUICK, evidence) == clean.poi).all()

    def test_sessions_longer_than_the_model_sees(self) -> None:
        clean, evidence = known_rule(200, 0.5)
        short = replace(QUICK, model=replace(SMALL, max_positions=4))
        assert right(clean, evidence, restored_by(short, evidence)) > 1 / 3 + 0.1

    def test_a_large_leak_is_read_in_larger_batches(self) -> None:
        _, evidence = known_rule(80, 0.9)
        assert (restored_by(replace(LIGHT, max_updates=2), evidence) >= 1).all()

    def test_global_randomness_is_left_alone(self) -> None:
        _, evidence = known_rule(20, 0.5)
        torch.manual_seed(1)
        restored_by(LIGHT, evidence)
        drawn = torch.rand(3)
        torch.manual_seed(1)
        assert torch.equal(drawn, torch.rand(3))


class TestBidirectionalPacking:
    def test_every_position_sees_its_window_and_nothing_else(self) -> None:
        length = np.array([3, 1, 9, 4])
        qkv = torch.randn(17, 12, generator=torch.Generator().manual_seed(0))
        found = BidirectionalPacking(length, 2, CPU).attend(qkv)
        for start, n in zip(np.cumsum(length) - length, length, strict=True):
            q, k, v = qkv[start : start + n].view(n, 3, 2, 2).permute(1, 2, 0, 3)
            alone = torch.softmax(q @ k.transpose(1, 2) / 2**0.5, -1) @ v  # (H, n, dh)
            torch.testing.assert_close(found[start : start + n], alone.transpose(0, 1).reshape(n, 4))
