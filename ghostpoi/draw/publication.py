"""The settings of `protect`, its presets (`--for`), both protocols, and the device; what is asked of the publisher.

Nothing here needs torch unless a model runs.
"""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.pseudonyms import CHANGING
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.draw.methods import METHODS, AnyMethod
from ghostpoi.draw.methods.base import VENUE_USE, FreeDraw, KeepsCategory
from ghostpoi.draw.methods.crowd import Crowd
from ghostpoi.errors import InputError
from ghostpoi.options import option
from ghostpoi.plugins import need
from ghostpoi.progress import Say
from ghostpoi.settings import IdentitySettings, ModelSettings, Published, Rounds, Training, TrajectoryLM, override

if TYPE_CHECKING:
    import torch
    from torch import Tensor
    from torch.optim import Optimizer

    from ghostpoi.models.transformer import CausalTransformer

Protocol = Literal["strong", "paper"]


@dataclass(frozen=True)
class Publication(Published):
    """All settings of `protect`."""

    method: AnyMethod = field(default_factory=Crowd)
    identity: IdentitySettings = field(default_factory=IdentitySettings)
    rounds: Rounds = field(default_factory=Rounds)
    surrogate: ModelSettings = field(default_factory=ModelSettings)
    training: Training = field(default_factory=lambda: Training(patience=5))
    lm: ModelSettings = field(default_factory=lambda: TrajectoryLM().model)
    lm_training: Training = field(default_factory=lambda: TrajectoryLM().training)

    @property
    def trajectory_lm(self) -> TrajectoryLM:
        return TrajectoryLM(self.lm, self.lm_training)

    @property
    def hides_users(self) -> bool:
        """Whether user ids are replaced by pseudonyms."""
        return self.identity.pseudonyms != "keep"

    @property
    def reorders(self) -> bool:
        """Whether rows are put in the order of time and user id, because that of the file would show too much."""
        return self.hides_users or self.identity.times != "keep"

    @property
    def rotates_users(self) -> bool:
        """Whether the pseudonyms of a user change with time."""
        return self.identity.pseudonyms in CHANGING

    @property
    def learned(self) -> bool:
        """Whether candidate sets follow how venues are used instead of categories."""
        return self.candidates.category == "learned" and not self.method.own_sets

    @property
    def keeps_category(self) -> KeepsCategory:
        """What a substitute has in common with the clean venue."""
        return self.method.keeps_category if self.method.own_sets or self.candidates.category == "exact" else "any"

    @property
    def published_aggregates(self) -> tuple[str, ...]:
        """What the draws show about the whole file, in addition to each row's candidate set."""
        return (*self.method.published_aggregates, *([VENUE_USE] if self.learned else []))

    def public(self) -> dict[str, dict[str, Any]]:
        """Return all settings as plain values, by section. None of them is secret."""
        return {
            section.name: {f.name: getattr(group, f.name) for f in fields(group)}
            for section in fields(self)
            if fields(group := getattr(self, section.name))
        }


WALK_UNITS = 3.0  # a round of scoring takes about as long as this many epochs; only for estimates of the time left


@dataclass(frozen=True)
class Task:
    """All that decides what is released, but for the seed."""

    settings: Publication
    sessions: Sessions
    vocabulary: Vocabulary
    candidates: Candidates
    trajectory_lm: "CausalTransformer | None" = None


@dataclass(frozen=True)
class Checkpoint:
    """The surrogate, its optimizer and the number of finished rounds, stored after every round."""

    path: Path
    key: str  # of the data, the settings and the seed: a checkpoint of another run is refused
    say: Say

    def store(self, surrogate: "CausalTransformer", optimizer: "Optimizer", done: int) -> None:
        from ghostpoi.models import trajectory_lm

        tensors = {f"model.{name}": weight for name, weight in surrogate.state_dict().items()}
        for number, state in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{number}.{name}": value for name, value in state.items()}
        trajectory_lm.write_tensors(self.path, tensors, {"key": self.key, "done": done})

    def load(self, surrogate: "CausalTransformer", optimizer: "Optimizer") -> int | None:
        """Restore weights and optimizer; return the number of finished rounds, None if there is nothing to resume."""
        from ghostpoi.models import trajectory_lm

        try:
            tensors, note = trajectory_lm.read_tensors(self.path, surrogate.device)
            problem = None if note.get("key") == self.key else "belongs to other data or settings"
        except FileNotFoundError:
            return None
        except trajectory_lm.Damaged as e:
            problem = f"is damaged ({e})"
        if problem:
            self.say(f"the checkpoint {self.path} {problem}; starting again from the first round")
            return None
        surrogate.load_state_dict({name: tensors[f"model.{name}"] for name in surrogate.state_dict()})
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            if name.startswith("optimizer."):
                _, number, field = name.split(".", 2)
                state.setdefault(int(number), {})[field] = value
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
        return int(str(note["done"]))


def publication(method: str = "crowd", protocol: str = "strong") -> Publication:
    """Return the settings of a protocol, with a method by name."""
    if method not in METHODS:
        near = difflib.get_close_matches(method, METHODS, 1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(METHODS)}"
        raise InputError(f"there is no method {method!r}; {hint}")
    base = Publication(method=METHODS[method])
    if protocol == "strong":
        return base
    if protocol == "paper":
        return replace(
            base,
            speed=replace(base.speed, empty="ignore"),
            surrogate=replace(base.surrogate, tied=True),
            training=replace(base.training, patience=3),
        )
    raise InputError(f"there is no protocol {protocol!r}; choose one of {', '.join(get_args(Protocol))}")


def with_identity(
    settings: Publication, given: Mapping[str, str | None], assignments: Sequence[str] = ()
) -> Publication:  # fmt: skip
    """Apply --pseudonyms and --times, if given; refuse one that contradicts an assignment of --set."""
    for name, kind in given.items():
        if kind is None:
            continue
        kinds = get_args(next(f.type for f in fields(IdentitySettings) if f.name == name))
        if kind not in kinds:
            raise InputError(f"{option(name, kind)}: use {', '.join(kinds[:-1])} or {kinds[-1]}")
        setting, old = f"identity.{name}", getattr(settings.identity, name)
        if kind != old and any(text.partition("=")[0].strip() == setting for text in assignments):
            raise InputError(
                f"{option(name, kind)} and {option('set', f'{setting}={old}')} contradict each other; give one of them"
            )
        settings = override(settings, [f"{setting}={kind}"])
    return settings


# Which methods read a section of settings, and what others are like.
READERS: dict[str, tuple[Callable[[AnyMethod], bool], str]] = {
    "candidates": (lambda method: not method.own_sets, "that builds its own candidate sets"),
    "speed": (lambda method: not isinstance(method, FreeDraw), "that may release any venue"),
    "rounds": (lambda method: method.needs_torch, "without models"),
    **dict.fromkeys(("surrogate", "training"), (lambda method: method.needs_surrogate, "without a surrogate")),
    **dict.fromkeys(("lm", "lm_training"), (lambda method: method.needs_trajectory_lm, "without a trajectory LM")),
}  # fmt: skip
IN_FILES = ("rounds", "surrogate", "training", "lm", "lm_training")  # a file may serve several methods, and audits


def check_read(settings: Publication, base: Publication, stated: Publication) -> None:
    """Refuse settings that the method does not read, if they differ from those of `base`.

    `stated` has those that no file states.
    """
    for section, (reads, kind) in READERS.items():
        for key, value in vars(getattr(stated if section in IN_FILES else settings, section)).items():
            if value != getattr(getattr(base, section), key) and not reads(settings.method):
                others = ", ".join(name for name, method in METHODS.items() if reads(method))
                raise InputError(
                    f"{section}.{key}={value} has no effect on a method {kind}; leave it out, or choose a method that "
                    f"reads it with {option('method')}: {others}"
                )
    value = settings.candidates.plausibility
    if value != base.candidates.plausibility and settings.candidates.category != "learned":
        raise InputError(
            f"candidates.plausibility={value} has no effect without learned candidate sets; leave it out, or add "
            f"{option('set', 'candidates.category=learned')}"
        )


def device_for(name: str, settings: Publication) -> "torch.device | None":
    """Return the device called `auto`, `cpu` or `cuda`; None if the method needs no torch, whatever is asked for."""
    if settings.method.needs_torch:
        need("models")
        from ghostpoi.models.devices import device

        return device(name)
    if name not in ("auto", "cpu", "cuda"):
        raise InputError(f"{option('device', name)}: unknown device; use auto, cpu or cuda")
    return None


CROWDS = "method."  # settings of the default method alone
WITHHOLD = "no_candidate"  # an option, not a setting
PRESETS: dict[str, dict[str, str]] = {
    "partner": {"identity.pseudonyms": "file", "identity.times": "minute", WITHHOLD: "keep"},
    "research": {
        "identity.pseudonyms": "session", "identity.times": "hour", "hide.min_visitors": "2", WITHHOLD: "withhold",
    },
    "public": {
        "identity.pseudonyms": "session", "identity.times": "shift", "hide.min_visitors": "3", "method.size": "64",
        WITHHOLD: "withhold",
    },
}  # fmt: skip


def preset(name: str, method: str) -> dict[str, str]:
    """Return what a preset sets for a method; refuse an unknown name."""
    if name not in PRESETS:
        raise InputError(f"{option('purpose', name)}: use {', '.join(list(PRESETS)[:-1])} or {list(PRESETS)[-1]}")
    return {key: value for key, value in PRESETS[name].items() if method == "crowd" or not key.startswith(CROWDS)}


def with_preset(settings: Publication, name: str | None, method: str) -> Publication:
    """Return settings with those of a preset, if one is named."""
    if name is None:
        return settings
    chosen = preset(name, method)
    return override(settings, [f"{key}={value}" for key, value in chosen.items() if key != WITHHOLD])


def described(settings: Publication, name: str, method: str, withhold: bool) -> dict[str, dict[str, str]]:
    """Return what a manifest says about a preset: its name, what it sets, and which of that other options changed."""
    if not name:
        return {}
    public, own = settings.public(), preset(name, method)
    found = [] if own == PRESETS[name] else ["method"]
    for key, value in own.items():
        section, _, field = key.partition(".")
        now = ("withhold" if withhold else "keep") if key == WITHHOLD else str(public[section][field])
        found += [] if now == value else [key]
    sets = ", ".join(f"{key}={value}" for key, value in PRESETS[name].items())
    return {"preset": {"name": name, "sets": sets, "changed": ", ".join(found)}}
