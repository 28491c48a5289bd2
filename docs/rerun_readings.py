"""Other readings of the paper's PGD, EM and TS-UE, under the paper's protocol.

    python docs/rerun_readings.py nyc.npz [--readings "one map"...] [--seeds 3] [--device cuda]

writes results/readings.json, where readings that are not asked for stay as they are. "one map": every venue always gets
the substitute that the method gives it most often. "own ends": the first and the last position of a session have their
own venue as the target. "one round": the surrogate is not trained again on what it has replaced. "no widening":
candidates stay within the radius, however few they are.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

from ghostpoi.audits.cache import Record
from ghostpoi.audits.grid import Contest, Release
from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.data.prepared import load
from ghostpoi.draw import model_walk
from ghostpoi.draw.publication import Task
from ghostpoi.draw.table import publish
from ghostpoi.models.devices import device as find_device
from ghostpoi.randomness import Seed
from ghostpoi.settings import key_of
from ghostpoi.study import plan
from ghostpoi.study.run import Runner, commit, hardware

RESULTS = Path(__file__).parent.parent / "results"
METHODS = ("pgd", "em", "em method.score=likelihood", "ts-ue-calibrated")
READINGS = {"one map": "", "own ends": "", "one round": " rounds.outer=1", "no widening": " candidates.max_widenings=0"}
LEAK = 0.05


def one_map(clean: Ints, released: Ints) -> Ints:
    """Return the release in which every venue has the substitute that it has most often, (N,)."""
    pair, count = np.unique(np.stack([clean, released]), axis=1, return_counts=True)
    order = np.lexsort((count, pair[0]))
    best = np.zeros(int(clean.max()) + 1, np.int32)
    best[pair[0, order]] = pair[1, order]  # the last one of a venue wins
    return best[clean]


def own_ends(poi: Ints, index: Longs, first: Longs, last: Longs) -> Ints:
    """Return p_{i+1}, and p_i at both ends of a session, (N,)."""
    return poi[np.where((index == first) | (index == last), index, np.minimum(index + 1, len(poi) - 1))]


def measured(runner: Runner, readings: Sequence[str], seeds: int) -> list[dict[str, object]]:
    """Measure readings under A1 to A4."""
    releases, data = runner._releases, runner.data

    def made(method: str, reading: str, seed: int) -> Ints:
        if reading != "own ends":
            found = releases.published(method + READINGS[reading], seed).poi
            return one_map(data.train.poi, found) if reading == "one map" else found
        settings = releases.settings(method)
        task = Task(settings, data.train, data.vocabulary, data.candidates)

        def make() -> Record:
            with patch.object(model_walk, "targets", own_ends):
                return Record({}, publish(task, Seed(seed), runner.device).poi)

        return releases.cache.get("releases", key_of(data.content, settings, seed, reading), make).poi

    def release(name: str) -> Release:
        method, _, reading = name.partition(", ")
        return Release(lambda seed: made(method, reading, seed), releases(method + READINGS[reading]).rule)

    grid, rows = replace(runner._grid, releases=release), []
    for reading in readings:
        for method in METHODS:
            name = f"{method}, {reading}"
            contests = [Contest(name, "none", None, plan.VICTIM)]
            contests += [Contest(name, adversary, LEAK, plan.VICTIM) for adversary in ("bridge", "frequency", "bigram")]
            found = grid.measures(contests, range(seeds))
            values = {c.adversary: [round(v, 6) for v in found[c]["all"]["acc@1"]] for c in contests}
            rows.append({"method": method, "reading": reading, "acc@1": values})
            runner.say(f"{name}: {values}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the paper's NYC, as ghostpoi prepare wrote it")
    parser.add_argument("--readings", nargs="+", choices=READINGS, default=list(READINGS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    data, device = load(given.data), find_device(given.device)
    runner = Runner(plan.load("main"), "paper", data, device, given.results, print)
    path, made = given.results / "readings.json", {"hardware": hardware(device), "commit": commit()}
    kept = [row for row in json.loads(path.read_text("utf-8"))["rows"] if row["reading"] not in given.readings]
    rows = kept + [row | made for row in measured(runner, given.readings, given.seeds)]
    about = {"data": data.name, "protocol": "paper", "rows": rows}
    path.write_text(json.dumps(about, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
