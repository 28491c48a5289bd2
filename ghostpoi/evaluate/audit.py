"""The audit: what can still be learned from a release, ours or another tool's.

The auditor holds the clean file and the release. The audit plays the recipient: it filters the release alone, hands its
training sessions to every adversary, trains a victim on what each restores, and tests all victims on the clean last
part of each user's sessions. Every result is compared with controls.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch

from ghostpoi import __version__, settings
from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.victims import VICTIMS, victim_settings
from ghostpoi.data.checkins import Ints
from ghostpoi.data.displacement import published
from ghostpoi.errors import InputError
from ghostpoi.evaluate.cache import Cache
from ghostpoi.evaluate.controls import CLEAN, LEAK_MIXED, LEAK_ONLY, RANDOM
from ghostpoi.evaluate.grid import Contest, Grid, Release, over_seeds, with_poi
from ghostpoi.evaluate.measures.accuracy_gaps import accuracy_lost, gaps, spread, strongest
from ghostpoi.evaluate.measures.plausibility import plausibility
from ghostpoi.evaluate.measures.utility import utility
from ghostpoi.evaluate.row_matching import AlignedSessions, TablePair, align, public_rule, publisher_of, read_pair
from ghostpoi.evaluate.verdicts import Accuracies, verdicts
from ghostpoi.models.trajectory_lm import naturalness
from ghostpoi.progress import Report, Say
from ghostpoi.publish.manifest import MANIFEST, release_identity, settings_of, store_manifest
from ghostpoi.publish.methods import METHODS
from ghostpoi.publish.publication_settings import publication
from ghostpoi.publish.rounds import Task, publish
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Settings, Training, TrajectoryLM

RELEASE = "release"  # what the grid calls the audited release
CONTROL_CONTESTS = ((CLEAN, CLEAN), (CLEAN, LEAK_ONLY), (RELEASE, LEAK_MIXED))
LM_UNITS = 0.5  # work of training the trajectory LM, in victims; only for the progress bar
SHARES = ("restored", "of_substituted", "spoiled")
PUBLIC = (
    "strongest", "clean", "adversaries", "verdicts", "gaps", "controls", "plausibility", "naturalness", "utility",
    "protocol", "victim", "leak", "test_positions", "version", "release_sha256",
)  # fmt: skip


@dataclass(frozen=True)
class AuditSettings(Settings):
    """All settings of `audit`. The protocol sets the defaults of the victim."""

    victim: ModelSettings = field(default_factory=lambda: victim_settings("strong")[0])
    training: Training = field(default_factory=lambda: victim_settings("strong")[1])
    lm: ModelSettings = field(default_factory=lambda: TrajectoryLM().model)
    lm_training: Training = field(default_factory=lambda: TrajectoryLM().training)


@dataclass(frozen=True, kw_only=True)
class AuditRequest:
    """What the auditor asks for."""

    file: Path
    release: Path
    adversaries: tuple[str, ...] = field(default_factory=lambda: default_adversaries())
    victim: str = "transformer"
    leak: float = 0.05
    seeds: int = 3
    protocol: str = "strong"
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    mapping: dict[str, str] = field(default_factory=dict)
    set: Sequence[str] = ()
    config: Path | None = None
    cache: Path | None = None
    naturalness: bool = True
    all_controls: bool = False  # the random control against every adversary, not only none and the strongest
    store: bool = True

    def contest(self, release: str, adversary: str) -> Contest:
        return Contest(release, adversary, self.leak, self.victim)

    def contests(self) -> list[Contest]:
        """Return all contests except the random control against the strongest adversary, which is not known yet."""
        random = self.adversaries if self.all_controls else ("none",)
        return [
            *(self.contest(*names) for names in CONTROL_CONTESTS),
            *(self.contest(RELEASE, adversary) for adversary in self.adversaries),
            *(self.contest(RANDOM, adversary) for adversary in random),
        ]


def default_adversaries(everybody: bool = False) -> tuple[str, ...]:
    """Return the adversaries of one release that train no model; `everybody` adds those that do."""
    return tuple(name for name, a in ADVERSARIES.items() if not a.many_releases and (everybody or not a.trains))


def parse_adversaries(text: str | None, everybody: bool = False) -> tuple[str, ...]:
    """Read adversaries from the command line. The default is all that train no model; `none` always runs."""
    if text is None:
        return default_adversaries(everybody)
    if everybody:
        raise InputError(f"--all and --adversaries {text} contradict each other; give one of them")
    names = [name.strip() for name in text.split(",") if name.strip()]
    known = default_adversaries(everybody=True)
    if unknown := [name for name in names if name not in known]:
        raise InputError(f"--adversaries {text}: there is no {unknown[0]!r}; choose from {', '.join(known)}")
    return tuple(dict.fromkeys(["none", *names]))


def work(request: AuditRequest) -> float:
    """Return all units of work for the progress bar, in victims."""
    victims = len(request.contests()) + (not request.all_controls)
    return request.seeds * victims + LM_UNITS * request.naturalness


def audit(request: AuditRequest, say: Say, report: Report) -> dict[str, Any]:
    """Measure a release and, if it is ours, store the public part of the result in its manifest."""
    if not 0 < request.leak <= 1:
        raise InputError(f"--leak {request.leak:g}: give a share above 0 and at most 1; the paper's is 0.05")
    if request.victim not in VICTIMS:
        raise InputError(f"--victim {request.victim}: there is no such victim; choose from {', '.join(VICTIMS)}")
    pair = read_pair(request.file, request.release, request.mapping)
    chosen = audit_settings(request, pair.manifest)
    store = request.store and pair.manifest is not None
    if store and not os.access(request.release, os.W_OK | os.X_OK):
        raise InputError(f"{request.release} is not writable, so the result cannot be stored; use --no-store")
    data = align(pair, chosen.filters)
    found = _measure(request, chosen, data, _grid(request, chosen, pair, data, report), say)
    found["release_sha256"] = pair.sha256
    if store:
        _store(request.release, public(found))
    return found


def audit_settings(request: AuditRequest, manifest: dict[str, Any] | None) -> AuditSettings:
    """Return the settings of the manifest, else of the protocol, with the user's changes."""
    base = settings_of(manifest) if manifest else publication(RANDOM, request.protocol)
    default = AuditSettings(base.filters, base.candidates, base.speed, *victim_settings(request.protocol))
    chosen = settings.load(request.config, default) if request.config else default
    chosen = settings.override(chosen, list(request.set))
    if request.victim != "transformer" and (chosen.victim, chosen.training) != (default.victim, default.training):
        raise InputError(
            f"the settings victim.* and training.* do not apply to --victim {request.victim}; "
            "leave them out or use --victim transformer"
        )
    return chosen


def public(found: dict[str, Any]) -> dict[str, Any]:
    """Return what a release may contain: accuracies and measures of the release, no statistic of clean data."""
    out = {name: found[name] for name in PUBLIC}
    out["plausibility"] = _without(out["plausibility"], "_clean")
    # If all radii grow, their Wasserstein distance and their mean after reveal their mean before.
    out["utility"] = {name: _without(group, "_before", "wasserstein_km") for name, group in out["utility"].items()}
    out["naturalness"] = out["naturalness"] and {"released": out["naturalness"]["released"]}
    return out


def _grid(request: AuditRequest, chosen: AuditSettings, pair: TablePair, data: AlignedSessions, report: Report) -> Grid:
    methods = publisher_of(pair.manifest), METHODS[RANDOM]
    ours, rule = (public_rule(pair, data.vocabulary, chosen, method) for method in methods)

    @cache
    def random(number: int) -> Ints:
        """The control: a uniform draw from the candidate sets, at the same positions."""
        settings = replace(publication(RANDOM), speed=chosen.speed)
        task = Task(settings, data.train, data.vocabulary, rule.candidates)
        # A derived seed, because a publisher with the same small seed would have drawn the same release.
        return publish(task, Seed(Seed(number).derive("audit", "random")), request.device).poi

    return Grid(
        train=data.train, val=data.val, test=data.test, vocabulary=data.vocabulary,
        releases={RELEASE: Release(lambda number: data.released, ours), RANDOM: Release(random, rule)}.__getitem__,
        seeds=request.seeds, protocol=request.protocol, model=chosen.victim, training=chosen.training,
        device=request.device, cache=_cache(request), report=report,
    )  # fmt: skip


def _measure(
    request: AuditRequest, chosen: AuditSettings, data: AlignedSessions, grid: Grid, say: Say
) -> dict[str, Any]:
    measures = _run_contests(request, grid)
    acc = {contest: found["all"]["acc@1"] for contest, found in measures.items()}
    clean = acc[request.contest(CLEAN, CLEAN)]
    ours = {name: acc[request.contest(RELEASE, name)] for name in request.adversaries}
    floors = grid.floors() | {"markov_on_release": grid.markov(RELEASE, 0)}
    compared = Accuracies(
        clean=clean,
        adversaries=ours,
        leak={names[1]: acc[request.contest(*names)] for names in CONTROL_CONTESTS[1:]},
        random={contest.adversary: values for contest, values in acc.items() if contest.release == RANDOM},
        popularity=floors["popularity"]["all"]["acc@1"],
        positions=data.test.positions - len(data.test),
        leakless=[name for name in ours if not ADVERSARIES[name].uses_leak],
    )
    named = {_name(contest): _spreads(found, clean) for contest, found in measures.items()}
    counted = {name: _spreads(over_seeds([found] * request.seeds), clean) for name, found in floors.items()}
    return {
        "strongest": strongest(ours),
        "clean": named[CLEAN],
        "adversaries": {name: named[name] for name in ours},
        "verdicts": verdicts(compared),
        "gaps": gaps(clean, ours),
        "controls": {name: found for name, found in named.items() if name not in (CLEAN, *ours)} | counted,
        "plausibility": plausibility(data.all, data.all_released, data.vocabulary, chosen.speed),
        "naturalness": _naturalness(chosen, data, grid, say) if request.naturalness else None,
        "utility": utility(data.all, data.all_released, data.vocabulary),
        "protocol": request.protocol,
        "victim": request.victim,
        "leak": request.leak,
        "sessions": {"train": len(data.train), "val": len(data.val), "test": len(data.test)},
        "test_positions": compared.positions,
        "settings": asdict(chosen),
        "version": __version__,
    }


def _run_contests(request: AuditRequest, grid: Grid) -> dict[Contest, dict[str, Any]]:
    """Return the measures of all contests, including the random control against the strongest adversary."""
    # The adversary that restores most is likely the strongest. It is known before any victim is trained, so its random
    # control can train side by side with the other victims.
    ours = {name: request.contest(RELEASE, name) for name in request.adversaries}
    seeds = range(request.seeds)
    likely = strongest({n: [grid.restoration(c, seed).measures["restored"] for seed in seeds] for n, c in ours.items()})
    contests = list(dict.fromkeys([*request.contests(), request.contest(RANDOM, likely)]))
    found = {contest: cell["measures"] for contest, cell in zip(contests, grid.cells(contests), strict=True)}
    random = request.contest(RANDOM, strongest({name: found[c]["all"]["acc@1"] for name, c in ours.items()}))
    if random not in found:
        found[random] = grid.cells([random])[0]["measures"]
    return found


def _name(contest: Contest) -> str:
    """The name of a contest in the result."""
    if contest.release == RANDOM:
        return RANDOM if contest.adversary == "none" else f"{RANDOM}+{contest.adversary}"
    return contest.adversary


def _spreads(measures: dict[str, Any], clean: Sequence[float]) -> dict[str, Any]:
    """Mean, deviation and seeds of the measures that an audit reports."""
    out = {name: spread(values) for name, values in measures["all"].items()}
    out["acc@1_last"] = spread(measures["last"]["acc@1"])
    out |= {name: spread(measures[name]) for name in SHARES if name in measures}
    return out | {"accuracy_lost": spread(accuracy_lost(clean, measures["all"]["acc@1"]))}


def _naturalness(chosen: AuditSettings, data: AlignedSessions, grid: Grid, say: Say) -> dict[str, float]:
    """Mean log-likelihood of the clean and the released training sessions under a trajectory LM of the clean ones."""
    grid.report("training the trajectory LM", 0)
    lm = grid.trajectory_lm(TrajectoryLM(chosen.lm, chosen.lm_training), say)
    grid.report("training the trajectory LM", LM_UNITS)
    return {"clean": naturalness(lm, data.train), "released": naturalness(lm, with_poi(data.train, data.released))}


def _without(measures: dict[str, float], *endings: str) -> dict[str, float]:
    return published({name: value for name, value in measures.items() if not name.endswith(endings)})


def _store(release: Path, audit: dict[str, Any]) -> None:
    path = release / MANIFEST
    try:
        manifest = json.loads(path.read_text("utf-8"))
        store_manifest(release, manifest | {"audit": audit | {"of": release_identity(manifest)}})
    except OSError as e:
        raise InputError(
            f"the audit cannot be stored in {path} ({(e.strerror or str(e)).lower()}); "
            "free some space or use --no-store"
        ) from None


def _cache(request: AuditRequest) -> Cache:
    """Open the cache. It is derived from clean data, so it must lie outside the release."""
    private = request.release.with_name(request.release.name + ".private")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = request.cache or (private / "audit" if private.is_dir() else home / "ghostpoi" / "audit")
    if folder.resolve().is_relative_to(request.release.resolve()):
        raise InputError(f"--cache {folder} lies inside the release {request.release}; choose another folder")
    try:
        return Cache(folder)
    except OSError as e:
        raise InputError(
            f"the cache folder {folder} cannot be used ({(e.strerror or str(e)).lower()}); choose another with --cache"
        ) from None
