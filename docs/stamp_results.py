"""Measure some stored cells again, and stamp all of them with the stage versions of today.

    python docs/stamp_results.py measure DATA.npz... --into FOLDER [--cells 20] [--seeds 1] [--workers 0]
    python docs/stamp_results.py compare --into FOLDER [-o agreement.json]
    python docs/stamp_results.py stamp DATA.npz...

`measure` picks random cells, equally many of every city and protocol; an interrupted run goes on. `compare` prints what
was stored and what was measured for the same seeds, and fails if a headline differs by more than two standard errors.
If all agree, the code of today gives the stored results, and `stamp` writes that into every cell.
"""

import argparse
import json
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ghostpoi.data.prepared import load
from ghostpoi.models.devices import device as find_device
from ghostpoi.study import plan
from ghostpoi.study.cells import Missing, stages_of
from ghostpoi.study.plan import PROTOCOLS, Variant
from ghostpoi.study.run import Runner, run_all
from ghostpoi.study.store import Cell, Store, identity, replace_cells

ROOT = Path(__file__).parent.parent
HEADLINES = (
    "all.acc@1",
    "restored",
    "plausibility.mean_km",
    "naturalness",
    "utility.flows.common_part",
    "markov.acc@1",
)
ERRORS = 2  # standard errors that a mean may differ by
ROUNDING = 1e-3  # and the share of the value, where seeds differ less than kernels do
Identity = tuple[str, ...]


@dataclass(frozen=True)
class Sample(Runner):
    """Some cells of a study."""

    chosen: frozenset[Identity] = frozenset()

    def missing(self) -> list[Missing]:
        return [one for one in super().missing() if identity(one.cell) in self.chosen]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("measure", "compare", "stamp"))
    parser.add_argument("data", nargs="*", type=Path, help="prepared data, one file for each city")
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    parser.add_argument("--into", type=Path, help="the folder of what is measured again")
    parser.add_argument("--study", help="choose from the cells of this study alone")
    parser.add_argument("--cells", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=1, help="how many of the stored seeds are measured again")
    parser.add_argument("--at-most", type=float, default=30.0, help="stored seconds of a cell's release and adversary")
    parser.add_argument("--draw", type=int, default=0, help="the seed of the choice")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args(arguments)
    return {"measure": measure, "compare": compare, "stamp": stamp}[given.step](given)


def measure(given: argparse.Namespace) -> int:
    """Measure a random choice of cells, under the first seeds."""
    begin = time.perf_counter()

    def say(text: str) -> None:
        print(f"{time.perf_counter() - begin:5.0f} s  {text}", file=sys.stderr, flush=True)

    groups: dict[tuple[str, str, str], list[Identity]] = defaultdict(list)
    for protocol, cell in choice(given):
        say(f"chosen: {cell['study']}, {protocol}, {name_of(cell)}")
        groups[cell["study"], protocol, cell["data"]].append(identity(cell))
    data, device = {one.name: one for one in map(load, given.data)}, find_device(given.device)
    run_all(
        [
            Sample(replace(plan.load(study), seeds=given.seeds), protocol, data[city], device, given.into, say,
                   frozenset(chosen))
            for (study, protocol, city), chosen in groups.items()
        ],
        workers=given.workers,
    )  # fmt: skip
    return 0


def choice(given: argparse.Namespace) -> Iterator[tuple[str, Cell]]:
    """Yield random cells: as many of every city and protocol."""
    names = [load(path).name for path in given.data]
    draw = random.Random(given.draw)
    for protocol in PROTOCOLS:
        cells = [cell for cell in stored(given.results, protocol) if not is_orphan(cell, protocol)]
        releases = {key_of_release(c): c["measures"]["release_seconds"][0] for c in cells if c["kind"] == "release"}
        for city in names:
            cheap = [
                cell for cell in cells
                if cell["data"] == city and seconds(cell, releases) <= given.at_most
                and len(cell["seeds"]) >= given.seeds and given.study in (None, cell["study"])
            ]  # fmt: skip
            count = given.cells // (len(PROTOCOLS) * len(names))
            yield from ((protocol, cell) for cell in draw.sample(cheap, min(count, len(cheap))))


def stored(folder: Path, protocol: str) -> list[Cell]:
    """All cells under a protocol, in a fixed order."""
    return sorted(Store(folder, protocol).cells(), key=lambda cell: (cell["study"], identity(cell)))


def key_of_release(cell: Cell) -> tuple[str, str, str]:
    return cell["data"], cell["method"], cell["settings"]


def seconds(cell: Cell, releases: dict[tuple[str, str, str], float]) -> float:
    """The seconds that the release and the adversary of a cell took under its first seed."""
    adversary = cell["measures"].get("adversary_seconds", [0.0])[0]
    return float(releases.get(key_of_release(cell), 0.0) + adversary)


def compare(given: argparse.Namespace) -> int:
    """Print every measured cell next to the stored one; return 1 if a headline differs."""
    found = []
    for protocol in PROTOCOLS:
        there = {(cell["study"], identity(cell)): cell for cell in Store(given.results, protocol).cells()}
        for cell in Store(given.into, protocol).cells():
            found.append({"protocol": protocol} | compared(there[cell["study"], identity(cell)], cell))
    for one in found:
        print(f"{'agrees ' if one['agrees'] else 'DIFFERS'} {one['study']}, {one['protocol']}, {one['cell']}")
        for name, value in one["headlines"].items():
            print(f"          {name}: {text(value)}")
        print(f"          {one['identical']} of {one['numbers']} numbers are identical")
    agree = sum(one["agrees"] for one in found)
    print(f"{agree} of {len(found)} cells agree; hardware: {', '.join({one['hardware'] for one in found})}")
    if given.output:
        given.output.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return int(agree < len(found) or not found)


def compared(old: Cell, new: Cell) -> dict[str, Any]:
    """What a cell stored and what was measured again, for the same seeds."""
    before, after = dict(leaves(old["measures"])), dict(leaves(new["measures"]))
    places = [old["seeds"].index(seed) for seed in new["seeds"]]
    values = {name: judged(before[name], after[name], places) for name in after if name in before}
    headlines = {name: value for name, value in values.items() if name in HEADLINES or old["kind"] == "floor"}
    return {
        "study": old["study"], "cell": name_of(old), "agrees": all(one["agrees"] for one in headlines.values()),
        "seeds": new["seeds"], "identical": sum(one["stored"] == one["measured"] for one in values.values()),
        "numbers": len(values), "headlines": headlines, "hardware": new["hardware"], "commit": new["commit"],
        "others": {name: value for name, value in values.items() if name not in headlines},
    }  # fmt: skip


def judged(before: Any, after: Any, places: Sequence[int]) -> dict[str, Any]:
    """Compare one measure. A floor is a number without seeds."""
    if not isinstance(before, list):
        before, after, places = [before], [after], [0]
    old, spread = [before[i] for i in places], statistics.stdev(before) if len(before) > 1 else 0.0
    error, difference = spread / len(old) ** 0.5, abs(statistics.mean(old) - statistics.mean(after))
    return {
        "mean": statistics.mean(before), "std": spread, "stored": old, "measured": after,
        "agrees": difference <= ERRORS * error + ROUNDING * abs(statistics.mean(old)),
    }  # fmt: skip


def leaves(measures: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """All measures but times, by their path."""
    if isinstance(measures, dict):
        for name, value in measures.items():
            yield from leaves(value, f"{path}.{name}" if path else name)
    elif isinstance(measures, list) and measures and isinstance(measures[0], list):  # several numbers for each seed
        for number, each in enumerate(zip(*measures, strict=False)):
            yield from leaves(list(each), f"{path}.{number}")
    elif not path.endswith("seconds"):
        yield path, measures


def text(value: dict[str, Any]) -> str:
    both = " and ".join(", ".join(f"{v:.5g}" for v in value[key]) for key in ("stored", "measured"))
    return f"{value['mean']:.5g} +- {value['std']:.2g}; {both}{'' if value['agrees'] else '  <-- differs'}"


def name_of(cell: Cell) -> str:
    about = (cell[key] for key in ("kind", "data", "method", "adversary", "leak", "victim") if key in cell)
    return " ".join(map(str, about))


def is_orphan(cell: Cell, protocol: str) -> bool:
    """Whether the settings of a cell's method are not those of today, so that no plan asks for the cell."""
    return cell["method"] != "clean" and cell["settings"] != Variant(cell["method"]).settings_hash(protocol)


def stamp(given: argparse.Namespace) -> int:
    """Write data and stage versions into all cells; drop those that no plan can ask for."""
    content = {one.name: one.content for one in map(load, given.data)}
    for protocol in PROTOCOLS:
        for path in sorted(given.results.glob(f"*-{protocol}.jsonl")):
            study = path.stem.rpartition("-")[0]
            own = [cell for cell in Store(given.results, protocol).cells(study) if cell["study"] == study]
            kept = [stamped(cell, content) for cell in own if not is_orphan(cell, protocol)]
            replace_cells(path, kept)
            print(f"{path.name}: stamped {len(kept)} cells, dropped {len(own) - len(kept)}")
    return 0


def stamped(cell: Cell, content: dict[str, str]) -> Cell:
    known = {
        key: cell[key] for key in ("kind", "data", "method", "adversary", "leak", "victim", "settings") if key in cell
    }
    told = {key: value for key, value in cell.items() if key not in (*known, "study", "fingerprint")}
    return known | {"content": content[cell["data"]], "stages": stages_of(cell)} | told


if __name__ == "__main__":
    sys.exit(main())
