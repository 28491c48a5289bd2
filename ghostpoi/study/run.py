"""Run a study: releases, restorations and victims of every seed, each kept as soon as it is there, then the cells.

What is expensive is kept under `work`, by a key of all that decides it, so that an interrupted run goes on where it was
and studies share what they have in common. Only torch, numpy and scipy are needed.
"""

import hashlib
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ghostpoi import __version__
from ghostpoi.attack.adversaries import ADVERSARIES, TRAINED, leak
from ghostpoi.attack.adversaries.habits import MODEL
from ghostpoi.attack.rule import rule_of
from ghostpoi.attack.victims import VICTIMS, Exam, Job, victim_settings
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Ints
from ghostpoi.data.prepared import Prepared
from ghostpoi.evaluate import arena
from ghostpoi.evaluate.arena import CLEAN, LEAK_MIXED, LEAK_ONLY, Restoration
from ghostpoi.evaluate.measures import floors
from ghostpoi.evaluate.measures.accuracy import figures
from ghostpoi.evaluate.measures.detection import detect
from ghostpoi.evaluate.measures.plausibility import plausibility
from ghostpoi.evaluate.measures.utility import utility
from ghostpoi.files import replacing
from ghostpoi.models import trajectory_lm
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.publish.rounds import Task, publish
from ghostpoi.randomness import Seed
from ghostpoi.settings import CandidateSettings
from ghostpoi.study.plan import VICTIM, Study, Variant
from ghostpoi.study.store import Store, identity, only_run, settings_hash

MANY = "multi-release"  # A11, who holds several releases of the same rows


@dataclass(frozen=True)
class Contest:
    """One thing that a victim is trained on: a cell of the study."""

    method: str
    adversary: str
    leak: float | None
    victim: str = VICTIM

    @property
    def work(self) -> str:
        """What a restoration depends on, but for the method's settings."""
        return f"{self.adversary} {self.leak}"


@dataclass
class Runner:
    """One study under one protocol on one data set."""

    study: Study
    protocol: str
    data: Prepared
    device: torch.device
    results: Path
    say: Callable[[str], None]

    def __post_init__(self) -> None:
        self.store = Store(self.results, self.protocol)
        self.work = self.results / ".work"
        self.identity = key(_digest(self.data), self.protocol, __version__)

    def run(self, victims: bool = True) -> Path:
        """Make all cells that are missing. Without victims: what they will be trained on, where nothing is trained."""
        with only_run(self.results, f"{self.study.name}-{self.protocol}"):
            missing = [c for c in self._contests() if not self._have(self._accuracy_cell(c))]
            asked = ("detector",) if self.study.detector else ()
            releases = [v for v in self.study.methods if not self._have(self._cell("release", v.text), asked)]
            if not victims:
                for contest in (c for c in missing if c.adversary not in TRAINED):
                    for seed in range(self.study.seeds):
                        self._job(contest, seed)
                return self.store.path(self.study.name)
            if missing or releases:
                self._releases(releases)
                per_seed = [self._victims(seed, missing) for seed in range(self.study.seeds)]
                for contest in missing:
                    self._write(contest, [found[contest] for found in per_seed])
            self._floors()
        return self.store.path(self.study.name)

    def _have(self, cell: dict[str, Any], asked: tuple[str, ...] = ()) -> bool:
        """Whether this or another study has measured a cell, with the measures that are asked for."""
        same = (c for c in self.store.cells(self.study.name) if identity(c) == identity(cell))
        return any(all(name in c["measures"] for name in asked) for c in same)

    def _contests(self) -> list[Contest]:
        """All cells, the controls among them."""
        return [contest for victim in self.study.victims for contest in self._against(victim)]

    def _against(self, victim: str) -> list[Contest]:
        study = self.study
        out = [Contest(CLEAN, CLEAN, None, victim)]
        out += [Contest(CLEAN, LEAK_ONLY, ratio, victim) for ratio in study.leak]
        for variant in study.methods:
            for adversary in study.adversaries:
                uses = ADVERSARIES[adversary].uses_leak
                out += [Contest(variant.text, adversary, r, victim) for r in (study.leak if uses else (None,))]
            out += [Contest(variant.text, LEAK_MIXED, ratio, victim) for ratio in study.leak]
            out += [Contest(variant.text, f"{MANY}-{k}", r, victim) for k in study.releases for r in study.leak]
        return out

    def _releases(self, variants: list[Variant]) -> None:
        """Release-level figures of these methods: plausibility, naturalness, utility."""
        for variant in variants:
            found = []
            for seed in range(self.study.seeds):
                released, seconds = self._released(variant, seed)
                found.append(self._release_figures(released) | {"release_seconds": seconds})
                if self.study.detector:
                    found[-1]["detector"] = self._detector(released, seed)
            self._add(self._cell("release", variant.text) | {"measures": arena.over_seeds(found)})

    def _release_figures(self, released: Ints) -> dict[str, Any]:
        train, words = self.data.train, self.data.vocabulary
        speed = self.study.methods[0].settings(self.protocol).speed
        lm = self._trajectory_lm(self.study.methods[0])
        return {
            "plausibility": plausibility(train, released, words, speed),
            "naturalness": trajectory_lm.naturalness(lm, arena.with_poi(train, released)),
            "clean_naturalness": trajectory_lm.naturalness(lm, train),
            "utility": utility(train, released, words),
        }

    def _detector(self, released: Ints, seed: int) -> dict[str, float]:
        """A12: whether released sessions can be told from clean ones."""
        train = self.data.train
        leaked = leak(train, self.study.leak[0], Seed(seed))
        return detect(train, released, leaked, self.data.vocabulary, Seed(seed), self.device)

    def _sets(self, variant: Variant) -> Candidates:
        method, words = variant.settings(self.protocol).method, self.data.vocabulary
        return (
            method.candidate_sets(words.lat, words.lon, words.category, CandidateSettings())
            if method.own_sets
            else self.data.candidates
        )

    def _trajectory_lm(self, variant: Variant) -> CausalTransformer:
        settings = variant.settings(self.protocol).trajectory_lm
        return trajectory_lm.load_or_train(
            self.work / "trajectory_lm", self.data.train, len(self.data.vocabulary), settings, self.device, self.say
        )

    def _released(self, variant: Variant, seed: int) -> tuple[Ints, float]:
        """The release of one method under one seed, from disk if it is there."""
        settings = variant.settings(self.protocol)
        path = self.work / "releases" / f"{key(self.identity, settings, seed)}.npz"
        if path.exists():
            with np.load(path) as z:
                return z["poi"], float(z["seconds"])
        lm = self._trajectory_lm(variant) if settings.method.needs_trajectory_lm else None
        task = Task(
            self.data.train, self.data.vocabulary, self._sets(variant), settings.method, settings.rounds,
            settings.speed, settings.surrogate, settings.training, lm,
        )  # fmt: skip
        begin = time.perf_counter()
        result = publish(task, Seed(seed), self.device)
        seconds = time.perf_counter() - begin
        self.say(f"{self.protocol}: released {variant.text}, seed {seed}, in {seconds:.1f} s")
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, mode=0o600) as out:
            np.savez_compressed(out, poi=result.poi, seconds=seconds)
        return result.poi, seconds

    def _victims(self, seed: int, contests: list[Contest]) -> dict[Contest, dict[str, Any]]:
        """Train the victims of one seed, those that are not on disk yet, all of one kind together."""
        path = {c: self.work / "victims" / f"{key(self.identity, self._key(c), seed)}.json" for c in contests}
        found = {c: value for c in contests if (value := read_json(path[c])) is not None}
        for victim in self.study.victims:
            todo = [c for c in contests if c not in found and c.victim == victim]
            if not todo:
                continue
            begin = time.perf_counter()
            prepared = [self._job(contest, seed) for contest in todo]
            middle = time.perf_counter()
            data, words = self.data, self.data.vocabulary
            exam = Exam(data.val, data.test, len(words), self.device, vocabulary=words)
            results = VICTIMS[victim].train([job for job, _ in prepared], exam, self.protocol)
            for contest, result, (_, extra) in zip(todo, results, prepared, strict=True):
                found[contest] = arena.accuracies(result, data.test) | extra
                write_json(path[contest], found[contest])
            self.say(
                f"{self.protocol}: seed {seed}, {len(todo)} restorations in {middle - begin:.1f} s, "
                f"{victim} victims in {time.perf_counter() - middle:.1f} s"
            )
        return found

    def _key(self, contest: Contest) -> str:
        victim = victim_settings(self.protocol) if contest.victim == VICTIM else VICTIMS[contest.victim]
        if contest.method == CLEAN:
            return f"{contest!r} {victim!r}"
        return f"{Variant(contest.method).settings(self.protocol)!r} {contest.work} {contest.victim} {victim!r}"

    def _job(self, contest: Contest, number: int) -> tuple[Job, dict[str, Any]]:
        train, seed = self.data.train, Seed(number)
        if contest.adversary == LEAK_ONLY:
            return arena.leak_only(train, self._leaked(contest, seed), seed), {}
        if contest.method == CLEAN:
            return Job(CLEAN, train, seed), {}
        restored = self._restored(contest, number)
        return Job(f"{contest.method} {contest.work}", arena.with_poi(train, restored.poi), seed), restored.figures

    def _leaked(self, contest: Contest, seed: Seed) -> NDArray[np.bool_]:
        return leak(self.data.train, contest.leak or 0.0, seed)

    def _restored(self, contest: Contest, number: int) -> Restoration:
        """What an adversary makes of a release, from disk if it is there."""
        variant, train, rows = Variant(contest.method), self.data.train, len(self.data.vocabulary)
        attack = repr(MODEL if contest.adversary.startswith(MANY) else ADVERSARIES.get(contest.adversary))
        name = key(self.identity, variant.settings(self.protocol), contest.work, attack, number)
        path = self.work / "restorations" / f"{name}.npz"
        if path.exists():
            with np.load(path) as z:
                return Restoration(z["poi"], json.loads(str(z["figures"])))
        seed = Seed(number)
        leaked, method = self._leaked(contest, seed), variant.settings(self.protocol).method
        rule = rule_of(method, self._sets(variant), self.data.vocabulary)
        if contest.adversary.startswith(MANY):
            # Further releases of the same rows, by seeds that no cell stands for.
            count = int(contest.adversary.removeprefix(f"{MANY}-"))
            releases = [self._released(variant, number + 1000 * k)[0] for k in range(count)]
            restored = arena.restore_many(train, releases, leaked, rows, rule)
        else:
            released, _ = self._released(variant, number)
            restored = arena.restore(train, released, leaked, rows, contest.adversary, seed, self.device, rule)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, mode=0o600) as out:
            np.savez_compressed(out, poi=restored.poi, figures=json.dumps(restored.figures))
        return restored

    def _write(self, contest: Contest, per_seed: list[dict[str, Any]]) -> None:
        self._add(self._accuracy_cell(contest) | {"measures": arena.over_seeds(per_seed)})

    def _floors(self) -> None:
        """Popularity and a first-order Markov model, on clean sessions and on every release."""
        rows, test, train = len(self.data.vocabulary), self.data.test, self.data.train
        if not self._have(self._cell("floor", CLEAN)):
            counted = {"popularity": floors.popularity, "markov": floors.markov}
            values = {name: figures(count(train, test, rows).all) for name, count in counted.items()}
            self._add(self._cell("floor", CLEAN) | {"measures": values})
        for variant in self.study.methods:
            if self._have(self._cell("floor", variant.text)):
                continue
            releases = (self._released(variant, seed)[0] for seed in range(self.study.seeds))
            found = [figures(floors.markov(arena.with_poi(train, poi), test, rows).all)["acc@1"] for poi in releases]
            self._add(self._cell("floor", variant.text) | {"measures": {"markov": {"acc@1": found}}})

    def _accuracy_cell(self, contest: Contest) -> dict[str, Any]:
        return self._cell(
            "accuracy", contest.method, adversary=contest.adversary, leak=contest.leak, victim=contest.victim
        )

    def _cell(self, kind: str, method: str, **more: Any) -> dict[str, Any]:
        """A cell without its measures."""
        return {
            "kind": kind,
            "data": self.data.name,
            "method": method,
            **more,
            "seeds": list(range(self.study.seeds)),
            "settings": settings_hash(self._public(method)),
            "hardware": hardware(self.device),
            "version": __version__,
            "commit": commit(),
        }

    def _public(self, method: str) -> dict[str, Any]:
        return {} if method == CLEAN else Variant(method).settings(self.protocol).public()

    def _add(self, cell: dict[str, Any]) -> None:
        self.store.add(self.study.name, [cell], {cell["settings"]: self._public(cell["method"])})


def key(*parts: object) -> str:
    """A short name for the work that these decide."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()[:24]


def read_json(path: Path) -> dict[str, Any] | None:
    """What was written; None if nothing was or it cannot be read."""
    try:
        value: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return value


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as out:
        out.write((json.dumps(value, indent=1) + "\n").encode())


def _digest(data: Prepared) -> str:
    digest = hashlib.sha256()
    for sessions in (data.train, data.val, data.test):
        digest.update(sessions.start.tobytes() + sessions.poi.tobytes())
    digest.update(data.candidates.poi.tobytes())
    return digest.hexdigest()


def hardware(device: torch.device) -> str:
    """What a figure was measured on."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU {platform.machine()}"


def commit() -> str:
    """The commit of the code, where that can be told; a machine without git may be told by GHOSTPOI_COMMIT."""
    if told := os.environ.get("GHOSTPOI_COMMIT"):
        return told
    try:
        found = subprocess.run(
            ["git", "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            cwd=Path(__file__).parent,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found.stdout.strip()
