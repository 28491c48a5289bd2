"""Estimate the time, memory and substitutions of `protect`, for --dry-run.

Reading, column tests and candidate sets run in full, as in a real run. Everything else runs on a sample of users, with
all their rows, and is scaled to the whole file. Models are not trained: their scores hardly change how many rows are
substituted, except with methods that may keep a venue.
"""

import io
import resource
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ghostpoi import formats
from ghostpoi.data.checkins import Bools, Ints
from ghostpoi.data.displacement import displacement
from ghostpoi.data.sessions import Sessions
from ghostpoi.draw import table as rows_outside_sessions
from ghostpoi.draw.publication import Publication, Task
from ghostpoi.draw.table import publish
from ghostpoi.draw.whole_table import WholeTable, genuine_rows
from ghostpoi.formats import Source
from ghostpoi.randomness import Seed
from ghostpoi.release import identity
from ghostpoi.release.plan import plan
from ghostpoi.release.private_folder import RowsRequest

if TYPE_CHECKING:
    import torch

SAMPLE, CHEAP_SAMPLE = 5_000, 50_000  # rows, at least; with and without models to run


@dataclass
class Stopwatch:
    """The time of each step of a real run."""

    seconds: dict[str, float] = field(default_factory=dict)
    last: float = field(default_factory=time.perf_counter)

    def lap(self, step: str, times: float = 1.0) -> None:
        """Count the time since the last call, this many times, as part of a step."""
        now = time.perf_counter()
        self.seconds[step] = self.seconds.get(step, 0.0) + (now - self.last) * times
        self.last = now

    def skip(self) -> None:
        """Do not count the time since the last call."""
        self.last = time.perf_counter()


def estimate(source: Source, request: RowsRequest) -> dict[str, Any]:
    """Estimate a run of `protect`; refuse a file that it would refuse."""
    watch = Stopwatch({"starting": time.process_time()})  # mostly imports
    file, settings, device = formats.read(source, request.mapping), request.settings, request.device
    planned = plan(request, file, lambda text: None, lap=watch.lap)
    whole, method, new = planned.whole, settings.method, identity.hidden(file.table, settings)
    users = _sample(whole, SAMPLE if method.needs_surrogate or method.needs_trajectory_lm else CHEAP_SAMPLE)
    sessions = whole.data.all.take(users[whole.data.all.user])
    epochs = _time_training(whole, sessions, settings, device, watch)
    released, rounds = _substitute(whole, sessions, users, settings, device, watch)
    row = np.flatnonzero(users[file.table.user])
    watch.skip()
    file.rows.take(row).copy_fields(planned.columns.change, np.arange(len(row))).write(io.BytesIO())
    watch.lap("writing", len(file.table) / len(row))
    formats.read(file.source, file.mapping, file.format)  # what was written is read again
    watch.lap("writing")
    return {
        "seconds": sum(watch.seconds.values()),
        "steps": watch.seconds,
        "epochs": epochs,
        "rounds": rounds,
        # The peak so far includes the table, the candidate sets and one batch, which dominate a full run.
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "rows": len(whole.table) + len(file.kept),
        "pseudonyms": 0 if new is None else int(new.max()) + 1,
        "rows_in_sessions": whole.data.all.positions,
        **_outcomes(whole, users, released, settings, len(file.kept)),
    }


def _sample(whole: WholeTable, least: int) -> Bools:
    """Draw users (U,) until they have this many rows, and one of them a session."""
    user = whole.table.user
    order = Seed(0).generator("sample").permutation(len(whole.table.user_ids))
    rows = np.cumsum(np.bincount(user, minlength=len(order))[order])
    enough = int(np.searchsorted(rows, min(least, len(user))))
    with_session = int(np.isin(order, whole.data.all.user).argmax())
    chosen = np.zeros(len(order), bool)
    chosen[order[: max(enough, with_session) + 1]] = True
    return chosen


def _time_training(
    whole: WholeTable, sample: Sessions, settings: Publication, device: "torch.device | None", watch: Stopwatch
) -> int:
    """Time an epoch of the surrogate, and count it for every epoch of either model."""
    method, rounds = settings.method, settings.rounds
    epochs = rounds.outer * rounds.inner if method.needs_surrogate else 0
    epochs += settings.lm_training.epochs if method.needs_trajectory_lm else 0
    if not epochs:
        return 0
    from ghostpoi.models import fit
    from ghostpoi.models.training_windows import next_poi
    from ghostpoi.models.transformer import CausalTransformer

    surrogate = CausalTransformer(len(whole.data.vocabulary), settings.surrogate, 0).to(device)
    optimizer = fit.adamw(surrogate, settings.training)
    pairs = next_poi(sample, settings.surrogate.max_positions)
    fit.epoch(surrogate, optimizer, pairs, settings.training, Seed(0), ("warm",), 0)  # the first one includes set-up
    watch.skip()
    fit.epoch(surrogate, optimizer, pairs, settings.training, Seed(0), ("timed",), 0)
    watch.lap("training", epochs * whole.data.all.positions / sample.positions)
    return epochs


def _substitute(
    whole: WholeTable, sample: Sessions, users: Bools, settings: Publication, device: "torch.device | None",
    watch: Stopwatch,
) -> tuple[Ints, int]:  # fmt: skip
    """Choose the venues of the users' rows; return those of all rows, other users' unchanged, and the rounds."""
    table, data, method = whole.table, whole.data, settings.method
    rounds, lm = settings.rounds.outer if method.needs_surrogate else 1, None
    if method.needs_trajectory_lm:
        from ghostpoi.models.transformer import CausalTransformer

        lm = CausalTransformer(len(data.vocabulary), settings.lm, 0).to(device)
    once = replace(settings, rounds=replace(settings.rounds, outer=1, inner=0))  # with models that are not trained
    watch.lap("substituting")
    in_sessions = publish(Task(once, sample, data.vocabulary, whole.session_sets, lm), Seed(0), device)
    watch.lap("substituting", rounds * data.all.positions / sample.positions)
    released = np.where(users[table.user], 0, table.venue).astype(np.int32)
    released[sample.row] = data.vocabulary.venue[in_sessions.poi]
    drawn = int((released == 0).sum())
    watch.skip()
    outside = rows_outside_sessions.release(whole, method, released, whole.noise(Seed(0)), settings.speed)
    watch.lap("substituting", (len(table) - data.all.positions) / max(1, drawn))
    return outside.poi, rounds


def _outcomes(whole: WholeTable, users: Bools, released: Ints, settings: Publication, kept: int) -> dict[str, float]:
    """The shares of the users' rows that are substituted or not, and how far; `kept` rows of the file stay genuine."""
    row = np.flatnonzero(users[whole.table.user] & np.isin(np.arange(len(whole.table)), whole.shown(withhold=False)))
    clean, new = whole.table.venue[row], released[row]
    genuine = genuine_rows(whole, settings.method, row, new)
    left, own = (genuine[name] / len(row) for name in ("left_genuine", "drawn_own"))
    moved = displacement(whole.table.venues, clean, new)
    return {
        "substitution_rate": float((clean != new).mean()),
        "substitution_rate_in_sessions": float((clean != new)[whole.in_session[row]].mean()),
        "left_genuine": (left * len(whole.table) + kept) / (len(whole.table) + kept),
        "drawn_own": own,
        **{name: moved[name] for name in ("mean_km", "p95_km", "beyond_1km")},
    }
