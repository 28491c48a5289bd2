"""Requests to `protect`, and their runs in the private folder: start, resume, refuse to overwrite or mix."""

import hashlib
import hmac
import json
import os
import secrets
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ghostpoi import __version__
from ghostpoi.draw.publication import Publication
from ghostpoi.errors import InputError
from ghostpoi.files import PARTIAL, make_private_folder, remove_partial, replacing
from ghostpoi.formats import Source
from ghostpoi.options import option
from ghostpoi.progress import Say
from ghostpoi.randomness import Seed
from ghostpoi.release.manifest import MANIFEST
from ghostpoi.release.seal import KEY, create_key

if TYPE_CHECKING:
    import torch

RUN = "run.json"  # the note of a run: seed, keyed hash of the input, request
UNFINISHED = "unfinished"  # the folder of a run in progress, with its own note
STAGED, OLD = "release", "replaced"  # in it: the release that is being built, the older one that makes room for it
OWN_FILES = (RUN, UNFINISHED, "trajectory_lm", KEY)

Note = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class RowsRequest:
    """What the publisher can choose about the rows of a release."""

    settings: Publication
    method: str
    mapping: dict[str, str]
    protocol: str = "strong"
    device: "torch.device | None" = None  # None for a method that needs no torch
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    withhold: bool = False  # omit rows whose venue has no candidate
    keep_metadata: bool = False  # of a Parquet file
    groups: dict[str, str] = field(default_factory=dict)  # of categories, from a taxonomy
    seed: Seed | None = None


@dataclass(frozen=True, kw_only=True)
class ReleaseRequest(RowsRequest):
    """What the publisher can choose about a release and where it is written."""

    file: Source
    release: Path
    private: Path
    resume: bool = False
    force: bool = False
    series: Path | None = None  # the private folder of the series that the release belongs to


@dataclass(frozen=True)
class Run:
    """A run in progress, with its own folder inside the private folder."""

    folder: Path
    seed: Seed
    key: str  # hash of everything that its checkpoint depends on
    token: str  # makes its temporary names unique


def check_places(request: ReleaseRequest) -> None:
    """Refuse places that lie inside each other or cannot be written."""
    release, private = request.release.resolve(), request.private.resolve()
    folders = f"the private folder {request.private}", f"the release {request.release}"
    if private.is_relative_to(release):
        raise InputError(f"{' would be inside '.join(folders)}; choose another with {option('private')}")
    if release.is_relative_to(private):
        raise InputError(f"{' would be inside '.join(folders[::-1])}; choose another with {option('output')}")
    series = request.series.resolve() if request.series else None
    for named, folder in (("the release", release), ("the private folder", private)):
        if series and (series.is_relative_to(folder) or folder.is_relative_to(series)):
            raise InputError(
                f"{option('series', request.series)} and {named} {folder} would be inside each other; choose another "
                "folder"
            )
    for folder in (path.parent for path in (request.release, request.private, request.series) if path):
        if not folder.is_dir():
            raise InputError(f"the folder {folder} does not exist; create it first")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(f"the folder {folder} is not writable; choose another or change its permissions")


def check_folders(request: ReleaseRequest) -> Note | None:
    """Refuse folders that would overwrite or mix data. Return the note of the interrupted run to resume, if any."""
    release = request.release.resolve()
    unfinished = _unfinished(request)
    # A run that was killed after it published the release may resume and publish it again.
    resumes = unfinished is not None and unfinished["release"] == str(release)
    if release.exists() and not (request.force or resumes):
        raise InputError(
            f"{request.release} exists already; choose another folder with {option('output')}, or replace it with "
            f"{option('force')}"
        )
    if release.exists() and not (release / MANIFEST).exists() and any(release.iterdir() if release.is_dir() else [1]):
        raise InputError(
            f"{request.release} is not a release, so {option('force')} does not replace it; choose another with "
            f"{option('output')}"
        )
    if request.file.path.resolve().is_relative_to(release):
        raise InputError(f"{request.file} is inside {request.release}, which would be replaced; move it first")
    if request.private.is_dir() and not unfinished:
        _check_private(request)
    return unfinished


def begin(request: ReleaseRequest, sha256: bytes, say: Say) -> Run:
    """Start a new run with an input of this hash. The private files of an older run stay until the new one is done."""
    if request.resume:
        say(f"nothing to resume in {request.private}; starting from the beginning")
    folder, seed = request.private / UNFINISHED, request.seed or Seed.fresh()
    make_private_folder(request.private)
    remove_partial(request.private)
    create_key(request.private)
    if folder.exists():
        shutil.rmtree(folder)
    make_private_folder(folder)
    note = {
        "seed": f"{seed.value:x}",
        "input": _keyed_hash(sha256, seed),
        "asked": _asked(request),
        "choices": json.dumps(_choices(request)),
        "release": str(request.release.resolve()),
        "token": secrets.token_hex(4),
    }
    with replacing(folder / RUN, mode=0o600) as out:
        out.write(json.dumps(note, indent=2).encode())
    return _run(request, note)


def resume(request: ReleaseRequest, sha256: bytes, note: Note) -> Run:
    """Resume an interrupted run; refuse if the request differs."""
    run, private = _run(request, note), request.private
    if request.seed not in (None, run.seed):
        raise InputError(
            f"{option('seed')} differs from the seed of the run in {private}; leave {option('seed')} out to resume it"
        )
    if note["input"] != _keyed_hash(sha256, run.seed):
        raise InputError(f"{request.file} is not the file of the run in {private}; start again with {option('force')}")
    if note["asked"] != _asked(request):
        raise InputError(
            f"the settings differ from those of the run in {private}{_differing(note, request)}; give the same "
            f"settings, or start again with {option('force')}"
        )
    create_key(private)
    for folder in (private, run.folder, private / "trajectory_lm"):
        remove_partial(folder)
    shutil.rmtree(run.folder / OLD, ignore_errors=True)
    return run


def _check_private(request: ReleaseRequest) -> None:
    """Refuse a folder with files of others or, without --force, with files of another run."""
    folder = request.private
    own = [name for name in OWN_FILES if (folder / name).exists()]
    if not own and any(not path.match(f".*{PARTIAL}") for path in folder.iterdir()):
        raise InputError(
            f"{folder} holds files that are not ghostpoi's; choose an empty or new folder with {option('private')}"
        )
    other = f"replace them with {option('force')}, or choose another folder with {option('private')}"
    # Without its note, the folder of a run holds nothing to resume: the run was killed before it began.
    if (folder / UNFINISHED / RUN).exists() and not request.force:
        raise InputError(
            f"{folder} holds the private files of an interrupted run; continue with {option('resume')}, {other}"
        )
    if RUN in own and not request.force:
        raise InputError(f"{folder} holds the private files of a finished run; {other}")


def _unfinished(request: ReleaseRequest) -> Note | None:
    """Return the note of the interrupted run that the request resumes, if any."""
    path = request.private / UNFINISHED / RUN
    if not (request.resume and path.exists()):
        return None
    try:
        note: Note = json.loads(path.read_text("utf-8"))
        int(note["seed"], 16)
        if all(isinstance(note[key], str) for key in ("input", "asked", "release", "token")):
            return note
    except (ValueError, KeyError, TypeError):  # the message must not quote the note, which holds the seed
        pass
    raise InputError(f"{path} is damaged; start again with {option('force')} and without {option('resume')}")


def _run(request: ReleaseRequest, note: Note) -> Run:
    text = "\x1f".join([__version__, note["input"], note["asked"], request.device.type if request.device else "cpu"])
    key = hashlib.sha256(text.encode()).hexdigest()
    return Run(request.private / UNFINISHED, Seed(int(note["seed"], 16)), key, note["token"])


def _asked(request: ReleaseRequest) -> str:
    mapping = sorted(request.mapping.items())
    columns = f"keep={sorted(request.keep)} drop={sorted(request.drop)}" + " keep_metadata" * request.keep_metadata
    groups = f" groups={sorted(request.groups.items())}" if request.groups else ""
    reading = f" reading={stated}" if (stated := request.file.reading.stated) else ""
    series = f" series={request.series.resolve()}" if request.series else ""
    return f"{request.settings!r} map={mapping} {columns} withhold={request.withhold}{groups}{reading}{series}"


def _choices(request: ReleaseRequest) -> dict[str, str]:
    """Return what was asked for by the name of the option or, with a dot, of the setting."""
    settings = {
        f"{section}.{key}": str(value)
        for section, values in request.settings.public().items()
        for key, value in values.items()
    }
    groups = hashlib.sha256(repr(sorted(request.groups.items())).encode()).hexdigest()[:8] if request.groups else ""
    return {
        "method": request.method, **settings, **request.file.reading.stated, "keep": " ".join(sorted(request.keep)),
        "drop": " ".join(sorted(request.drop)), "no_candidate": "withhold" if request.withhold else "keep",
        "keep_metadata": "on" if request.keep_metadata else "", "taxonomy": groups,
        "map": " ".join(f"{field}={column}" for field, column in sorted(request.mapping.items())),
    }  # fmt: skip


def _differing(note: Note, request: ReleaseRequest) -> str:
    """Name the choices that differ from those of a run; nothing if its note cannot be compared."""
    try:
        old, new = dict(json.loads(note.get("choices", "{}"))), _choices(request)
        if old.get("method") != new["method"]:  # other methods have other settings
            old, new = ({"method": one.get("method", "")} for one in (old, new))
        names = [name for name in dict.fromkeys([*old, *new]) if old.get(name, "") != new.get(name, "")] if old else []
        spelled = {name: name if "." in name else option(name) for name in names}
    except (ValueError, TypeError, KeyError):
        return ""
    parts = (f"{spelled[n]} was {old.get(n) or 'not given'}, now {new.get(n) or 'not given'}" for n in names)
    return f" ({'; '.join(parts)})" if names else ""


def _keyed_hash(sha256: bytes, seed: Seed) -> str:
    """Hash the input with the seed as key. A plain hash would let anyone confirm a guess of the input."""
    return hmac.new(str(seed.value).encode(), sha256, hashlib.sha256).hexdigest()
