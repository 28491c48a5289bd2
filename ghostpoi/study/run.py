"""Run a study: the plan names contests, the grid measures them, the store keeps the cells.

Finished releases, measures, restorations and victims are cached under `.work`, so an interrupted run continues where it
stopped and studies share what they have in common. Only torch, numpy and scipy are needed.
"""

import os
import platform
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import torch

from ghostpoi import __version__
from ghostpoi.attack.evidence import leak, rule_of
from ghostpoi.attack.victims import VICTIMS, victim_settings
from ghostpoi.audits.cache import Cache, Record
from ghostpoi.audits.controls import CLEAN, DISTANCE, FLOORS, ITSELF
from ghostpoi.audits.grid import HITS, Contest, Grid, Release, over_seeds, release_seeds, with_poi
from ghostpoi.audits.measures.accuracy import in_one
from ghostpoi.audits.measures.detection import detect
from ghostpoi.audits.measures.utility import plausibility, utility
from ghostpoi.data.places import Places, of_sessions, with_use
from ghostpoi.data.prepared import Prepared
from ghostpoi.data.pseudonyms import of_sessions as pseudonyms_of
from ghostpoi.draw.crowds import by_hours
from ghostpoi.draw.publication import Publication, Task
from ghostpoi.draw.table import publish
from ghostpoi.models.trajectory_lm import load_or_train, naturalness, weights_key
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.progress import Say
from ghostpoi.randomness import Seed
from ghostpoi.settings import CandidateSettings, IdentitySettings, TrajectoryLM, key_of
from ghostpoi.study import plan
from ghostpoi.study.cells import NATURALNESS, Missing, missing_cells, release_stages, stages_of
from ghostpoi.study.plan import VICTIM, Study, Variant
from ghostpoi.study.store import WORK, Cell, Store, only_run
from ghostpoi.study.workers import Portion, prepared


@dataclass(frozen=True)
class Releases:
    """Releases of one data set under one protocol, by the text of a variant."""

    data: Prepared
    protocol: str
    device: torch.device
    cache: Cache
    say: Say
    _models: dict[TrajectoryLM, CausalTransformer] = field(default_factory=dict)
    _known: dict[str, Release] = field(default_factory=dict)

    def __call__(self, name: str) -> Release:
        """Return what the grid needs to know about a release."""
        if name not in self._known:
            settings, sets = self.settings(name), self.data.candidates
            method, kind = settings.method, settings.identity.pseudonyms
            if method.own_sets or settings.candidates != CandidateSettings():
                sets = method.candidate_sets(self._places(settings), settings.candidates)
            pseudonym = pseudonyms_of(self.data.train, kind) if settings.rotates_users else None
            rule = rule_of(method, sets, self.data.vocabulary)
            self._known[name] = Release(lambda seed: self.published(name, seed).poi, rule, pseudonym)
        return self._known[name]

    def settings(self, name: str) -> Publication:
        """Return the settings of a variant."""
        return Variant(name).settings(self.protocol)

    def published(self, name: str, seed: int) -> Record:
        """Return a release under a seed, from the cache if it is there."""
        settings = replace(self.settings(name), identity=IdentitySettings())  # pseudonyms change no venue
        lm = self.trajectory_lm(settings.trajectory_lm) if settings.method.needs_trajectory_lm else None

        def make() -> Record:
            task = Task(settings, self.data.train, self.data.vocabulary, self(name).rule.candidates, lm)
            begin = time.perf_counter()
            poi = publish(task, Seed(seed), self.device).poi
            seconds = time.perf_counter() - begin
            self.say(f"{self.protocol}: released {name}, seed {seed}, in {seconds:.1f} s")
            return Record({"release_seconds": seconds}, poi)

        weights = weights_key(lm) if lm else ""
        key = key_of(release_stages(name), weights, self.data.content, settings, seed)
        return self.cache.get("releases", key, make)

    def trajectory_lm(self, settings: TrajectoryLM) -> CausalTransformer:
        """Return the trajectory LM of the training sessions, from the cache if it is there."""
        if settings not in self._models:
            self._models[settings] = load_or_train(
                self.cache.folder / "trajectory_lm", self.data.train, len(self.data.vocabulary), settings, self.device,
                self.say,
            )  # fmt: skip
        return self._models[settings]

    def _places(self, settings: Publication) -> Places:
        """The POIs with the visits of the training sessions."""
        places = of_sessions(self.data.train, self.data.vocabulary)
        if settings.learned:
            return with_use(places, self.data.train)
        return replace(places, category_group=by_hours(places)) if settings.keeps_category == "group" else places


@dataclass(frozen=True)
class Runner:
    """One study under one protocol on one data set."""

    study: Study
    protocol: str
    data: Prepared
    device: torch.device
    results: Path
    say: Say

    def run(self, victims: bool = True, workers: int = 1) -> Path:
        """Measure the missing cells and return their file. Without victims, only prepare what they will train on."""
        return run_all([self], victims, workers)[0]

    @property
    def title(self) -> str:
        return f"{self.study.name}, {self.protocol}, {self.data.name}"

    def left(self) -> int:
        """The number of measurements that are missing: a cell counts once for each seed."""
        return sum(len(one.seeds) for one in self.missing())

    @property
    def store(self) -> Store:
        return Store(self.results, self.protocol)

    def missing(self) -> list[Missing]:
        """Return the cells of the plan that lack seeds, whichever study measured the others."""
        stored = self.store.cells(self.study.name)
        return missing_cells(self.study, self.protocol, self.data.name, self.data.content, stored)

    def portions(self, place: int = 0) -> list[Portion]:
        """What must be prepared for the missing cells, for the seeds that are measured and stored together.

        On CUDA these are one seed at a time, on a CPU all seeds. `place` is this runner's among several. CUDA takes the
        controls of all seeds first: they need no release, and nothing else can be measured before the first release.
        """
        missing = self.missing()
        seeds = sorted({seed for one in missing for seed in one.seeds})
        together = len(seeds) if self.device.type == "cpu" else 1
        some = [seeds[i : i + together] for i in range(0, len(seeds), together or 1)]
        first = sorted({seed for one in missing if one.is_control for seed in one.seeds})
        controls = [Portion(place, first, [], [], controls=True)] if first and self.device.type != "cpu" else []
        return controls + [self._portion(place, missing, part) for part in some]

    def _portion(self, place: int, missing: Sequence[Missing], seeds: list[int]) -> Portion:
        """What cells need under some seeds: releases, contests, methods with a trained model, measures of releases."""
        asked = [(o, seed) for o in missing if not o.is_control for seed in seeds if seed in o.seeds]
        contests = [(one.contest, seed) for one, seed in asked if one.contest and one.contest.release != CLEAN]
        held = [(c.release, number) for c, seed in contests for number in release_seeds(c, seed)]
        releases = dict.fromkeys([(one.cell["method"], seed) for one, seed in asked] + held)
        measured = [(one.cell["method"], seed) for one, seed in asked if one.cell["kind"] == "release"]
        trained = [name for name, _ in releases if self._releases.settings(name).method.needs_trajectory_lm]
        trained += [self.study.methods[0].text] if measured and self.study.naturalness else []
        needed = dict.fromkeys((replace(c, victim=VICTIM), seed) for c, seed in contests if c.victim != ITSELF)
        answers = [one for one in contests if one[0].victim == ITSELF or VICTIMS[one[0].victim].only_counts]
        return Portion(place, seeds, list(releases), list(needed), list(dict.fromkeys(trained)), measured, answers)

    def measure(self, seeds: Sequence[int], controls: bool = False) -> None:
        """Measure and store the cells, or only the controls, that lack some of these seeds."""
        missing = [one for one in self.missing() if one.is_control or not controls]
        for cells in self._measured(missing, seeds):
            variants = {cell["settings"]: Variant(cell["method"]) for cell in cells if cell["method"] != CLEAN}
            settings = {name: variant.recorded(self.protocol) for name, variant in variants.items()}
            self.store.add(self.study.name, cells, settings)

    def train(self, methods: Sequence[str]) -> None:
        """Train the trajectory LMs of methods, and leave them in the cache."""
        for method in methods:
            self._releases.trajectory_lm(self._releases.settings(method).trajectory_lm)

    def _measured(self, missing: Sequence[Missing], portion: Sequence[int]) -> Iterator[list[Cell]]:
        """Yield the cells that lack these seeds, with their measures."""
        lacking: dict[tuple[int, ...], list[Missing]] = {}
        for one in missing:
            lacking.setdefault(tuple(seed for seed in portion if seed in one.seeds), []).append(one)
        for seeds, those in lacking.items():
            for one in those if seeds else ():
                if one.contest is None:
                    yield [self._finished(one.cell, self._alone(one.cell, seeds))]
            contests = {one.contest: one.cell for one in those if one.contest} if seeds else {}
            measured = self._grid.measures(list(contests), seeds) if contests else {}
            stored = {c: {name: value for name, value in m.items() if name != HITS} for c, m in measured.items()}
            yield [self._finished(contests[c], {"seeds": list(seeds), "measures": m}) for c, m in stored.items()]

    def _alone(self, cell: Cell, seeds: Sequence[int]) -> Cell:
        """The seeds and measures of a cell without a contest."""
        method = cell["method"]
        if cell["kind"] == "release":
            return {"seeds": list(seeds), "measures": over_seeds([self.measures(method, seed) for seed in seeds])}
        if method == CLEAN:  # it depends on no seed
            found = self._grid.floors()
            floors: dict[str, Any] = {name: in_one(found[name]) for name in found}
            if self.study.distance:
                floors[DISTANCE] = {name: found[name][DISTANCE] for name in FLOORS}
            return {"seeds": list(range(self.study.seeds)), "measures": floors}
        per_seed = over_seeds([in_one(self._grid.markov(method, seed)) for seed in seeds])
        return {"seeds": list(seeds), "measures": {"markov": per_seed}}

    def restoration(self, contest: Contest, seed: int) -> None:
        """Leave in the cache what an adversary makes of a release."""
        self._grid.restoration(contest, seed)

    def answer(self, contest: Contest, seed: int) -> None:
        """Leave in the cache what a predictor, or a victim that counts, achieves."""
        self._grid.measures([contest], [seed])

    def measures(self, method: str, seed: int) -> dict[str, Any]:
        """Measure plausibility, naturalness and utility of a release, and the detector if the study asks for it."""
        train, vocabulary, released = self.data.train, self.data.vocabulary, self.published(method, seed)
        shape = self.study.methods[0].settings(self.protocol).trajectory_lm
        lm = self._releases.trajectory_lm(shape) if self.study.naturalness else None
        speed = self._releases.settings(method).speed
        leaked = leak(train, self.study.leak[0], Seed(seed)) if self.study.detector else None

        def make() -> Record:
            found: dict[str, Any] = {
                "plausibility": plausibility(train, released.poi, vocabulary, speed),
                "utility": utility(train, released.poi, vocabulary),
            }
            if lm is not None:
                found[NATURALNESS] = naturalness(lm, with_poi(train, released.poi))
                found[f"clean_{NATURALNESS}"] = naturalness(lm, train)
            if leaked is not None:
                found["detector"] = detect(train, released.poi, leaked, vocabulary, Seed(seed), self.device)
            return Record(found)

        asked = ["detector", *([NATURALNESS] if lm else [])]
        stages, model = stages_of({"kind": "release", "method": method, "measures": asked}), lm and weights_key(lm)
        key = key_of(stages, self.data.content, model, released.poi, speed, leaked, seed, self.device.type)
        return self._releases.cache.get("measures", key, make).measures | released.measures

    @cached_property
    def _releases(self) -> Releases:
        return Releases(self.data, self.protocol, self.device, Cache(self.results / WORK), self.say)

    @cached_property
    def _grid(self) -> Grid:
        data, (model, training) = self.data, victim_settings(self.protocol)
        return Grid(
            train=data.train, val=data.val, test=data.test, vocabulary=data.vocabulary, releases=self._releases,
            seeds=self.study.seeds, protocol=self.protocol, model=model, training=training, device=self.device,
            cache=self._releases.cache, distance=self.study.distance, say=self.say,
        )  # fmt: skip

    def published(self, method: str, seed: int) -> Record:
        """Return a release, and leave it in the cache."""
        return self._releases.published(method, seed)

    def _finished(self, cell: Cell, measured: Cell) -> Cell:
        """Add to a cell of the plan what it went through, what made it, and its seeds and measures."""
        about = {"hardware": hardware(self.device), "version": __version__, "commit": commit()}
        return cell | {"stages": stages_of(cell | measured)} | about | measured


def run_all(runners: Sequence[Runner], victims: bool = True, workers: int = 1) -> list[Path]:
    """Measure the missing cells of studies and return their files.

    Worker processes prepare releases, their measures and restorations ahead of the victims, across seeds and studies.
    """
    workers = workers or os.cpu_count() or 1
    with ExitStack() as locks:
        for lock in dict.fromkeys((one.results, f"{one.study.name}-{one.protocol}") for one in runners):
            locks.enter_context(only_run(*lock))
        portions = (portion for place, runner in enumerate(runners) for portion in runner.portions(place))
        lazily = victims and workers == 1  # the grid makes what it needs
        makers = runners if workers == 1 else [replace(one, say=silent) for one in runners]
        left, begin, done = [runner.left() for runner in runners], time.perf_counter(), 0
        runners[0].say(f"{sum(left):,} measurements are missing")
        for portion in portions if lazily else prepared(makers, portions, workers):
            if not victims:
                continue
            place, seeds = portion.maker, portion.seeds
            runner = runners[place]
            before = runner.left()
            runner.measure(seeds, portion.controls)
            left[place] = runner.left()
            done, rest = done + before - left[place], sum(left)
            estimate = f", about {(time.perf_counter() - begin) / done * rest / 60:.0f} minutes" if done else ""
            what = f"{'the controls of ' if portion.controls else ''}seed {', '.join(map(str, seeds))}"
            runner.say(f"{runner.title}: measured {what}; {rest:,} left{estimate}")
    return [runner.store.path(runner.study.name) for runner in runners]


def reproduce(data: Sequence[Prepared], device: torch.device, results: Path, workers: int, say: Say) -> list[Path]:
    """Measure the missing cells of all studies of the paper, on all data and under both protocols; return their files.

    Says after every seed what is left and how long it takes.
    """
    runners = [
        Runner(plan.load(study).on(one.name), protocol, one, device, results, say)
        for study in plan.STUDIES for protocol in plan.PROTOCOLS for one in data
    ]  # fmt: skip
    return list(dict.fromkeys(run_all(runners, workers=workers)))


def silent(text: str) -> None:
    """Say nothing: a worker's parent reports for all."""


def hardware(device: torch.device) -> str:
    """Name the hardware that a cell was measured on."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU {platform.machine()}"


@cache
def commit() -> str:
    """Return the commit of the code. GHOSTPOI_COMMIT names it on a machine without git."""
    if known := os.environ.get("GHOSTPOI_COMMIT"):
        return known
    command, here = ["git", "rev-parse", "HEAD"], Path(__file__).parent
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=here, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
