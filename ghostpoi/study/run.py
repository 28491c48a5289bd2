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

from ghostpoi.attack.adversaries import ADVERSARIES, leak
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
from ghostpoi.study.store import alone, cell_name, key, read_json, write_json
from ghostpoi.version import __version__

MANY = "multi-release"  # A11, who holds several releases of the same rows
SAME = ("protocol", "data", "method", "settings", "seeds", "version")  # what a cell must share to serve two studies


@dataclass(frozen=True)
class Contest:
    """One thing that a victim is trained on: a cell of the study."""

    method: str
    adversary: str
    leak: float | None
    victim: str = VICTIM

    @property
    def file(self) -> str:
        return cell_name(self.method, self.adversary, self.leak, self.victim)

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
        self.folder = self.results / self.study.name / self.protocol
        self.work = self.results / ".work"
        self.identity = key(_digest(self.data), self.protocol, __version__)

    def run(self, victims: bool = True) -> Path:
        """Make all cells that are missing. Without victims: what they will be trained on, where nothing is trained."""
        with alone(self.folder):
            contests = self._contests()
            missing = [c for c in contests if not self._have(c.file, c.method)]
            asked = ("detector",) if self.study.detector else ()
            releases = [v for v in self.study.methods if not self._have(_release_file(v), v.text, asked)]
            if not victims:
                for contest in (c for c in missing if not (a := ADVERSARIES.get(c.adversary)) or not a.trains):
                    for seed in range(self.study.seeds):
                        self._job(contest, seed)
                return self.folder
            if missing or releases:
                self._releases(releases)
                per_seed = [self._victims(seed, missing) for seed in range(self.study.seeds)]
                for contest in missing:
                    self._write(contest, [found[contest] for found in per_seed])
            self._floors()
        return self.folder

    def _have(self, file: str, method: str, asked: tuple[str, ...] = ()) -> bool:
        """Whether a cell is there, or was measured by another study: then it is taken over, with where and how."""
        if (self.folder / file).exists():
            return True
        wanted = {key: value for key, value in self._about(method).items() if key in SAME}
        for path in sorted(self.results.glob(f"*/{self.protocol}/{file}")):
            cell = read_json(path)
            if cell is None or any(figure not in cell["figures"] for figure in asked):
                continue
            if {key: cell.get(key) for key in SAME} == wanted:
                write_json(self.folder / file, cell | {"study": self.study.name})
                return True
        return False

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
            cell = self._about(variant.text) | {"kind": "release", "figures": arena.over_seeds(found)}
            write_json(self.folder / _release_file(variant), cell)

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
        return Job(contest.file, arena.with_poi(train, restored.poi), seed), restored.figures

    def _leaked(self, contest: Contest, seed: Seed) -> NDArray[np.bool_]:
        return leak(self.data.train, contest.leak or 0.0, seed)

    def _restored(self, contest: Contest, number: int) -> Restoration:
        """What an adversary makes of a release, from disk if it is there."""
        variant, train, rows = Variant(contest.method), self.data.train, len(self.data.vocabulary)
        adversary = MANY if contest.adversary.startswith(MANY) else contest.adversary
        attack = repr(ADVERSARIES.get(adversary))
        name = key(self.identity, variant.settings(self.protocol), contest.work, attack, number)
        path = self.work / "restorations" / f"{name}.npz"
        if path.exists():
            with np.load(path) as z:
                return Restoration(z["poi"], json.loads(str(z["figures"])))
        seed = Seed(number)
        leaked, method = self._leaked(contest, seed), variant.settings(self.protocol).method
        rule = rule_of(method, self._sets(variant), self.data.vocabulary)
        # Further releases of the same rows, by seeds that no cell stands for.
        count = int(contest.adversary.removeprefix(f"{MANY}-")) if adversary == MANY else 1
        released, *further = (self._released(variant, number + 1000 * k)[0] for k in range(count))
        restored = arena.restore(train, released, leaked, rows, adversary, seed, self.device, rule, further)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, mode=0o600) as out:
            np.savez_compressed(out, poi=restored.poi, figures=json.dumps(restored.figures))
        return restored

    def _write(self, contest: Contest, per_seed: list[dict[str, Any]]) -> None:
        cell = self._about(contest.method) | {
            "kind": "contest",
            "adversary": contest.adversary,
            "leak": contest.leak,
            "victim": contest.victim,
            "figures": arena.over_seeds(per_seed),
        }
        write_json(self.folder / contest.file, cell)

    def _floors(self) -> None:
        """Popularity and a first-order Markov model, on clean sessions and on every release."""
        path = self.folder / "floors.json"
        if path.exists():
            return
        rows, test = len(self.data.vocabulary), self.data.test
        value: dict[str, Any] = {
            "popularity": figures(floors.popularity(self.data.train, test, rows).all),
            "markov": figures(floors.markov(self.data.train, test, rows).all),
            "markov_on_release": {
                v.text: [
                    figures(floors.markov(arena.with_poi(self.data.train, self._released(v, s)[0]), test, rows).all)[
                        "acc@1"
                    ]
                    for s in range(self.study.seeds)
                ]
                for v in self.study.methods
            },
        }
        write_json(path, self._about(CLEAN) | {"kind": "floors", "figures": value})

    def _about(self, method: str) -> dict[str, Any]:
        known = method != CLEAN
        return {
            "study": self.study.name,
            "protocol": self.protocol,
            "data": self.data.name,
            "method": method,
            "settings": Variant(method).settings(self.protocol).public() if known else {},
            "seeds": list(range(self.study.seeds)),
            "hardware": hardware(self.device),
            "version": __version__,
            "commit": commit(),
        }


def _release_file(variant: Variant) -> str:
    return cell_name(variant.text, "release", None, "figures")


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
