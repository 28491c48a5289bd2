"""Readings of the paper's PGD, EM and TS-UE that no setting expresses; the study `readings` has the others.

    python docs/rerun_readings.py nyc.npz [--seeds 3] [--device cuda]

writes results/readings.json. "one map": every venue always gets the substitute that the method gives it most often.
"own ends": the first and the last position of a session have their own venue as the target.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

from ghostpoi.attack.evidence import rule_of
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
READINGS = ("one map", "own ends")
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


def measured(runner: Runner, seeds: int) -> list[dict[str, object]]:
    """Measure all readings under A1 to A4."""
    releases, data = runner._releases, runner.data

    def made(method: str, reading: str, seed: int) -> Ints:
        if reading == "one map":
            return one_map(data.train.poi, releases.published(method, seed).poi)
        settings = releases.settings(method)
        task = Task(settings, data.train, data.vocabulary, data.candidates)

        def make() -> Record:
            with patch.object(model_walk, "targets", own_ends):
                return Record({}, publish(task, Seed(seed), runner.device).poi)

        return releases.cache.get("releases", key_of(data.content, settings, seed, reading), make).poi

    def release(name: str) -> Release:
        method, _, reading = name.partition(", ")
        rule = rule_of(releases.settings(method).method, data.candidates, data.vocabulary)
        return Release(lambda seed: made(method, reading, seed), rule)

    grid, rows = replace(runner._grid, releases=release), []
    for reading in READINGS:
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
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    data, device = load(given.data), find_device(given.device)
    runner = Runner(plan.load("readings"), "paper", data, device, given.results, print)
    about = {"data": data.name, "protocol": "paper", "hardware": hardware(device), "commit": commit()}
    found = about | {"seeds": given.seeds, "rows": measured(runner, given.seeds)}
    (given.results / "readings.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
