"""The finished cells of one study under one protocol, asked by name. What is not there is None."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ghostpoi.errors import InputError
from ghostpoi.evaluate.measures.gaps import Gaps, Spread, gaps, spread
from ghostpoi.study import plan
from ghostpoi.study.plan import Study
from ghostpoi.study.store import Cell, Store, settings_hash

LEAK = 0.05  # the paper's
LEAKLESS = ("clean", "none", "deconvolution", "habits")  # these hold no leaked session, so no ratio belongs to them
ADVERSARIES = {"none": "A1", "bridge": "A2", "frequency": "A3", "bigram": "A4"}  # the paper's names
# All that face one release. The names stand here because tables are made where there is no torch.
ADAPTIVE = ADVERSARIES | {
    "per-user": "A5", "deconvolution": "A6", "habits": "A7", "habits+leak": "A8", "hidden-markov": "A9",
    "paired-bridge": "A10",
}  # fmt: skip
MANY = "multi-release-"  # A11, before the number of releases that it holds
VICTIM = "transformer"  # the victim of every study that names no other
METRICS = ("acc@1", "acc@5", "mrr")
PROTOCOLS = ("paper", "strong")
Series = list[float]  # one value per seed
Contests = Mapping[tuple[str, str, float | None], dict[str, Any]]  # (method, adversary, leak) -> figures


@dataclass(frozen=True)
class Cells:
    """A folder of results."""

    study: str
    protocol: str
    contests: Contests  # of one victim
    releases: Mapping[str, dict[str, Any]]
    floors: Mapping[str, Any]
    about: tuple[Mapping[str, Any], ...]  # every cell, for what it was measured on
    by_victim: Mapping[str, Contests] = field(default_factory=dict)
    scoring: Mapping[str, Any] = field(default_factory=dict)  # what `ghostpoi bench scoring --json` printed

    @staticmethod
    def read(results: Path, study: str, protocol: str) -> "Cells":
        """All cells that are there; none is fine."""
        if protocol not in PROTOCOLS:
            raise InputError(f"there is no protocol {protocol!r}; protocols are {', '.join(PROTOCOLS)}")
        cells = _asked_for(Store(results, protocol), plan.load(study))
        by_victim: dict[str, dict[tuple[str, str, float | None], dict[str, Any]]] = {}
        releases: dict[str, dict[str, Any]] = {}
        floors: dict[str, Any] = {"markov_on_release": {}}
        for cell in cells:
            method, measures = cell["method"], cell["measures"]
            if cell["kind"] == "accuracy":
                by_victim.setdefault(cell["victim"], {})[method, cell["adversary"], cell.get("leak")] = measures
            elif cell["kind"] == "release":
                releases[method] = measures
            elif method == "clean":
                floors |= measures
            else:
                floors["markov_on_release"][method] = measures["markov"]["acc@1"]
        bench = results / "bench-scoring.json"
        scoring = json.loads(bench.read_text("utf-8")) if bench.exists() else {}
        return Cells(study, protocol, by_victim.get(VICTIM, {}), releases, floors, tuple(cells), by_victim, scoring)

    def of(self, victim: str) -> "Cells":
        """The same, with another victim's contests."""
        return replace(self, contests=self.by_victim.get(victim, {}))

    @property
    def victims(self) -> list[str]:
        """Those with any cell."""
        return list(self.by_victim)

    @property
    def leaks(self) -> list[float]:
        """The ratios with any cell."""
        return sorted({r for contests in self.by_victim.values() for _, _, r in contests if r is not None})

    @property
    def data(self) -> str | None:
        """The name of the data that was measured."""
        return str(self.about[0]["data"]) if self.about else None

    @property
    def city(self) -> str | None:
        """The city of the paper that the data is, as far as its name says."""
        name = (self.data or "").lower()
        return next((city for city in ("nyc", "tky") if city in name), None)

    @property
    def methods(self) -> list[str]:
        """Those with any cell, in the order of their files."""
        found = [m for contests in (self.contests, *self.by_victim.values()) for m, _, _ in contests if m != "clean"]
        return list(dict.fromkeys(found + list(self.releases)))

    def settings(self, method: str) -> Mapping[str, Any]:
        """All settings of a method, section by section, as its cells have them."""
        return plan.Variant(method).settings(self.protocol).public()

    def about_all(self, key: str) -> list[str]:
        """The different values of a field over all cells."""
        return sorted({str(cell.get(key, "unknown")) for cell in self.about})

    def figure(self, method: str, adversary: str, leak: float | None = LEAK) -> dict[str, Any] | None:
        """All figures of a contest."""
        return self.contests.get((method, adversary, None if adversary in LEAKLESS else leak))

    def series(
        self, method: str, adversary: str, leak: float | None = LEAK, metric: str = "acc@1", where: str = "all"
    ) -> Series | None:
        """A victim's accuracy per seed."""
        found = self.figure(method, adversary, leak)
        return None if found is None else list(found[where][metric])

    def clean(self, metric: str = "acc@1") -> Series | None:
        """The ceiling: the victim on clean sessions."""
        return self.series("clean", "clean", None, metric)

    def leak_only(self, leak: float = LEAK, metric: str = "acc@1") -> Series | None:
        """The control that no defence can push an adversary below."""
        return self.series("clean", "leak-only", leak, metric)

    def gaps(self, method: str, leak: float = LEAK, metric: str = "acc@1") -> Gaps | None:
        """Protection and survival gaps, per seed; None without a clean victim."""
        clean = self.clean(metric)
        found = {a: self.series(method, a, leak, metric) for a in ADVERSARIES}
        return None if clean is None else gaps(clean, {a: v for a, v in found.items() if v is not None})

    def row(self, method: str, leak: float = LEAK) -> dict[str, Spread]:
        """Every acc@1 and gap of a method by the names that paper.toml uses too, and the controls beside them."""
        found = {
            "clean": self.clean(),
            **{a: self.series(method, a, leak) for a in (*ADVERSARIES, "leak-mixed")},
            "leak-only": self.leak_only(leak),
            "markov": self.floors.get("markov_on_release", {}).get(method),
        }
        row = {key: spread(values) for key, values in found.items() if values is not None}
        derived = self.gaps(method, leak)
        if derived is not None:
            row |= {f"surv_{a}": value for a, value in derived["surv"].items()}
            if derived["prot"] is not None:
                row["prot"] = derived["prot"]
            if derived["mean"] is not None:
                row["mean"] = derived["mean"]
            if derived["worst"] is not None:
                row["worst"] = derived["worst"]
        return row

    def release(self, method: str, *path: str) -> Spread | None:
        """A figure of a release, e.g. release("ghost", "plausibility", "mean_km")."""
        value: Any = self.releases.get(method)
        for part in path:
            value = value.get(part) if isinstance(value, Mapping) else None
        return spread(value) if value else None


def _asked_for(store: Store, study: Study) -> list[Cell]:
    """The cells of a study on one data set, also those that another study measured.

    Without a data set of its own, a study gets the one that answers most of its cells.
    """
    wanted = {v.text: settings_hash(v.settings(store.protocol).public()) for v in study.methods} | {"clean": ""}
    own, shared = list[Cell](), list[Cell]()
    for cell in store.cells(study.name):
        if cell["study"] == study.name:
            own.append(cell)
        elif cell.get("settings") == wanted.get(cell["method"]) and cell["seeds"] == list(range(study.seeds)):
            shared += [cell] if _asks(study, cell) else []
    count = Counter(cell["data"] for cell in own or shared)
    if len({cell["data"] for cell in own}) > 1:
        names = ", ".join(sorted(count))
        raise InputError(
            f"{store.path(study.name)} mixes cells of different data ({names}); use one --results folder each"
        )
    data = count.most_common(1)[0][0] if count else None
    found: dict[tuple[Any, ...], Cell] = {}
    for cell in own + [c for c in shared if c["data"] == data]:
        found.setdefault(tuple(cell.get(k) for k in ("kind", "method", "adversary", "leak", "victim")), cell)
    order = {name: n for n, name in enumerate(wanted)}
    return sorted(found.values(), key=lambda cell: order.get(cell["method"], len(order)))


def _asks(study: Study, cell: Cell) -> bool:
    """Whether a cell that another study measured belongs to this one."""
    if cell["kind"] != "accuracy":
        return cell["kind"] == "floor" or not study.detector or "detector" in cell["measures"]
    adversary, leak = cell["adversary"], cell.get("leak")
    names = (*study.adversaries, "clean", "leak-only", "leak-mixed", *(f"{MANY}{k}" for k in study.releases))
    return cell["victim"] in study.victims and adversary in names and (leak is None or leak in study.leak)
