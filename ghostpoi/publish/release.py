"""The release folder and its private counterpart.

RELEASE holds the data and, written last, a manifest: its presence means that the release is complete. PRIVATE, which
only its owner may read, holds what must never be released: the seed, the pairs, models made of clean data.
"""

import hashlib
import hmac
import json
import os
import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ghostpoi.data import formats
from ghostpoi.data.formats import Source
from ghostpoi.data.formats.compression import extension, load
from ghostpoi.errors import InputError
from ghostpoi.evaluate.measures.plausibility import published
from ghostpoi.files import make_private_folder, replacing
from ghostpoi.publish.manifest import MANIFEST
from ghostpoi.publish.protocols import Publication
from ghostpoi.publish.rounds import Checkpoint, Report, units
from ghostpoi.publish.table import LM_UNITS, count_rows, donors, fast_steps, plausibility, prepare, protect_table
from ghostpoi.publish.venue_columns import classify
from ghostpoi.randomness import Seed
from ghostpoi.version import __version__

RUN, UNFINISHED = "run.json", "unfinished"  # the note of a finished run; the folder of one under way, with its own note
OURS = (RUN, UNFINISHED, "trajectory_lm")
SHORT_SEED_BITS = 64  # fewer can be searched by whoever has one leaked pair


@dataclass(frozen=True)
class Request:
    """What the publisher asked for."""

    file: Path
    release: Path
    private: Path
    settings: Publication
    method: str
    protocol: str
    mapping: dict[str, str]
    keep: list[str]
    withhold: bool  # rows without a candidate are left out of the release
    seed: Seed | None
    resume: bool
    force: bool
    device: torch.device


def make(request: Request, say: Callable[[str], None], report: Report) -> dict[str, Any]:
    """Protect a file and write the release; returns the public manifest."""
    try:
        return _make(request, say, report)
    except OSError as e:
        raise InputError(
            f"{request.release} or {request.private} could not be written ({(e.strerror or str(e)).lower()}); "
            "make room or choose other folders, then go on with --resume"
        ) from None


def _make(request: Request, say: Callable[[str], None], report: Report) -> dict[str, Any]:
    unfinished = _check_places(request)
    table, source = formats.read(request.file, request.mapping)
    rows = formats.read_rows(source)
    columns = classify(table, rows, source.mapping, request.file, request.keep)
    prepared = prepare(table, request.settings)
    run = _continue(request, unfinished) if unfinished else _begin(request, say)
    checkpoint = Checkpoint(run.folder / "checkpoint.safetensors", run.key, say)
    outcome = protect_table(
        prepared, request.settings, run.seed, request.device, request.private / "trajectory_lm", checkpoint, say, report
    )
    report("writing the release", 0)
    shown = np.flatnonzero(prepared.has_candidates) if request.withhold else np.arange(len(table))
    with replacing(run.folder / "pairs.npz", mode=0o600) as out:
        # What the publisher's own report needs of venues that the release may never show stands beside the pairs.
        np.savez_compressed(
            out, clean=table.poi, released=outcome.poi, poi_id=table.pois.astype(str), lat=prepared.places.lat,
            lon=prepared.places.lon, category=table.categories.astype(str)[prepared.places.category], shown=shown,
        )  # fmt: skip
    donor = donors(prepared, outcome, request.settings.method, run.seed)
    released, withheld = rows.copy_fields(columns.change, donor), 0
    if request.withhold:
        released, withheld = released.take(shown), len(table) - len(shown)
    figures = {
        "tool": {"name": "ghostpoi", "version": __version__},
        "method": request.method,
        "protocol": request.protocol,
        "settings": request.settings.public(),
        "columns": {"fields": source.mapping, "changed_with_the_venue": columns.change, "kept": columns.keep},
        "rows": count_rows(prepared, outcome) | {"withheld": withheld},
        "plausibility": published(plausibility(table, prepared.places, outcome.poi)),
    }
    manifest = _write(request, run, source, released, figures)
    for name in ("pairs.npz", RUN):  # the note last: as long as it is here, --resume can do all of this again
        os.replace(run.folder / name, request.private / name)
    shutil.rmtree(run.folder)
    return manifest


def given_seed(value: int | None, say: Callable[[str], None]) -> Seed | None:
    """The seed from the command line, with a warning if it is short enough to be searched."""
    if value is not None and value.bit_length() < SHORT_SEED_BITS:
        say(
            "warning: one leaked pair is enough to search a short seed; leave --seed out for a real release, "
            "then 128 bits come from the operating system"
        )
    return None if value is None else Seed(value)


def work(settings: Publication) -> float:
    """All units of work, for the progress bar."""
    lm = settings.lm_training.epochs * LM_UNITS if settings.method.needs_trajectory_lm else 0.0
    return lm + units(settings.method, settings.rounds)


def _check_places(request: Request) -> dict[str, Any] | None:
    """Refuse what would overwrite or mix things up; returns the note of the interrupted run to go on with, if any."""
    release, private = request.release.resolve(), request.private.resolve()
    if private.is_relative_to(release):
        raise InputError(
            f"the private folder {request.private} would lie inside the release {request.release}; "
            "choose another with --private"
        )
    if release.is_relative_to(private):
        raise InputError(
            f"the release {request.release} would lie inside the private folder {request.private}; "
            "choose another with -o"
        )
    for folder in (request.release.parent, request.private.parent):
        if not folder.is_dir():
            raise InputError(f"the folder {folder} does not exist; make it first")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(
                f"the folder {folder} may not be written to by this user; choose another or change its mode"
            )
    unfinished = _unfinished(request)
    # A run that was killed just after it gave the release its name may go on and give it again.
    goes_on = unfinished is not None and unfinished["release"] == str(release)
    if release.exists() and not (request.force or goes_on):
        raise InputError(f"{request.release} exists already; choose another folder with -o, or replace it with --force")
    if release.exists() and not (release / MANIFEST).exists() and any(release.iterdir() if release.is_dir() else [1]):
        raise InputError(f"{request.release} is not a release, so --force does not replace it; choose another with -o")
    if request.file.resolve().is_relative_to(release):
        raise InputError(f"{request.file} lies inside {request.release}, which would be replaced; move it first")
    if request.private.is_dir() and not unfinished:
        _check_private(request)
    return unfinished


def _check_private(request: Request) -> None:
    """A new run may take an empty folder, or one of ours by force."""
    folder = request.private
    ours = [name for name in OURS if (folder / name).exists()]
    if not ours and any(folder.iterdir()):
        raise InputError(f"{folder} holds other files than ghostpoi's; choose an empty or new folder with --private")
    for name, what in ((UNFINISHED, "an interrupted run; go on with --resume"), (RUN, "a finished run; keep them")):
        if name in ours and not request.force:
            raise InputError(
                f"{folder} holds the private files of {what}, replace them with --force, or choose another folder with "
                "--private"
            )


def _unfinished(request: Request) -> dict[str, Any] | None:
    """The note of the interrupted run in the private folder, if that is to go on."""
    path = request.private / UNFINISHED / RUN
    if not (request.resume and path.exists()):
        return None
    try:
        note: dict[str, Any] = json.loads(path.read_text("utf-8"))
        int(note["seed"], 16)
        if all(isinstance(note[key], str) for key in ("input", "asked", "release", "token")):
            return note
    except (ValueError, KeyError, TypeError):  # what it says must not be shown: the seed is in it
        pass
    raise InputError(f"{path} is damaged; start again with --force and without --resume")


@dataclass(frozen=True)
class Run:
    """A run under way, with its own folder inside the private one."""

    folder: Path
    seed: Seed
    key: str  # of everything that its checkpoint depends on
    token: str  # tells its temporary names from those of other runs


def _begin(request: Request, say: Callable[[str], None]) -> Run:
    """A new run. The private files of an older one stay until this one has made its release."""
    if request.resume:
        say(f"nothing to resume in {request.private}; starting from the beginning")
    folder, seed = request.private / UNFINISHED, request.seed or Seed.fresh()
    make_private_folder(request.private)
    if folder.exists():
        shutil.rmtree(folder)
    make_private_folder(folder)
    note = {
        "seed": f"{seed.value:x}",
        "input": _keyed_hash(request.file, seed),
        "asked": _asked(request),
        "release": str(request.release.resolve()),
        "token": secrets.token_hex(4),
    }
    with replacing(folder / RUN, mode=0o600) as out:
        out.write(json.dumps(note, indent=2).encode())
    return _run(request, note)


def _continue(request: Request, note: dict[str, Any]) -> Run:
    """The interrupted run, if it is the same one that is asked for."""
    run = _run(request, note)
    if request.seed not in (None, run.seed):
        raise InputError(f"--seed differs from the seed of the run in {request.private}; leave --seed out to resume it")
    if note["input"] != _keyed_hash(request.file, run.seed):
        raise InputError(f"{request.file} is not the file of the run in {request.private}; start again with --force")
    if note["asked"] != _asked(request):
        raise InputError(
            f"the settings differ from those of the run in {request.private}; give the same, or start again with "
            "--force"
        )
    for killed in (*run.folder.glob(".*"), *(request.private / "trajectory_lm").glob(".*")):
        killed.unlink()  # what a killed process was writing
    return run


def _run(request: Request, note: dict[str, Any]) -> Run:
    text = "\x1f".join([__version__, note["input"], note["asked"], request.device.type])
    key = hashlib.sha256(text.encode()).hexdigest()
    return Run(request.private / UNFINISHED, Seed(int(note["seed"], 16)), key, note["token"])


def _asked(request: Request) -> str:
    mapping = sorted(request.mapping.items())
    return f"{request.settings!r} map={mapping} keep={sorted(request.keep)} withhold={request.withhold}"


def _keyed_hash(file: Path, seed: Seed) -> str:
    """A plain hash of the input would let anybody confirm a guess of it."""
    return hmac.new(str(seed.value).encode(), load(file), hashlib.sha256).hexdigest()


def _write(
    request: Request, run: Run, source: Source, released: formats.Rows, figures: dict[str, Any]
) -> dict[str, Any]:
    """The release folder under a temporary name, then all at once under its own."""
    release = request.release.resolve()
    staging = release.with_name(f".{release.name}.{run.token}.partial")
    data = staging / f"checkins{extension(request.file)}"
    speed = request.settings.speed
    shutil.rmtree(staging, ignore_errors=True)  # of a killed process
    try:
        staging.mkdir()
        with replacing(data) as out:
            released.write(out)
        written, _ = formats.read(data, source.mapping, source.format)
        manifest = figures | {
            "speed": fast_steps(written, speed.limit_kmh, speed.min_gap_s),
            "data": {
                "file": data.name,
                "format": source.format,
                "rows": len(written),
                "sha256": hashlib.sha256(data.read_bytes()).hexdigest(),
            },
        }
        with replacing(staging / MANIFEST) as out:
            out.write((json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())
        _publish_folder(staging, release, request.force or request.resume)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return manifest


def _publish_folder(staging: Path, release: Path, replace: bool) -> None:
    """Give a complete folder its name; an older release of that name goes only when the new one is in place."""
    old = staging.with_name(staging.name + ".old")
    if replace and release.exists():
        shutil.rmtree(old, ignore_errors=True)
        os.replace(release, old)
    try:
        os.replace(staging, release)  # fails where somebody else has put something there meanwhile
    except OSError:
        if old.exists():
            os.replace(old, release)
        raise
    shutil.rmtree(old, ignore_errors=True)
