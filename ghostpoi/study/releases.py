"""The releases of a study, made by its methods from the training sessions and cached by content."""

import time
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch

from ghostpoi.attack.evidence import rule_of
from ghostpoi.data.places import Places, of_sessions, with_use
from ghostpoi.data.prepared import Prepared
from ghostpoi.data.pseudonyms import of_sessions as pseudonyms_of
from ghostpoi.evaluate.cache import Cache, Record, key_of
from ghostpoi.evaluate.restoration import Release
from ghostpoi.models import trajectory_lm
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.progress import Say
from ghostpoi.publish.category_groups import by_hours
from ghostpoi.publish.publication_settings import Publication
from ghostpoi.publish.rounds import publish
from ghostpoi.publish.task import Task
from ghostpoi.randomness import Seed
from ghostpoi.settings import CandidateSettings, IdentitySettings, TrajectoryLM
from ghostpoi.source import code_of
from ghostpoi.study.fingerprint import release_stages
from ghostpoi.study.plan import Variant


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
            method, pseudonyms = settings.method, settings.identity.pseudonyms
            if method.own_sets or settings.candidates != CandidateSettings():
                sets = method.candidate_sets(self._places(settings), settings.candidates)
            pseudonym = None if pseudonyms == "keep" else pseudonyms_of(self.data.train, pseudonyms)
            rule = rule_of(method, sets, self.data.vocabulary)
            self._known[name] = Release(lambda seed: self.published(name, seed).poi, rule, pseudonym)
        return self._known[name]

    def settings(self, name: str) -> Publication:
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

        code, weights = code_of(*release_stages(name)), trajectory_lm.weights_key(lm) if lm else ""
        return self.cache.get("releases", key_of(code, weights, self.data_key, settings, seed), make)

    def trajectory_lm(self, settings: TrajectoryLM) -> CausalTransformer:
        """Return the trajectory LM of the training sessions, from the cache if it is there."""
        if settings not in self._models:
            self._models[settings] = trajectory_lm.load_or_train(
                self.cache.folder / "trajectory_lm", self.data.train, len(self.data.vocabulary), settings, self.device,
                self.say,
            )  # fmt: skip
        return self._models[settings]

    def prepare(self, name: str) -> None:
        """Train the trajectory LM of a release, so that worker processes find it."""
        self.trajectory_lm(self.settings(name).trajectory_lm)

    def _places(self, settings: Publication) -> Places:
        """The POIs with the visits of the training sessions."""
        places = of_sessions(self.data.train, self.data.vocabulary)
        if settings.learned:
            return with_use(places, self.data.train)
        return replace(places, category_group=by_hours(places)) if settings.keeps_category == "group" else places

    @cached_property
    def data_key(self) -> str:
        """The identity of the data that releases are made from."""
        return key_of(self.data.train, self.data.vocabulary, self.data.candidates)
