"""The evaluation grid: releases x adversaries x leak ratios x victims x seeds. Audits and studies both ask it.

A contest is one combination of the first four. The grid restores each release as the adversary would and trains the
victim on the result; an adversary that predicts is its own victim. Restorations and victims are cached by content.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.adversaries.base import Adversary, Prediction, Predictor, leak_mixed, predicted, purify
from ghostpoi.attack.adversaries.distillation import Distilled
from ghostpoi.attack.evidence import EVIDENCE_VERSION, Evidence, KeptColumn, LeakBy, Outside, Rule, leak
from ghostpoi.attack.victims import VICTIMS
from ghostpoi.attack.victims.base import WRONG, Exam, Job, Result, Victim, train_each
from ghostpoi.attack.victims.judge import DISTANCE_VERSION, floors, judged
from ghostpoi.attack.victims.neural import Transformer
from ghostpoi.audits.cache import Cache, Record
from ghostpoi.audits.controls import CLEAN, DISTANCE, ITSELF, LEAK_ONLY, LEAK_STAY
from ghostpoi.audits.measures import accuracy as accuracies
from ghostpoi.audits.measures.accuracy import ACCURACY_VERSION, Metrics, accuracy, recovery, share
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Bools, Ints, Longs
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.draw.channel import uniform
from ghostpoi.progress import BEFORE, Report, Say, no_report
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Training, key_of

RESTORATION_VERSION = 1  # raised whenever the same input gives other restorations or shares
LEAK_STAY_VERSION = 1  # raised whenever the control `leak-stay` trains a victim on other sessions
KEPT_VERSION = 2  # raised whenever the cache keeps more of a victim; results stay the same
HITS = "hits"  # the measure that holds, for each seed, a bit per test step: whether the venue was ranked first
FURTHER = 1000  # added to a seed for each further release of the same sessions; no cell uses seeds that large


@dataclass(frozen=True)
class Contest:
    """A victim trained on what an adversary makes of a release, or an adversary that predicts."""

    release: str  # `clean` or a name that Grid.releases knows
    adversary: str  # a name of ADVERSARIES, with the number of releases it holds if it holds several, or a control
    leak: float | None  # share of the training sessions that leaked
    victim: str  # a name of VICTIMS, or ITSELF for an adversary that predicts

    @property
    def cell(self) -> dict[str, Any]:
        names = {"kind": "accuracy", "method": self.release, "adversary": self.adversary}
        return names | {"leak": self.leak, "victim": self.victim}

    @property
    def label(self) -> str:
        return self.adversary if self.release == CLEAN else f"{self.adversary} on {self.release}"


@dataclass(frozen=True)
class Release:
    """What the grid needs to know about a release."""

    poi: Callable[[int], Ints]  # the released POIs under a seed, (N,)
    rule: Rule
    pseudonym: Longs | None = None  # (S,) of the training sessions; None: the release keeps the user ids

    @cached_property
    def key(self) -> str:
        """The identity of everything but the POIs."""
        return key_of(self.rule, self.pseudonym)


def find_adversary(name: str) -> tuple[Adversary | None, int]:
    """Return the adversary of a contest, None for a control, and the number of releases it holds.

    `multi-release-4` is A11 with four releases of the same sessions.
    """
    several, _, count = name.rpartition("-")
    if several in ADVERSARIES and ADVERSARIES[several].many_releases:
        return ADVERSARIES[several], int(count)
    return ADVERSARIES.get(name), 1


def contests_between(release: str, adversary: str, leak: float | None, victims: Sequence[str]) -> list[Contest]:
    """Return the contests of an adversary or a control: one if it predicts, and no leak if it uses none."""
    found = find_adversary(adversary)[0]
    judges = (ITSELF,) if found is not None and found.predicts else victims
    held = leak if found is None or found.uses_leak else None
    return [Contest(release, adversary, held, victim) for victim in judges]


def effort_of(adversary: str) -> float:
    """Return the work of an adversary or a control on a release, in Markov victims."""
    found = find_adversary(adversary)[0]
    return 0.0 if found is None else found.effort


def release_seeds(contest: Contest, number: int) -> list[int]:
    """Return the seeds of the releases that the adversary of a contest holds under a seed."""
    return [number + FURTHER * k for k in range(find_adversary(contest.adversary)[1])]


def with_poi(sessions: Sessions, poi: Ints) -> Sessions:
    return replace(sessions, poi=poi.astype(np.int32))


def sessions_key(sessions: Sessions) -> str:
    """Return a hash of all that models and adversaries read of sessions."""
    return key_of(sessions.user, sessions.start, sessions.poi, sessions.time)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Clean sessions, releases of the training sessions, and how to train and test on them."""

    train: Sessions
    val: Sessions
    test: Sessions
    vocabulary: Vocabulary
    releases: Callable[[str], Release]
    seeds: int
    protocol: str
    model: ModelSettings  # of the Transformer victim
    training: Training
    device: torch.device
    cache: Cache
    kept: tuple[KeptColumn, ...] = ()  # columns that every release shows as the clean file has them
    distance: bool = False  # whether distances are measured
    leak_by: LeakBy = "session"
    say: Say = lambda text: None
    report: Report = no_report
    _asked: set[tuple[Any, ...]] = field(init=False, default_factory=set)  # restorations, each reported once
    _last_prediction: dict[str, Prediction] = field(init=False, default_factory=dict)  # by the identity of the attack

    @property
    def rows(self) -> int:
        return len(self.vocabulary)  # P+1

    def measures(
        self, contests: Sequence[Contest], seeds: Sequence[int] | None = None
    ) -> dict[Contest, dict[str, Any]]:
        """Return the measures of each contest, one value per seed; HITS are packed bits.

        On CUDA the victims of one seed train together, on a CPU those of all seeds.
        """
        found: dict[Contest, list[dict[str, Any]]] = {contest: [] for contest in contests}
        seeds = range(self.seeds) if seeds is None else seeds
        for some in [seeds] if self.device.type == "cpu" else [[seed] for seed in seeds]:
            for victim in dict.fromkeys(c.victim for c in contests):
                asked = [c for c in contests if c.victim == victim]
                jobs = [(c, seed) for c in asked for seed in some]  # some predict the same under every seed
                if victim != ITSELF:  # some adversaries share what they infer under a seed
                    jobs = [(c, seed) for seed in some for c in asked]
                made = self._predictions(jobs) if victim == ITSELF else self._victims(victim, jobs)
                for (contest, _), measures in zip(jobs, made, strict=True):
                    found[contest].append(measures)
        return {contest: over_seeds(per_seed) for contest, per_seed in found.items()}

    def restoration(self, contest: Contest, number: int) -> Record:
        """Return what an adversary makes of a release under a seed, and its recovered shares."""
        asked = contest.release, contest.adversary, contest.leak, number
        effort, label = 0.0 if asked in self._asked else effort_of(contest.adversary), f"adversary {contest.label}"
        self.report(label, 0)
        released, (adversary, _), seed = (
            self._released(contest, number),
            find_adversary(contest.adversary),
            Seed(number),
        )

        def restore() -> Record:
            evidence, begin = self.evidence(contest, released, seed), time.perf_counter()
            if adversary is not None:
                poi, measures = purify(adversary, evidence, seed, self.device)
            else:
                poi, measures = leak_mixed(evidence), {}
            seconds = time.perf_counter() - begin
            shares = recovery(self.train.poi, released[0], poi, evidence.positions)
            return Record({**shares, **measures, "adversary_seconds": seconds}, poi)

        record = self.cache.get("restorations", self._attack_key(contest, released, number), restore)
        self._asked.add(asked)
        self.report(label, effort)
        return record

    def _released(self, contest: Contest, number: int) -> list[Ints]:
        release = self.releases(contest.release)
        return [release.poi(seed) for seed in release_seeds(contest, number)]

    def _attack_key(self, contest: Contest, released: Sequence[Ints], number: int) -> str:
        """The identity of all that decides what the adversary of a contest does."""
        adversary, _ = find_adversary(contest.adversary)
        device = self.device.type if adversary and adversary.trains else None
        seedless = adversary is not None and not (adversary.uses_leak or adversary.needs_seed)
        return key_of(
            (EVIDENCE_VERSION, RESTORATION_VERSION, adversary.version if adversary else 0), contest.adversary,
            adversary, *(() if seedless else (contest.leak, number)), self.rows, device, self._train_key, released,
            self.releases(contest.release).key, *(self.kept if adversary and adversary.needs_columns else ()),
            *([self._outside] if adversary and adversary.needs_outside else []),
            *([] if seedless or self.leak_by == "session" else [self.leak_by]),  # so that earlier results stay valid
        )  # fmt: skip

    def evidence(self, contest: Contest, released: Sequence[Ints], seed: Seed) -> Evidence:
        first, *further = released
        release, (adversary, _) = self.releases(contest.release), find_adversary(contest.adversary)
        return Evidence.of(
            with_poi(self.train, first), self.train.poi, self._leak(contest, seed), self.rows, release.rule,
            tuple(further), self.kept, release.pseudonym,
            self._outside if adversary and adversary.needs_outside else None,
        )  # fmt: skip

    def _leak(self, contest: Contest, seed: Seed) -> Bools:
        return leak(self.train, contest.leak or 0.0, seed, self.leak_by)

    @cached_property
    def _outside(self) -> Outside:
        return Outside.true(self.train, self.vocabulary)

    @cached_property
    def _train_key(self) -> str:
        return sessions_key(self.train)

    def floors(self) -> dict[str, dict[str, Any]]:
        """Return what counting predicts from the clean training sessions. It depends on no seed."""
        data = self.train, self.test, self.rows
        tested, chosen = (accuracies.floor_hits(self.train, part, self.rows) for part in (self.test, self.val))
        found: dict[str, dict[str, Any]] = {name: getattr(accuracies, name)(*data) for name in tested}
        for name, floor in found.items():
            floor |= {HITS: np.packbits(tested[name]), "validation": share(chosen[name])}
        if self.distance:
            near = floors(self.vocabulary, self.train, self.test)
            found = {name: floor | {DISTANCE: near[name]} for name, floor in found.items()}
        return found | {"markov": accuracies.markov(*data)}

    def markov(self, release: str, number: int) -> dict[str, Metrics]:
        """Return what a first-order Markov model predicts from a release."""
        return accuracies.markov(with_poi(self.train, self.releases(release).poi(number)), self.test, self.rows)

    def _restored(self, contest: Contest, poi: Ints, seed: Seed) -> Sessions:
        """The sessions with restored POIs and, for victims that know users, the users that the adversary finds."""
        restored, (adversary, _) = with_poi(self.train, poi), find_adversary(contest.adversary)
        if not VICTIMS[contest.victim].knows_users:
            return restored
        evidence = self.evidence(contest, [self.releases(contest.release).poi(seed.value)], seed)
        return replace(restored, user=adversary.users(evidence) if adversary else evidence.released.user)

    def _job(self, contest: Contest, number: int) -> tuple[Job, dict[str, Any]]:
        """What a victim trains on, and what is known about it before training."""
        seed = Seed(number)
        if contest.adversary == LEAK_ONLY:
            leaked = self.train.take(self._leak(contest, seed))
            return Job(contest.label, repeated(leaked, len(self.train)), seed), {}
        if contest.adversary == LEAK_STAY:  # what the strongest use of the leak gives without a release
            nothing, sets = with_poi(self.train, np.ones_like(self.train.poi)), Candidates.anywhere(self.rows)
            rule = Rule(sets, uniform(sets), exact=True)
            evidence = Evidence.of(nothing, self.train.poi, self._leak(contest, seed), self.rows, rule)
            taught = Distilled().distil(evidence, seed, release=False)
            return Job(contest.label, with_poi(self.train, taught), seed), {}
        if contest.release == CLEAN:
            return Job(contest.label, self.train, seed), {}
        restored = self.restoration(contest, number)
        return Job(contest.label, self._restored(contest, restored.poi, seed), seed), restored.measures

    def _predictions(self, contests: Sequence[tuple[Contest, int]]) -> list[dict[str, Any]]:
        """Let the adversaries of these contests predict, under these seeds."""
        shared = key_of(self._kept, ACCURACY_VERSION, sessions_key(self.val), sessions_key(self.test))
        found = []
        for contest, number in contests:
            released, label = self._released(contest, number), f"adversary {contest.label}"
            # Distances are measured over other steps under each seed.
            sample = number % self.seeds if self.distance else None
            key = key_of(shared, self._attack_key(contest, released, number), sample)
            record, effort = self.cache.load("victims", key), effort_of(contest.adversary)
            if record is None:
                self.report(label, 0)
                record = self._predict(contest, released, Seed(number))
                self.cache.store("victims", key, record)
            else:
                label = BEFORE
            self.report(label, effort)
            found.append(record.measures | {HITS: record.hits})
        return found

    def _predict(self, contest: Contest, released: Sequence[Ints], seed: Seed) -> Record:
        began, evidence = time.perf_counter(), self.evidence(contest, released, seed)
        predictor, _ = find_adversary(contest.adversary)
        if not isinstance(predictor, Predictor):
            raise TypeError(f"{contest.adversary} does not predict")
        key = self._attack_key(contest, released, seed.value)
        if key not in self._last_prediction:
            self._last_prediction.clear()
            self._last_prediction[key] = predicted(predictor, evidence, self.val, seed, self.device)
        made = self._last_prediction[key]
        record = self._record(judged(contest.label, seed, made.scorer, self._exam(contest.victim), began))
        if made.restored is None:
            return record
        shares = recovery(self.train.poi, released[0], made.restored, evidence.positions)
        return replace(record, measures=record.measures | shares)

    def _victims(self, victim: str, contests: Sequence[tuple[Contest, int]]) -> list[dict[str, Any]]:
        """Train the victims of these contests and seeds. Contests that train on the same POIs share one victim."""
        jobs, restored = zip(*(self._job(*contest) for contest in contests), strict=True)
        if not VICTIMS[victim].knows_users:  # so that releases that differ in their pseudonyms share victims
            jobs = tuple(replace(job, train=replace(job.train, user=np.zeros_like(job.train.user))) for job in jobs)
        shared = key_of(
            (self._kept, VICTIMS[victim].version, ACCURACY_VERSION), victim, self._victim(victim), self.protocol,
            self.device.type, self.vocabulary, sessions_key(self.val), sessions_key(self.test),
        )  # fmt: skip
        keys = [key_of(shared, sessions_key(job.train), job.seed.value) for job in jobs]
        found = {key: kept for key in keys if (kept := self.cache.load("victims", key)) is not None}
        todo = {key: job for key, job in zip(keys, jobs, strict=True) if key not in found}
        self.report(BEFORE, VICTIMS[victim].effort * (len(jobs) - len(todo)))
        if todo:
            begin, order, exam = time.perf_counter(), list(todo), self._exam(victim)
            for number, result in train_each(self._victim(victim), list(todo.values()), exam, self.protocol):
                found[order[number]] = self._record(result)
                self.cache.store("victims", order[number], found[order[number]])
            seconds = time.perf_counter() - begin
            self.say(f"{self.protocol}: trained {len(todo)} {victim} victims in {seconds:.1f} s")
        each = zip(keys, restored, strict=True)
        return [found[key].measures | {HITS: found[key].hits} | extra for key, extra in each]

    @property
    def _kept(self) -> tuple[int, ...]:
        return (KEPT_VERSION, DISTANCE_VERSION, self.seeds) if self.distance else (KEPT_VERSION,)

    def _exam(self, victim: str) -> Exam:
        def progress(label: str, victims: float) -> None:
            self.report(f"victim {label}", VICTIMS[victim].effort * victims)

        seeds = self.seeds if self.distance else 0
        return Exam(self.val, self.test, self.rows, self.device, progress, self.vocabulary, seeds)

    def _record(self, result: Result) -> Record:
        """What the cache keeps of a victim or a predictor."""
        rank = np.where(result.ranks == WRONG, np.inf, result.ranks.astype(np.float64))
        about = {"validation": result.validation, "epochs": result.epochs, "victim_seconds": result.seconds}
        near = {DISTANCE: result.distance} if result.distance else {}
        return Record(accuracy(rank, self.test) | about | near, hits=np.packbits(result.ranks == 1))

    @property
    def step_users(self) -> Longs:
        return np.repeat(self.test.user, np.maximum(self.test.length - 1, 0)).astype(np.int64)

    def _victim(self, name: str) -> Victim:
        victim = VICTIMS[name]
        return Transformer(self.model, self.training) if isinstance(victim, Transformer) else victim


def repeated(sessions: Sessions, count: int) -> Sessions:
    """Return the sessions over and over, `count` in all, so that few fill as long an epoch as all would.

    An epoch of a few steps leaves a model nearly untrained. Early stopping would keep such a model where staying is a
    good guess: a model with tied embeddings predicts the present POI before it has learned anything.
    """
    return sessions.take(np.resize(np.arange(len(sessions)), count)) if len(sessions) else sessions


def over_seeds(per_seed: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Turn dicts of one shape, one per seed, into one dict of lists."""
    return {
        name: over_seeds([d[name] for d in per_seed]) if isinstance(value, Mapping) else [d[name] for d in per_seed]
        for name, value in per_seed[0].items()
    }
