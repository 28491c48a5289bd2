"""A16 and A20: what is known about steps, distilled into sessions that teach it to a victim."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.random import Generator

from ghostpoi.attack.adversaries.base import Adversary, Device, Seed
from ghostpoi.attack.adversaries.hidden_markov import HiddenMarkov, States, StepLengths
from ghostpoi.attack.evidence import Evidence
from ghostpoi.data.checkins import Bools, Floats, Ints, Longs
from ghostpoi.data.sessions import Sessions

BACK_OFF = 0.1  # weight of a POI two steps later or one step earlier, as in the victim that counts
CLEAR = 2.0  # standard errors by which inferred steps must help, to be used
POWER = 8.0  # of a chain's weights: walks take likely steps, because a victim needs to rank them first


@dataclass(frozen=True)
class Distilled(Adversary):
    """A16 does not restore visits: it predicts steps, and makes sessions that teach a victim these predictions.

    A leak weighs little among restored sessions that are mostly wrong. A16 weighs leaked steps, the steps that A9
    infers, and staying, and half of the leak decides how. Inferred steps are used only where they clearly help there.
    Otherwise A16 does what is possible without the release. With fewer than two leaked sessions, A16 is A9.
    """

    number = 16
    title = "distilled steps"
    holds = "what A9 holds"
    does = "weighs leaked steps, inferred steps and staying, and makes sessions that teach the result"
    effort = 50.0

    steps: HiddenMarkov = HiddenMarkov()
    inferred: tuple[float, ...] = (0.0, 0.03, 0.1, 0.3, 1.0)  # tried weights of an inferred step; a leaked one has 1
    stay: tuple[float, ...] = (0.0, 0.3, 0.9, 3.0)  # tried weights of staying
    draws: int = 8  # of all sessions, that inferred steps are counted in
    version = 2

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        if evidence.leaked.sum() < 2:
            return self.steps.restore(evidence, seed, device)
        return self.distil(evidence, seed)

    def distil(self, evidence: Evidence, seed: Seed, release: bool = True) -> Ints:
        """Return walks in place of the sessions that did not leak, (N,), learned with the release or without it."""
        noise, known = seed.generator("distillation", "draws"), evidence.with_half_of_leak()
        hidden = evidence.released.take(evidence.leaked & ~known.leaked)
        poi = evidence.clean[evidence.positions & ~known.positions]
        parts = self.parts(known, noise, release)

        def best(weights: Iterable[float]) -> tuple[Bools, tuple[float, float]]:
            tried = [(hits(mix(*parts, *mixture), hidden, poi), mixture) for mixture in product(weights, self.stay)]
            return max(tried, key=lambda one: (int(one[0].sum()), one[1]))

        alone, inferred = best((0.0,)), best(self.inferred[1:]) if release else None
        _, mixture = inferred if inferred and gains(inferred[0], alone[0]) else alone
        chain = mix(*self.parts(evidence, noise, release), *mixture)
        # Where inferred steps have no weight, these are the walks without a release.
        return evidence.fill(walks(chain, evidence.released, seed.generator("distillation"))[~evidence.positions])

    def parts(
        self, evidence: Evidence, noise: Generator, release: bool
    ) -> "tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]":
        """Return the counts of leaked and of inferred steps, (P+1, P+1) each."""
        at, rows = evidence.positions, evidence.rows
        leaked, rest = (evidence.released.take(which) for which in (evidence.leaked, ~evidence.leaked))
        seen = followers(replace(leaked, poi=evidence.clean[at]), rows)
        if not release:
            return seen, scipy.sparse.csr_array((rows, rows))
        states, belief = self.steps.infer(evidence)
        drawn = (draw_states(states, belief, noise.random(len(at)))[~at] for _ in range(self.draws))
        return seen, mean_followers(rest, drawn, rows, self.draws)


@dataclass(frozen=True)
class DistilledRelease(Adversary):
    """A20 is A16 without a leak: it weighs released steps, the steps that A14 infers, and staying.

    Anybody knows that people often stay where they are. An adversary that only restores visits does not use it. The
    weights are fixed, because no leak shows how to weigh; they were chosen on validation sessions of NYC, with releases
    that no study uses.
    """

    number = 20
    title = "distilled release"
    holds = "what A14 holds"
    does = "weighs released steps, inferred steps and staying, and makes sessions that teach the result"
    effort = 2.0  # the steps are those that A14 has just inferred
    uses_leak = False

    steps: StepLengths = StepLengths()
    inferred: float = 3.0  # weight of an inferred step; a released one has 1
    stay: float = 4.0  # weight of staying
    draws: int = 8

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        """Return walks in place of all sessions, (N,)."""
        noise = seed.generator("distillation without leak")
        return walks(self.chain(evidence, noise), evidence.released, noise)

    def chain(self, evidence: Evidence, noise: Generator) -> "scipy.sparse.csr_array":
        """Return the weights of all steps, (P+1, P+1)."""
        released, rows = evidence.released, evidence.rows
        states, belief = self.steps.infer(evidence)
        drawn = (draw_states(states, belief, noise.random(len(evidence.clean))) for _ in range(self.draws))
        inferred = mean_followers(released, drawn, rows, self.draws)
        return mix(followers(released, rows), inferred, self.inferred, self.stay)


def mix(
    seen: "scipy.sparse.csr_array", inferred: "scipy.sparse.csr_array", weight: float, stay: float
) -> "scipy.sparse.csr_array":
    """Return the chain, (P+1, P+1). No row is empty: where nothing is known, people stay."""
    everybody_stays = scipy.sparse.eye_array(seen.shape[0])
    return scipy.sparse.csr_array(seen + weight * inferred + max(stay, 1e-9) * everybody_stays)


def walks(chain: "scipy.sparse.csr_array", sessions: Sessions, noise: Generator) -> Ints:
    """Return one walk along a chain in place of every session, (N,). Their starts cover all POIs equally."""
    likely = chain.copy()
    likely.data **= POWER
    start = np.resize(noise.permutation(np.arange(1, chain.shape[0])), len(sessions))
    return walk(likely, sessions, start, noise.random(len(sessions.poi)))


def mean_followers(sessions: Sessions, drawn: Iterable[Ints], rows: int, draws: int) -> "scipy.sparse.csr_array":
    """Count followers as `followers` does, in the mean over draws of all POIs."""
    return (
        sum((followers(replace(sessions, poi=poi), rows) for poi in drawn), scipy.sparse.csr_array((rows, rows)))
        / draws
    )


def hits(chain: "scipy.sparse.csr_array", sessions: Sessions, poi: Ints) -> Bools:
    """Return which steps of sessions (N,) the chain predicts."""
    at = sessions.steps()
    return chain.argmax(1)[poi[at]] == poi[at + 1]


def gains(one: Bools, other: Bools) -> bool:
    """Whether one prediction is right more often than another by more than chance would explain."""
    return bool(int(one.sum()) - int(other.sum()) > CLEAR * np.sqrt(np.count_nonzero(one != other)))


def followers(sessions: Sessions, rows: int, back_off: float = BACK_OFF) -> "scipy.sparse.csr_array":
    """Count how often each POI follows each other, (P+1, P+1); pairs two steps apart or backwards weigh less."""
    once = after(sessions, 1, rows)
    return scipy.sparse.csr_array(once + back_off * (after(sessions, 2, rows) + once.T))


def after(sessions: Sessions, lag: int, rows: int) -> "scipy.sparse.csr_array":
    """Count how often a POI came `lag` steps after another in a session, (P+1, P+1)."""
    at = sessions.steps(lag)
    pair = sessions.poi[at], sessions.poi[at + lag]
    return scipy.sparse.coo_array((np.ones(len(at)), pair), (rows, rows)).tocsr()


def draw_states(s: States, belief: Floats, uniform: Floats) -> Ints:
    """Draw a state of every position by its probability, with numbers in [0, 1), (N,)."""
    if not len(s.position):
        return np.empty(0, np.int32)
    end, last = np.cumsum(belief), np.append(s.first[1:], len(belief)) - 1
    start = end[s.first] - belief[s.first]
    at = np.searchsorted(end, start + uniform * (end[last] - start), "right")
    poi = np.empty(len(s.position), np.int32)
    poi[s.position] = s.poi[np.clip(at, s.first, last)]
    return poi


def walk(chain: "scipy.sparse.csr_array", sessions: Sessions, start: Longs, uniform: Floats) -> Ints:
    """Return one walk per session from its start (S,), by the weights of the chain's rows, (N,)."""
    end, first = np.cumsum(chain.data), chain.indptr
    below, session = np.append(0.0, end)[first], sessions.session_of()
    place = np.arange(len(session)) - sessions.start[session]
    poi = start[session].astype(np.int32)
    for k in range(1, int(place.max(initial=0)) + 1):
        at = np.flatnonzero(place == k)
        p = poi[at - 1]
        found = np.searchsorted(end, below[p] + uniform[at] * (below[p + 1] - below[p]), "right")
        poi[at] = chain.indices[np.clip(found, first[p], first[p + 1] - 1)]
    return poi
