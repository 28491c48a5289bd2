"""Folders of results with cells made by hand."""

from itertools import count
from pathlib import Path
from typing import Any

from ghostpoi.study.plan import Variant
from ghostpoi.study.results import Results
from ghostpoi.study.store import Store, short_hash

NYC = "dataset_TSMC2014_NYC"
NUMBERS = count()


class Fabricated:
    """A folder of results to which cells are added one by one."""

    def __init__(
        self, folder: Path, study: str = "main", protocol: str = "paper", data: str = NYC, seeds: int = 3
    ) -> None:
        self.folder, self.study, self.protocol, self.data, self.seeds = folder, study, protocol, data, seeds
        self.cells, self.settings = list[dict[str, Any]](), dict[str, Any]()

    def put(self, method: str, **cell: Any) -> None:
        """Add any cell; what it does not say about itself is made up."""
        known = {} if method == "clean" else Variant(method).recorded(self.protocol)
        about = {
            "data": self.data,
            "method": method,
            "seeds": list(range(self.seeds)),
            "settings": short_hash(known),
        }
        about |= {"hardware": "a machine", "version": "0", "commit": "abcdefgh"}
        about |= {"content": str(next(NUMBERS)), "stages": {}}  # so that the newest replaces the one before
        self.cells.append(about | cell)
        self.settings[short_hash(known)] = known
        Store(self.folder, self.protocol).add(Path(self.study).stem, self.cells, self.settings)
        self.cells.clear()

    def accuracy(
        self, method: str, adversary: str, acc: list[float], leak: float | None = None, victim: str = "transformer",
        **measures: Any,
    ) -> None:  # fmt: skip
        """Add what a victim reached."""
        metrics = {"acc@1": acc, "acc@5": [2 * a for a in acc], "mrr": [1.5 * a for a in acc]}
        self.put(
            method,
            kind="accuracy",
            adversary=adversary,
            leak=leak,
            victim=victim,
            measures={"all": metrics, **measures},
        )

    def release(self, method: str, **measures: Any) -> None:
        """Add measures of a release."""
        self.put(method, kind="release", measures={"release_seconds": [10.0] * 3, **measures})

    def floors(self, markov_on_release: dict[str, list[float]], **floors: Any) -> None:
        """Add the floors on clean sessions and on releases."""
        for method, values in markov_on_release.items():
            self.put(method, kind="floor", measures={"markov": {"acc@1": values}})
        self.put("clean", kind="floor", measures=floors)

    def method(self, name: str, none: list[float], leak: float = 0.05) -> None:
        """Add a method whose adversaries restore .01, .02, .03 and, leak-mixed, .005."""
        self.accuracy(name, "none", none)
        for adversary, more in (("bridge", 0.01), ("frequency", 0.02), ("bigram", 0.03), ("leak-mixed", 0.005)):
            self.accuracy(name, adversary, [a + more for a in none], leak)

    def results(self) -> Results:
        """Read them back."""
        return Results.read(self.folder, self.study, self.protocol, self.data)
