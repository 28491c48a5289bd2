"""Run a study: the plan names contests, the grid measures them, the store keeps the cells.

Finished releases, restorations and victims are cached under `.work`, so an interrupted run continues where it stopped
and studies share what they have in common. Only torch, numpy and scipy are needed.
"""

import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import torch

from ghostpoi.attack.adversaries import ADVERSARIES, leak
from ghostpoi.attack.rule import rule_of
from ghostpoi.attack.victims import victim_settings
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Ints
from ghostpoi.data.prepared import Prepared
from ghostpoi.evaluate.cache import Cache, Record, key_of
from ghostpoi.evaluate.controls import CLEAN, LEAK_MIXED, LEAK_ONLY
from ghostpoi.evaluate.grid import MULTI_RELEASE, Contest, Grid, Release, over_seeds, trains, with_poi
from ghostpoi.evaluate.measures.detection import detect
from ghostpoi.evaluate.measures.plausibility import plausibility
from ghostpoi.evaluate.measures.utility import utility
from ghostpoi.models.trajectory_lm import naturalness
from ghostpoi.publish.rounds import Task, publish
from ghostpoi.randomness import Seed
from ghostpoi.settings import CandidateSettings
from ghostpoi.study.plan import Study, Variant
from ghostpoi.study.store import WORK, Cell, Store, identity, only_run, settings_hash
from ghostpoi.version import __version__


@dataclass(frozen=True)
class Runner:
    """One study under one protocol on one data set."""

    study: Study
    protocol: str
    data: Prepared
    device: torch.device
    results: Path
    say: Callable[[str], None]

    def run(self, victims: bool = True) -> Path:
        """Measure the missing cells and return their file. Without victims, only prepare what they will train on."""
        store, seeds = Store(self.results, self.protocol), range(self.study.seeds)
        with only_run(self.results, f"{self.study.name}-{self.protocol}"):
            known = {identity(cell): cell["measures"] for cell in store.cells(self.study.name)[::-1]}
            grid = self._grid()
            contests = [c for c in contests_of(self.study) if identity(self._cell(c.cell)) not in known]
            if victims:
                for cell in self._release_cells(grid, known):
                    self._add(store, [cell])
                self._add(store, [self._cell(cell) for cell in grid.cells(contests)])
                self._add(store, list(self._floor_cells(grid, known)))
                return store.path(self.study.name)
            for contest in contests:
                if contest.release != CLEAN and not trains(contest.adversary):
                    for seed in seeds:
                        grid.restoration(contest, seed)
        return store.path(self.study.name)

    def _grid(self) -> Grid:
        data, (model, training) = self.data, victim_settings(self.protocol)

        @cache
        def release(method: str) -> Release:
            variant = Variant(method)
            rule = rule_of(variant.settings(self.protocol).method, self._candidates(variant), data.vocabulary)
            return Release(lambda seed: self._published(grid, variant, seed).poi, rule)

        grid = Grid(
            train=data.train, val=data.val, test=data.test, vocabulary=data.vocabulary, releases=release,
            seeds=self.study.seeds, protocol=self.protocol, model=model, training=training, device=self.device,
            cache=Cache(self.results / WORK), say=self.say,
        )  # fmt: skip
        return grid

    @cached_property
    def _data_key(self) -> str:
        return key_of(self.data.train, self.data.vocabulary, self.data.candidates)

    def _candidates(self, variant: Variant) -> Candidates:
        method, v = variant.settings(self.protocol).method, self.data.vocabulary
        if not method.own_sets:
            return self.data.candidates
        return method.candidate_sets(v.lat, v.lon, v.category, CandidateSettings())

    def _published(self, grid: Grid, variant: Variant, seed: int) -> Record:
        """The release of a method under a seed, from the cache if it is there."""
        data, settings = self.data, variant.settings(self.protocol)

        def make() -> Record:
            lm = grid.trajectory_lm(settings.trajectory_lm, self.say) if settings.method.needs_trajectory_lm else None
            task = Task(
                data.train, data.vocabulary, self._candidates(variant), settings.method, settings.rounds,
                settings.speed, settings.surrogate, settings.training, lm,
            )  # fmt: skip
            begin = time.perf_counter()
            poi = publish(task, Seed(seed), self.device).poi
            seconds = time.perf_counter() - begin
            self.say(f"{self.protocol}: released {variant.text}, seed {seed}, in {seconds:.1f} s")
            return Record({"release_seconds": seconds}, poi)

        key = key_of(__version__, self._data_key, settings, seed)
        return grid.cache.get("releases", key, make)

    def _release_cells(self, grid: Grid, known: dict[Any, Any]) -> Iterator[Cell]:
        """Measure plausibility, naturalness and utility of the releases, and the detector if the study asks for it."""
        for variant in self.study.methods:
            cell = self._cell({"kind": "release", "method": variant.text})
            needed = "detector" if self.study.detector else "plausibility"
            if needed in known.get(identity(cell), {}):
                continue
            found = []
            for seed in range(self.study.seeds):
                release = self._published(grid, variant, seed)
                found.append(self._release_measures(grid, release.poi, seed) | release.measures)
            yield cell | {"measures": over_seeds(found)}

    def _release_measures(self, grid: Grid, released: Ints, seed: int) -> dict[str, Any]:
        train, vocabulary = self.data.train, self.data.vocabulary
        settings = self.study.methods[0].settings(self.protocol)
        lm = grid.trajectory_lm(settings.trajectory_lm, self.say)
        measures = {
            "plausibility": plausibility(train, released, vocabulary, settings.speed),
            "naturalness": naturalness(lm, with_poi(train, released)),
            "clean_naturalness": naturalness(lm, train),
            "utility": utility(train, released, vocabulary),
        }
        if self.study.detector:
            leaked = leak(train, self.study.leak[0], Seed(seed))
            measures["detector"] = detect(train, released, leaked, vocabulary, Seed(seed), self.device)
        return measures

    def _floor_cells(self, grid: Grid, known: dict[Any, Any]) -> Iterator[Cell]:
        """Count popularity and Markov on clean sessions, and Markov on every release."""
        for method in (CLEAN, *(variant.text for variant in self.study.methods)):
            cell = self._cell({"kind": "floor", "method": method})
            if identity(cell) in known:
                continue
            if method == CLEAN:
                measures: dict[str, Any] = {name: found["all"] for name, found in grid.floors().items()}
            else:
                found = [grid.markov(method, seed)["all"]["acc@1"] for seed in range(self.study.seeds)]
                measures = {"markov": {"acc@1": found}}
            yield cell | {"measures": measures}

    def _cell(self, cell: Cell) -> Cell:
        """Add what the cell was measured with."""
        about = {
            "seeds": list(range(self.study.seeds)),
            "settings": settings_hash(self._settings(cell["method"])),
            "hardware": hardware(self.device),
            "version": __version__,
            "commit": commit(),
        }
        return {"kind": cell["kind"], "data": self.data.name} | cell | about

    def _settings(self, method: str) -> dict[str, Any]:
        return {} if method == CLEAN else Variant(method).settings(self.protocol).public()

    def _add(self, store: Store, cells: list[Cell]) -> None:
        store.add(self.study.name, cells, {cell["settings"]: self._settings(cell["method"]) for cell in cells})


def contests_of(study: Study) -> list[Contest]:
    """Return all contests of a study, including the controls."""
    contests = []
    for victim in study.victims:
        contests += [Contest(CLEAN, CLEAN, None, victim)]
        contests += [Contest(CLEAN, LEAK_ONLY, ratio, victim) for ratio in study.leak]
        for method in (variant.text for variant in study.methods):
            for name in study.adversaries:
                ratios = study.leak if ADVERSARIES[name].uses_leak else (None,)
                contests += [Contest(method, name, ratio, victim) for ratio in ratios]
            with_leak = [LEAK_MIXED, *(f"{MULTI_RELEASE}{count}" for count in study.releases)]
            contests += [Contest(method, name, ratio, victim) for name in with_leak for ratio in study.leak]
    return contests


def hardware(device: torch.device) -> str:
    """Name the hardware that a cell was measured on."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU {platform.machine()}"


@cache
def commit() -> str:
    """Return the commit of the code. GHOSTPOI_COMMIT names it on a machine without git."""
    if told := os.environ.get("GHOSTPOI_COMMIT"):
        return told
    command = ["git", "rev-parse", "HEAD"]
    try:
        found = subprocess.run(
            command, capture_output=True, text=True, cwd=Path(__file__).parent, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found.stdout.strip()
