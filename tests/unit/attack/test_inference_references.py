"""Slow plain references of all that A6 to A9 and A11 compute."""

import itertools
from collections import Counter, defaultdict
from math import prod

import numpy as np
import pytest
from attack_evidence import CPU, EVERYTHING, SEED, answer, jointly, situations
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.adversaries.deconvolution import INDEPENDENT, RARE, TINY, Deconvolution, Visits
from ghostpoi.attack.adversaries.hidden_markov import forward_backward, states_of, transitions_of
from ghostpoi.attack.evidence import Evidence
from ghostpoi.data.checkins import Floats, Longs
from ghostpoi.draw.channel import Channel


def slow_popularity(
    channel: dict[tuple[int, int], float], released: Counter[int], leaked: Counter[int], rows: int, iterations: int
) -> dict[int, float]:
    """EM with dictionaries."""
    prior = dict.fromkeys(range(rows), 1.0)
    for _ in range(iterations):
        new = {p: float(leaked[p]) for p in range(rows)}
        for q, count in released.items():
            behind = {p: prior[p] * k for (p, to), k in channel.items() if to == q}
            total = sum(behind.values())
            for p, weight in behind.items():
                new[p] += count * weight / total if total else 0.0
        everything = sum(new.values())
        prior = {p: n / everything if everything else 0.0 for p, n in new.items()}
    return {p: (1 - RARE) * n + RARE / rows for p, n in prior.items()}


def slow_posterior(
    channel: dict[tuple[int, int], float], groups: Counter[tuple[int, int]], pairs: Counter[tuple[int, int, int]],
    prior: dict[int, float], strength: float, repeats: float, iterations: int, sticky: float,
) -> dict[tuple[int, int, int], float]:  # fmt: skip
    """Each option's probability, from the expected counts of all other visits, with dictionaries."""
    options = {(u, q): sorted(p for p, to in channel if to == q) for u, q in groups}
    share = {(u, p, q): 0.0 for (u, q), ps in options.items() for p in ps}
    leaked: dict[tuple[int, int], float] = defaultdict(float)
    for (u, p, _), n in pairs.items():
        leaked[u, p] += n
    visits = dict(leaked)
    for n in range(iterations):
        new = {}
        for (u, q), ps in options.items():
            weight = {}
            for p in ps:
                others = visits.get((u, p), 0.0) - share[u, p, q]
                likelihood = channel[p, q]
                if sticky < INDEPENDENT and 2 * n >= iterations:
                    same = pairs[u, p, q] + share[u, p, q] * (groups[u, q] ** repeats - 1)
                    likelihood = (sticky * channel[p, q] + same) / (sticky + others)
                weight[p] = max(TINY, (strength * prior[p] + others) * likelihood)
            new |= {(u, p, q): w / sum(weight.values()) for p, w in weight.items()}
        share = new
        visits = dict(leaked)
        for (u, p, q), s in share.items():
            visits[u, p] = visits.get((u, p), 0.0) + s * groups[u, q] ** repeats
    return share


class TestAgainstDictionaries:
    @given(situations(), st.floats(0.1, 50), st.sampled_from([0.5, 1.0]), st.sampled_from([0.01, 1.0, INDEPENDENT]))
    def test_posterior(
        self, situation: tuple[Evidence, Channel], strength: float, repeats: float, sticky: float
    ) -> None:
        evidence, channel = situation
        v = Visits.of(evidence, channel, evidence.symbol)
        user = np.repeat(evidence.released.user, evidence.released.length).tolist()
        shown, clean, at = evidence.released.poi.tolist(), evidence.clean.tolist(), evidence.positions.tolist()
        groups = Counter((u, q) for u, q, known in zip(user, shown, at, strict=True) if not known)
        pairs = Counter((u, p, q) for u, p, q, known in zip(user, clean, shown, at, strict=True) if known)
        entries = zip(v.channel.clean.tolist(), v.channel.released.tolist(), strict=True)
        slow = dict(zip(entries, v.channel.probability.tolist(), strict=True))
        released: Counter[int] = Counter()
        for (_, q), n in groups.items():
            released[q] += n
        popular = Counter(p for p, known in zip(clean, at, strict=True) if known)
        wanted = slow_popularity(slow, released, popular, evidence.rows, 7)
        prior = v.popularity(7)
        assert prior == pytest.approx([wanted[p] for p in range(evidence.rows)], abs=1e-9)
        share = slow_posterior(slow, groups, pairs, wanted, strength, repeats, 8, sticky)
        found = v.posterior(strength * prior[v.clean], repeats, 8, sticky)
        assert found == pytest.approx(list(_in_order(share)), abs=1e-9)

    @given(situations())
    def test_deconvolution_takes_the_likeliest(self, situation: tuple[Evidence, Channel]) -> None:
        evidence, _ = situation
        channel = evidence.rule.channel.covering(evidence.released.poi)
        released = Counter(evidence.released.poi.tolist())
        entries = zip(channel.clean.tolist(), channel.released.tolist(), strict=True)
        slow = dict(zip(entries, channel.probability.tolist(), strict=True))
        prior = slow_popularity(slow, released, Counter(), evidence.rows, 5)
        for q, p in zip(
            evidence.released.poi.tolist(), Deconvolution(iterations=5).restore(evidence, SEED, CPU).tolist(),
            strict=True,
        ):  # fmt: skip
            assert prior[p] * slow[p, q] == pytest.approx(max(prior[o] * k for (o, to), k in slow.items() if to == q))

    @given(situations(), st.integers(0, 1000))
    def test_forward_backward_is_the_sum_over_all_paths(self, situation: tuple[Evidence, Channel], seed: int) -> None:
        evidence, channel = situation
        v = Visits.of(evidence, channel, evidence.symbol)
        prior = v.popularity(5)
        s = states_of(evidence, v, v.posterior(5.0 * prior[v.clean], 0.5, 5), 0.0, EVERYTHING)
        e = transitions_of(s)
        lift = np.random.default_rng(seed).uniform(0.1, 3, len(e.before))
        belief, joint = forward_backward(s, e, lift) if len(e.before) else (s.weight, np.zeros(0))
        states = {int(p): range(a, a + n) for p, a, n in zip(s.position, s.first, s.size, strict=True)}
        slow_belief, slow_joint = _all_paths(evidence, states, s.weight, e.before, e.after, lift)
        assert belief == pytest.approx(slow_belief, abs=1e-9)
        assert joint == pytest.approx(slow_joint, abs=1e-9)

    @given(situations())
    def test_no_adversary_stumbles(self, situation: tuple[Evidence, Channel]) -> None:
        evidence, _ = situation
        for name in ("per-user", "deconvolution", "habits", "habits+leak", "hidden-markov"):
            restored = np.array(answer(name, evidence), np.int32)
            if ADVERSARIES[name].uses_leak:
                assert (restored == evidence.clean)[evidence.positions].all()
        assert jointly(evidence) == answer("habits+leak", evidence)


def _in_order(share: dict[tuple[int, int, int], float]) -> list[float]:
    return [share[u, p, q] for u, q, p in sorted((u, q, p) for u, p, q in share)]


def _all_paths(
    evidence: Evidence, states: dict[int, range], weight: Floats, before: Longs, after: Longs, lift: Floats
) -> tuple[list[float], list[float]]:
    """The probability of every state and of every pair of neighbours, summed over all paths of each session."""
    step = {(int(a), int(b)): n for n, (a, b) in enumerate(zip(before, after, strict=True))}
    belief, joint = [0.0] * len(weight), [0.0] * len(lift)
    for a, b in itertools.pairwise(evidence.released.start.tolist()):
        paths = list(itertools.product(*(states[p] for p in range(a, b)))) if b > a else []
        chance = [
            float(prod(weight[s] for s in path) * prod(lift[step[pair]] for pair in itertools.pairwise(path)))
            for path in paths
        ]
        for path, c in zip(paths, chance, strict=True):
            for s in path:
                belief[s] += c / sum(chance)
            for pair in itertools.pairwise(path):
                joint[step[pair]] += c / sum(chance)
    return belief, joint
