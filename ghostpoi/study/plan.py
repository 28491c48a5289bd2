"""What a study asks for, read from its TOML file and checked."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.victims import VICTIMS
from ghostpoi.errors import InputError
from ghostpoi.publish.protocols import Publication, publication
from ghostpoi.settings import override

FOLDER = Path(__file__).parent / "studies"
KEYS = {"title", "methods", "adversaries", "leak", "seeds", "victims", "releases", "detector"}
SEEDS = 3
VICTIM = "transformer"


@dataclass(frozen=True)
class Variant:
    """A method with settings that differ from its own, e.g. `ghost rounds.outer=3`. Its text is its identity."""

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
    releases: tuple[int, ...] = ()  # how many releases of the same rows A11 holds
    detector: bool = False  # whether A12 is asked about every release


def names() -> list[str]:
    """The studies that come with ghostpoi."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str) -> Study:
    """A study by its name, or by the path of a TOML file."""
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    if not path.is_file():
        raise InputError(f"there is no study {name!r}; studies are {', '.join(names())}, or give a .toml file")
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise InputError(f"{path} is not valid TOML: {e}") from None
    if unknown := set(table) - KEYS:
        raise InputError(f"{path}: unknown key {sorted(unknown)[0]!r}; a study has {', '.join(sorted(KEYS))}")
    for key in ("methods", "adversaries"):
        if not (isinstance(table.get(key), list) and table[key] and all(isinstance(v, str) for v in table[key])):
            raise InputError(f"{path}: {key!r} must be a list of names")
    for adversary in table["adversaries"]:
        known = [name for name, a in ADVERSARIES.items() if not a.many_releases]  # `releases` asks for the others
        if adversary not in known:
            raise InputError(f"{path}: there is no adversary {adversary!r}; there are {', '.join(known)}")
    leak = table.get("leak", [0.05])
    if not (isinstance(leak, list) and all(isinstance(r, (int, float)) and 0 < r <= 1 for r in leak)):
        raise InputError(f"{path}: 'leak' must be a list of ratios above 0 and at most 1")
    seeds = table.get("seeds", SEEDS)
    if not (isinstance(seeds, int) and seeds >= 1):
        raise InputError(f"{path}: 'seeds' must be a whole number, at least 1")
    victims = table.get("victims", [VICTIM])
    for victim in victims:
        if victim not in VICTIMS:
            raise InputError(f"{path}: there is no victim {victim!r}; there are {', '.join(VICTIMS)}")
    releases = table.get("releases", [])
    if not (isinstance(releases, list) and all(isinstance(k, int) and k >= 1 for k in releases)):
        raise InputError(f"{path}: 'releases' must be a list of whole numbers, at least 1")
    methods = list(dict.fromkeys([*table["methods"], "random"]))  # the control stands in every study
    variants = tuple(Variant(" ".join(text.split())) for text in methods)
    for variant in variants:
        variant.settings("strong")
    return Study(
        path.stem, table.get("title", path.stem), variants, tuple(table["adversaries"]), tuple(map(float, leak)), seeds,
        tuple(victims), tuple(releases), bool(table.get("detector", False)),
    )  # fmt: skip
