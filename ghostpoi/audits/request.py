"""What an auditor can ask for: adversaries, victim, leak, seeds, settings."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ghostpoi import settings
from ghostpoi.attack.victims import VICTIMS, victim_settings
from ghostpoi.audits.cache import Cache, default_folder, open_cache
from ghostpoi.audits.controls import (
    CLEAN,
    LEAK_MIXED,
    LEAK_ONLY,
    LEAK_STAY,
    RANDOM,
    RANDOM_MATCHED,
    default_adversaries,
)
from ghostpoi.audits.grid import Contest
from ghostpoi.audits.match import publisher_of
from ghostpoi.draw.methods.baselines import Random
from ghostpoi.draw.publication import publication
from ghostpoi.errors import InputError
from ghostpoi.formats import Source
from ghostpoi.options import option
from ghostpoi.release.manifest import read_manifest, settings_of
from ghostpoi.settings import ModelSettings, Settings, Training, TrajectoryLM

RELEASE = "release"  # what the grid calls the audited release
CONTROL_CONTESTS = ((CLEAN, CLEAN), (CLEAN, LEAK_ONLY), (CLEAN, LEAK_STAY), (RELEASE, LEAK_MIXED))
LM_UNITS = 0.5  # work of training the trajectory LM, in victims; only for the progress bar


@dataclass(frozen=True)
class AuditSettings(Settings):
    """All settings of `audit`. The protocol sets the defaults of the victim."""

    victim: ModelSettings = field(default_factory=lambda: victim_settings("strong")[0])
    training: Training = field(default_factory=lambda: victim_settings("strong")[1])
    lm: ModelSettings = field(default_factory=lambda: TrajectoryLM().model)
    lm_training: Training = field(default_factory=lambda: TrajectoryLM().training)


def random_controls(manifest: dict[str, Any] | None) -> list[str]:
    """Return the random releases that a release is compared with. The second needs the sets of a method of ours."""
    publisher = publisher_of(manifest)
    return [RANDOM] if publisher is None or type(publisher) is Random else [RANDOM, RANDOM_MATCHED]


@dataclass(frozen=True, kw_only=True)
class AuditRequest:
    """What the auditor asks for."""

    file: Source
    release: Source
    adversaries: tuple[str, ...] = field(default_factory=default_adversaries)
    victim: str = "transformer"
    leak: float = 0.05
    seeds: int = 3
    protocol: str = "strong"
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    mapping: dict[str, str] = field(default_factory=dict)
    set: Sequence[str] = ()
    config: Path | None = None
    private: Path | None = None  # the private folder of the release; None: next to it
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

    def work(self) -> float:
        """Return all units of work for the progress bar, in victims."""
        random = random_controls(read_manifest(self.release.path) if self.release.path.is_dir() else None)
        victims = len(self.contests(random)) + len(random) * (not self.all_controls)
        return self.seeds * victims + LM_UNITS * self.naturalness

    def check(self) -> None:
        """Refuse values that no audit can have."""
        if not 0 < self.leak <= 1:
            raise InputError(
                f"{option('leak', f'{self.leak:g}')}: give a share above 0 and at most 1; the paper's is 0.05"
            )
        if self.victim not in VICTIMS:
            raise InputError(
                f"{option('victim', self.victim)}: there is no such victim; choose from {', '.join(VICTIMS)}"
            )

    def settings_for(self, manifest: dict[str, Any] | None) -> AuditSettings:
        """Return the settings of the manifest, else of the protocol, with the user's changes."""
        base = settings_of(manifest) if manifest else publication(RANDOM, self.protocol)
        default = AuditSettings(base.filters, base.candidates, base.speed, *victim_settings(self.protocol))
        chosen = settings.load(self.config, default) if self.config else default
        chosen = settings.override(chosen, list(self.set))
        if self.victim != "transformer" and (chosen.victim, chosen.training) != (default.victim, default.training):
            raise InputError(
                f"the settings victim.* and training.* do not apply to {option('victim', self.victim)}; leave them out "
                f"or use {option('victim', 'transformer')}"
            )
        return chosen

    def open_cache(self) -> Cache:
        """Open the cache. It is derived from clean data, so it must lie outside the release."""
        private = self.private_folder
        folder = self.cache or (private / "audit" if private.is_dir() else default_folder())
        if folder.resolve().is_relative_to(self.release.path.resolve()):
            raise InputError(f"{option('cache', folder)} lies inside the release {self.release}; choose another folder")
        return open_cache(folder)
