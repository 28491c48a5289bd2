"""The plan of a study, read from its TOML file and checked."""

import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.audits.controls import RANDOM
from ghostpoi.draw.publication import Publication, publication
from ghostpoi.errors import InputError
from ghostpoi.settings import override
from ghostpoi.study.store import short_hash

FOLDER = Path(__file__).parent / "studies"
VICTIM = "transformer"
STUDIES = ("main", "leak", "rounds", "weights", "entropy", "manifold")  # of the paper's tables and figures
PROTOCOLS = ("strong", "paper")
ALL = "all"  # adversaries: those of the package that attack one release


@dataclass(frozen=True)
class Variant:
    """A method with changed settings, e.g. `ghost rounds.outer=3`. Its text is its identity."""

    text: str

    @property
    def method(self) -> str:
        return self.text.partition(" ")[0]

    @property
    def changes(self) -> list[str]:
        return self.text.split()[1:]

    def settings(self, protocol: str) -> Publication:
        return override(publication(self.method, protocol), self.changes, self.text)

    def recorded(self, protocol: str) -> dict[str, Any]:
        """Return the settings as results record them, without what older cells lack and these settings do not use."""
        found = self.settings(protocol).public()
        del found["hide"]  # studies show all venues, as the paper does
        del found["identity"]["times"]  # studies compare venues at their clean times
        if not self.rotated:
            del found["identity"]
        if found["candidates"]["category"] == "exact":
            del found["candidates"]["category"], found["candidates"]["plausibility"]
        return found

    def settings_hash(self, protocol: str) -> str:
        """Return the hash under which results record the settings."""
        return short_hash(self.recorded(protocol))

    @property
    def rotated(self) -> bool:
        """Whether the release has pseudonyms that change."""
        return self.settings("strong").rotates_users


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
    naturalness: bool = True  # whether a trajectory LM judges every release
    distance: bool = False  # whether guesses are judged by their distance, too
    fewer: Mapping[str, int] = field(default_factory=dict)  # seeds on larger data, by its name

    def on(self, data: str) -> "Study":
        """Return the study with the seeds that it plans for some data."""
        return replace(self, seeds=self.fewer.get(data, self.seeds))

    def attackers(self, method: str) -> list[str]:
        """Return the adversaries that a method faces: some need pseudonyms that change."""
        rotated = Variant(method).rotated
        return [name for name in self.adversaries if rotated or not ADVERSARIES[name].needs_pseudonyms]


def _all(values: Any, *types: type) -> bool:
    return isinstance(values, list) and all(type(value) in types for value in values)


KEYS: dict[str, tuple[Any, str, Callable[[Any], bool]]] = {  # default, what the value must be, whether it is
    "title": ("", "a text", lambda v: isinstance(v, str)),
    "methods": ([], "a list of methods", lambda v: bool(v) and _all(v, str)),
    "adversaries": ([], 'a list of adversaries or "all"', lambda v: v == ALL or (bool(v) and _all(v, str))),
    "leak": ([0.05], "a list of ratios above 0, up to 1", lambda v: _all(v, int, float) and all(0 < r <= 1 for r in v)),
    "seeds": (3, "a whole number of at least 1", lambda v: type(v) is int and v >= 1),
    "victims": ([VICTIM], "a list of victims", lambda v: bool(v) and _all(v, str)),
    "releases": ([], "a list of whole numbers of at least 1", lambda v: _all(v, int) and all(k >= 1 for k in v)),
    "detector": (False, "true or false", lambda v: isinstance(v, bool)),
    "naturalness": (True, "true or false", lambda v: isinstance(v, bool)),
    "distance": (False, "true or false", lambda v: isinstance(v, bool)),
    "control": (True, "true or false", lambda v: isinstance(v, bool)),
    "fewer": (
        {},
        "a table of data and its number of seeds",
        lambda v: isinstance(v, dict) and all(type(n) is int and n >= 1 for n in v.values()),
    ),
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
    for key, (_, what, fits) in KEYS.items():
        if not fits(table[key]):
            raise InputError(f"{path}: {key!r} must be {what}")
    # `releases` adds those of many releases; studies have no columns but the venue's.
    single = [name for name, a in ADVERSARIES.items() if not (a.many_releases or a.needs_columns)]
    if table["adversaries"] == ALL:
        # Those that predict are named: a study that only says "all" is about what victims learn from restored sessions.
        builtin = [name for name in single if name in ADVERSARIES.builtin]
        table["adversaries"] = [name for name in builtin if not ADVERSARIES[name].predicts]
    named: list[tuple[str, list[str], Collection[str]]] = [("adversary", table["adversaries"], single)]
    if table["victims"] != [VICTIM]:
        from ghostpoi.attack.victims import VICTIMS  # needs torch, which the plans of most studies do without

        named.append(("victim", table["victims"], list(VICTIMS)))
    for kind, wanted, known in named:
        if missing := [one for one in wanted if one not in known]:
            raise InputError(f"{path}: there is no {kind} {missing[0]!r}; choose from {', '.join(known)}")
    methods = (*table["methods"], RANDOM) if table.pop("control") else table["methods"]
    variants = dict.fromkeys(Variant(" ".join(text.split())) for text in methods)
    for variant in variants:
        variant.settings("strong")  # refuses unknown methods and settings
    table |= {key: tuple(dict.fromkeys(table[key])) for key in ("adversaries", "victims", "releases")}
    leak, title = tuple(dict.fromkeys(map(float, table["leak"]))), table["title"] or path.stem
    return Study(path.stem, **table | {"title": title, "methods": tuple(variants), "leak": leak})
