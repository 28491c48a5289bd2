"""Make a release, the folder to publish, and the private folder, which must never be published; estimate that work.

The manifest is written last: its presence means that the release is complete. The private folder, which only its owner
may read, holds the seed, the (clean, released) pairs and models trained on clean data.
"""

import hashlib
import io
import os
import resource
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ghostpoi import formats
from ghostpoi.data.checkins import Bools, Ints
from ghostpoi.data.displacement import displacement
from ghostpoi.data.sessions import Sessions
from ghostpoi.draw import table as rows_outside_sessions
from ghostpoi.draw.publication import Checkpoint, Publication, Task
from ghostpoi.draw.table import LM_UNITS, protect_table, publish, units
from ghostpoi.draw.whole_table import WholeTable, fast_steps, genuine_rows
from ghostpoi.errors import ConnectionLost, InputError
from ghostpoi.files import file_hashes, joint_hash, locked, replacing, save_arrays
from ghostpoi.formats import CheckinFile, Rows, Source
from ghostpoi.formats.rows import difference
from ghostpoi.options import option
from ghostpoi.progress import Report, Say
from ghostpoi.randomness import Seed
from ghostpoi.release import identity, private_folder
from ghostpoi.release.identity import MAP, PAIRS
from ghostpoi.release.manifest import store_manifest
from ghostpoi.release.plan import Plan, ReleasedRows, plan, release_rows, stated
from ghostpoi.release.private_folder import Note, ReleaseRequest, RowsRequest, Run
from ghostpoi.release.venue_files import data_name, venue_file

if TYPE_CHECKING:
    import torch

    from ghostpoi.release.series.ledger import Series


Made = TypeVar("Made")
SHORT_SEED_BITS = 64  # a shorter seed can be found by trying all of them


def in_place(request: ReleaseRequest, make: Callable[[], Made]) -> Made:
    """Make a release while no other process writes its folders; say how to go on if they cannot be written."""
    try:
        private_folder.check_places(request)
        release, private = request.release.resolve(), request.private.resolve()
        with locked(release), locked(private), locked(request.series.resolve()) if request.series else nullcontext():
            private_folder.clean_up(release, private / private_folder.UNFINISHED)
            return make()
    except OSError as e:
        folders = " or ".join(str(folder) for folder in (request.release, request.private, request.series) if folder)
        raise InputError(
            f"{folders} could not be written ({(e.strerror or str(e)).lower()}); free some space or choose other "
            f"folders, then continue with {option('resume')}"
        ) from None


def given_seed(value: int | None, allow_short: bool, say: Say) -> Seed | None:
    """Convert the seed of the command line; refuse one that is short enough to be found by trial."""
    if value is not None and value.bit_length() < SHORT_SEED_BITS:
        why = "can be found by trial"
        if not allow_short:
            raise InputError(
                f"{option('seed')} has fewer than {SHORT_SEED_BITS} bits, so it {why}; leave {option('seed')} out, or "
                f"add {option('allow_short_seed')} for an experiment"
            )
        say(f"warning: a short seed {why}; omit {option('seed')} for a real release")
    return None if value is None else Seed(value)


def shares(report: Report, settings: Publication) -> Report:
    """Return how to report units of work as shares of all work of a run."""
    lm = settings.lm_training.epochs * LM_UNITS if settings.method.needs_trajectory_lm else 0.0
    total = lm + units(settings.method, settings.rounds)
    return lambda label, done: report(label, done / total)


def release_file(
    request: ReleaseRequest,
    file: CheckinFile,
    unfinished: Note | None,
    series: "Series | None",
    say: Say,
    report: Report,
) -> ReleasedRows:
    """Protect one region, which is in memory, and write the release."""
    planned = plan(request, file, say, series)
    part, request = planned.series, replace(request, seed=planned.request.seed)
    if part:
        part.start()

    def may_resume(error: Exception) -> bool:  # what failed for want of room or of a server
        full = isinstance(error, RuntimeError) and "memory" in str(error)
        return bool(part) or full or isinstance(error, OSError | MemoryError | ConnectionLost)

    with private_folder.running(request, file.sha256, unfinished, say, may_resume) as run:
        return _released(planned, request, run, say, shares(report, request.settings))


def _released(planned: Plan, request: ReleaseRequest, run: Run, say: Say, report: Report) -> ReleasedRows:
    """Draw the venues, write the release and publish it."""
    file, part = planned.file, planned.series
    if part:
        venues = part.draw(planned.whole, report)
    else:
        venues = protect_table(
            planned.whole, request.settings, run.seed, request.device, cache=run.folder.parent / "trajectory_lm",
            checkpoint=Checkpoint(run.folder / "checkpoint.safetensors", run.key, say), say=say, report=report,
        )  # fmt: skip
    report("writing the release", 0)
    further = part.store_private(run.folder, planned.rows) if part else ()
    released = release_rows(planned, venues, run.seed)
    write_pairs(run.folder / PAIRS, released)
    with private_folder.publishing(run, request) as staging:
        data = staging / data_name(file)
        for name, content in released.beside.items():
            with replacing(staging / name) as out:
                out.write(content)
        manifest = described_data(request, file, released, write_data(file.source.of_release(data), file, released))
        manifest["data"] = located(data, manifest["data"])
        released = replace(released, manifest=manifest)
        store_manifest(staging, released.manifest, request.private)
        if part:
            part.begin(released.manifest, venues, released.shown, released.users)
    if part:
        part.complete()
    keep_private(run, request.private, (*further, PAIRS))
    return released


def keep_private(run: Run, private: Path, names: Sequence[str]) -> None:
    """Move what stays private out of the folder of a run that is complete, and remove the folder."""
    other = (MAP, private_folder.PRIVATE_PAIRS) if PAIRS in names else {PAIRS, MAP}.difference(names)
    for stale in other:  # of an older run, by region or not
        shutil.rmtree(private / stale) if (private / stale).is_dir() else (private / stale).unlink(missing_ok=True)
    for name in (*names, private_folder.RUN):  # the note last: until it is moved, --resume can repeat all steps
        if (private / name).is_dir():
            shutil.rmtree(private / name)
        os.replace(run.folder / name, private / name)
    shutil.rmtree(run.folder)


def release_in_memory(request: RowsRequest, file: CheckinFile, say: Say, report: Report) -> ReleasedRows:
    """Protect a file and write nothing. The manifest has no hash of the data: it is in no file."""
    planned, seed = plan(request, file, say), request.seed or Seed.fresh()
    report = shares(report, request.settings)
    venues = protect_table(planned.whole, request.settings, seed, request.device, say=say, report=report)
    released = release_rows(planned, venues, seed)
    written = write_data(in_memory(file, released.beside), file, released)
    return replace(released, manifest=described_data(request, file, released, written))


def write_pairs(path: Path, released: ReleasedRows) -> None:
    """Store the pairs and all venues, including those that the release never shows, for the private report."""
    table, venues, new = released.whole.table, released.whole.table.venues, released.users
    categories = np.append(table.category_ids.astype(str), "")  # row 0 of the venues has category -1
    further: dict[str, Any] = identity.map_arrays(table, new) if new else {}
    if new and (new.time != table.time[new.row]).any():
        further["time"] = table.time
    if released.whole.crowds:
        further["repeated"] = released.whole.crowds.repeated
    arrays = {
        "clean": table.venue, "released": released.venues.poi, "poi_id": table.venue_ids.astype(str),
        "lat": venues.lat, "lon": venues.lon, "category": categories[venues.category], "shown": released.shown,
    }  # fmt: skip
    with replacing(path, mode=0o600) as out:
        save_arrays(out, arrays | further)


def located(data: Path, described: dict[str, Any]) -> dict[str, Any]:
    """Return what the manifest says about the data, with the name and the hash of the file or of all parts."""
    hashes = file_hashes(data)
    parts = {} if "" in hashes else {"parts": hashes}
    return {"file": data.name, **described, "sha256": joint_hash(hashes), **parts}


def described_data(
    request: RowsRequest, file: CheckinFile, released: ReleasedRows, written: CheckinFile
) -> dict[str, Any]:  # fmt: skip
    """Return the manifest with what it says about the rows, and about the data as it reads back."""
    rule, reading, beside = request.settings.speed, file.reading.stated, released.beside
    data: dict[str, Any] = {"format": file.format}
    if reading:
        data["reading"] = reading | ({"venues": venue_file(file)} if file.venues else {})
    if beside:
        data["beside"] = {name: hashlib.sha256(content).hexdigest() for name, content in beside.items()}
    found = released.manifest | stated([released.figures])
    speed = fast_steps(written.table, rule.limit_kmh, rule.min_gap_s)
    data |= found.pop("data")
    return found | {"speed": speed, "data": data}


def in_memory(file: CheckinFile, beside: Mapping[str, bytes] | None = None) -> Source:
    """Return where the release of a file is written to that stays in memory, with the files next to it."""
    source = file.source.of_release(Path("the release"))
    return replace(source, content=b"", suffix=file.source.extension, beside=beside or {})


def write_data(target: Source, file: CheckinFile, released: ReleasedRows) -> CheckinFile:
    """Write the rows, read them back and compare every field. A stray quote that moved may need quotes of its own."""
    rows, changed = released.rows, released.manifest["columns"]["changed_with_the_venue"]
    written = _written(target, file, rows)
    if isinstance(written, str):
        written = _written(target, file, rows.requote(changed))
    if isinstance(written, str):
        raise InputError(
            f"{file.path} cannot be released: what was written does not read back the same ({written}); "
            'put fields that contain a quote into quotes and double the quote ("12"""), and use one encoding'
        )
    return written


def _written(target: Source, file: CheckinFile, rows: Rows) -> CheckinFile | str:
    """Write the rows and return the file as it reads back, or how it differs."""
    if target.in_memory:
        rows.write(memory := io.BytesIO())
        target = replace(target, content=memory.getvalue())
    else:
        rows.write_to(target.path)
    try:
        found = formats.read(target, file.mapping, file.format)
        return difference(rows, found.all_rows) or found
    except InputError as e:
        return e.text.replace(str(target), target.path.name)


SAMPLE, CHEAP_SAMPLE = 5_000, 50_000  # rows, at least; with and without models to run


@dataclass
class Stopwatch:
    """The time of each step of a real run."""

    seconds: dict[str, float] = field(default_factory=dict)
    last: float = field(default_factory=time.perf_counter)

    def lap(self, step: str, times: float = 1.0) -> None:
        """Count the time since the last call, this many times, as part of a step. 0 times: it does not count."""
        now = time.perf_counter()
        self.seconds[step] = self.seconds.get(step, 0.0) + (now - self.last) * times
        self.last = now


def estimate(source: Source, request: RowsRequest) -> dict[str, Any]:
    """Estimate the time, memory and substitutions of `protect`, for --dry-run; refuse a file that it would refuse.

    Reading, column tests and candidate sets run in full. Everything else runs on a sample of users, with all their
    rows, and is scaled to the whole file. Models are not trained: their scores hardly change how many rows are
    substituted, except with methods that may keep a venue.
    """
    watch = Stopwatch({"starting": time.process_time()})  # mostly imports
    file, settings, device = formats.read(source, request.mapping), request.settings, request.device
    planned = plan(request, file, lambda text: None, lap=watch.lap)
    whole, method, new = planned.whole, settings.method, identity.hidden(file.table, settings)
    users = _sample(whole, SAMPLE if method.needs_surrogate or method.needs_trajectory_lm else CHEAP_SAMPLE)
    sessions = whole.data.all.take(users[whole.data.all.user])
    epochs = _time_training(whole, sessions, settings, device, watch)
    released, rounds = _substitute(whole, sessions, users, settings, device, watch)
    row = np.flatnonzero(users[file.table.user])
    watch.lap("writing", 0)
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
    watch.lap("training", 0)
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
    watch.lap("substituting", 0)
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
