"""The judge: turns what any scorer predicts into the ranks of the venues that people really went to, and distances.

Distances: whether what a scorer expects lies near the place where people really went. The guess for a radius is the
venue whose disc of that radius holds the most probability; it is right if the next venue lies in the disc. Far moves
are steps to a venue more than FAR_KM away.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import torch
from scipy import sparse
from scipy.spatial import cKDTree

from ghostpoi.attack.counting import Scorer, Scores, Sparse
from ghostpoi.attack.victims.base import WRONG, Exam, Result
from ghostpoi.data.checkins import Bools, Floats, Longs
from ghostpoi.data.geo import chord, haversine_km, unit_sphere
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.randomness import Seed

DISTANCE_VERSION = 1  # raised whenever the same input gives other shares
RADII_KM = (0.5, 1.0, 2.0)
FAR_KM = 1.0
STEPS = 5000  # looked at on a CPU, over all seeds: the standard error of a share of half of them is .0071
DENSE = 1 << 15  # rows of a vocabulary whose discs fit on a GPU as a dense matrix
DRAWN_BY = 7  # the seed of the sample


class Discs:
    """The POIs with their coordinates, (P+1,) each, row 0 nowhere, and which of them lie in the disc around each."""

    def __init__(self, lat: Floats, lon: Floats) -> None:
        self.lat, self.lon = lat, lon
        self._dense: dict[tuple[float, torch.device], torch.Tensor] = {}

    def km(self, one: Longs, other: Longs) -> Floats:
        """Return the distances of POIs, infinite where either is unknown."""
        rows = len(self.lat)
        known = (one >= 1) & (one < rows) & (other >= 1) & (other < rows)
        a, b = np.where(known, one, 0), np.where(known, other, 0)
        with np.errstate(invalid="ignore"):
            km = haversine_km(self.lat[a], self.lon[a], self.lat[b], self.lon[b])
        return np.where(known, km, np.inf)

    @cached_property
    def around(self) -> dict[float, sparse.csr_array]:
        """By radius: 1 where a venue lies in the disc of another or of itself, (P+1, P+1)."""
        rows, found = len(self.lat), dict[float, sparse.csr_array]()
        xyz, itself = unit_sphere(self.lat[1:], self.lon[1:]), np.arange(1, rows)
        pairs = cKDTree(xyz).query_pairs(chord(max(RADII_KM) + 1e-6), output_type="ndarray").T + 1
        km = self.km(*pairs)
        for radius in RADII_KM:
            one, other = pairs[:, km <= radius]
            at = np.concatenate([one, other, itself]), np.concatenate([other, one, itself])
            found[radius] = sparse.coo_array((np.ones(len(at[0]), np.float32), at), (rows, rows)).tocsr()
        return found

    def dense(self, radius_km: float, device: torch.device) -> torch.Tensor:
        """Return the same as a dense matrix on a device, where it stays."""
        key = radius_km, device
        if key not in self._dense:
            self._dense[key] = torch.from_numpy(self.around[radius_km].toarray()).to(device)
        return self._dense[key]


@lru_cache(maxsize=2)
def _discs(lat: bytes, lon: bytes) -> Discs:
    return Discs(np.frombuffer(lat), np.frombuffer(lon))


def discs_of(vocabulary: Vocabulary) -> Discs:
    """Return the discs of a vocabulary; those of the last ones are kept, because every victim needs them."""
    lat, lon = (np.asarray(part, np.float64) for part in (vocabulary.lat, vocabulary.lon))
    return _discs(lat.tobytes(), lon.tobytes())


def guesses(scores: Scores, discs: Discs, radius_km: float, device: torch.device) -> Longs:
    """Return the venue of each step whose disc holds the most probability, (n,); ties go to the smaller number."""
    around = discs.around[radius_km]
    if isinstance(scores, Sparse):
        return _sparse_guesses(scores, around)
    if device.type != "cpu" and around.shape[0] <= DENSE:
        held = torch.as_tensor(scores, dtype=torch.float32, device=device) @ discs.dense(radius_km, device)
        return held[:, 1:].argmax(1).cpu().numpy() + 1
    dense = torch.as_tensor(scores).cpu().numpy()
    return (around @ dense.T)[1:].argmax(0) + 1


def _sparse_guesses(scores: Sparse, around: sparse.csr_array) -> Longs:
    """Compare the best disc of the base with those that a venue above the base touches."""
    base = around @ scores.base
    best = int(base[1:].argmax()) + 1
    found = np.full(scores.more.shape[0], best)
    held = sparse.csr_array(scores.more @ around)
    held.sort_indices()
    total, size = base[held.indices] + held.data, np.diff(held.indptr)
    some = np.flatnonzero(size)
    if len(some):
        most = np.maximum.reduceat(total, held.indptr[some])
        row = np.repeat(np.arange(len(some)), size[some])
        top = np.flatnonzero(total == most[row])
        touched = held.indices[top[np.unique(row[top], return_index=True)[1]]]
        ahead = (most > base[best]) | ((most == base[best]) & (touched < best))
        found[some] = np.where(ahead, touched, best)
    return found


@dataclass(frozen=True, eq=False)
class Asked:
    """The steps whose guesses are looked at: where they start and where they lead, (n,) each."""

    discs: Discs
    step: Longs  # among all steps, ascending
    here: Longs
    there: Longs

    @staticmethod
    def of(vocabulary: Vocabulary, sessions: Sessions, seed: int, seeds: int, everything: bool) -> "Asked":
        """Take all steps, or those of one seed: its share of STEPS in an order that never changes."""
        at = sessions.steps()
        count = len(at) if everything else min(len(at), -(-STEPS // max(1, seeds)))
        order = np.random.default_rng(DRAWN_BY).permutation(len(at))
        step = np.sort(np.roll(order, -seed * count)[:count])
        poi = sessions.poi.astype(np.int64)
        return Asked(discs_of(vocabulary), step, poi[at[step]], poi[at[step] + 1])

    @property
    def far(self) -> Bools:
        """Whether each step is a far move, (n,)."""
        km = self.discs.km(self.here, self.there)
        return np.isfinite(km) & (km > FAR_KM)

    def shares(self, guess: Mapping[float, Longs]) -> dict[str, float]:
        """Return the shares of steps and of far moves whose guess for each radius is right, and their numbers."""
        far, found = self.far, dict[str, float]()
        for radius, venue in guess.items():
            right = self.discs.km(venue, self.there) <= radius
            found[f"within_{radius:g}km"] = _share(right)
            found[f"far_moves_within_{radius:g}km"] = _share(right[far])
        return found | {"steps": float(len(far)), "far_moves": float(far.sum())}


def _share(right: Bools) -> float:
    return float(right.mean()) if len(right) else 0.0


class Guesser:
    """Guesses step by step, as batches of scores come in."""

    def __init__(self, asked: Asked, device: torch.device) -> None:
        self.asked, self.device = asked, device
        self._seen, self._found = 0, {radius: [np.zeros(0, np.int64)] for radius in RADII_KM}

    def read(self, scores: Scores) -> None:
        """Guess the next steps."""
        begin, end = np.searchsorted(self.asked.step, [self._seen, self._seen + len(scores)])
        which = self.asked.step[begin:end] - self._seen
        self._seen += len(scores)
        for radius, found in self._found.items() if len(which) else ():
            found.append(guesses(scores[which], self.asked.discs, radius, self.device))

    def shares(self) -> dict[str, float]:
        """Return the shares that are right."""
        return self.asked.shares({radius: np.concatenate(found) for radius, found in self._found.items()})


def floors(vocabulary: Vocabulary, train: Sessions, test: Sessions) -> dict[str, dict[str, float]]:
    """Return the shares for guessing that people stay, and for guessing where most visits are."""
    asked = Asked.of(vocabulary, test, 0, 1, everything=True)
    visits = np.bincount(train.poi, minlength=len(vocabulary)).astype(float)
    visits[0] = 0
    popular = {radius: int((around @ visits)[1:].argmax()) + 1 for radius, around in asked.discs.around.items()}
    return {
        "stay": asked.shares(dict.fromkeys(RADII_KM, asked.here)),
        "popularity": asked.shares({radius: np.full(len(asked.here), venue) for radius, venue in popular.items()}),
    }


def judged(name: str, seed: Seed, scorer: Scorer, exam: Exam, began: float) -> Result:
    """Return what a scorer achieves; `began` is when its training did, by `time.perf_counter`."""
    hits, guesser = ranks(scorer, exam.validation, exam.rows, exam.device) == 1, guesser_of(exam, seed)
    found = ranks(scorer, exam.test, exam.rows, exam.device, guesser)
    distance = guesser.shares() if guesser else {}
    seconds = time.perf_counter() - began
    return Result(name, found, float(hits.mean()) if len(hits) else 0.0, 1, seconds, distance)


def guesser_of(exam: Exam, seed: Seed) -> Guesser | None:
    """Return what measures the distances of a victim of this seed, if the exam asks for them."""
    if not exam.seeds or exam.vocabulary is None:
        return None
    everything = exam.device.type != "cpu"
    return Guesser(Asked.of(exam.vocabulary, exam.test, seed.value % exam.seeds, exam.seeds, everything), exam.device)


def ranks(
    scorer: Scorer, sessions: Sessions, rows: int, device: torch.device, guesser: Guesser | None = None
) -> Longs:  # fmt: skip
    """Return the rank of every next POI, 1 the best, (N - S,); a tie counts against it, and POI 0 is never an answer.

    The rank of an unknown POI is WRONG. `guesser` reads the same scores.
    """
    seen = shown(sessions, rows)
    target, found, at = seen.poi[seen.steps() + 1].astype(np.int64), [np.zeros(0, np.int64)], 0
    for scores in scorer.probabilities(seen):
        found.append(_ranks(scores, np.maximum(target[at : at + len(scores)], 1), device))
        if guesser is not None:
            guesser.read(scores)
        at += len(scores)
    if at != len(target):
        raise ValueError(f"the scorer predicted {at} steps of {len(target)}")
    return final_ranks(np.concatenate(found), target > 0)


def final_ranks(ranks: Longs, known: Bools) -> Longs:
    """Mark as wrong unknown targets and rank 0, which is what a model that diverged to NaN returns."""
    return np.where(known & (ranks >= 1), ranks, WRONG)


def shown(sessions: Sessions, rows: int) -> Sessions:
    """Return what a scorer sees of sessions: an unknown POI is 0."""
    return replace(sessions, poi=np.where((sessions.poi >= 1) & (sessions.poi < rows), sessions.poi, 0))


def _ranks(scores: Scores, target: Longs, device: torch.device) -> Longs:
    """Return the rank of each target, (n,)."""
    if isinstance(scores, Sparse):
        return _sparse_ranks(scores, target)
    here = torch.as_tensor(scores, device=device)[:, 1:]
    own = here.gather(1, torch.from_numpy(target - 1).to(device)[:, None])
    return (here >= own).sum(1).cpu().numpy()


def _sparse_ranks(scores: Sparse, target: Longs) -> Longs:
    """Rank by the order of the base, corrected by the few venues of each step that exceed it."""
    base, more = scores.base, scores.more
    own = base[target] + np.asarray(more[np.arange(len(target)), target]).ravel()  # (n,)
    ordered = np.sort(base[1:])
    above = len(ordered) - np.searchsorted(ordered, own)
    step = np.repeat(np.arange(len(target)), np.diff(more.indptr))
    moved = (base[more.indices] < own[step]) & (base[more.indices] + more.data >= own[step]) & (more.indices > 0)
    return above + np.bincount(step[moved], minlength=len(target))
