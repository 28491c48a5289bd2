"""The publisher's loop with models: walks through all sessions, position by position, and rounds of walks.

The caller of a walk chooses a POI; the choice extends the cached prefix. Wave i holds position i of all sessions of a
batch that are longer than i.

The surrogate is warmed up; each round then substitutes and refits it. The surrogate and its optimizer continue from
round to round. Each round chooses afresh from C(p_i) of the clean anchor, on the prefix of its own choices. The last
round needs no refit: no release would use it.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.optim import Optimizer

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.data.geo import EARTH_RADIUS_KM
from ghostpoi.data.places import slot_of
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.draw.methods import KEEP, Method
from ghostpoi.draw.noise import ByPosition, Noise
from ghostpoi.draw.publication import WALK_UNITS, Checkpoint, Task
from ghostpoi.draw.scoring import CachedModel, Options, PaddedOptions, Position
from ghostpoi.draw.walks import Substitution
from ghostpoi.errors import InputError
from ghostpoi.models import cuda_graphs, fit
from ghostpoi.models.devices import precise, run_in_threads, trim_heap
from ghostpoi.models.prefix_cache import Layout
from ghostpoi.models.training_windows import next_poi
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.options import option
from ghostpoi.progress import BEFORE, Report, no_report
from ghostpoi.randomness import Seed
from ghostpoi.settings import Precision, SpeedSettings

BUDGET = {"cpu": 24_000, "cuda": 1_000_000}  # cached positions (sessions x longest): 100 MB and 4 GB of keys and values
WIDTHS = (0, 8, 16, 1 << 30)  # sessions whose candidate sets fall into one of these ranges of sizes share a grid
WARM_UP_WAVES = 3  # run before a capture, so that libraries initialise
SHORTEST = 32  # minimum length that a session counts with: limits the candidates of a wave to what CPU caches hold


class Walker:
    """A walk that chooses a POI (B,) for every position, each session on the prefix of its own choices.

    Sessions are independent: apart from rounding, the size of batches changes no choice. A walk can run repeatedly
    while weights change. `again` announces that: CUDA graphs pay only then. `keep_clean`: if the strict speed mask
    excludes every candidate, a clean POI within the limit is kept. `predicts`: `choose` asks the surrogate for
    `position.likelihood()`.
    """

    def __init__(
        self, sessions: Sessions, candidates: Candidates, vocabulary: Vocabulary, speed: SpeedSettings,
        models: tuple[CausalTransformer | None, CausalTransformer | None],  # surrogate, trajectory LM
        choose: Callable[[Position], Tensor], device: torch.device, precision: Precision = "float32",
        again: bool = False, keep_clean: bool = True, predicts: bool = False,
    ) -> None:  # fmt: skip
        self.sessions, self.candidates, self.models, self.choose = sessions, candidates, models, choose
        self.device, self.precision, self.predicts = device, precision, predicts
        self.limit = min([m.settings.max_positions for m in models if m], default=1 << 30)
        with precise(precision, device), torch.no_grad():
            self.readouts = [m.readout() if m else None for m in models]
        self.tables = _CandidateTables(candidates, vocabulary, speed, device, keep_clean)
        self.released = torch.zeros(sessions.positions, dtype=torch.int64, device=device)
        self.mask_emptied = torch.zeros(sessions.positions, dtype=torch.bool, device=device)
        self.batches = _batches(sessions.length, self.limit, BUDGET.get(device.type, BUDGET["cpu"]))
        self.again, self.padded = again and device.type == "cuda", device.type != "cpu"
        self.waves: list[list[_Wave]] = []  # of all batches; only kept for CUDA graphs, which read them
        self.graphs: list[torch.cuda.CUDAGraph] = []

    def run(self, progress: Callable[[int], None] | None = None) -> Substitution:
        """Walk once with the current weights. `progress` gets the number of positions of every finished batch."""
        for model, readout in zip(self.models, self.readouts, strict=True):
            if model and readout:
                model.eval()
                readout.refresh()
        if self.again and not self.waves:
            self._capture()

        def done(number: int) -> None:
            if progress:
                progress(int(self.sessions.length[self.batches[number]].sum()))

        if self.device.type == "cpu":
            run_in_threads([partial(self._steps, batch) for batch in self.batches], done)
            trim_heap()
        else:
            for number, batch in enumerate(self.batches):
                if self.graphs:
                    self.graphs[number].replay()
                else:
                    self._walk(batch, self.waves[number] if self.waves else None)
                done(number)
        return Substitution(self.released.cpu().numpy().astype(np.int32), self.mask_emptied.cpu().numpy())

    def _capture(self) -> None:
        """Capture one graph per batch, or none if the method does something that cannot be captured."""
        self.waves = [self._waves(batch) for batch in self.batches]
        work = list(zip(self.batches, self.waves, strict=True))
        try:
            with cuda_graphs.no_waiting():
                for batch, waves in work[:1]:
                    self._walk(batch, waves[:WARM_UP_WAVES])
            pool = torch.cuda.graph_pool_handle()
            self.graphs = [cuda_graphs.capture(partial(self._walk, *one), pool) for one in work]
        except RuntimeError:
            self.graphs = []

    def _waves(self, batch: Longs) -> list["_Wave"]:
        """Build all waves of a batch, longest session first. They go to the device at once: they are many and small."""
        sessions, tables = self.sessions, self.tables
        length, start, poi, time = sessions.length[batch], sessions.start[batch], sessions.poi, sessions.time
        size = np.searchsorted(-length, -np.arange(length[0]))  # (waves,) sessions in each wave
        i = np.repeat(np.arange(length[0]), size)
        session = np.arange(len(i)) - np.repeat(np.cumsum(size) - size, size)
        first, last = start[session], (start + length)[session] - 1
        index = first + i
        target = targets(poi, index, first, last)
        gap_s = np.where(i > 0, time[index] - time[index - 1], 0)
        known = [torch.split(a, size.tolist()) for a in tables.known(index, poi[index], target, gap_s, time[index])]
        sets = self.candidates.poi[poi[index]]
        options = self._padded_options(sets, target, size) if self.padded else self._options(sets, i, session, size)
        return [_Wave(*fields) for fields in zip(options, *known, strict=True)]

    def _options(self, sets: Ints, i: Longs, session: Longs, size: Longs) -> list[Options]:
        """Return the options of all waves, from the sets (N, K) and the waves (N,) of the positions of a batch."""
        row, column = np.nonzero(sets)
        scored = np.bincount(i[row], minlength=len(size))  # (waves,) candidates
        packed = np.stack([session[row], sets[row, column], session[row] * sets.shape[1] + column, column])
        found = []
        for number, part in enumerate(torch.split(torch.from_numpy(packed.astype(np.int64)), scored.tolist(), 1)):
            of, what, place, k = part.unbind()
            layout = _layout(of.numpy(), k, int(size[number]))
            unique, inverse = torch.unique(what, return_inverse=True) if number % self.limit == 0 else (None, None)
            found.append(Options(of, what, place, layout, unique, inverse))
        return found

    def _padded_options(self, sets: Ints, target: Ints, size: Longs) -> list[PaddedOptions]:
        """Return the options of all waves for CUDA, from the sets (N, K) and the targets (N,)."""
        real = sets > 0
        begin = np.cumsum(size) - size  # (waves,) the first position of each
        before = np.append(0, np.cumsum(real.sum(1)))[begin]  # (waves,) real candidates of earlier waves
        row, column = np.nonzero(real)
        place = (row - np.repeat(begin, size)[row]) * sets.shape[1] + column
        back = np.maximum(np.cumsum(real).reshape(real.shape) - 1 - np.repeat(before, size)[:, None], 0)
        goal = np.maximum(target.astype(np.int64) - 1, 0)[row]
        scored = np.diff(np.append(before, len(row))).tolist()
        of_real = torch.from_numpy(np.stack([place, goal, -(target[row] > 0).astype(np.int64)])).to(self.device)
        of_grid = torch.from_numpy(np.stack([back, np.maximum(sets - 1, 0)]).astype(np.int64)).to(self.device)
        at, goals, sign = of_real[0], of_real[1, :, None], of_real[2].float()
        flat, columns = of_grid
        parts = (torch.split(a, n) for a, n in ((at, scored), (flat, size.tolist()), (columns, size.tolist()),
                                                (goals, scored), (sign, scored)))  # fmt: skip
        return [PaddedOptions(a, b.reshape(-1), *rest) for a, b, *rest in zip(*parts, strict=True)]

    def _walk(self, batch: Longs, waves: list["_Wave"] | None) -> None:
        for _ in self._steps(batch, waves):
            pass

    def _steps(self, batch: Longs, waves: list["_Wave"] | None = None) -> Iterator[None]:
        """Walk a batch, wave by wave."""
        waves = self._waves(batch) if waves is None else waves
        longest = min(int(self.sessions.length[batch[0]]), self.limit)
        with precise(self.precision, self.device):
            cached = [
                CachedModel(m, r, len(batch), longest, wants) if m and r else None
                for m, r, wants in zip(self.models, self.readouts, (self.predicts, True), strict=True)
            ]
        released: list[Tensor] = []  # of each wave
        mask_emptied: list[Tensor] = []
        for i, wave in enumerate(waves):
            if i % self.limit == 0:
                for c in filter(None, cached):
                    c.restart()
                if cached[1]:
                    cached[1].pending.append(torch.zeros_like(wave.index))
            previous = released[-1][: len(wave.index)] if i else None
            feasible, anchor_feasible, fallback, emptied = self.tables.mask(wave, previous)
            position = Position(
                wave.candidates, feasible, wave.anchor, anchor_feasible, wave.target, wave.index,
                wave.log_weight, wave.options, cached[0], cached[1], self.precision,
            )  # fmt: skip
            chosen = torch.where(fallback > 0, fallback, self.choose(position))
            released.append(chosen)
            mask_emptied.append(emptied)
            if (i + 1) % self.limit:
                for c in filter(None, cached):
                    c.pending.append(chosen)
            yield
        index = torch.cat([wave.index for wave in waves])
        self.released.index_copy_(0, index, torch.cat(released))
        self.mask_emptied.index_copy_(0, index, torch.cat(mask_emptied))


def _batches(length: Longs, limit: int, budget: int) -> list[Longs]:
    """Split sessions into batches, longest first, each as large as the budget allows."""
    order = np.argsort(-length, kind="stable")
    order = order[length[order] > 0]
    at, batches = 0, []
    while at < len(order):
        longest = min(int(length[order[at]]), limit)
        batches.append(order[at : at + max(1, budget // max(longest, SHORTEST))])
        at += len(batches[-1])
    return batches


@dataclass(frozen=True, eq=False)
class _Wave:
    """Position i of all sessions of a batch that are longer than i: everything that no choice changes."""

    options: Options | PaddedOptions
    index: Tensor  # (B,)
    anchor: Tensor  # (B,)
    target: Tensor  # (B,)
    hours: Tensor  # (B,) since the previous position
    candidates: Tensor  # (B, K)
    choices: Tensor  # (B, K+1) candidates, then the anchor
    real: Tensor  # (B, K) bool, False for padding
    padding: Tensor  # (B, K) bool, its complement
    has_set: Tensor  # (B,) bool
    log_weight: Tensor  # (B, K), or (B, 1) if all candidates weigh the same
    alone: Tensor  # (B,) the anchor if it has no candidates, else 0


def targets(poi: Ints, index: Longs, first: Longs, last: Longs) -> Ints:
    """Return p_{i+1}, at the last position of a session p_{i-1}, and 0 in a session of one, (N,)."""
    other = np.where(index < last, index + 1, index - 1)
    return np.where(other >= first, poi[np.minimum(other, len(poi) - 1)], 0)


def _layout(session: Longs, k: Tensor, sessions: int) -> Layout:
    size = np.bincount(session, minlength=sessions)
    first, width = np.zeros_like(size), np.zeros_like(size)
    rows, groups = 0, []
    for low, high in pairwise(WIDTHS):
        members = np.flatnonzero((size > low) & (size <= high))
        if len(members):
            widest = int(size[members].max())
            first[members], width[members] = rows + np.arange(len(members)) * widest, widest
            rows += len(members) * widest
            groups.append((torch.from_numpy(members), widest))
    return Layout(groups, rows, torch.from_numpy(first[session]), k, torch.from_numpy(width[session]))


class _CandidateTables:
    """Candidate sets and coordinates on the device, and the speed mask, in float64 as in `walks`."""

    def __init__(
        self, candidates: Candidates, vocabulary: Vocabulary, speed: SpeedSettings, device: torch.device,
        keep_clean: bool,
    ) -> None:  # fmt: skip
        self.candidates, self.keep_clean = candidates, keep_clean
        self.sets = torch.from_numpy(candidates.poi.astype(np.int64)).to(device)  # (P+1, K)
        lat, lon = np.radians(vocabulary.lat), np.radians(vocabulary.lon)
        place = np.nan_to_num(np.stack([lat / 2, lon / 2, np.cos(lat)], axis=1))  # the formula needs halves
        self.place = torch.from_numpy(place).to(device)  # (P+1, 3)
        self.shown = torch.from_numpy(~candidates.is_hidden).to(device)  # (P+1,)
        self.speed = speed

    def known(self, index: Longs, anchor: Ints, target: Ints, gap_s: Longs, time: Longs) -> list[Tensor]:
        """Return the fields of a wave after `options`."""
        numbers = np.stack([index, anchor, target, gap_s]).astype(np.int64)
        at, poi, goal, gap = torch.from_numpy(numbers).to(self.sets.device).unbind()
        candidates = self.sets[poi]
        choices = torch.cat([candidates, poi[:, None]], 1)
        real = candidates > 0
        has_set = real.any(1)
        hours = gap.double().clamp(min=self.speed.min_gap_s) / 3600
        weight = self.candidates.draw_weights(anchor, slot_of(time))
        log_weight = torch.from_numpy(np.ones((len(anchor), 1)) if weight is None else weight).log().to(poi.device)
        alone = poi.masked_fill(has_set, 0)
        return [at, poi, goal, hours, candidates, choices, real, ~real, has_set, log_weight, alone]

    def mask(self, wave: _Wave, previous: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the feasible candidates (B, K) and, (B,) each: whether the anchor is feasible; the POI where there is
        no choice, else 0; whether the mask emptied the set.
        """
        real = wave.real
        if previous is None:
            everywhere = torch.ones_like(wave.has_set)
            return real, self.shown[wave.anchor], wave.alone, ~everywhere
        kmh = self._kmh(previous, wave.choices, wave.hours)  # (B, K+1)
        slow = kmh <= self.speed.limit_kmh
        feasible, anchor_feasible = real & slow[:, :-1], slow[:, -1] & self.shown[wave.anchor]
        emptied = wave.has_set > feasible.any(1)
        if self.speed.empty == "ignore":
            return feasible | (real & emptied[:, None]), anchor_feasible, wave.alone, emptied
        keep = anchor_feasible if self.keep_clean else torch.zeros_like(anchor_feasible)
        slowest = kmh[:, :-1].masked_fill(wave.padding, torch.inf).argmin(1, keepdim=True)
        feasible.scatter_(1, slowest, feasible.gather(1, slowest) | (emptied > keep)[:, None])
        best = torch.where(keep, wave.anchor, wave.choices.gather(1, slowest).squeeze(1))
        return feasible, anchor_feasible, torch.where(emptied, best, wave.alone), emptied

    def _kmh(self, previous: Tensor, choices: Tensor, hours: Tensor) -> Tensor:
        here, there = self.place[previous][:, None], self.place[choices]  # (B, 1, 3), (B, K+1, 3)
        lat, lon = (torch.sin(there[..., :2] - here[..., :2]) ** 2).unbind(2)
        h = lat + here[..., 2] * there[..., 2] * lon
        km = 2 * EARTH_RADIUS_KM * torch.asin(torch.sqrt(h.clamp(max=1.0)))
        return km / hours[:, None]


class BrokenMethod(Exception):
    """A method proposed a venue that it may not release: a bug in the method."""


def run(
    task: Task, seed: Seed, device: torch.device, checkpoint: Checkpoint | None = None, report: Report = no_report,
    noise: Noise | None = None,
) -> Substitution:  # fmt: skip
    """Run all rounds. With a checkpoint, continue after the last round stored there."""
    noise = noise or ByPosition(seed, task.sessions.positions)
    settings, rounds = task.settings, task.settings.rounds
    if not settings.method.needs_surrogate:  # rounds learn nothing from each other, and only the last one is released
        report("substituting", 0)
        return Substituter(task, None, device).round(noise, rounds.outer, report)
    surrogate = CausalTransformer(len(task.vocabulary), settings.surrogate, seed.torch_seed("surrogate")).to(device)
    optimizer = fit.adamw(surrogate, settings.training)

    def refit(poi: Ints, number: int) -> None:
        _refit(task, surrogate, optimizer, poi, seed, number, report)
        if checkpoint:
            checkpoint.store(surrogate, optimizer, number)

    done = checkpoint.load(surrogate, optimizer) if checkpoint else None  # the last round that the weights have seen
    if done is None:
        done = 0
        refit(task.sessions.poi, done)
    else:
        report(BEFORE, (done + 1) * rounds.inner + done * WALK_UNITS)
    substituter = Substituter(task, surrogate, device, again=rounds.outer - done > 1)
    for number in range(done + 1, rounds.outer):
        refit(substituter.round(noise, number, report).poi, number)
    return substituter.round(noise, rounds.outer, report)


class Substituter:
    """Runs rounds: the method proposes, this class enforces membership in C(p) and the speed mask."""

    def __init__(
        self, task: Task, surrogate: CausalTransformer | None, device: torch.device, again: bool = False
    ) -> None:
        self.task, settings, n = task, task.settings, task.sessions.positions
        # A captured CUDA walk needs the random numbers and the fault flags of all rounds in the same place.
        self.uniform = torch.zeros(n, dtype=torch.float64, device=device)
        self.broken = torch.zeros(n, dtype=torch.bool, device=device)  # one flag per position: threads share none
        lm = task.trajectory_lm if settings.method.needs_trajectory_lm else None
        if not isinstance(settings.method, Method):
            raise TypeError(f"{settings.method!r} chooses no candidates; `rounds.publish` runs it")
        choose = partial(_choose, settings.method, self.uniform, self.broken)
        self.walker = Walker(
            task.sessions, task.candidates, task.vocabulary, settings.speed, (surrogate, lm), choose, device,
            settings.rounds.precision, again, keep_clean=not settings.method.own_sets,
            predicts=settings.method.needs_likelihood,
        )  # fmt: skip

    def round(self, noise: Noise, number: int, report: Report) -> Substitution:
        """Run one round with the surrogate in its present state."""
        n, label = self.task.sessions.positions, f"substituting, round {number}"
        self.uniform.copy_(torch.from_numpy(noise.uniform("round", number)))
        self.broken.zero_()
        result = self.walker.run(lambda done: report(label, WALK_UNITS * done / n))
        if self.broken.any():
            raise BrokenMethod(
                f"{self.task.settings.method!r} proposed a venue outside the candidate set or the speed mask"
            )
        return result


def _choose(method: Method, uniform: Tensor, broken: Tensor, position: Position) -> Tensor:
    """Return what the method proposes, (B,), and flag what it may not propose."""
    proposed = method.choose(position, uniform[position.index])
    column = proposed.clamp(0, position.candidates.shape[1] - 1)
    fine = position.feasible.gather(1, column[:, None]).squeeze(1) & (proposed == column)
    chosen = position.candidates.gather(1, column[:, None]).squeeze(1)
    if method.may_keep:
        keep = proposed == KEEP
        fine = fine | (keep & position.anchor_feasible)
        chosen = torch.where(keep, position.anchor, chosen)
    broken.index_copy_(0, position.index, position.feasible.any(1) > fine)  # there is a choice, and this is none
    return chosen


def _refit(
    task: Task, surrogate: CausalTransformer, optimizer: Optimizer, poi: Ints, seed: Seed, number: int, report: Report
) -> None:
    """Train the surrogate on the release of a round; round 0 is the clean data."""
    s, label = task.settings, f"refitting after round {number}" if number else "warming up"
    pairs = next_poi(replace(task.sessions, poi=poi), s.surrogate.max_positions)
    report(label, 0)
    for loss in fit.epochs(surrogate, optimizer, pairs, s.training, seed, ("refit", number), range(s.rounds.inner)):
        if not math.isfinite(loss):
            raise InputError(f"the surrogate's training diverged; lower {option('set', 'training.learning_rate=1e-3')}")
        report(label, 1)
