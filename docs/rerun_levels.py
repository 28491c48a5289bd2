"""Why the naturalness of releases in Table III is lower than ours: readings of the trajectory LM and of its mean.

A reading names the LM and what is averaged. Its LM is trained until the clean sessions reach the printed value, as far
as it can; then GHOST releases with this LM, and all releases are scored. What the paper prints for releases is not
fitted, so a reading that comes near it explains it.

    python docs/rerun_levels.py nyc.npz [--protocol paper] [--device cuda]

writes results/levels-PROTOCOL.json. It changes no setting.
"""

import argparse
import copy
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ghostpoi.audits.cache import Cache, Record
from ghostpoi.data.prepared import Prepared, load
from ghostpoi.data.sessions import Sessions
from ghostpoi.draw.publication import Task
from ghostpoi.draw.table import publish
from ghostpoi.models import devices, fit
from ghostpoi.models.training_windows import Windows, from_start
from ghostpoi.models.trajectory_lm import cache_key, of_targets, weights_key
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.progress import Say
from ghostpoi.randomness import Seed
from ghostpoi.settings import TrajectoryLM, key_of
from ghostpoi.study.cells import release_stages
from ghostpoi.study.paper import section
from ghostpoi.study.plan import Variant
from ghostpoi.study.run import commit, hardware
from ghostpoi.study.store import WORK

RESULTS = Path(__file__).parent.parent / "results"
NEAR_CLEAN, NEAR_LEVELS = 0.15, 0.5  # distances to the printed values that count as the same
METHODS = ("ghost", "ts-ue", "em", "pgd", "random")
SEED = 0
LONGEST = 20  # epochs of an LM that does not reach the printed clean value

Values = NDArray[np.float32]  # (N,) log-likelihoods
Score = Callable[[CausalTransformer, Sessions, Sessions], float]  # of an LM, clean sessions, released sessions


class Reading(NamedTuple):
    """One way to read Table III."""

    name: str
    score: str = "all positions"
    changes: str = ""  # settings of the LM, as for --set
    end: bool = False  # the LM also learns to predict the padding behind a session
    twin: bool = False  # GHOST releases with an LM that differs from the scoring one by its seed


def values(lm: CausalTransformer, prefix: Sessions, target: Sessions, window: int | None = None) -> Values:
    """Return the log-likelihood of every POI of `target` behind the POIs before it in `prefix`, (N,)."""
    windows = from_start(prefix, window or lm.settings.max_positions)
    return of_targets(lm, Windows(windows.token, target.poi.astype(np.int64), windows.length))


def _mean(found: NDArray[Any], where: NDArray[np.bool_] | None = None) -> float:
    """Average over the marked positions; over all where none is marked."""
    return float((found[where] if where is not None and where.any() else found).mean(dtype=np.float64))


def _edge(sessions: Sessions, last: bool) -> NDArray[np.bool_]:
    """Mark the first or the last position of every session."""
    marked = np.zeros(sessions.positions, bool)
    marked[sessions.start[1:] - 1 if last else sessions.start[:-1]] = True
    return marked


def _session_means(found: Values, sessions: Sessions) -> float:
    return float((np.add.reduceat(found.astype(np.float64), sessions.start[:-1]) / sessions.length).mean())


def sharpened(lm: CausalTransformer, temperature: float) -> CausalTransformer:
    """Return the LM with all logits divided by a temperature."""
    sharp = copy.deepcopy(lm)
    for weight in (sharp.norm.weight, sharp.norm.bias):
        weight.data.div_(temperature)
    return sharp


SCORES: dict[str, Score] = {
    "all positions": lambda lm, clean, s: _mean(values(lm, s, s)),
    "without the first position": lambda lm, clean, s: _mean(values(lm, s, s), ~_edge(s, last=False)),
    "last position": lambda lm, clean, s: _mean(values(lm, s, s), _edge(s, last=True)),
    "mean of session means": lambda lm, clean, s: _session_means(values(lm, s, s), s),
    "substituted positions": lambda lm, clean, s: _mean(values(lm, s, s), s.poi != clean.poi),
    "all positions, bits": lambda lm, clean, s: _mean(values(lm, s, s)) / float(np.log(2)),
    "no context": lambda lm, clean, s: _mean(values(lm, s, s, window=1)),
    "windows of 5 positions": lambda lm, clean, s: _mean(values(lm, s, s, window=5)),
    "behind clean POIs": lambda lm, clean, s: _mean(values(lm, clean, s)),
    "substituted positions behind clean POIs": lambda lm, clean, s: _mean(values(lm, clean, s), s.poi != clean.poi),
    "temperature 0.7": lambda lm, clean, s: _mean(values(sharpened(lm, 0.7), s, s)),
}

READINGS = (
    Reading("ours"),
    *(Reading(score, score) for score in list(SCORES)[1:]),
    Reading("GHOST releases with an LM of another seed", twin=True),
    Reading("LM: padding predicted", end=True),
    Reading("LM: no dropout", changes="lm.dropout=0"),
    Reading("LM: own output matrix", changes="lm.tied=false"),
    Reading("LM: own output matrix, no dropout", changes="lm.tied=false lm.dropout=0"),
    Reading("LM: embeddings start at 1", changes="lm.start=1 lm.dropout=0.1"),
    Reading("LM: embeddings start at 1, own output matrix", changes="lm.start=1 lm.tied=false lm.dropout=0.1"),
)


class Course:
    """An LM in training: its weights after every epoch, as far as anyone asked."""

    def __init__(
        self, sessions: Sessions, rows: int, settings: TrajectoryLM, device: torch.device, twin: bool = False
    ) -> None:
        # With the settings of a study, the LM after as many epochs is that of the study.
        self.seed = Seed(int(cache_key(sessions, rows, settings)[:32], 16) + twin)
        self.training = settings.training
        self.model = CausalTransformer(rows, settings.model, self.seed.torch_seed("trajectory_lm", "weights"))
        self.model.to(device)
        self.optimizer = fit.adamw(self.model, settings.training)
        self.windows = from_start(sessions, settings.model.max_positions)
        self.states = list[dict[str, torch.Tensor]]()

    def after(self, epochs: int) -> CausalTransformer:
        """Return a copy of the LM after this many epochs."""
        for number in range(len(self.states), epochs):
            fit.epoch(self.model, self.optimizer, self.windows, self.training, self.seed, ("trajectory_lm",), number)
            self.states.append({name: weight.detach().clone() for name, weight in self.model.state_dict().items()})
        found = CausalTransformer(self.model.rows, self.model.settings, 0).to(self.model.device)
        found.load_state_dict(self.states[epochs - 1])
        return found.eval().requires_grad_(False)

    def nearest(self, measure: Callable[[CausalTransformer], float], wanted: float) -> int:
        """Return the epochs after which a rising measure is nearest to a value; LONGEST if it stays below."""
        before = -np.inf
        for epochs in range(1, LONGEST + 1):
            now = measure(self.after(epochs))
            if now >= wanted:
                return epochs if abs(now - wanted) <= abs(before - wanted) else epochs - 1
            before = now
        return LONGEST


@dataclass(frozen=True, eq=False)
class Levels:
    """Table III of one city under one protocol, in all readings."""

    data: Prepared
    protocol: str
    device: torch.device
    finished: Cache
    say: Say

    def rows(self) -> list[dict[str, Any]]:
        """Measure every reading."""
        return [self.row(reading) for reading in READINGS]

    def row(self, reading: Reading) -> dict[str, Any]:
        """Fit the LM of a reading to the printed clean value, release with it, and score all releases."""
        train, score, table = self.data.train, SCORES[reading.score], printed()
        course = self._course(reading.changes, reading.end, twin=False)
        epochs = course.nearest(lambda lm: score(lm, train, train), table["clean"])
        lm = course.after(epochs)
        publisher = self._course(reading.changes, reading.end, reading.twin).after(epochs)
        found = {"clean": score(lm, train, train)}
        found |= {method: score(lm, train, self._release(method, publisher)) for method in METHODS}
        self.say(f"{reading.name}, {epochs} epochs: {', '.join(f'{key} {value:.2f}' for key, value in found.items())}")
        return {**reading._asdict(), "epochs": epochs, "values": found, "fits": fits(found, table)}

    @cache  # noqa: B019  (a run has one of these)
    def _course(self, changes: str, end: bool, twin: bool) -> Course:
        train, rows = self.data.train, len(self.data.vocabulary)
        settings = Variant(f"ghost {changes}").settings(self.protocol).trajectory_lm
        if end:
            train, rows = with_end(train, rows), rows + 1
        return Course(train, rows, settings, self.device, twin)

    def _release(self, method: str, lm: CausalTransformer) -> Sessions:
        """The release of a method; GHOST's depends on the LM."""
        data, settings = self.data, Variant(method).settings(self.protocol)
        own = lm if settings.method.needs_trajectory_lm else None
        weights = weights_key(own) if own else ""
        key = key_of(release_stages(method), weights, data.content, settings, SEED)

        def make() -> Record:
            task = Task(settings, data.train, data.vocabulary, data.candidates, own)
            return Record({}, publish(task, Seed(SEED), self.device).poi)

        return replace(data.train, poi=self.finished.get("releases", key, make).poi)


def with_end(sessions: Sessions, end: int) -> Sessions:
    """Append a POI `end` to every session. It stands for the padding, which an LM that does not mask it learns."""
    last, start = sessions.start[1:], sessions.start + np.arange(len(sessions.start))
    poi = np.insert(sessions.poi, last, end)
    time, row = (np.insert(a, last, a[last - 1]) for a in (sessions.time, sessions.row))
    return replace(sessions, start=start, poi=poi, time=time, row=row)


def printed(city: str = "nyc", without: Collection[str] = ()) -> dict[str, float]:
    """Return Table III: the clean value and that of each method, without some."""
    rows = section(city, "naturalness").items()
    return {method: row["naturalness"][0] for method, row in rows if method not in without}


def fits(found: Mapping[str, float], table: Mapping[str, float]) -> dict[str, bool]:
    """Say what a reading explains: the clean value, the levels of all printed releases, and their order."""
    methods = [method for method in table if method != "clean"]
    return {
        "clean": abs(found["clean"] - table["clean"]) <= NEAR_CLEAN,
        "levels": all(abs(found[method] - table[method]) <= NEAR_LEVELS for method in methods),
        "order": sorted(methods, key=lambda m: found[m]) == sorted(methods, key=lambda m: table[m]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="the paper's NYC, as ghostpoi prepare wrote it")
    parser.add_argument("--protocol", default="strong")
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    data, device = load(given.data), devices.device(given.device)
    if "nyc" not in data.name.lower():
        raise SystemExit(f"{given.data}: the readings are compared with the paper's NYC; prepare dataset_TSMC2014_NYC")
    study = Levels(data, given.protocol, device, Cache(RESULTS / WORK), print)
    about = {"data": data.name, "protocol": given.protocol, "hardware": hardware(device), "commit": commit()}
    found = about | {"printed": printed(), "rows": study.rows()}
    (RESULTS / f"levels-{given.protocol}.json").write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
