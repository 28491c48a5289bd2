"""What leak and release tell about steps, distilled into sessions that teach it to a victim: the model of A16."""

from dataclasses import dataclass
from itertools import product

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.random import Generator

from ghostpoi.attack.evidence import Evidence, Rule
from ghostpoi.attack.inference.column_guesses import with_half_of_leak
from ghostpoi.attack.inference.hidden_markov import States, TransitionModel
from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.data.sessions import Sessions
from ghostpoi.randomness import Seed

BACK_OFF = 0.1  # weight of a POI two steps later or one step earlier, as in the victim that counts


@dataclass(frozen=True)
class Distillation:
    """Predicts steps by a Markov chain over POIs, and walks along it."""

    steps: TransitionModel = TransitionModel()
    inferred: tuple[float, ...] = (0.0, 0.03, 0.1, 0.3, 1.0)  # tried weights of an inferred step; a leaked one has 1
    stay: tuple[float, ...] = (0.0, 0.3, 0.9, 3.0)  # tried weights of staying
    draws: int = 8  # of all sessions, that inferred steps are counted in
    power: float = 8.0  # of the chain's weights: walks take likely steps, because a victim needs to rank them first

    def restore(self, evidence: Evidence, rule: Rule | None, seed: Seed) -> Ints:
        """Return walks in place of the sessions that did not leak, (N,). Without a rule, the release is not used."""
        noise, known = seed.generator("distillation"), with_half_of_leak(evidence)
        hidden = evidence.released.take(evidence.leaked & ~known.leaked)
        poi = evidence.clean[evidence.positions & ~known.positions]
        parts = self.parts(known, rule, noise)
        # The last of equals: where nothing tells, most weight on the release.
        mixtures = list(product(self.inferred if rule else (0.0,), self.stay))
        gains = [hits(mix(*parts, *mixture), hidden, poi) for mixture in mixtures]
        best = max(range(len(gains)), key=lambda k: (gains[k], k))
        chain = mix(*self.parts(evidence, rule, noise), *mixtures[best])
        chain.data **= self.power
        start = np.resize(noise.permutation(np.arange(1, evidence.rows)), len(evidence.released))
        walks = walk(chain, evidence.released, start, noise.random(len(evidence.clean)))
        return evidence.fill(walks[~evidence.positions])

    def parts(
        self, evidence: Evidence, rule: Rule | None, noise: Generator
    ) -> "tuple[scipy.sparse.csr_array, scipy.sparse.csr_array]":
        """Return the counts of leaked and of inferred steps, (P+1, P+1) each."""
        at, rows = evidence.positions, evidence.rows
        leaked, rest = (evidence.released.take(which) for which in (evidence.leaked, ~evidence.leaked))
        if rule is None:
            return followers(leaked, evidence.clean[at], rows), scipy.sparse.csr_array((rows, rows))
        states, belief = self.steps.infer(evidence, rule)
        drawn = (draw_states(states, belief, noise.random(len(at)))[~at] for _ in range(self.draws))
        inferred = sum((followers(rest, poi, rows) for poi in drawn), scipy.sparse.csr_array((rows, rows)))
        return followers(leaked, evidence.clean[at], rows), inferred / self.draws


def mix(
    leaked: "scipy.sparse.csr_array", inferred: "scipy.sparse.csr_array", weight: float, stay: float
) -> "scipy.sparse.csr_array":
    """Return the chain, (P+1, P+1). No row is empty: where nothing is known, people stay."""
    everybody_stays = scipy.sparse.eye_array(leaked.shape[0])
    return scipy.sparse.csr_array(leaked + weight * inferred + max(stay, 1e-9) * everybody_stays)


def hits(chain: "scipy.sparse.csr_array", sessions: Sessions, poi: Ints) -> int:
    """Count the steps of sessions (N,) that the chain predicts."""
    session = sessions.session_of()
    at = np.flatnonzero(session[1:] == session[:-1])
    return int((chain.argmax(1)[poi[at]] == poi[at + 1]).sum())


def followers(sessions: Sessions, poi: Ints, rows: int) -> "scipy.sparse.csr_array":
    """Count how often each POI follows each other, (P+1, P+1)."""
    session = sessions.session_of()

    def after(lag: int) -> "scipy.sparse.csr_array":
        at = np.flatnonzero(session[lag:] == session[:-lag])
        return scipy.sparse.coo_array((np.ones(len(at)), (poi[at], poi[at + lag])), (rows, rows)).tocsr()

    once = after(1)
    return scipy.sparse.csr_array(once + BACK_OFF * (after(2) + once.T))


def draw_states(s: States, belief: Floats, uniform: Floats) -> Ints:
    """Draw a state of every position by its probability, with numbers in [0, 1), (N,)."""
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
