"""What an auditor can ask for: adversaries, victims, leak, seeds, settings."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import torch

from ghostpoi import settings
from ghostpoi.attack.evidence import LeakBy
from ghostpoi.attack.victims import VICTIMS, victim_settings
from ghostpoi.audits import controls
from ghostpoi.audits.cache import Cache, default_folder, open_cache
from ghostpoi.audits.controls import CLEAN, ITSELF, RANDOM, RANDOM_MATCHED, default_adversaries, known_names
from ghostpoi.audits.grid import Contest, contests_between, effort_of
from ghostpoi.audits.match import publisher_of
from ghostpoi.audits.persons import PersonSettings
from ghostpoi.audits.verdicts import LimitSettings
from ghostpoi.draw.methods.ghost import Random
from ghostpoi.draw.publication import publication
from ghostpoi.errors import InputError
from ghostpoi.formats import Source
from ghostpoi.options import option
from ghostpoi.release.manifest import read_manifest, settings_of
from ghostpoi.settings import HideSettings, ModelSettings, Published, Training, TrajectoryLM

RELEASE = "release"  # what the grid calls the audited release
CONTROL_CONTESTS = (
    (CLEAN, CLEAN), (CLEAN, controls.LEAK_ONLY), (CLEAN, controls.LEAK_STAY), (RELEASE, controls.LEAK_MIXED),
)  # fmt: skip
DEFAULT_VICTIMS = ("markov", "counting")  # one that ignores users and one that knows them; both train in seconds
TRANSFORMER = "transformer"  # the paper's victim, the only one with settings
NOTHING = HideSettings(homes=False)  # what another tool's release is taken to hide
UNITS = {"lm": 250.0, "persons": 25.0}  # work on the trajectory LM and on persons, in Markov victims, for the bar


@dataclass(frozen=True)
class AuditSettings(Published):
    """All settings of `audit`. The protocol sets the defaults of the victim."""

    victim: ModelSettings = field(default_factory=lambda: victim_settings("strong")[0])
    training: Training = field(default_factory=lambda: victim_settings("strong")[1])
    lm: ModelSettings = field(default_factory=lambda: TrajectoryLM().model)
    lm_training: Training = field(default_factory=lambda: TrajectoryLM().training)
    limits: LimitSettings = field(default_factory=LimitSettings)
    persons: PersonSettings = field(default_factory=PersonSettings)


def random_controls(manifest: dict[str, Any] | None) -> list[str]:
    """Return the random releases that a release is compared with. The second needs the sets of a method of ours."""
    publisher = publisher_of(manifest)
    return [RANDOM] if publisher is None or type(publisher) is Random else [RANDOM, RANDOM_MATCHED]


@dataclass(frozen=True, kw_only=True)
class Attacks:
    """Who attacks a release, and what else is measured of it."""

    adversaries: tuple[str, ...] = field(default_factory=default_adversaries)
    victims: tuple[str, ...] = DEFAULT_VICTIMS
    leak: float = 0.05
    leak_by: LeakBy = "session"
    seeds: int = 3
    protocol: str = "strong"
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    naturalness: bool = True
    persons: bool = True
    distance: bool = True
    all_controls: bool = False  # random releases against every adversary, not only none and the strongest

    def contests_of(self, release: str, adversary: str) -> list[Contest]:
        """Return what an adversary or a control needs on a release: a contest per victim."""
        return contests_between(release, adversary, self.leak, self.victims)

    def contests(self, random: Sequence[str]) -> list[Contest]:
        """Return all contests except those of the random releases against the strongest adversary, not known yet."""
        faced = self.adversaries if self.all_controls else ("none",)
        asked = [*CONTROL_CONTESTS, *((RELEASE, adversary) for adversary in self.adversaries)]
        asked += ((control, adversary) for control in random for adversary in faced)
        return [contest for names in asked for contest in self.contests_of(*names)]


@dataclass(frozen=True, kw_only=True)
class AuditRequest(Attacks):
    """What the auditor asks for."""

    file: Source
    release: Source
    mapping: dict[str, str] = field(default_factory=dict)
    set: Sequence[str] = ()
    config: Path | None = None
    private: Path | None = None  # the private folder of the release; None: next to it
    cache: Path | None = None
    store: bool = True
    replace: bool = False  # a stored audit that is fuller or has other settings

    @property
    def private_folder(self) -> Path:
        return self.private or Path(f"{self.release}.private")

    @property
    def _random(self) -> list[str]:
        return random_controls(read_manifest(self.release.path) if self.release.path.is_dir() else None)

    def plan(self) -> dict[str, Any]:
        """Return what the audit would run. Models are counted per seed, those of adversaries included."""
        random = self._random
        return {
            "adversaries": list(self.adversaries), "controls": [*random, *controls.ALONE],
            "victims": list(self.victims), "seeds": self.seeds, "leak": self.leak,
            "trained": self.seeds * len(self.contests(random)),
            "naturalness": self.naturalness, "persons": self.persons,
        }  # fmt: skip

    def work(self) -> float:
        """Return all units of work for the progress bar, in Markov victims."""
        random = self._random
        contests = self.contests(random)
        restored = {(one.release, one.adversary) for one in contests if one.release != CLEAN}
        attacks = sum(effort_of(adversary) for _, adversary in restored)
        victims = sum(VICTIMS[one.victim].effort for one in contests if one.victim != ITSELF)
        # The strongest adversary, which the random releases also face, is not known yet: two may seem to be.
        again = 2 * sum(VICTIMS[victim].effort for victim in self.victims) + attacks / max(1, len(restored))
        more = 0.0 if self.all_controls else len(random) * again
        return (
            self.seeds * (attacks + victims + more) + UNITS["lm"] * self.naturalness + UNITS["persons"] * self.persons
        )

    def check(self) -> None:
        """Refuse values that no audit can have."""
        if not 0 < self.leak <= 1:
            given = option("leak", f"{self.leak:g}")
            raise InputError(f"{given}: give a share above 0 and at most 1; the paper's is 0.05")
        if self.leak_by not in get_args(LeakBy):
            raise InputError(f"{option('leak_by', self.leak_by)}: use {' or '.join(get_args(LeakBy))}")

    def settings_for(self, manifest: dict[str, Any] | None) -> AuditSettings:
        """Return the settings of the manifest, else of the protocol, with the user's changes."""
        base = settings_of(manifest) if manifest else replace(publication(RANDOM, self.protocol), hide=NOTHING)
        default = AuditSettings(base.filters, base.candidates, base.speed, base.hide, *victim_settings(self.protocol))
        chosen = settings.load(self.config, default) if self.config else default
        chosen = settings.override(chosen, list(self.set))
        changed = (chosen.victim, chosen.training) != (default.victim, default.training)
        if changed and TRANSFORMER not in self.victims:
            raise InputError(
                f"the settings victim.* and training.* do not apply to {option('victim', ','.join(self.victims))}; "
                f"leave them out or use {option('victim', TRANSFORMER)}"
            )
        return chosen

    def open_cache(self) -> Cache:
        """Open the cache. It is derived from clean data, so it must lie outside the release."""
        private = self.private_folder
        folder = self.cache or (private / "audit" if private.is_dir() else default_folder())
        if folder.resolve().is_relative_to(self.release.path.resolve()):
            raise InputError(f"{option('cache', folder)} lies inside the release {self.release}; choose another folder")
        return open_cache(folder)


def parse_victims(text: str | None, everybody: bool = False) -> tuple[str, ...]:
    """Read victims from the command line. The default is those that train in seconds, for everybody the paper's too."""
    if text is None:
        return (*DEFAULT_VICTIMS, *([TRANSFORMER] if everybody else []))
    names = known_names(text, "victim", "victim", VICTIMS)
    if not names:
        raise InputError(f"{option('victim', text)} names no victim; choose from {', '.join(VICTIMS)}")
    return tuple(names)
