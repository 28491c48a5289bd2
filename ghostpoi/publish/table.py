"""From a check-in table to released POIs: covered rows by the method, the others by the candidate rule alone."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ghostpoi.data import sessions
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Checkins, Ints, Longs, Places, places
from ghostpoi.data.geo import haversine_km, speed_kmh
from ghostpoi.data.sessions import Dataset, Vocabulary, by_user_and_time
from ghostpoi.errors import InputError
from ghostpoi.models import trajectory_lm
from ghostpoi.publish import unmodelled as outside
from ghostpoi.publish.methods import Method
from ghostpoi.publish.protocols import Publication
from ghostpoi.publish.rounds import Checkpoint, Report, Task, publish
from ghostpoi.publish.unmodelled import Venues
from ghostpoi.randomness import Seed

LM_UNITS = 1.0  # an epoch of the trajectory LM, in epochs of the surrogate


@dataclass(frozen=True)
class Prepared:
    """A table with its sessions and the candidate sets of covered and of all venues."""

    table: Checkins
    data: Dataset
    places: Places
    covered: Candidates  # over the vocabulary
    every: Candidates  # over all venues, rows from 1

    @property
    def has_candidates(self) -> NDArray[np.bool_]:
        """(N,) whether a row's venue has a candidate under the rule that applies to it."""
        has = self.every.size[self.table.poi + 1] > 0
        s = self.data.all
        has[s.row] = self.covered.size[s.poi] > 0
        return has

    @property
    def is_covered(self) -> NDArray[np.bool_]:
        """(N,) whether a row lies in a session that the models learn from."""
        mask = np.zeros(len(self.table), bool)
        mask[self.data.all.row] = True
        return mask


def prepare(table: Checkins, settings: Publication) -> Prepared:
    """Sessions and candidate sets."""
    for name, model in (("surrogate", settings.surrogate), ("lm", settings.lm)):
        if model.dim % model.heads:
            raise InputError(
                f"{name}.dim={model.dim} is no multiple of {name}.heads={model.heads}; change one of them with --set"
            )
    data = sessions.build(table, settings.filters)
    place, words = places(table), data.vocabulary
    covered = settings.method.candidate_sets(words.lat, words.lon, words.category, settings.candidates)
    prepared = Prepared(table, data, place, covered, _every(settings, place, words))
    if not prepared.has_candidates.any():
        raise InputError(
            "no venue has another of its category nearby, so nothing can be substituted; "
            "widen the search with --set candidates.radius_km=5 or map a coarser category with --map category=COLUMN"
        )
    return prepared


def _every(settings: Publication, place: Places, words: Vocabulary) -> Candidates:
    """The candidate sets of all venues."""
    venues = Venues.of(place)
    known = np.zeros(len(venues.lat), bool)
    known[words.source[1:] + 1] = True
    return settings.method.candidate_sets(venues.lat, venues.lon, venues.category, settings.candidates, known)


@dataclass(frozen=True)
class Outcome:
    """What is released for every row of the table."""

    poi: Ints  # (N,) POI codes
    forced: NDArray[np.bool_]  # (N,) the speed mask left nothing of the row's candidates


def make_task(prepared: Prepared, settings: Publication, lm: Any) -> Task:
    """What the publisher's loop needs."""
    data = prepared.data
    return Task(
        data.all, data.vocabulary, prepared.covered, settings.method, settings.rounds, settings.speed,
        settings.surrogate, settings.training, lm,
    )  # fmt: skip


def protect_table(
    prepared: Prepared,
    settings: Publication,
    seed: Seed,
    device: torch.device,
    cache: Path | None = None,
    checkpoint: Checkpoint | None = None,
    say: Callable[[str], None] = lambda text: None,
    report: Report = lambda label, units: None,
) -> Outcome:
    """Choose a POI for every row."""
    data, lm = prepared.data, None
    if settings.method.needs_trajectory_lm:
        lm = _trajectory_lm(prepared, settings, device, cache, say, report)
    result = publish(make_task(prepared, settings, lm), seed, device, checkpoint, report)
    released = np.full(len(prepared.table), -1, np.int32)
    released[data.all.row] = data.vocabulary.source[result.poi]
    report("drawing the rows outside sessions", 0)
    venues = Venues.of(prepared.places)
    keeps = not settings.method.own_sets
    poi, forced = outside.draw(prepared.table, venues, prepared.every, released, seed, settings.speed, keeps)
    forced[data.all.row] = result.mask_emptied
    return Outcome(poi, forced)


def _trajectory_lm(
    prepared: Prepared, settings: Publication, device: torch.device, cache: Path | None,
    say: Callable[[str], None], report: Report,
) -> Any:  # fmt: skip
    """T_psi, from its cache where there is one."""
    data, rows, label = prepared.data, len(prepared.data.vocabulary), "training the trajectory LM"
    report(label, 0)

    def progress(epoch: int, loss: float, validation: object) -> None:
        if not math.isfinite(loss):
            raise InputError("the trajectory LM's training diverged; lower --set lm_training.learning_rate=1e-3")
        report(label, LM_UNITS)

    if cache is None:
        key = trajectory_lm.cache_key(data.all, rows, settings.trajectory_lm)
        return trajectory_lm.pretrain(
            data.all, rows, settings.trajectory_lm, Seed(int(key[:32], 16)), device, progress=progress
        )
    return trajectory_lm.load_or_train(
        cache, data.all, rows, settings.trajectory_lm, device, say=say, progress=progress
    )


def donors(prepared: Prepared, outcome: Outcome, method: Method, seed: Seed) -> Longs:
    """For every row, the row whose venue fields it shows: its own, or a random genuine row of the new venue.

    Among rows that give the venue the category by which it was chosen; files may give it others at times. Where a
    method may draw the venue itself, a row is drawn too: one that showed its own spelling would be known for genuine.
    """
    table = prepared.table
    donor = np.arange(len(table))
    drawn = prepared.has_candidates if method.own_sets else outcome.poi != table.poi
    changed = np.flatnonzero(drawn)
    usual = np.flatnonzero(table.category == prepared.places.category[table.poi])
    by_poi = usual[np.argsort(table.poi[usual], kind="stable")]
    count = np.bincount(table.poi[by_poi], minlength=len(table.pois))
    first = np.cumsum(count) - count
    new, uniform = outcome.poi[changed], seed.generator("donor").random(len(table))[changed]
    donor[changed] = by_poi[first[new] + np.minimum((uniform * count[new]).astype(np.int64), count[new] - 1)]
    return donor


def count_rows(prepared: Prepared, outcome: Outcome) -> dict[str, dict[str, int]]:
    """How many rows of each group were substituted, and why the others were not."""
    changed, has = outcome.poi != prepared.table.poi, prepared.has_candidates
    out = {}
    for name, group in (("covered", prepared.is_covered), ("outside", ~prepared.is_covered)):
        out[name] = {
            "rows": int(group.sum()),
            "substituted": int((group & changed).sum()),
            "no_candidate": int((group & ~has).sum()),
            "kept_by_speed": int((group & has & ~changed & outcome.forced).sum()),
            "kept_by_method": int((group & has & ~changed & ~outcome.forced).sum()),
            "slowest_taken": int((group & changed & outcome.forced).sum()),
        }
    return out


def plausibility(clean: Checkins, place: Places, released: Ints) -> dict[str, float]:
    """Displacement and category of all rows, as single figures."""
    changed = released != clean.poi
    before, after = clean.poi[changed], released[changed]
    km = haversine_km(place.lat[before], place.lon[before], place.lat[after], place.lon[after])
    some = len(km) > 0
    return {
        "substitution_rate": float(changed.mean()),
        "category_match": float((place.category[before] == place.category[after]).mean()) if some else 1.0,
        "beyond_1km": float((km > 1.0).mean()) if some else 0.0,
        "mean_km": float(km.mean()) if some else 0.0,
        "p95_km": float(np.quantile(km, 0.95)) if some else 0.0,
    }


def fast_steps(table: Checkins, limit_kmh: float, min_gap_s: float) -> dict[str, float]:
    """Steps of one user from check-in to check-in, and those that imply a speed over the limit."""
    place, order = places(table), by_user_and_time(table.user, table.time)
    poi, same = table.poi[order], np.diff(table.user[order]) == 0
    km = haversine_km(place.lat[poi[:-1]], place.lon[poi[:-1]], place.lat[poi[1:]], place.lon[poi[1:]])[same]
    over = speed_kmh(km, np.diff(table.time[order])[same], min_gap_s) > limit_kmh
    return {"limit_kmh": limit_kmh, "min_gap_s": min_gap_s, "steps": len(km), "steps_over_limit": int(over.sum())}
