"""Folders of results with cells made by hand."""

from pathlib import Path
from typing import Any

from ghostpoi.study.cells import Cells
from ghostpoi.study.plan import Variant
from ghostpoi.study.store import Store, settings_hash

NYC = "dataset_TSMC2014_NYC"


class Fabricated:
    """A folder of results to which cells are added one by one."""

    def __init__(self, results: Path, study: str = "main", protocol: str = "paper", data: str = NYC) -> None:
        self.results, self.study, self.protocol, self.data = results, study, protocol, data

    def put(self, method: str, **cell: Any) -> None:
        known = {} if method == "clean" else Variant(method).settings(self.protocol).public()
        about = {"data": self.data, "method": method, "seeds": [0, 1, 2], "settings": settings_hash(known)}
        about |= {"hardware": "a machine", "version": "0", "commit": "abc"}
        Store(self.results, self.protocol).add(self.study, [about | cell], {settings_hash(known): known})

    def contest(
        self,
        method: str,
        adversary: str,
        acc: list[float],
        leak: float | None = None,
        victim: str = "transformer",
        **extra: Any,
    ) -> None:
        accuracy = {"acc@1": acc, "acc@5": [2 * a for a in acc], "acc@10": acc, "mrr": [1.5 * a for a in acc]}
        shown = {"all": accuracy, "last": accuracy, "victim_seconds": [1.0] * len(acc), **extra}
        self.put(method, kind="accuracy", adversary=adversary, leak=leak, victim=victim, measures=shown)

    def release(self, method: str, **shown: Any) -> None:
        self.put(method, kind="release", measures={"release_seconds": [10.0] * 3, **shown})

    def floors(self, **shown: Any) -> None:
        for method, values in shown.pop("markov_on_release", {}).items():
            self.put(method, kind="floor", measures={"markov": {"acc@1": values}})
        self.put("clean", kind="floor", measures=shown)

    def method(self, name: str, none: list[float], leak: float = 0.05) -> None:
        """A method whose adversaries win back 0.01, 0.02, 0.03 and 0.005 (leak-mixed)."""
        self.contest(name, "none", none)
        for adversary, more in (("bridge", 0.01), ("frequency", 0.02), ("bigram", 0.03), ("leak-mixed", 0.005)):
            extra: dict[str, Any] = {}
            if adversary == "bridge":
                extra["denoiser_identity"] = [[1.0, 0.25, 0.5]] * 3
            if adversary == "frequency":
                extra["table_entropy_bits"] = [1.5, 1.5, 1.5]
            self.contest(name, adversary, [a + more for a in none], leak, **extra)

    def cells(self) -> Cells:
        return Cells.read(self.results, self.study, self.protocol)
