"""Requests to `protect`, and their runs in the private folder: start, resume, refuse to overwrite or mix, publish.

A release is built in the folder of its run, inside the private folder, so that no second draw lies next to a release.
Only if the release belongs on another file system is it built next to its place, in a hidden folder.
"""

import hashlib
import hmac
import json
import os
import re
import secrets
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ghostpoi import __version__, stores
from ghostpoi.data.checkins import Checkins, Ints, Longs
from ghostpoi.draw.publication import Publication
from ghostpoi.errors import InputError
from ghostpoi.files import PARTIAL, make_folder, make_private_folder, remove_partial, replacing
from ghostpoi.formats import Source, databases
from ghostpoi.formats.databases import ROWS
from ghostpoi.formats.source import Query
from ghostpoi.options import option, with_urls
from ghostpoi.progress import Say
from ghostpoi.randomness import Seed
from ghostpoi.release.identity import PAIRS, read_map
from ghostpoi.release.manifest import KEY, MANIFEST, create_key, read_manifest

if TYPE_CHECKING:
    import torch

RUN = "run.json"  # the note of a run: seed, keyed hash of the input, request
UNFINISHED = "unfinished"  # the folder of a run in progress, with its own note
STAGED, OLD = "release", "replaced"  # in it: the release that is being built, the older one that makes room for it
PRIVATE_PAIRS = "pairs"  # the pairs of each region
OWN_FILES = (RUN, UNFINISHED, "trajectory_lm", KEY, ROWS)

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
    purpose: str = ""  # a preset, which `settings` follow
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
    to_table: str = ""  # of the database that is read: where the rows of the release are written, too
    database: Query | None = None  # that was read


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
    for name, folder in (("the release", release), ("the private folder", private)):
        if series and (series.is_relative_to(folder) or folder.is_relative_to(series)):
            raise InputError(
                f"{option('series', request.series)} and {name} {folder} would be inside each other; choose another "
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
    resumes = unfinished is not None and unfinished["release"] == with_urls(str(release))
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
    place = Path(request.file.query.place) if request.file.query else request.file.path
    if place.resolve().is_relative_to(release):
        raise InputError(f"{request.file} is inside {request.release}, which would be replaced; move it first")
    if request.private.is_dir() and not unfinished:
        _check_private(request.private, request.force)
    return unfinished


def _check_private(folder: Path, force: bool) -> None:
    """Refuse a folder with files of others or, without --force, with files of another run."""
    own = [name for name in OWN_FILES if (folder / name).exists()]
    if not own and any(not path.match(f".*{PARTIAL}") for path in folder.iterdir()):
        raise InputError(
            f"{folder} holds files that are not ghostpoi's; choose an empty or new folder with {option('private')}"
        )
    other = f"replace them with {option('force')}, or choose another folder with {option('private')}"
    # Without its note, the folder of a run holds nothing to resume: the run was killed before it began.
    if (folder / UNFINISHED / RUN).exists() and not force:
        raise InputError(
            f"{folder} holds the private files of an interrupted run; continue with {option('resume')}, {other}"
        )
    if RUN in own and not force:
        raise InputError(f"{folder} holds the private files of a finished run; {other}")


@contextmanager
def rows_at_hand(request: ReleaseRequest, unfinished: Note | None) -> Iterator[ReleaseRequest]:
    """Read a database into the private folder, once for a run and for those that resume it."""
    query, rows, fresh = request.file.query, request.private.resolve() / ROWS, is_fresh(request.private)
    if request.to_table and query is None:
        raise InputError(f"{option('to_table', request.to_table)} is for check-ins that come from a database")
    if query is None:
        yield request
        return
    if request.to_table:
        databases.check_target(query, request.to_table, request.force or unfinished is not None)
    try:
        if unfinished and rows.exists():
            source = replace(request.file, path=rows, query=None)
        else:
            make_private_folder(request.private)
            source = databases.stored(request.file, request.mapping, rows)
        yield replace(request, file=source, database=query)
    finally:
        if not (request.private / UNFINISHED / RUN).exists():  # nothing can be resumed
            rows.unlink(missing_ok=True)
            if fresh and request.private.is_dir() and not any(request.private.iterdir()):
                request.private.rmdir()


def is_fresh(private: Path) -> bool:
    """Return whether a private folder holds no earlier run."""
    return not private.exists() or all(path.name == ROWS for path in private.iterdir())


@contextmanager
def running(
    request: ReleaseRequest, sha256: bytes, unfinished: Note | None, say: Say, may_resume: Callable[[Exception], bool]
) -> Iterator[Run]:
    """Start a run with an input of this hash, or go on with an unfinished one.

    A new run is removed after an error that would come again: it would only be in the way of the next one.
    """
    is_new = is_fresh(request.private)
    run = _begun_or_resumed(request, sha256, unfinished, say)
    try:
        yield run
    except Exception as e:
        if not unfinished and not may_resume(e):
            shutil.rmtree(request.private if is_new else run.folder, ignore_errors=True)
        raise


def _begun_or_resumed(request: ReleaseRequest, sha256: bytes, unfinished: Note | None, say: Say) -> Run:
    """Return a run in its folder. The private files of an older one stay until it is done."""
    if unfinished:
        return _resumed(request, sha256, unfinished)
    if request.resume:
        say(f"nothing to resume in {request.private}; starting from the beginning")
    folder, seed = request.private / UNFINISHED, request.seed or Seed.fresh()
    make_private_folder(request.private)
    remove_partial(request.private)
    create_key(request.private, request.series)
    if folder.exists():
        shutil.rmtree(folder)
    make_private_folder(folder)
    note = {
        "seed": f"{seed.value:x}",
        "input": keyed_hash(sha256, seed),
        "asked": json.dumps(_asked(request)),
        "release": with_urls(str(request.release.resolve())),
        "token": secrets.token_hex(4),
    }
    with replacing(folder / RUN, mode=0o600) as out:
        out.write(json.dumps(note, indent=2).encode())
    for path in (request.private / KEY, folder / RUN):
        stores.send(path)
    return _run(request, note)


def _resumed(request: ReleaseRequest, sha256: bytes, note: Note) -> Run:
    """Resume an interrupted run; refuse if the request differs."""
    run, private = _run(request, note), request.private
    if request.seed not in (None, run.seed):
        raise InputError(
            f"{option('seed')} differs from the seed of the run in {private}; leave {option('seed')} out to resume it"
        )
    if note["input"] != keyed_hash(sha256, run.seed):
        raise InputError(f"{request.file} is not the file of the run in {private}; start again with {option('force')}")
    if (old := json.loads(note["asked"])) != (new := _asked(request)):
        names = [name for name in new if old.get(name, "") != new[name]]
        names = ["method"] if "method" in names else names  # other methods have other settings
        spelled = ((name if "." in name else option(name), old.get(name), new[name]) for name in names)
        parts = [f"{name} was {before or 'not given'}, now {now or 'not given'}" for name, before, now in spelled]
        differing = f" ({'; '.join(parts)})" if parts else ""
        raise InputError(
            f"the settings differ from those of the run in {private}{differing}; give the same "
            f"settings, or start again with {option('force')}"
        )
    create_key(private, request.series)
    for folder in (private, run.folder, private / "trajectory_lm"):
        remove_partial(folder)
    shutil.rmtree(run.folder / OLD, ignore_errors=True)
    return run


def _unfinished(request: ReleaseRequest) -> Note | None:
    """Return the note of the interrupted run that the request resumes, if any."""
    path = request.private / UNFINISHED / RUN
    if not (request.resume and path.exists()):
        return None
    try:
        note: Note = json.loads(path.read_text("utf-8"))
        int(note["seed"], 16)
        asked = json.loads(note["asked"])
        if isinstance(asked, dict) and all(isinstance(note[key], str) for key in ("input", "release", "token")):
            return note
    except (ValueError, KeyError, TypeError):  # the message must not quote the note, which holds the seed
        pass
    raise InputError(f"{path} is damaged; start again with {option('force')} and without {option('resume')}")


def _run(request: ReleaseRequest, note: Note) -> Run:
    text = "\x1f".join([__version__, note["input"], note["asked"], request.device.type if request.device else "cpu"])
    key = hashlib.sha256(text.encode()).hexdigest()
    return Run(request.private / UNFINISHED, Seed(int(note["seed"], 16)), key, note["token"])


def _asked(request: ReleaseRequest) -> dict[str, str]:
    """Return what was asked for by the name of the option or, with a dot, of the setting."""
    public = request.settings.public().items()
    settings = {f"{section}.{key}": str(value) for section, values in public for key, value in values.items()}
    groups = hashlib.sha256(repr(sorted(request.groups.items())).encode()).hexdigest()[:16] if request.groups else ""
    return {
        "method": request.method, **settings, **request.file.reading.stated, "keep": shlex.join(sorted(request.keep)),
        "drop": shlex.join(sorted(request.drop)), "no_candidate": "withhold" if request.withhold else "keep",
        "keep_metadata": "on" if request.keep_metadata else "", "taxonomy": groups,
        "map": shlex.join(f"{field}={column}" for field, column in sorted(request.mapping.items())),
        "series": with_urls(str(request.series.resolve())) if request.series else "", "purpose": request.purpose,
        "to_table": request.to_table, **(request.database.stated if request.database else {}),
    }  # fmt: skip


def keyed_hash(sha256: bytes, seed: Seed) -> str:
    """Hash the input with the seed as key. A plain hash would let anyone confirm a guess of the input."""
    return hmac.new(str(seed.value).encode(), sha256, hashlib.sha256).hexdigest()


@contextmanager
def publishing(run: Run, request: ReleaseRequest) -> Iterator[Path]:
    """Yield an empty folder for the content of a release, which is published when the block ends without an error.

    Its rows are written to a table, too, if that is asked for.
    """
    release, replaces = request.release.resolve(), request.force or request.resume
    beside = release.with_name(f".{release.name}.{run.token}.partial")
    place, trial = run.folder, run.folder / "trial"  # one file system may be mounted in two places
    trial.mkdir(exist_ok=True)
    try:
        os.rename(trial, beside)
    except OSError:
        trial.rmdir()
        place = beside
    else:
        beside.rmdir()
    folder = place / STAGED
    shutil.rmtree(folder, ignore_errors=True)  # left by a killed process
    try:
        make_folder(folder)
        yield folder
        if request.to_table and request.database:
            data = folder / read_manifest(folder)["data"]["file"]
            with databases.table_written(request.database, request.to_table, data, replaces):
                publish_folder(folder, release, replaces)
        else:
            publish_folder(folder, release, replaces)
    finally:
        shutil.rmtree(folder if place == run.folder else place, ignore_errors=True)


def publish_folder(staging: Path, release: Path, replace: bool) -> None:
    """Move a complete folder to its place. An older release is removed only after the new one is there."""
    old = staging.with_name(OLD)
    stores.publish(release, staging, replace)
    if replace and release.exists():
        shutil.rmtree(old, ignore_errors=True)
        os.replace(release, old)
    try:
        os.replace(staging, release)  # fails if somebody has created it
    except OSError:
        if old.exists():
            os.replace(old, release)
        raise
    shutil.rmtree(old, ignore_errors=True)


def leftovers(release: Path) -> list[Path]:
    """Return what killed runs left next to a release."""
    name = re.compile(rf"\.{re.escape(release.name)}\.[0-9a-f]{{8}}\.partial")
    try:
        return sorted(path for path in release.parent.iterdir() if name.fullmatch(path.name))
    except PermissionError:  # the folder may be entered but not listed
        return []


def clean_up(release: Path, unfinished: Path) -> None:
    """Put an older release back if a killed run had moved it away; remove what killed runs left next to it."""
    beside = leftovers(release)
    for old in (unfinished / OLD, *(path / OLD for path in beside)):
        if not release.exists() and (old / MANIFEST).exists():
            os.replace(old, release)
    for path in beside:
        shutil.rmtree(path)


@dataclass(frozen=True)
class Pairs:
    """The clean and released venue of every released row, its clean time, and all venues. Row 0 is no venue."""

    clean: Ints  # (N,)
    released: Ints  # (N,)
    row: Longs  # (N,) the row of the clean file
    time: Longs  # (N,) clean
    ids: list[str]  # (V+1,), and so the next three
    category: list[str]
    lat: list[float]
    lon: list[float]


def read_pairs(private: Path, released: Checkins, name: str) -> Pairs:
    """Read the pairs of a release, which messages call by `name`; refuse those of another release."""
    path, here = private / PAIRS, option("private", private)
    if not path.is_file() and path.with_suffix("").is_dir():
        raise InputError(
            f"{here} holds pairs by region, of data that may be larger than memory; to have clean and released rows "
            f"side by side, leave out {option('engine')} and {option('memory')} when you make the release"
        )
    if not path.is_file():
        raise InputError(f"{here} holds no {PAIRS}; give the private folder that protect wrote")
    try:
        with np.load(path, allow_pickle=False) as file:
            shown = file["shown"]
            clean, drawn = (file[name][shown] for name in ("clean", "released"))
            venues = (file[name].tolist() for name in ("poi_id", "category", "lat", "lon"))
            time = file["time"][shown] if "time" in file else released.time
            pairs = Pairs(clean, drawn, shown, time, *venues)
            same = np.array_equal(file["poi_id"][drawn], released.venue_ids[released.venue].astype(str))
    except (OSError, ValueError, KeyError, IndexError, EOFError):
        raise InputError(f"{path} cannot be read; restore it from a backup or make the release again") from None
    if not same:
        raise InputError(f"{path} belongs to another release than {name}; give that release's private folder")
    return pairs


def clean_users(private: Path, released: Checkins, pseudonyms: bool) -> list[str]:
    """Return the clean user id of every released row. `pseudonyms` says whether the release hides them."""
    users = read_map(private).behind(released) if pseudonyms else released.user_ids[released.user]
    return users.tolist()
