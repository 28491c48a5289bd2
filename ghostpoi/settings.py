"""User settings as frozen dataclasses. Each field has a help text and a range, which is checked on construction.

`--set section.key=value` or a TOML file changes them. The `repr` of a section is its identity.
"""

import difflib
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import numpy as np

from ghostpoi.errors import InputError
from ghostpoi.options import option

Precision = Literal["float32", "bfloat16"]  # of matrix products; weights stay float32
LEAST_GAP_KM = 0.1  # between regions: the keys of smaller cells would not fit into 64 bits


def setting(default: Any, help: str, low: float | None = None, high: float | None = None) -> Any:
    """Declare a field with its help text and, for numbers, its range."""
    return field(default=default, metadata={"help": help, "low": low, "high": high})


class Section:
    """A group of settings. The constructor checks types and ranges."""

    def __post_init__(self) -> None:
        for f in fields(self):  # type: ignore[arg-type]
            _check(f, getattr(self, f.name))


@dataclass(frozen=True)
class FilterSettings(Section):
    """How check-ins are filtered, cut into sessions and split."""

    min_poi_checkins: int = setting(10, "drop venues with fewer check-ins (all rows count, duplicates too)", 1)
    min_user_checkins: int = setting(10, "afterwards, drop users with fewer check-ins", 1)
    session_gap_s: int = setting(86_400, "a gap longer than this many seconds starts a new session", 1)
    min_session_length: int = setting(3, "drop sessions with fewer check-ins", 1)
    train_share: float = setting(0.8, "share of each user's sessions to train on, earliest first", 0, 1)
    val_share: float = setting(0.1, "share of each user's sessions to validate on, after the training sessions", 0, 1)


@dataclass(frozen=True)
class CandidateSettings(Section):
    """The candidate rule: which nearby venues may replace a venue."""

    radius_km: float = setting(1.0, "nominal radius of a candidate set", 1e-6, 20_000)
    min_candidates: int = setting(6, "widen the radius while a set is smaller than this", 0)
    widen_factor: float = setting(1.5, "factor by which each widening multiplies the radius", 1, 100)
    max_widenings: int = setting(4, "maximum number of widenings", 0, 100)
    max_candidates: int = setting(32, "maximum size of a candidate set, nearest first (K)", 1)
    category: Literal["exact", "learned", "any"] = setting(
        "exact",
        "which nearby venues are candidates: exact (those of the same category), learned (those visited at similar "
        "hours and for similar stays) or any (all)",
    )
    plausibility: float = setting(0.6, "with category=learned: minimum similarity of a candidate", -1, 1)


@dataclass(frozen=True)
class SpeedSettings(Section):
    """The speed mask, which excludes candidates that would require too fast a step."""

    limit_kmh: float = setting(60.0, "exclude candidates that imply a higher speed than this", 1e-6)
    min_gap_s: float = setting(60.0, "a time gap counts as at least this many seconds", 1e-6)
    empty: Literal["strict", "ignore"] = setting(
        "strict",
        "when the mask excludes every candidate: strict keeps the clean venue if it is within the limit, otherwise "
        "takes the candidate with the lowest speed; ignore drops the mask at that position",
    )


@dataclass(frozen=True)
class HideSettings(Section):
    """Which venues a release never shows. Their rows draw from the other venues of their sets."""

    homes: bool = setting(True, "never release a venue whose category says that people live there")
    categories: str = setting("", "never release venues of these categories either: ids or names, separated by ;")
    min_visitors: int = setting(1, "never release a venue with fewer distinct visitors", 1)
    new: bool = setting(False, "never release a venue that was created in the period of the file, as its id says")


@dataclass(frozen=True)
class RegionSettings(Section):
    """How venues are divided into regions, each with a vocabulary, models and crowds of its own.

    The neural methods score every venue of a region at every position (an exact softmax), so their cost grows with
    positions x venues. `most_venues` bounds the second factor: the cost of a world then grows with its rows alone.
    `most_rows` bounds the memory that one region needs.
    """

    gap_km: float = setting(
        50.0, "venues closer than this, directly or through other venues, share a region", LEAST_GAP_KM, 20_000
    )
    # Minima: with fewer venues or rows, crowds would be cut and rows left genuine.
    most_venues: int = setting(30_000, "halve a region with more venues: the models' cost per row grows with them", 50)
    most_rows: int = setting(2_000_000, "halve a region with more check-ins: its memory grows with them", 1000)


@dataclass(frozen=True)
class IdentitySettings(Section):
    """The user ids and the times of a release."""

    pseudonyms: Literal["keep", "file", "session", "week"] = setting(
        "keep",
        "keep the user ids, or replace them by random ones: one per person and file, or one per session (of at most "
        "24 hours) or week of a person",
    )
    times: Literal["keep", "minute", "hour", "part-of-day", "shift"] = setting(
        "keep",
        "keep the times, make them coarser (the beginning of the minute, the hour or a quarter of the day), or move "
        "each session by a random number of whole weeks and make it coarser to the hour (shift)",
    )


@dataclass(frozen=True)
class ModelSettings(Section):
    """The shape of a causal Transformer."""

    dim: int = setting(128, "width of embeddings and hidden states", 1)
    heads: int = setting(4, "attention heads; dim must be a multiple", 1)
    layers: int = setting(2, "Transformer blocks", 1)
    feed_forward: int = setting(256, "width of the feed-forward layers", 1)
    max_positions: int = setting(100, "positions that the model sees at once; longer sessions are cut into windows", 2)
    dropout: float = setting(0.2, "dropout on the embedding and on each residual branch", 0, 0.99)
    tied: bool = setting(False, "use the input embedding as the output matrix")
    start: float = setting(0.02, "standard deviation of the initial embeddings (PyTorch's default is 1)", 0, 100)


@dataclass(frozen=True)
class Training(Section):
    """How a model is trained."""

    learning_rate: float = setting(1e-3, "step size of AdamW", 0)
    weight_decay: float = setting(0.01, "weight decay of AdamW", 0)
    batch_sessions: int = setting(256, "sessions in a batch", 1)
    epochs: int = setting(60, "maximum number of epochs", 0)
    patience: int = setting(0, "stop after this many epochs without a better validation acc@1; 0 runs all epochs", 0)
    clip: float = setting(1.0, "maximum gradient norm; 0 disables clipping", 0)
    precision: Precision = setting("float32", "data type of matrix products; weights stay float32")


@dataclass(frozen=True)
class Rounds(Section):
    """How often the publisher substitutes and refits."""

    outer: int = setting(5, "rounds of substitution (T_outer)", 1)
    inner: int = setting(5, "epochs of the warm-up and of each refit between rounds (E_inner)", 0)
    precision: Precision = setting("float32", "data type of matrix products during scoring")


@dataclass(frozen=True)
class TrajectoryLM:
    """How the trajectory LM T_psi is trained."""

    model: ModelSettings = field(default_factory=lambda: ModelSettings(tied=True))
    # 9 epochs give clean NYC a naturalness of -3.82; the paper reports -3.83.
    training: Training = field(default_factory=lambda: Training(epochs=9))


@dataclass(frozen=True)
class Settings:
    """All settings, by section."""

    filters: FilterSettings = field(default_factory=FilterSettings)
    candidates: CandidateSettings = field(default_factory=CandidateSettings)
    speed: SpeedSettings = field(default_factory=SpeedSettings)


@dataclass(frozen=True)
class Published(Settings):
    """All settings, with what a release hides."""

    hide: HideSettings = field(default_factory=HideSettings)


@dataclass(frozen=True)
class Divided(Settings):
    """All settings, with those of regions, which belong to a dataset and not to a release."""

    regions: RegionSettings = field(default_factory=RegionSettings)


S = TypeVar("S", bound=Settings)


def changed(settings: S, assignments: list[str], config: Path | None) -> S:
    """Apply a settings file, then assignments."""
    return override(load(config, settings) if config else settings, assignments)


def override(settings: S, assignments: list[str], place: str = "") -> S:
    """Apply `section.key=value` assignments in order. `place`: where they come from, if not from an option."""
    for text in assignments:
        name, equals, value = text.partition("=")
        section, dot, key = name.strip().partition(".")
        if not (equals and dot):
            given, example = option("set", text, shown=repr), option("set", "candidates.radius_km=2")
            raise InputError(f"{given} is not of the form section.key=value, e.g. {example}")
        where = f"{place} {text}" if place else option("set", text)
        settings = _with(settings, section, key, value.strip(), where)
    return settings


COLUMNS = "columns"  # the section that says which column holds each field
SHARED = (COLUMNS, "limits", "persons", "method", "identity")  # sections that only some commands use


def load(path: Path, settings: S) -> S:
    """Apply the [section] tables of a TOML file. All commands read the same file, each what concerns it."""
    known = {f.name for f in fields(settings)}
    for section, table in _tables(path).items():
        if section in SHARED and section not in known and isinstance(table, dict):
            continue
        if not isinstance(table, dict):
            raise InputError(f"{path}: {section!r} is outside a [section]; put it under one of {_sections(settings)}")
        for key, value in table.items():
            settings = _with(settings, section, key, value, f"{path}: {section}.{key}")
    return settings


def columns_of(path: Path | None) -> dict[str, str]:
    """Return which column holds each field, as a settings file states it."""
    found = _tables(path).get(COLUMNS, {}) if path else {}
    if not isinstance(found, dict) or not all(isinstance(column, str) for column in found.values()):
        raise InputError(f'{path}: [{COLUMNS}] holds lines such as poi = "venue_id"; correct it')
    return found


OFF = re.compile(r"# (\w+) = (?:[^#]*?)(\s*#.*)?")  # a line that shows a default or an example


def settings_file(name: str, given: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a commented settings file for a file of check-ins: what is given stands in it, the rest is off."""
    blocks = Path(__file__).with_name("settings_file.toml").read_text("utf-8").strip().split("\n\n")
    lines = [f"# For {''.join(c if c.isprintable() else '?' for c in name)}"]
    for block in blocks:
        found = re.match(r"\[(\w+)\]", block)
        left = (
            {key: json.dumps(value, ensure_ascii=False) for key, value in given.get(found[1], {}).items()}
            if found
            else {}
        )
        for line in block.splitlines():
            off = OFF.fullmatch(line)
            lines.append(f"{off[1]} = {left.pop(off[1])}{off[2] or ''}" if off and off[1] in left else line)
        lines += [*(f"{key} = {value}" for key, value in left.items()), ""]
    return "\n".join(lines)


def _tables(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as e:
        reason = (e.strerror or str(e)).lower()
        raise InputError(f"cannot read the settings file {path}: {reason}; check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise InputError(f"the settings file {path} is not valid TOML ({e}); correct it") from None


def _sections(settings: Settings) -> str:
    return ", ".join(f.name for f in fields(settings))


def _with(settings: S, section: str, key: str, value: Any, where: str) -> S:
    group = getattr(settings, section, None) if section in {f.name for f in fields(settings)} else None
    if group is None:
        raise InputError(f"{where}: there is no section {section!r}; sections are {_sections(settings)}")
    by_name = {f.name: f for f in fields(group)}
    if key not in by_name:
        near = difflib.get_close_matches(key, by_name, 1)
        hint = f"did you mean {section}.{near[0]}?" if near else f"it has {', '.join(by_name)}"
        raise InputError(f"{where}: section {section!r} has no setting {key!r}; {hint}")
    if isinstance(value, str):
        value = _parse(by_name[key].type, value)
    elif by_name[key].type is float and type(value) is int:
        value = float(value)  # so that 2 in TOML and 2 on the command line have the same `repr`
    try:
        return replace(settings, **{section: replace(group, **{key: value})})
    except InputError as e:
        raise InputError(f"{where}: {section}.{e.text}") from None


def _parse(kind: Any, text: str) -> Any:
    """Convert text from the command line to the field's type. Text that does not fit is returned for `_check`."""
    if kind is bool and text.lower() in ("true", "false", "yes", "no", "on", "off", "1", "0"):
        return text.lower() in ("true", "yes", "on", "1")
    try:
        return kind(text) if kind in (int, float) else text
    except ValueError:
        return text


def _check(f: Any, value: Any) -> None:
    name, kind = f.name, f.type
    if get_origin(kind) is Literal:
        if value not in get_args(kind):
            raise InputError(f"{name} must be one of {', '.join(get_args(kind))}, not {value!r}")
        return
    fits = isinstance(value, (int, float) if kind is float else kind)
    if not fits or (isinstance(value, bool) and kind is not bool):
        wanted = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}[kind]
        raise InputError(f"{name} must be {wanted}, not {value!r}")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        low, high = f.metadata.get("low"), f.metadata.get("high")
        if value != value or (low is not None and value < low) or (high is not None and value > high):
            bounds = [f"at least {low:g}" if low is not None else "", f"at most {high:g}" if high is not None else ""]
            limits = " and ".join(filter(None, bounds)) or "a number"
            raise InputError(f"{name} must be {limits}, not {value}")


def key_of(*parts: object) -> str:
    """Return a short hash of settings, arrays, plain values and dataclasses of these."""
    digest = hashlib.sha256()

    def feed(value: object) -> None:
        if isinstance(value, np.ndarray):
            digest.update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
        elif is_dataclass(value) and not isinstance(value, type):
            feed([type(value).__qualname__, *(getattr(value, f.name) for f in fields(value))])
        elif isinstance(value, list | tuple):
            digest.update(f"[{len(value)}]".encode())
            for part in value:
                feed(part)
        else:
            digest.update(f"{value!r}\x1f".encode())

    feed(parts)
    return digest.hexdigest()[:32]
