"""What can still be learned from a release? The auditor holds the clean file and the release, ours or anybody's.

The audit plays the recipient: it filters the release alone, hands its training sessions to every adversary, trains a
victim on what each makes of them, and tests all of them on the clean last part. Controls stand beside every figure.
Finished victims are kept in a cache by all that decides them, so that an interrupted audit goes on.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ghostpoi import settings
from ghostpoi.attack.adversaries import ADVERSARIES, leak
from ghostpoi.attack.processes import train_each
from ghostpoi.attack.rule import Rule, rule_of
from ghostpoi.attack.victims import Exam, Job, Transformer, victim_settings
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Ints
from ghostpoi.data.sessions import Sessions
from ghostpoi.errors import InputError
from ghostpoi.evaluate import arena
from ghostpoi.evaluate.alignment import Matched, Opened, match, open_pair
from ghostpoi.evaluate.arena import CLEAN, LEAK_MIXED, LEAK_ONLY, Restoration
from ghostpoi.evaluate.measures import floors
from ghostpoi.evaluate.measures.accuracy import figures
from ghostpoi.evaluate.measures.gaps import gaps, spread, strongest
from ghostpoi.evaluate.measures.plausibility import plausibility, published
from ghostpoi.evaluate.measures.utility import utility
from ghostpoi.evaluate.verdicts import Accuracies, share_gone, verdicts
from ghostpoi.files import replacing
from ghostpoi.models import tensor_file as vault
from ghostpoi.models import trajectory_lm
from ghostpoi.progress import BEFORE
from ghostpoi.publish.manifest import MANIFEST, settings_of
from ghostpoi.publish.methods import METHODS, Method
from ghostpoi.publish.protocols import publication
from ghostpoi.publish.rounds import Task, publish
from ghostpoi.publish.table import prepare
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Rounds, Settings, Training, TrajectoryLM
from ghostpoi.study.store import key, read_json
from ghostpoi.version import __version__

Say = Callable[[str], None]
Report = Callable[[str, float], None]  # what is being done, units of work just done

BRIDGE_UNITS, LM_UNITS = 0.5, 0.5  # what training these takes, in victims; for the progress bar only
SHARES = ("restored", "of_substituted", "spoiled")


@dataclass(frozen=True)
class AuditSettings(Settings):
    """Everything that `audit` can be told. Protocols decide the victim."""

    victim: ModelSettings = field(default_factory=lambda: victim_settings("strong")[0])
    training: Training = field(default_factory=lambda: victim_settings("strong")[1])
    lm: ModelSettings = field(default_factory=lambda: TrajectoryLM().model)
    lm_training: Training = field(default_factory=lambda: TrajectoryLM().training)


ONE_RELEASE = tuple(name for name, adversary in ADVERSARIES.items() if not adversary.many_releases)
TRAINED = tuple(name for name in ONE_RELEASE if ADVERSARIES[name].trains)
QUICK = tuple(name for name in ONE_RELEASE if name not in TRAINED)  # what runs unless more is asked for


@dataclass(frozen=True)
class Request:
    """What the auditor asked for."""

    file: Path
    release: Path
    adversaries: tuple[str, ...] = QUICK
    leak: float = 0.05
    seeds: int = 3
    protocol: str = "strong"
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    mapping: dict[str, str] = field(default_factory=dict)
    set: Sequence[str] = ()
    config: Path | None = None
    cache: Path | None = None
    naturalness: bool = True
    all_controls: bool = False  # random against every adversary, not only none and the strongest
    store: bool = True


@dataclass(frozen=True)
class Contest:
    """One victim: what was released, and who stood between release and victim."""

    method: str  # clean, the release, or random
    adversary: str

    @property
    def name(self) -> str:
        if self.method == RELEASE:
            return self.adversary
        return self.method if self.adversary in (CLEAN, "none") else f"{self.method}+{self.adversary}"


RELEASE, RANDOM = "release", "random"


@dataclass(frozen=True)
class Entry:
    """A contest under one seed, and how many positions its adversary restored."""

    contest: Contest
    job: Job
    shares: dict[str, float]


def parse_adversaries(text: str | None, everybody: bool = False) -> tuple[str, ...]:
    """Names from the command line; `none`, from which the others are measured, is always among them.

    Without names: those that train no model of their own, or everybody.
    """
    if text is None:
        return ONE_RELEASE if everybody else QUICK
    if everybody:
        raise InputError(f"--all and --adversaries {text} contradict each other; give one of them")
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in ONE_RELEASE:
            raise InputError(f"--adversaries {text}: there is no {name!r}; adversaries are {', '.join(ONE_RELEASE)}")
    return tuple(dict.fromkeys(["none", *names]))


def work(request: Request) -> float:
    """All units of work, for the progress bar."""
    contests = _contests(request)
    bridges = sum(c.adversary in TRAINED for c in contests)
    victims = len(contests) + (not request.all_controls)
    return request.seeds * (victims + BRIDGE_UNITS * bridges) + LM_UNITS * request.naturalness


def audit(request: Request, say: Say, report: Report) -> dict[str, Any]:
    """Run every contest and, for a release of ours, put what may be public into its manifest."""
    if not 0 < request.leak <= 1:
        raise InputError(f"--leak {request.leak:g}: give a share above 0 and at most 1; the paper's is 0.05")
    pair = open_pair(request.file, request.release, request.mapping)
    chosen = _settings(request, pair.manifest)
    store = request.store and pair.manifest is not None
    if store and not os.access(request.release, os.W_OK | os.X_OK):
        raise InputError(f"{request.release} may not be written to, so the result cannot be stored; use --no-store")
    data = match(pair, chosen.filters)
    found = Auditor(request, chosen, data, _rules(pair, data, chosen), _cache(request), say, report).run()
    if store:
        _store(request.release, public(found))
    return found


@dataclass(frozen=True)
class Auditor:
    """One release against all adversaries."""

    request: Request
    settings: AuditSettings
    data: Matched
    rules: Mapping[str, Rule]  # what everybody knows of the release and of the control
    cache: Path
    say: Say
    report: Report

    @property
    def rows(self) -> int:
        return len(self.data.vocabulary)

    def run(self) -> dict[str, Any]:
        """All figures."""
        d, request = self.data, self.request
        contests = _contests(request)
        entries = self._entries(contests)
        # Random needs the strongest adversary too. Who restores most is likely to be that, and known before training.
        likely = strongest(
            {a: [e.shares["restored"] for e in entries if e.contest.name == a] for a in request.adversaries}
        )
        extra = [] if Contest(RANDOM, likely) in contests else [Contest(RANDOM, likely)]
        per_seed = self._contest(entries + self._entries(extra))
        ours = {name: _acc(per_seed[name]) for name in request.adversaries}
        best = strongest(ours)
        if Contest(RANDOM, best) not in contests + extra:
            extra.append(Contest(RANDOM, best))
            per_seed |= self._contest(self._entries(extra[-1:]))
        contests += extra
        acc = {name: _acc(found) for name, found in per_seed.items()}
        counted = self._floors()
        compared = Accuracies(
            acc[CLEAN], ours, {name: acc[name] for name in (LEAK_ONLY, LEAK_MIXED)},
            {c.adversary: acc[c.name] for c in contests if c.method == RANDOM},
            counted["popularity"]["acc@1"]["mean"], d.test.positions - len(d.test),
            [name for name in ours if not ADVERSARIES[name].uses_leak],
        )  # fmt: skip
        controls = {c.name: _spreads(per_seed[c.name]) for c in contests if c.name not in (CLEAN, *ours)}
        return {
            "strongest": best,
            "clean": _spreads(per_seed[CLEAN]),
            "adversaries": {
                name: _spreads(per_seed[name]) | {"gone": spread(share_gone(acc[CLEAN], ours[name]))} for name in ours
            },
            "verdicts": verdicts(compared),
            "gaps": gaps(acc[CLEAN], ours),
            "controls": controls | counted,
            "plausibility": plausibility(d.all, d.all_released, d.vocabulary, self.settings.speed),
            "naturalness": self._naturalness(),
            "utility": utility(d.all, d.all_released, d.vocabulary),
            "protocol": request.protocol,
            "leak": request.leak,
            "sessions": {"train": len(d.train), "val": len(d.val), "test": len(d.test)},
            "test_positions": compared.positions,
            "settings": asdict(self.settings),
            "version": __version__,
        }

    def _entries(self, contests: list[Contest]) -> list[Entry]:
        """What each victim will be trained on. A seed decides leak, adversary, victim and random release."""
        entries = []
        for seed in map(Seed, range(self.request.seeds)) if contests else ():
            leaked = leak(self.data.train, self.request.leak, seed)
            random = self._random(seed)
            entries += [Entry(c, *self._job(c, leaked, random, seed)) for c in contests]
        return entries

    def _contest(self, entries: list[Entry]) -> dict[str, list[dict[str, Any]]]:
        """The figures of every contest, seed by seed."""
        found: dict[str, list[dict[str, Any]]] = {e.contest.name: [] for e in entries}
        for entry, accuracies in zip(entries, self._train([e.job for e in entries]), strict=True):
            found[entry.contest.name].append(accuracies | entry.shares)
        return found

    def _job(self, contest: Contest, leaked: Any, random: Ints, seed: Seed) -> tuple[Job, dict[str, Any]]:
        train = self.data.train
        if contest.adversary == CLEAN:
            return Job(CLEAN, train, seed), {}
        if contest.adversary == LEAK_ONLY:
            return Job(LEAK_ONLY, train.take(leaked), seed), {}
        released = random if contest.method == RANDOM else self.data.released
        self.report(f"adversary {contest.name}", 0)
        restored = self._restore(contest.adversary, released, leaked, seed, self.rules[contest.method])
        shares = {name: restored.figures[name] for name in SHARES}
        return Job(contest.name, arena.with_poi(train, restored.poi), seed), shares

    def _restore(self, adversary: str, released: Ints, leaked: Any, seed: Seed, rule: Rule) -> Restoration:
        """What an adversary makes of a release; from the cache where that took training."""
        train, device = self.data.train, self.request.device

        def attack() -> Restoration:
            return arena.restore(train, released, leaked, self.rows, adversary, seed, device, rule)

        if adversary not in TRAINED:
            return attack()
        identity = key(__version__, ADVERSARIES[adversary], self.rows, device.type, seed.value, self.request.leak)
        name = key(identity, _digest(train), _digest(arena.with_poi(train, released)))
        path = self.cache / "restorations" / f"{name}.json"
        if (kept := read_json(path)) is not None:
            restored = Restoration(np.array(kept["poi"], np.int32), kept["figures"])
        else:
            restored = attack()
            _keep(path, {"poi": restored.poi.tolist(), "figures": restored.figures})
        self.report(f"adversary {adversary}", BRIDGE_UNITS)
        return restored

    def _random(self, seed: Seed) -> Ints:
        """The control release: a uniform draw from the candidates of the same rule, at the same positions."""
        words, s, sets = self.data.vocabulary, self.settings, self.rules[RANDOM].candidates
        task = Task(self.data.train, words, sets, METHODS["random"], Rounds(), s.speed, s.victim, s.training, None)
        # Not the seed itself: a publisher who used the same small number would have drawn the same release.
        return publish(task, Seed(seed.derive("audit", "random")), self.request.device).poi

    def _train(self, jobs: list[Job]) -> list[dict[str, Any]]:
        """Accuracies of every job's victim, in their order. Jobs that train on the same POIs share one victim."""
        model, training, device = self.settings.victim, self.settings.training, self.request.device
        val, test = self.data.val, self.data.test
        identity = key(__version__, model, training, self.rows, device.type, _digest(val), _digest(test))
        paths = [self.cache / "victims" / f"{key(identity, _digest(j.train), j.seed.value)}.json" for j in jobs]
        todo = {path: job for path, job in zip(paths, jobs, strict=True) if read_json(path) is None}
        self.report(BEFORE, len(jobs) - len(todo))
        # Who has more to learn trains longer; the longest go first, so that no core waits for the last.
        places = sorted(todo, key=lambda path: -self._clean_positions(todo[path].train))
        some = [todo[path] for path in places]
        exam = Exam(val, test, self.rows, device, self._victim_report, self.data.vocabulary)
        results = train_each(Transformer(model, training), some, exam, self.request.protocol)
        for number, result in results:
            _keep(places[number], arena.accuracies(result, test))
        return [_read(path) for path in paths]

    def _clean_positions(self, train: Sessions) -> int:
        clean = self.data.train.poi
        return int((train.poi == clean).sum()) if train.positions == len(clean) else train.positions

    def _victim_report(self, label: str, victims: float) -> None:
        self.report(f"victim {label}", victims)

    def _floors(self) -> dict[str, dict[str, Any]]:
        """What counting predicts. It knows no seed: the figure is the same under each."""
        train, test, n = self.data.train, self.data.test, self.request.seeds
        released = arena.with_poi(train, self.data.released)
        counted = {
            "popularity": floors.popularity(train, test, self.rows),
            "markov": floors.markov(train, test, self.rows),
            "markov_on_release": floors.markov(released, test, self.rows),
        }
        return {name: _spreads([{"all": figures(s.all), "last": figures(s.last)}] * n) for name, s in counted.items()}

    def _naturalness(self) -> dict[str, float] | None:
        """Mean log-likelihood of the training sessions under a trajectory LM of the clean ones."""
        if not self.request.naturalness:
            return None
        train, s, label = self.data.train, self.settings, "training the trajectory LM"
        self.report(label, 0)
        lm = trajectory_lm.load_or_train(
            self.cache / "trajectory_lm", train, self.rows, TrajectoryLM(s.lm, s.lm_training), self.request.device,
            self.say,
        )  # fmt: skip
        self.report(label, LM_UNITS)
        released = arena.with_poi(train, self.data.released)
        return {"clean": trajectory_lm.naturalness(lm, train), "released": trajectory_lm.naturalness(lm, released)}


PUBLIC = (
    "strongest", "clean", "adversaries", "verdicts", "gaps", "controls", "plausibility", "naturalness", "utility",
    "protocol", "leak", "test_positions", "version",
)  # fmt: skip


def public(found: dict[str, Any]) -> dict[str, Any]:
    """What may stand in a release: accuracies, divergences and figures of the release, no statistic of clean data."""
    out = {name: found[name] for name in PUBLIC}
    out["plausibility"] = _without(out["plausibility"], "_clean")
    # Radii that all grow are apart by the difference of their means: beside the mean after it, that is the mean before.
    out["utility"] = {name: _without(group, "_before", "wasserstein_km") for name, group in out["utility"].items()}
    out["naturalness"] = out["naturalness"] and {"released": out["naturalness"]["released"]}
    return out


def _without(figures: dict[str, float], *endings: str) -> dict[str, float]:
    return published({name: value for name, value in figures.items() if not name.endswith(endings)})


def _store(release: Path, audit: dict[str, Any]) -> None:
    path = release / MANIFEST
    try:
        manifest = json.loads(path.read_text("utf-8")) | {"audit": audit}
        with replacing(path) as out:
            out.write((json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())
    except OSError as e:
        raise InputError(
            f"the audit cannot be stored in {path} ({(e.strerror or str(e)).lower()}); "
            "free some space or use --no-store"
        ) from None


def _rules(pair: Opened, data: Matched, chosen: AuditSettings) -> dict[str, Rule]:
    """What adversaries are told of the release and of the control.

    The manifest names the method and its settings; of another tool's release nothing is known, and a choice from
    candidate sets is as good a guess as any.
    """
    method = _method(pair.manifest)
    control = METHODS[RANDOM]
    return {
        RELEASE: rule_of(method, _candidates(pair, data, chosen, method or control), data.vocabulary),
        RANDOM: rule_of(control, _candidates(pair, data, chosen, control), data.vocabulary),
    }


def _method(manifest: dict[str, Any] | None) -> Method | None:
    if manifest is None or manifest["method"] not in METHODS:
        return None
    changes = [f"method.{name}={value}" for name, value in manifest["settings"].get("method", {}).items()]
    return settings.override(publication(manifest["method"]), changes, "the manifest's").method


def _candidates(pair: Opened, data: Matched, chosen: AuditSettings, method: Method) -> Candidates:
    """The publisher's own candidate sets, in the numbers of the audit's vocabulary.

    Which venues models know, and so choose among, depends on clean data. An adversary can make out most of them from
    the release; the audit grants it all, which is conservative for the publisher.
    """
    words = data.vocabulary
    publisher = publication(RANDOM)
    publisher = replace(publisher, filters=chosen.filters, candidates=chosen.candidates, method=method)
    try:
        own = prepare(pair.clean, publisher)
    except InputError:  # no candidates under these settings: then the release is another tool's
        return Candidates(np.zeros((len(words), 1), np.int32), np.zeros(len(words)))
    venues, covered = len(pair.clean.pois), own.data.vocabulary.source[1:]
    number = np.zeros(venues + 1, np.int32)  # of venue codes from 1; 0 is padding
    known = np.flatnonzero((words.source >= 0) & (words.source < venues))  # a made-up venue has no candidates
    number[words.source[known] + 1] = known
    poi = np.zeros((venues + 1, max(own.covered.poi.shape[1], own.every.poi.shape[1])), np.int32)  # of codes, from 1
    poi[:, : own.every.poi.shape[1]] = own.every.poi
    poi[covered + 1] = 0
    poi[covered + 1, : own.covered.poi.shape[1]] = np.append(0, covered + 1)[own.covered.poi[1:]]
    radius = own.every.radius_km.copy()
    radius[covered + 1] = own.covered.radius_km[1:]
    row = np.zeros(len(words), np.int64)
    row[known] = words.source[known] + 1
    sets = number[poi[row]]
    sets = np.take_along_axis(sets, np.argsort(sets == 0, axis=1, kind="stable"), 1)  # padding last
    return Candidates(sets, radius[row])


def _contests(request: Request) -> list[Contest]:
    controls = [Contest(CLEAN, CLEAN), Contest(RELEASE, LEAK_ONLY), Contest(RELEASE, LEAK_MIXED)]
    random = request.adversaries if request.all_controls else ("none",)  # and the strongest, once it is known
    return [*controls, *(Contest(RELEASE, a) for a in request.adversaries), *(Contest(RANDOM, a) for a in random)]


def _acc(per_seed: list[dict[str, Any]]) -> list[float]:
    return [found["all"]["acc@1"] for found in per_seed]


def _settings(request: Request, manifest: dict[str, Any] | None) -> AuditSettings:
    """Filters, candidates and speed as the manifest gives them, else as the protocol does; then what the user says."""
    base = settings_of(manifest) if manifest else publication("random", request.protocol)
    victim, training = victim_settings(request.protocol)
    chosen = AuditSettings(base.filters, base.candidates, base.speed, victim, training)
    if request.config:
        chosen = settings.load(request.config, chosen)
    return settings.override(chosen, list(request.set))


def _cache(request: Request) -> Path:
    """Where finished work is kept. It is made of clean data: outside the release, for its owner alone."""
    private = request.release.with_name(request.release.name + ".private")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = request.cache or (private / "audit" if private.is_dir() else home / "ghostpoi" / "audit")
    if folder.resolve().is_relative_to(request.release.resolve()):
        raise InputError(f"--cache {folder} lies inside the release {request.release}; choose another folder")
    try:
        for name in ("", "victims", "restorations"):
            vault.make_folder(folder / name)
    except OSError as e:
        raise InputError(
            f"the cache folder {folder} cannot be used ({(e.strerror or str(e)).lower()}); choose another with --cache"
        ) from None
    return folder


def _digest(sessions: Sessions) -> str:
    return hashlib.sha256(sessions.start.tobytes() + sessions.poi.tobytes()).hexdigest()


def _keep(path: Path, value: dict[str, Any]) -> None:
    with replacing(path, mode=0o600) as out:
        out.write(json.dumps(value).encode())


def _read(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return value


def _spreads(per_seed: list[dict[str, Any]]) -> dict[str, Any]:
    """The figures of one contest over seeds."""
    first = per_seed[0]
    out = {name: spread([f["all"][name] for f in per_seed]) for name in first["all"]}
    out["acc@1_last"] = spread([f["last"]["acc@1"] for f in per_seed])
    return out | {name: spread([f[name] for f in per_seed]) for name in SHARES if name in first}
