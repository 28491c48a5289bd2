"""Run a study: the plan names contests, the grid measures them, the store keeps the cells.

Finished releases, restorations and victims are cached under `.work`, so an interrupted run continues where it stopped
and studies share what they have in common. Only torch, numpy and scipy are needed.
"""

import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import product
from pathlib import Path
from typing import Any

import torch

from ghostpoi import __version__
from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.evidence import leak, rule_of
from ghostpoi.attack.victims import victim_settings
from ghostpoi.data.places import Places, of_sessions
from ghostpoi.data.prepared import Prepared
from ghostpoi.data.pseudonyms import of_sessions as pseudonyms_of
from ghostpoi.evaluate.cache import Cache, Record, key_of
from ghostpoi.evaluate.controls import CLEAN, LEAK_MIXED, LEAK_ONLY, LEAK_STAY
from ghostpoi.evaluate.grid import Contest, Grid, Release, find_adversary, over_seeds, with_poi
from ghostpoi.evaluate.measures.accuracy import in_one
from ghostpoi.evaluate.measures.detection import detect
from ghostpoi.evaluate.measures.plausibility import plausibility
from ghostpoi.evaluate.measures.utility import utility
from ghostpoi.models.trajectory_lm import naturalness
from ghostpoi.publish.category_groups import by_hours
from ghostpoi.publish.methods import Method
from ghostpoi.publish.rounds import Task, publish
from ghostpoi.randomness import Seed
from ghostpoi.settings import CandidateSettings, IdentitySettings
from ghostpoi.study.plan import Study, Variant
from ghostpoi.study.store import WORK, Cell, Store, identity, is_current, only_run, settings_hash


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
        store = Store(self.results, self.protocol)
        with only_run(self.results, f"{self.study.name}-{self.protocol}"):
            cells = [cell for cell in store.cells(self.study.name)[::-1] if is_current(cell)]
            known = {identity(cell): cell["measures"] for cell in cells}
            contests = [c for c in contests_of(self.study) if identity(self._cell(c.cell)) not in known]
            if not victims:
                for contest, seed in product(contests, range(self.study.seeds)):
                    adversary, _ = find_adversary(contest.adversary)
                    if contest.release != CLEAN and not (adversary and adversary.trains):
                        self._grid.restoration(contest, seed)
            for cells in self._measured(contests, known) if victims else ():
                settings = {cell["settings"]: self._settings(cell["method"]) for cell in cells}
                store.add(self.study.name, cells, settings)
        return store.path(self.study.name)

    def _measured(self, contests: list[Contest], known: Mapping[Any, dict[str, Any]]) -> Iterator[list[Cell]]:
        """Yield the cells that are not known, as they are measured."""
        methods = [variant.text for variant in self.study.methods]
        for method in methods:
            cell = self._cell({"kind": "release", "method": method})
            if ("detector" if self.study.detector else "utility") not in known.get(identity(cell), {}):
                per_seed = [self._release(method, seed) for seed in range(self.study.seeds)]
                yield [cell | {"measures": over_seeds(per_seed)}]
        yield [self._cell(cell) for cell in self._grid.cells(contests)]
        for method in (CLEAN, *methods):
            cell = self._cell({"kind": "floor", "method": method})
            if identity(cell) in known:
                continue
            if method == CLEAN:
                yield [cell | {"measures": {name: in_one(found) for name, found in self._grid.floors().items()}}]
            else:
                per_seed = [in_one(self._grid.markov(method, seed)) for seed in range(self.study.seeds)]
                yield [cell | {"measures": {"markov": over_seeds(per_seed)}}]

    def _release(self, method: str, seed: int) -> dict[str, Any]:
        """Measure plausibility, naturalness and utility of a release, and the detector if the study asks for it."""
        train, vocabulary, released = self.data.train, self.data.vocabulary, self._published(method, seed)
        settings = self.study.methods[0].settings(self.protocol)
        lm = self._grid.trajectory_lm(settings.trajectory_lm, self.say)
        measures = {
            "plausibility": plausibility(train, released.poi, vocabulary, settings.speed),
            "naturalness": naturalness(lm, with_poi(train, released.poi)),
            "clean_naturalness": naturalness(lm, train),
            "utility": utility(train, released.poi, vocabulary),
        }
        if self.study.detector:
            leaked = leak(train, self.study.leak[0], Seed(seed))
            measures["detector"] = detect(train, released.poi, leaked, vocabulary, Seed(seed), self.device)
        return measures | released.measures

    @cached_property
    def _grid(self) -> Grid:
        data, v, (model, training) = self.data, self.data.vocabulary, victim_settings(self.protocol)

        @cache
        def release(name: str) -> Release:
            settings, sets = Variant(name).settings(self.protocol), data.candidates
            method, pseudonyms = settings.method, settings.identity.pseudonyms
            if method.own_sets:
                sets = method.candidate_sets(self._places(method), CandidateSettings())
            pseudonym = None if pseudonyms == "keep" else pseudonyms_of(data.train, pseudonyms)
            return Release(lambda seed: self._published(name, seed).poi, rule_of(method, sets, v), pseudonym)

        return Grid(
            train=data.train, val=data.val, test=data.test, vocabulary=v, releases=release, seeds=self.study.seeds,
            protocol=self.protocol, model=model, training=training, device=self.device,
            cache=Cache(self.results / WORK), say=self.say,
        )  # fmt: skip

    def _places(self, method: Method) -> Places:
        """The POIs with the visits of the training sessions."""
        places = of_sessions(self.data.train, self.data.vocabulary)
        return replace(places, category_group=by_hours(places)) if method.keeps_category == "group" else places

    @cached_property
    def _data_key(self) -> str:
        return key_of(self.data.train, self.data.vocabulary, self.data.candidates)

    def _published(self, method: str, seed: int) -> Record:
        """The release of a method under a seed, from the cache if it is there."""
        data, settings = self.data, Variant(method).settings(self.protocol)
        settings = replace(settings, identity=IdentitySettings())  # pseudonyms change no venue

        def make() -> Record:
            needs_lm, candidates = settings.method.needs_trajectory_lm, self._grid.releases(method).rule.candidates
            lm = self._grid.trajectory_lm(settings.trajectory_lm, self.say) if needs_lm else None
            task = Task(settings, data.train, data.vocabulary, candidates, lm)
            begin = time.perf_counter()
            poi = publish(task, Seed(seed), self.device).poi
            seconds = time.perf_counter() - begin
            self.say(f"{self.protocol}: released {method}, seed {seed}, in {seconds:.1f} s")
            return Record({"release_seconds": seconds}, poi)

        return self._grid.cache.get("releases", key_of(__version__, self._data_key, settings, seed), make)

    def _cell(self, cell: Cell) -> Cell:
        """Add what the cell was measured with."""
        about = {"hardware": hardware(self.device), "version": __version__, "commit": commit()}
        seeds, settings = list(range(self.study.seeds)), settings_hash(self._settings(cell["method"]))
        return {"kind": cell["kind"], "data": self.data.name} | cell | {"seeds": seeds, "settings": settings} | about

    def _settings(self, method: str) -> dict[str, Any]:
        return {} if method == CLEAN else Variant(method).recorded(self.protocol)


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
