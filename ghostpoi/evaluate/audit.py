"""The audit: what can still be learned from a release, ours or another tool's.

The auditor holds the clean file and the release. The audit plays the recipient: it filters the release alone, hands its
training sessions to every adversary, trains a victim on what each restores, and tests all victims on the clean last
part of each user's sessions. Every result is compared with controls.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch

from ghostpoi import __version__, settings
from ghostpoi.attack.victims import VICTIMS, victim_settings
from ghostpoi.data.checkins import Ints
from ghostpoi.errors import InputError
from ghostpoi.evaluate.cache import Cache, default_folder, open_cache
from ghostpoi.evaluate.conclusions import conclude
from ghostpoi.evaluate.controls import (
    CLEAN,
    LEAK_MIXED,
    LEAK_ONLY,
    LEAK_STAY,
    RANDOM,
    RANDOM_MATCHED,
    in_table_order,
    under,
)  # fmt: skip
from ghostpoi.evaluate.default_set import completed, default_adversaries
from ghostpoi.evaluate.grid import Grid, over_seeds
from ghostpoi.evaluate.kept_columns import kept_columns
from ghostpoi.evaluate.matched_control import differs_from_random, matched_draw, matched_rule
from ghostpoi.evaluate.measures.accuracy import in_one, moves
from ghostpoi.evaluate.measures.accuracy_gaps import accuracy_lost, spread, strongest
from ghostpoi.evaluate.measures.utility import utility
from ghostpoi.evaluate.restoration import Contest, Release, with_poi
from ghostpoi.evaluate.rounding import rounded
from ghostpoi.evaluate.row_matching import AlignedSessions, TablePair, align, public_rule, publisher_of, read_pair
from ghostpoi.evaluate.stored_audit import check_writable, store
from ghostpoi.evaluate.whole_release import row_plausibility
from ghostpoi.models.trajectory_lm import load_or_train, naturalness
from ghostpoi.progress import Report, Say
from ghostpoi.publish.manifest import read_manifest, settings_of
from ghostpoi.publish.methods import METHODS
from ghostpoi.publish.publication_settings import publication
from ghostpoi.publish.rounds import publish
from ghostpoi.publish.task import Task
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Settings, Training, TrajectoryLM

RELEASE = "release"  # what the grid calls the audited release
CONTROL_CONTESTS = ((CLEAN, CLEAN), (CLEAN, LEAK_ONLY), (CLEAN, LEAK_STAY), (RELEASE, LEAK_MIXED))
LM_UNITS = 0.5  # work of training the trajectory LM, in victims; only for the progress bar
SHARES = ("restored", "of_substituted", "spoiled")


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
    adversaries: tuple[str, ...] = field(default_factory=default_adversaries)
    victim: str = "transformer"
    leak: float = 0.05
    seeds: int = 3
    protocol: str = "strong"
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    mapping: dict[str, str] = field(default_factory=dict)
    set: Sequence[str] = ()
    config: Path | None = None
    private: Path | None = None  # the private folder of the release; None: beside it
    cache: Path | None = None
    naturalness: bool = True
    all_controls: bool = False  # random releases against every adversary, not only none and the strongest
    store: bool = True
    replace: bool = False  # a stored audit that is fuller or has other settings

    @property
    def private_folder(self) -> Path:
        return self.private or Path(f"{self.release}.private")

    def contest(self, release: str, adversary: str) -> Contest:
        return Contest(release, adversary, self.leak, self.victim)

    def contests(self, random: Sequence[str]) -> list[Contest]:
        """Return all contests except those of the random releases against the strongest adversary, not known yet."""
        faced = self.adversaries if self.all_controls else ("none",)
        return [
            *(self.contest(*names) for names in CONTROL_CONTESTS),
            *(self.contest(RELEASE, adversary) for adversary in self.adversaries),
            *(self.contest(control, adversary) for control in random for adversary in faced),
        ]


def random_controls(manifest: dict[str, Any] | None) -> list[str]:
    """Return the random releases that a release is compared with."""
    return [RANDOM, *([RANDOM_MATCHED] if differs_from_random(publisher_of(manifest)) else [])]


def work(request: AuditRequest) -> float:
    """Return all units of work for the progress bar, in victims."""
    random = random_controls(read_manifest(request.release) if request.release.is_dir() else None)
    victims = len(request.contests(random)) + len(random) * (not request.all_controls)
    return request.seeds * victims + LM_UNITS * request.naturalness


def audit(request: AuditRequest, say: Say, report: Report) -> dict[str, Any]:
    """Measure a release and, if it is ours, store the public part of the result in its manifest.

    The result includes what earlier runs with the same settings stored there.
    """
    if not 0 < request.leak <= 1:
        raise InputError(f"--leak {request.leak:g}: give a share above 0 and at most 1; the paper's is 0.05")
    if request.victim not in VICTIMS:
        raise InputError(f"--victim {request.victim}: there is no such victim; choose from {', '.join(VICTIMS)}")
    pair = read_pair(request.file, request.release, request.mapping, request.private_folder)
    kept = (pair.manifest or {}).get("rows", {}).get("missing", {}).get("kept", 0)
    chosen = audit_settings(request, pair.manifest)
    keep = request.store and pair.manifest is not None
    if keep:
        check_writable(request.release)
    adversaries = completed(request.adversaries, bool(pair.kept), pair.pseudonym is not None)
    request = replace(request, adversaries=adversaries)
    data = align(pair, chosen.filters)
    found = _measure(request, chosen, pair, data, _grid(request, chosen, pair, data, report), say)
    found["release_sha256"] = pair.sha256
    result = store(request.release, request.private_folder, found, say, request.replace) if keep else found
    return result | {"rows": {"audited": len(pair.released), "kept_genuine": kept}}


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


def _grid(request: AuditRequest, chosen: AuditSettings, pair: TablePair, data: AlignedSessions, report: Report) -> Grid:
    publisher = publisher_of(pair.manifest)
    ours, rule = (public_rule(pair, data.vocabulary, chosen, method) for method in (publisher, METHODS[RANDOM]))
    clean, pseudonym = data.train.poi, data.pseudonym

    @cache
    def random(number: int) -> Ints:
        """The paper's control: a uniform draw from the candidate sets, at the same positions."""
        settings = replace(publication(RANDOM), speed=chosen.speed)
        task = Task(settings, data.train, data.vocabulary, rule.candidates)
        # A derived seed, because a publisher with the same small seed would have drawn the same release.
        return publish(task, Seed(Seed(number).derive("audit", "random")), request.device).poi

    @cache
    def matched(number: int) -> Ints:
        return matched_draw(ours, clean, data.released, Seed(number))

    releases = {
        RELEASE: Release(lambda number: data.released, ours, pseudonym),
        RANDOM: Release(random, rule, pseudonym),
    }
    if publisher is not None:
        same = matched_rule(publisher, ours, clean, data.released)
        releases[RANDOM_MATCHED] = Release(matched, same, pseudonym)
    return Grid(
        train=data.train, val=data.val, test=data.test, vocabulary=data.vocabulary, releases=releases.__getitem__,
        seeds=request.seeds, protocol=request.protocol, model=chosen.victim, training=chosen.training,
        device=request.device, cache=_cache(request), kept=kept_columns(pair, data), report=report,
    )  # fmt: skip


def _measure(
    request: AuditRequest, chosen: AuditSettings, pair: TablePair, data: AlignedSessions, grid: Grid, say: Say
) -> dict[str, Any]:
    positions, trained = data.test.positions - len(data.test), data.train.positions
    measures = _run_contests(request, grid, random_controls(pair.manifest), positions)
    clean = rounded(measures[request.contest(CLEAN, CLEAN)]["all"]["acc@1"], positions)
    counts = StepCounts(positions, int(moves(data.test).sum()), trained)
    named = {_name(contest): _spreads(found, clean, counts) for contest, found in measures.items()}
    for name, floor in (grid.floors() | {"markov_on_release": grid.markov(RELEASE, 0)}).items():
        named[name] = _spreads(over_seeds([floor] * request.seeds), clean, counts)
    controls = sorted((name for name in named if name not in (CLEAN, *request.adversaries)), key=in_table_order)
    found = {
        "clean": named[CLEAN],
        "adversaries": {name: named[name] for name in request.adversaries},
        "controls": {name: named[name] for name in controls},
        "plausibility": row_plausibility(pair, chosen.speed),
        "naturalness": _naturalness(chosen, data, grid, say) if request.naturalness else None,
        "utility": utility(data.all, data.all_released, data.vocabulary),
        "protocol": request.protocol,
        "victim": request.victim,
        "leak": request.leak,
        "sessions": {"train": len(data.train), "val": len(data.val), "test": len(data.test)},
        "test_positions": positions,
        "kept_columns": list(pair.kept),
        "pseudonyms": settings_of(pair.manifest).identity.pseudonyms if pair.manifest else "keep",
        "settings": asdict(chosen),
        "version": __version__,
    }
    return found | conclude(found)


def _run_contests(
    request: AuditRequest, grid: Grid, random: Sequence[str], positions: int
) -> dict[Contest, dict[str, Any]]:
    """Return the measures of all contests, including the random releases against the strongest adversary."""
    # The adversary that restores most is likely the strongest. It is known before any victim is trained, so its
    # controls can train side by side with the other victims.
    ours = {name: request.contest(RELEASE, name) for name in request.adversaries}
    seeds = range(request.seeds)
    likely = strongest({n: [grid.restoration(c, seed).measures["restored"] for seed in seeds] for n, c in ours.items()})
    contests = list(dict.fromkeys([*request.contests(random), *(request.contest(name, likely) for name in random)]))
    found = {contest: cell["measures"] for contest, cell in zip(contests, grid.cells(contests), strict=True)}
    top = strongest({name: rounded(found[contest]["all"]["acc@1"], positions) for name, contest in ours.items()})
    missing = [contest for contest in (request.contest(name, top) for name in random) if contest not in found]
    cells = grid.cells(missing) if missing else []
    return found | {contest: cell["measures"] for contest, cell in zip(missing, cells, strict=True)}


def _name(contest: Contest) -> str:
    """The name of a contest in the result."""
    random = contest.release in (RANDOM, RANDOM_MATCHED)
    return under(contest.release, contest.adversary) if random else contest.adversary


class StepCounts(NamedTuple):
    """What accuracies and shares are taken of."""

    test: int
    moves: int
    trained: int


def _spreads(measures: dict[str, Any], clean: Sequence[float], counts: StepCounts) -> dict[str, Any]:
    """Mean, deviation and seeds of the measures that an audit reports, rounded."""
    values = {
        name: rounded(seeds, counts.moves if name.endswith("_moves") else counts.test)
        for name, seeds in in_one(measures).items()
    }
    values |= {name: rounded(measures[name], counts.trained) for name in SHARES if name in measures}
    values["accuracy_lost"] = accuracy_lost(clean, values["acc@1"])
    return {name: spread(seeds) for name, seeds in values.items()}


def _naturalness(chosen: AuditSettings, data: AlignedSessions, grid: Grid, say: Say) -> dict[str, float]:
    """Mean log-likelihood of the clean and the released training sessions under a trajectory LM of the clean ones."""
    grid.report("training the trajectory LM", 0)
    settings, folder = TrajectoryLM(chosen.lm, chosen.lm_training), grid.cache.folder / "trajectory_lm"
    lm = load_or_train(folder, grid.train, grid.rows, settings, grid.device, say)
    grid.report("training the trajectory LM", LM_UNITS)
    return {"clean": naturalness(lm, data.train), "released": naturalness(lm, with_poi(data.train, data.released))}


def _cache(request: AuditRequest) -> Cache:
    """Open the cache. It is derived from clean data, so it must lie outside the release."""
    private = request.private_folder
    folder = request.cache or (private / "audit" if private.is_dir() else default_folder())
    if folder.resolve().is_relative_to(request.release.resolve()):
        raise InputError(f"--cache {folder} lies inside the release {request.release}; choose another folder")
    return open_cache(folder)
