"""The finished cells of one study under one protocol, asked by method and key. What was not measured is None."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.audits.controls import CLEAN, FLOORS, ITSELF, LEAK_MIXED, LEAK_ONLY, LEAK_STAY, MARKOV, RANDOM
from ghostpoi.audits.measures.gaps import PRACTICAL, Spread, Verdict, against, gaps, spread
from ghostpoi.errors import InputError
from ghostpoi.study import plan
from ghostpoi.study.paper import contents
from ghostpoi.study.plan import PROTOCOLS, Study
from ghostpoi.study.store import Cell, Store, short_hash, some_seeds

LEAK = 0.05  # the paper's leak ratio
NO_LEAK = 0.0
MANY = "multi-release-"  # A11, before the number of releases that it holds
GAPS = ("prot", "mean", "worst")
SURVIVAL = "surv_"  # before the adversary of a survival gap
BEST_FLOOR = "best floor"  # the better of the floors, once both are measured
WORST_CASE = "worst case"  # the accuracy after the strongest adversary
WITHOUT_LEAK = "without leak"  # after the strongest that holds no leaked session
ON_MOVES = "A1 on moves"  # the accuracy on the release as it is, over steps to another POI
# The data that the reproduction measures, by name. Tokyo has the real order of visits and invented times.
NYC, TOKYO, GOWALLA = "dataset_TSMC2014_NYC", "foursquare_tokyo_sessions", "gowalla_california"
WITHOUT_RELEASE = (CLEAN, LEAK_ONLY, *FLOORS, MARKOV)  # controls that are the same for every release
PAPER_ADVERSARIES = ("none", "bridge", "frequency", "bigram")  # the adversaries of the paper, A1 to A4
KEY = ("kind", "method", "adversary", "leak", "victim")
CITY_NAMES = {"nyc": "nyc", "tky": "tky", "tokyo": "tky"}  # parts of names of data, with the city of the paper
Series = list[float]  # one value per seed


class Measure(NamedTuple):
    """A measure of a release; measures.toml explains the fields."""

    heading: str
    path: str
    clean: str = ""
    better: int = 0


MEASURES = {key: Measure(**measure) for key, measure in contents("measures").items()}


class Attack(NamedTuple):
    """What a victim reaches after the work of one adversary."""

    adversary: str
    accuracy: Spread


@dataclass(frozen=True)
class Results:
    """The cells of a study with one of its victims."""

    study: Study
    protocol: str
    cells: tuple[Cell, ...]
    victim: str
    data: str = NYC  # the name of the data that was measured
    part: str = "all"  # of the test steps: all, moves or last

    @staticmethod
    def read(folder: Path, study: str, protocol: str, data: str | None = None) -> "Results":
        """Read all cells of a study on one data set; `study` is a name or the path of a TOML file.

        Without a name, the data is NYC if there are cells of it, else what answers most of the plan.
        """
        if protocol not in PROTOCOLS:
            raise InputError(f"there is no protocol {protocol!r}; protocols are {', '.join(PROTOCOLS)}")
        asked = plan.load(study)
        cells, data = _asked_for(Store(folder, protocol), asked, data)
        return Results(asked.on(data), protocol, tuple(cells), asked.victims[0], data)

    def of(self, victim: str) -> "Results":
        """The same study with another victim."""
        return replace(self, victim=victim)

    @property
    def on_moves(self) -> "Results":
        """The same study, with accuracies over steps to another POI alone."""
        return replace(self, part="moves")

    @property
    def city(self) -> str | None:
        """The city of the paper that the data is."""
        return city_of(self.data)

    @property
    def methods(self) -> list[str]:
        """The methods of the plan: variants behind their method, the control last."""
        names = [v.text for v in self.study.methods]
        families = [*dict.fromkeys(name.split()[0] for name in names if name != RANDOM), RANDOM]
        return sorted(names, key=lambda name: (name == RANDOM, families.index(name.split()[0])))

    @property
    def unmeasured(self) -> list[str]:
        """The methods of the plan that have not faced all their adversaries yet."""
        plan = list(product([self.of(victim) for victim in self.study.victims], self.study.leak))
        asked = {m: [(of, a, leak) for of, leak in plan for a in self.attackers(m)] for m in self.methods}
        return [m for m, keys in asked.items() if any(of.series(m, a, leak) is None for of, a, leak in keys)]

    @property
    def measured(self) -> "Results":
        """The same study without the methods that have not faced all their adversaries yet."""
        unmeasured = self.unmeasured
        methods = tuple(v for v in self.study.methods if v.text not in unmeasured)
        return replace(self, study=replace(self.study, methods=methods))

    @property
    def adversaries(self) -> list[str]:
        """The adversaries of the plan, A11 once per number of releases."""
        return [*self.study.adversaries, *(f"{MANY}{count}" for count in self.study.releases)]

    def attackers(self, method: str) -> list[str]:
        """Those of them that a method faces."""
        return [a for a in self.adversaries if a.startswith(MANY) or a in self.study.attackers(method)]

    @property
    def leak(self) -> float:
        """The leak ratio where none is named: the paper's if the plan has it."""
        return self.study.leak[0] if self.study.leak and LEAK not in self.study.leak else LEAK

    def measures(self, method: str, adversary: str, leak: float | None = None) -> Mapping[str, Any]:
        """Everything that was measured of one victim; empty if nothing was. NO_LEAK: of adversaries without one."""
        ratio = (leak or self.leak) if uses_leak(adversary) and leak != NO_LEAK else None
        found = (self._index.get(("accuracy", method, adversary, ratio, victim)) for victim in (self.victim, ITSELF))
        return next((measures for measures in found if measures), {})

    def accuracy(self, method: str, adversary: str, leak: float | None = None, metric: str = "acc@1") -> Series | None:
        """The accuracy of a victim per seed. What needs no release counts as a method that only A1 faces."""
        if method in WITHOUT_RELEASE and adversary == "none":
            floor = self.floor(method)
            if method in (CLEAN, LEAK_ONLY):
                return self.accuracy(CLEAN, method, leak, metric)
            return None if floor is None else [floor] * self.study.seeds
        found = self.measures(method, adversary, leak)
        return list(found[self.part][metric]) if self.part in found else None

    def floor(self, name: str) -> float | None:
        """The accuracy of `popularity`, `stay` or `markov` on clean sessions; it has no seeds."""
        return self.floors.get(name, {}).get(self._floor_key)

    @property
    def floors(self) -> Mapping[str, Any]:
        """What was measured of floors on clean sessions."""
        return self._index.get(("floor", CLEAN, None, None, None), {})

    @property
    def best_floor(self) -> str | None:
        """The name of the better of the floors, None until both are measured."""
        known = {name: value for name in FLOORS if (value := self.floor(name)) is not None}
        return max(known, key=lambda name: known[name]) if len(known) == len(FLOORS) else None

    def series(self, method: str, key: str, leak: float | None = None) -> Series | None:
        """Whatever has a key, per seed: accuracy, gap, measure of the release, control; `clean` is a method too."""
        if key in MEASURES:
            owner, path = (RANDOM, MEASURES[key].clean) if method == CLEAN else (method, MEASURES[key].path)
            return _at(self._index.get(("release", owner, None, None, None)), path)
        if key in GAPS or key.startswith(SURVIVAL):
            return self._gap(method, key, leak)
        if key in (WORST_CASE, WITHOUT_LEAK):
            found = self.worst(method, leak) if key == WORST_CASE else self.without_leak(method)
            return found.accuracy["seeds"] if found else None
        if key == ON_MOVES:
            return self.on_moves.accuracy(method, "none", leak)
        if key == "markov":
            return _at(self._index.get(("floor", method, None, None, None)), f"markov.{self._floor_key}")
        if key == BEST_FLOOR:
            floor = self.floor(self.best_floor) if self.best_floor else None
            return None if floor is None else [floor] * self.study.seeds
        return self.accuracy(CLEAN if key in (CLEAN, LEAK_ONLY, LEAK_STAY) else method, key, leak)

    def value(self, method: str, key: str, leak: float | None = None) -> Spread | None:
        """The same with its mean and spread; a floor has no spread."""
        seeds = self.series(method, key, leak)
        return _spread(seeds[:1] if seeds and method in (*FLOORS, MARKOV) and key in ("none", ON_MOVES) else seeds)

    def against(self, one: str, two: str, key: str, leak: float | None = None) -> Verdict | None:
        """One method minus another. Differences of accuracies below PRACTICAL are not clear."""
        least = 0.0 if key in MEASURES else PRACTICAL
        return against(self.series(one, key, leak), self.series(two, key, leak), least=least)

    def minus(self, method: str, key: str, other: str, leak: float | None = None) -> Verdict | None:
        """One key minus another, of the same method."""
        return against(self.series(method, key, leak), self.series(method, other, leak), least=PRACTICAL)

    def attacks(self, method: str, leak: float | None = None, among: Collection[str] = ()) -> list[Attack]:
        """What was measured on single releases, strongest in the mean over seeds first; leak-mixed counts."""
        names = [a for a in (*self.study.adversaries, LEAK_MIXED) if not among or a in among]
        made = [Attack(a, spread(seeds)) for a in names if (seeds := self.accuracy(method, a, leak))]
        return sorted(made, key=lambda attack: -attack.accuracy["mean"])

    def worst(self, method: str, leak: float | None = None, among: Collection[str] = ()) -> Attack | None:
        """The strongest adversary: the largest of the means over seeds, with that adversary's own spread."""
        return next(iter(self.attacks(method, leak, among)), None)

    def without_leak(self, method: str) -> Attack | None:
        """The strongest adversary that holds no leaked session."""
        return self.worst(method, NO_LEAK)

    def control(self, leak: float | None = None) -> Attack | None:
        """The best of what needs no release: the floors and, with a leak, what it gives on its own."""
        known = {name: [floor] * self.study.seeds for name in FLOORS if (floor := self.floor(name)) is not None}
        if leak != NO_LEAK:
            alone = {name: self.accuracy(CLEAN, name, leak) for name in (LEAK_ONLY, LEAK_STAY)}
            known |= {name: seeds for name, seeds in alone.items() if seeds}
        return _highest(Attack(name, spread(s)) for name, s in known.items())

    def worst_case(self, method: str, leak: float | None = None) -> Attack | None:
        """The highest accuracy among adversaries and controls: an adversary can ignore the release."""
        return _highest(one for one in (self.worst(method, leak), self.control(leak)) if one)

    @property
    def _floor_key(self) -> str:
        return "acc@1" if self.part == "all" else f"acc@1_{self.part}"

    @cached_property
    def _index(self) -> dict[tuple[Any, ...], Mapping[str, Any]]:
        return {tuple(cell.get(k) for k in KEY): cell["measures"] for cell in self.cells}

    def _gap(self, method: str, key: str, leak: float | None) -> Series | None:
        clean = self.accuracy(CLEAN, CLEAN)
        if clean is None:
            return None
        found = gaps(clean, {a: seeds for a in PAPER_ADVERSARIES if (seeds := self.accuracy(method, a, leak))})
        value = found["surv"].get(key.removeprefix(SURVIVAL)) if key.startswith(SURVIVAL) else found[key]  # type: ignore[literal-required]
        return value["seeds"] if value else None


def city_of(data: str) -> str | None:
    """Return the city of the paper that data is, as far as its name shows."""
    return next((city for name, city in CITY_NAMES.items() if name in data.lower()), None)


def uses_leak(adversary: str) -> bool:
    """Whether a leak ratio belongs to what a victim was trained on."""
    return adversary != CLEAN and (adversary not in ADVERSARIES or ADVERSARIES[adversary].uses_leak)


def _highest(attacks: Iterable[Attack]) -> Attack | None:
    return max(attacks, key=lambda one: one.accuracy["mean"], default=None)


def _spread(seeds: Sequence[float] | None) -> Spread | None:
    return spread(seeds) if seeds else None


def _at(value: Any, path: str) -> Series | None:
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return list(value) if isinstance(value, list) else None


def _asked_for(store: Store, study: Study, data: str | None) -> tuple[Iterator[Cell], str]:
    """The cells that a plan asks for, on one data set, including those that another study measured; and its name."""
    own, shared = list[Cell](), list[Cell]()
    wanted = {v.text: short_hash(v.recorded(store.protocol)) for v in study.methods} | {CLEAN: ""}
    for cell in store.cells(study.name):
        seeds = range(study.on(cell["data"]).seeds)
        places = [cell["seeds"].index(seed) for seed in seeds if seed in cell["seeds"]]
        if cell.get("settings") == wanted.get(cell["method"]) and len(places) == len(seeds):
            cell = cell | {"seeds": list(seeds), "measures": some_seeds(cell["measures"], places)}
            (own if cell["study"] == study.name else shared).append(cell)
    shared = [cell for cell in shared if _asks(study, cell)]
    names = Counter(cell["data"] for cell in own or shared)
    first = [name for name in names if city_of(name) == "nyc"] or [name for name, _ in names.most_common()] or [NYC]
    name = data or first[0]
    # The study's own cells win over any other's, then those of the main matrix: methods are compared, and cells of two
    # runs differ by more than their seeds show.
    found = {tuple(c.get(k) for k in KEY): c for c in (*shared[::-1], *own) if c["data"] == name}
    return iter(found.values()), name


def _asks(study: Study, cell: Cell) -> bool:
    """Whether a cell that another study measured belongs to this one."""
    if cell["kind"] != "accuracy":
        return cell["kind"] == "floor" or not study.detector or "detector" in cell["measures"]
    names = (*study.adversaries, CLEAN, LEAK_ONLY, LEAK_STAY, LEAK_MIXED, *(f"{MANY}{k}" for k in study.releases))
    known = cell["victim"] in (*study.victims, ITSELF) and cell["adversary"] in names
    return known and cell.get("leak") in (None, *study.leak)
