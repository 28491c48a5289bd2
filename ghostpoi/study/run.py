"""Run a study: the plan names contests, the grid measures them, the store keeps the cells.

Finished releases, measures, restorations and victims are cached under `.work`, so an interrupted run continues where it
stopped and studies share what they have in common. Only torch, numpy and scipy are needed.
"""

import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ghostpoi import __version__
from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.evidence import leak
from ghostpoi.attack.victims import victim_settings
from ghostpoi.data.prepared import Prepared
from ghostpoi.evaluate.cache import Cache, Record, key_of
from ghostpoi.evaluate.controls import CLEAN, LEAK_MIXED, LEAK_ONLY, LEAK_STAY
from ghostpoi.evaluate.grid import Grid, over_seeds
from ghostpoi.evaluate.measures.accuracy import in_one
from ghostpoi.evaluate.measures.detection import detect
from ghostpoi.evaluate.measures.plausibility import plausibility
from ghostpoi.evaluate.measures.utility import utility
from ghostpoi.evaluate.restoration import Contest, release_seeds, with_poi
from ghostpoi.models.trajectory_lm import naturalness, weights_key
from ghostpoi.randomness import Seed
from ghostpoi.source import code_of
from ghostpoi.study.fingerprint import MEASURES, fingerprints
from ghostpoi.study.plan import VICTIM, Study, Variant
from ghostpoi.study.releases import Releases
from ghostpoi.study.store import WORK, Cell, Store, identity, only_run, settings_hash
from ghostpoi.study.workers import Portion, prepared


class Missing(NamedTuple):
    """A cell of the plan, without measures, and the seeds that it lacks."""

    cell: Cell
    contest: Contest | None
    seeds: list[int]

    @property
    def is_control(self) -> bool:
        """Whether the cell needs no release."""
        return bool(self.cell["method"] == CLEAN)


@dataclass(frozen=True)
class Runner:
    """One study under one protocol on one data set."""

    study: Study
    protocol: str
    data: Prepared
    device: torch.device
    results: Path
    say: Callable[[str], None]

    def run(self, victims: bool = True, workers: int = 1) -> Path:
        """Measure the missing cells and return their file. Without victims, only prepare what they will train on."""
        return run_all([self], victims, workers)[0]

    @property
    def title(self) -> str:
        return f"{self.study.name}, {self.protocol}, {self.data.name}"

    def left(self) -> int:
        """The number of measurements that are missing: a cell counts once for each seed."""
        return sum(len(one.seeds) for one in self._missing(self.store))

    @property
    def store(self) -> Store:
        return Store(self.results, self.protocol)

    def _missing(self, store: Store) -> list[Missing]:
        """The cells of the plan with the seeds that they lack, whichever study measured the others."""
        known = {identity(cell): cell for cell in store.cells(self.study.name)[::-1]}
        found = []
        for asked, contest in self._plan():
            cell = self._cell(asked)
            there = known.get(identity(cell), {})
            fresh = there.get("fingerprint") == cell["fingerprint"] and self._has_detector(there)
            lacking = [seed for seed in range(self.study.seeds) if not (fresh and seed in there["seeds"])]
            found.append(Missing(cell, contest, lacking))
        return [one for one in found if one.seeds]

    def _plan(self) -> Iterator[tuple[Cell, Contest | None]]:
        """All cells of the study, without what they were measured with; a contest belongs to an accuracy."""
        for variant in self.study.methods:
            yield {"kind": "release", "method": variant.text}, None
        for method in (CLEAN, *(variant.text for variant in self.study.methods)):
            yield {"kind": "floor", "method": method}, None
        for contest in contests_of(self.study):
            yield contest.cell, contest

    def _has_detector(self, cell: Cell) -> bool:
        return cell["kind"] != "release" or not self.study.detector or "detector" in cell["measures"]

    def portions(self, place: int = 0) -> list[Portion]:
        """What must be prepared for the missing cells, for the seeds that are measured and stored together.

        On CUDA these are one seed at a time, on a CPU all seeds. `place` is this runner's among several. CUDA takes the
        controls of all seeds first: they need no release, and nothing else can be measured before the first release.
        """
        missing = self._missing(self.store)
        seeds = sorted({seed for one in missing for seed in one.seeds})
        together = len(seeds) if self.device.type == "cpu" else 1
        some = [seeds[i : i + together] for i in range(0, len(seeds), together or 1)]
        first = sorted({seed for one in missing if one.is_control for seed in one.seeds})
        controls = [Portion(place, first, [], [], controls=True)] if first and self.device.type != "cpu" else []
        return controls + [Portion(place, part, *self._needs(missing, part)) for part in some]

    def _needs(
        self, missing: Sequence[Missing], portion: Sequence[int]
    ) -> tuple[list[tuple[str, int]], list[tuple[Contest, int]], list[str], list[tuple[str, int]]]:
        """What cells need under some seeds: releases, contests, methods with a trained model, measures of releases."""
        asked = [(o, seed) for o in missing if not o.is_control for seed in portion if seed in o.seeds]
        contests = [(one.contest, seed) for one, seed in asked if one.contest and one.contest.release != CLEAN]
        held = [(c.release, number) for c, seed in contests for number in release_seeds(c, seed)]
        releases = dict.fromkeys([(one.cell["method"], seed) for one, seed in asked] + held)
        measured = [(one.cell["method"], seed) for one, seed in asked if one.cell["kind"] == "release"]
        trained = [name for name, _ in releases if self._releases.settings(name).method.needs_trajectory_lm]
        trained += [self.study.methods[0].text] if measured else []
        needed = dict.fromkeys((replace(c, victim=VICTIM), seed) for c, seed in contests)
        return list(releases), list(needed), list(dict.fromkeys(trained)), measured

    def measure(self, seeds: Sequence[int], controls: bool = False) -> None:
        """Measure and store the cells, or only the controls, that lack some of these seeds."""
        missing = [one for one in self._missing(self.store) if one.is_control or not controls]
        for cells in self._measured(missing, seeds):
            settings = {cell["settings"]: self._settings(cell["method"]) for cell in cells}
            self.store.add(self.study.name, cells, settings)

    def train(self, methods: Sequence[str]) -> None:
        """Train the trajectory LMs of methods, and leave them in the cache."""
        for method in methods:
            self._releases.prepare(method)

    def _measured(self, missing: Sequence[Missing], portion: Sequence[int]) -> Iterator[list[Cell]]:
        """Yield the cells that lack these seeds, with their measures."""
        lacking: dict[tuple[int, ...], list[Missing]] = {}
        for one in missing:
            lacking.setdefault(tuple(seed for seed in portion if seed in one.seeds), []).append(one)
        for seeds, those in lacking.items():
            for one in those if seeds else ():
                if one.contest is None:
                    yield [one.cell | self._alone(one.cell, seeds)]
            contests = {one.contest: one.cell for one in those if one.contest} if seeds else {}
            measured = self._grid.cells(list(contests), seeds) if contests else []
            yield [cell | {"seeds": found["seeds"], "measures": found["measures"]}
                   for cell, found in zip(contests.values(), measured, strict=True)]  # fmt: skip

    def _alone(self, cell: Cell, seeds: Sequence[int]) -> Cell:
        """The seeds and measures of a cell without a contest."""
        method = cell["method"]
        if cell["kind"] == "release":
            return {"seeds": list(seeds), "measures": over_seeds([self.measures(method, seed) for seed in seeds])}
        if method == CLEAN:  # it depends on no seed
            floors = {name: in_one(found) for name, found in self._grid.floors().items()}
            return {"seeds": list(range(self.study.seeds)), "measures": floors}
        found = over_seeds([in_one(self._grid.markov(method, seed)) for seed in seeds])
        return {"seeds": list(seeds), "measures": {"markov": found}}

    def restoration(self, contest: Contest, seed: int) -> None:
        """Leave in the cache what an adversary makes of a release."""
        self._grid.restoration(contest, seed)

    def measures(self, method: str, seed: int) -> dict[str, Any]:
        """Measure plausibility, naturalness and utility of a release, and the detector if the study asks for it."""
        train, vocabulary, released = self.data.train, self.data.vocabulary, self.published(method, seed)
        lm = self._releases.trajectory_lm(self.study.methods[0].settings(self.protocol).trajectory_lm)
        speed = self._releases.settings(method).speed
        leaked = leak(train, self.study.leak[0], Seed(seed)) if self.study.detector else None

        def make() -> Record:
            found: dict[str, Any] = {
                "plausibility": plausibility(train, released.poi, vocabulary, speed),
                "naturalness": naturalness(lm, with_poi(train, released.poi)),
                "clean_naturalness": naturalness(lm, train),
                "utility": utility(train, released.poi, vocabulary),
            }
            if leaked is not None:
                found["detector"] = detect(train, released.poi, leaked, vocabulary, Seed(seed), self.device)
            return Record(found)

        code, data = code_of(*MEASURES), self._releases.data_key
        key = key_of(code, data, weights_key(lm), released.poi, speed, leaked, seed, self.device.type)
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
            cache=self._releases.cache, say=self.say,
        )  # fmt: skip

    def published(self, method: str, seed: int) -> Record:
        """Return a release, and leave it in the cache."""
        return self._releases.published(method, seed)

    def _cell(self, cell: Cell) -> Cell:
        """Add what the cell is measured with."""
        about = {"hardware": hardware(self.device), "version": __version__, "commit": commit()}
        cell = {"kind": cell["kind"], "data": self.data.name} | cell
        return cell | {
            "settings": settings_hash(self._settings(cell["method"])), "fingerprint": self._fingerprint(cell),
        } | about  # fmt: skip

    @cached_property
    def _fingerprint(self) -> Callable[[Cell], str]:
        return fingerprints(self.data, self.protocol)

    def _settings(self, method: str) -> dict[str, Any]:
        return {} if method == CLEAN else Variant(method).recorded(self.protocol)


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


def silent(text: str) -> None:
    """Say nothing: a worker's parent tells how far all are."""


def contests_of(study: Study) -> list[Contest]:
    """Return all contests of a study, including the controls."""
    contests = []
    several = [f"{name}-{n}" for name, a in ADVERSARIES.items() if a.many_releases for n in study.releases]
    for victim in study.victims:
        contests += [Contest(CLEAN, CLEAN, None, victim)]
        contests += [Contest(CLEAN, control, r, victim) for control in (LEAK_ONLY, LEAK_STAY) for r in study.leak]
        for variant in study.methods:
            method = variant.text
            for name in study.attackers(method):
                ratios = study.leak if ADVERSARIES[name].uses_leak else (None,)
                contests += [Contest(method, name, ratio, victim) for ratio in ratios]
            contests += [Contest(method, name, r, victim) for name in (LEAK_MIXED, *several) for r in study.leak]
    return contests


def hardware(device: torch.device) -> str:
    """Name the hardware that a cell was measured on."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU {platform.machine()}"


@cache
def commit() -> str:
    """Return the commit of the code. GHOSTPOI_COMMIT names it on a machine without git."""
    if told := os.environ.get("GHOSTPOI_COMMIT"):
        return told
    command, here = ["git", "rev-parse", "HEAD"], Path(__file__).parent
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=here, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"
