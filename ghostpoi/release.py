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

from ghostpoi import formats, vault
from ghostpoi.atomic import replacing
from ghostpoi.checkins import Checkins
from ghostpoi.errors import InputError
from ghostpoi.formats import Source
from ghostpoi.formats.files import extension, load
from ghostpoi.protection import (
    LM_UNITS,
    Outcome,
    count_rows,
    donors,
    fast_steps,
    plausibility,
    prepare,
    protect_table,
)
from ghostpoi.protocols import Publication
from ghostpoi.publisher import Checkpoint, Report, units
from ghostpoi.randomness import Seed
from ghostpoi.venue_columns import classify
from ghostpoi.version import __version__

MANIFEST = "manifest.json"
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
    _check_places(request)
    table, source = formats.read(request.file, request.mapping)
    rows = formats.read_rows(source)
    columns = classify(table, rows, source.mapping, request.file, request.keep)
    prepared = prepare(table, request.settings)
    key, seed = _open_private(request, say)
    checkpoint = Checkpoint(request.private / "checkpoint.safetensors", key, say)
    outcome = protect_table(
        prepared, request.settings, seed, request.device, request.private / "trajectory_lm", checkpoint, say, report
    )
    report("writing the release", 0)
    shown = np.ones(len(table), bool) if not request.withhold else prepared.has_candidates
    if not shown.any():
        raise InputError("no row has a candidate, so --no-candidate withhold leaves nothing to release")
    _store_pairs(request.private, table, outcome)
    released = rows.copy_fields(columns.change, donors(prepared, outcome, seed))
    if request.withhold:
        released = released.take(np.flatnonzero(shown))
    figures = {
        "tool": {"name": "ghostpoi", "version": __version__},
        "method": request.method,
        "protocol": request.protocol,
        "settings": request.settings.public(),
        "columns": {"fields": source.mapping, "changed_with_the_venue": columns.change, "kept": columns.keep},
        "rows": count_rows(prepared, outcome) | {"withheld": int((~shown).sum())},
        "plausibility": plausibility(table, prepared.places, outcome.poi),
    }
    manifest = _write(request, source, released, figures)
    checkpoint.path.unlink(missing_ok=True)
    _note(request.private, {"finished": True})
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


def _check_places(request: Request) -> None:
    release, private = request.release.resolve(), request.private.resolve()
    if private == release or private.is_relative_to(release):
        raise InputError(
            f"the private folder {request.private} would lie inside the release {request.release}; "
            "choose another with --private"
        )
    if release.is_relative_to(private):
        raise InputError(
            f"the release {request.release} would lie inside the private folder {request.private}; "
            "choose another with -o"
        )
    if release.exists() and not request.force:
        raise InputError(f"{request.release} exists already; choose another folder with -o, or replace it with --force")
    if release.exists() and not (release / MANIFEST).exists() and any(release.iterdir() if release.is_dir() else [1]):
        raise InputError(f"{request.release} is not a release, so --force does not replace it; choose another with -o")
    if request.file.resolve().is_relative_to(release):
        raise InputError(f"{request.file} lies inside {request.release}, which would be replaced; move it first")
    for folder in (request.release.parent, request.private.parent):
        if not folder.is_dir():
            raise InputError(f"the folder {folder} does not exist; make it first")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(
                f"the folder {folder} may not be written to by this user; choose another or change its mode"
            )


def _open_private(request: Request, say: Callable[[str], None]) -> tuple[str, Seed]:
    """The private folder with the seed in it; a run that was interrupted goes on with its own seed."""
    folder = request.private
    unfinished = (folder / "run.json").exists()
    if unfinished and not (request.resume or request.force):
        what = "a finished run" if _read_note(folder).get("finished") else "an interrupted run"
        raise InputError(
            f"{folder} holds the private files of {what}; continue an interrupted one with --resume, "
            "replace it with --force, or choose another with --private"
        )
    if request.resume and not unfinished:
        say(f"nothing to resume in {folder}; starting from the beginning")
    try:
        vault.make_folder(folder)
        if unfinished and request.resume:
            stored = Seed(int((folder / "seed").read_text().strip(), 16))
            if request.seed is not None and request.seed != stored:
                raise InputError(f"--seed differs from the seed of the run in {folder}; leave --seed out to resume it")
            seed = stored
        else:
            seed = request.seed or Seed.fresh()
            for old in ("checkpoint.safetensors", "run.json", "pairs.npz"):
                (folder / old).unlink(missing_ok=True)
            with replacing(folder / "seed", mode=0o600) as out:
                out.write(f"{seed.value:x}\n".encode())
        key = _key(request, seed)
        if not (unfinished and request.resume):
            _note(
                folder,
                {"input": _keyed_hash(request.file, seed), "settings": repr(request.settings), "finished": False},
            )
        elif _read_note(folder).get("input") != _keyed_hash(request.file, seed):
            raise InputError(f"{request.file} is not the file of the run in {folder}; start again with --force")
        elif _read_note(folder).get("settings") != repr(request.settings):
            raise InputError(
                f"the settings differ from those of the run in {folder}; give the same, or start again with --force"
            )
    except (OSError, ValueError) as e:
        raise InputError(f"the private folder {folder} cannot be used ({e}); choose another with --private") from None
    return key, seed


def _key(request: Request, seed: Seed) -> str:
    text = f"{__version__}\x1f{_keyed_hash(request.file, seed)}\x1f{request.settings!r}\x1f{request.device.type}"
    return hashlib.sha256(text.encode()).hexdigest()


def _keyed_hash(file: Path, seed: Seed) -> str:
    """A plain hash of the input would let anybody confirm a guess of it."""
    return hmac.new(str(seed.value).encode(), load(file), hashlib.sha256).hexdigest()


def _read_note(folder: Path) -> dict[str, Any]:
    try:
        note: dict[str, Any] = json.loads((folder / "run.json").read_text())
    except ValueError:
        raise InputError(f"{folder / 'run.json'} is damaged; start again with --force") from None
    return note


def _note(folder: Path, entries: dict[str, Any]) -> None:
    old = _read_note(folder) if (folder / "run.json").exists() else {}
    with replacing(folder / "run.json", mode=0o600) as out:
        out.write(json.dumps(old | entries, indent=2).encode())


def _store_pairs(folder: Path, table: Checkins, outcome: Outcome) -> None:
    with replacing(folder / "pairs.npz", mode=0o600) as out:
        np.savez_compressed(out, clean=table.poi, released=outcome.poi, poi_id=table.pois.astype(str))


def _write(request: Request, source: Source, released: formats.Rows, figures: dict[str, Any]) -> dict[str, Any]:
    """The release folder under a temporary name, then all at once under its own."""
    staging = request.release.with_name(f".{request.release.name}.{secrets.token_hex(4)}.partial")
    data = staging / f"checkins{extension(request.file)}"
    speed = request.settings.speed
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
        _publish_folder(staging, request.release)
    except OSError as e:
        raise InputError(
            f"the release {request.release} could not be written ({(e.strerror or str(e)).lower()}); free some space or "
            "choose another folder, then continue with --resume"
        ) from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return manifest


def _publish_folder(staging: Path, release: Path) -> None:
    """Give a complete folder its name; an older release of that name goes only when the new one is in place."""
    if not release.exists():
        os.replace(staging, release)
        return
    old = staging.with_name(staging.name + ".old")
    os.replace(release, old)
    os.replace(staging, release)
    shutil.rmtree(old)
