"""The plan of a study, read from its TOML file and checked."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.victims import VICTIMS
from ghostpoi.errors import InputError
from ghostpoi.publish.protocols import Publication, publication
from ghostpoi.settings import override

FOLDER = Path(__file__).parent / "studies"
VICTIM = "transformer"
CONTROL = "random"  # every study measures this method too


@dataclass(frozen=True)
class Variant:
    """A method with changed settings, e.g. `ghost rounds.outer=3`. Its text is its identity."""

    text: str

    @property
    def method(self) -> str:
        return self.text.split()[0]

    @property
    def changes(self) -> list[str]:
        return self.text.split()[1:]

    def settings(self, protocol: str) -> Publication:
        return override(publication(self.method, protocol), self.changes, self.text)


@dataclass(frozen=True)
class Study:
    """Methods against adversaries at leak ratios, over seeds."""

    name: str
    title: str
    methods: tuple[Variant, ...]
    adversaries: tuple[str, ...]
    leak: tuple[float, ...]
    seeds: int
    victims: tuple[str, ...] = (VICTIM,)
    releases: tuple[int, ...] = ()  # the numbers of releases that A11 holds
    detector: bool = False  # whether A12 examines every release


def _list_of(fits: Callable[[Any], bool], least: int = 1) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and len(value) >= least and all(map(fits, value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 1


def _is_ratio(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value <= 1


KEYS: dict[str, tuple[Any, Callable[[Any], bool], str]] = {  # default, check, what the value must be
    "title": ("", lambda value: isinstance(value, str), "a text"),
    "methods": ([], _list_of(_is_text), "a list of methods"),
    "adversaries": ([], _list_of(_is_text), "a list of adversaries"),
    "leak": ([0.05], _list_of(_is_ratio, 0), "a list of ratios above 0 and at most 1"),
    "seeds": (3, _is_count, "a whole number of at least 1"),
    "victims": ([VICTIM], _list_of(_is_text), "a list of victims"),
    "releases": ([], _list_of(_is_count, 0), "a list of whole numbers of at least 1"),
    "detector": (False, lambda value: isinstance(value, bool), "true or false"),
}


def names() -> list[str]:
    """Return the names of the studies that come with ghostpoi."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str) -> Study:
    """Read a study by its name, or by the path of a TOML file."""
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    if not path.is_file():
        raise InputError(f"there is no study {name!r}; choose from {', '.join(names())}, or give a .toml file")
    try:
        given = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise InputError(f"{path} is not valid TOML ({e}); correct it") from None
    if unknown := sorted(set(given) - set(KEYS)):
        raise InputError(f"{path}: unknown key {unknown[0]!r}; a study has {', '.join(sorted(KEYS))}")
    table = {key: given.get(key, default) for key, (default, _, _) in KEYS.items()}
    for key, (_, fits, what) in KEYS.items():
        if not fits(table[key]):
            raise InputError(f"{path}: {key!r} must be {what}")
    for kind, key, known in (("adversary", "adversaries", ADVERSARIES), ("victim", "victims", VICTIMS)):
        for value in table[key]:
            if value not in known:
                raise InputError(f"{path}: there is no {kind} {value!r}; choose from {', '.join(known)}")
    variants = dict.fromkeys(Variant(" ".join(text.split())) for text in (*table["methods"], CONTROL))
    for variant in variants:
        variant.settings("strong")  # refuses unknown methods and settings
    return Study(
        path.stem, table["title"] or path.stem, tuple(variants), tuple(table["adversaries"]),
        tuple(map(float, table["leak"])), table["seeds"], tuple(table["victims"]), tuple(table["releases"]),
        table["detector"],
    )  # fmt: skip
