"""The finished cells of one study under one protocol, asked by name. What is not there is None."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ghostpoi.errors import InputError
from ghostpoi.evaluate.measures.gaps import Gaps, Spread, gaps, spread
from ghostpoi.study.store import read_cells, read_json

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
        folder = results / study / protocol
        cells = read_cells(folder)
        by_victim: dict[str, dict[tuple[str, str, float | None], dict[str, Any]]] = {}
        releases, floors = {}, {}
        try:
            for cell in cells:
                if cell["kind"] == "contest":
                    contests = by_victim.setdefault(cell.get("victim", VICTIM), {})
                    contests[cell["method"], cell["adversary"], cell["leak"]] = cell["figures"]
                elif cell["kind"] == "release":
                    releases[cell["method"]] = cell["figures"]
                elif cell["kind"] == "floors":
                    floors = cell["figures"]
            for known in ("data", "seeds"):
                if len({repr(cell[known]) for cell in cells}) > 1:
                    raise InputError(f"{folder} mixes cells of different {known}; use one --results folder for each")
        except (KeyError, TypeError) as e:
            raise InputError(f"{folder} holds a .json file that is not a cell ({e} is missing); move it away") from None
        scoring = read_json(results / "bench" / "scoring.json") or {}
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
        return next((cell["settings"] for cell in self.about if cell["method"] == method and "settings" in cell), {})

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
