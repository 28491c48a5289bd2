"""Where a release is built, how it gets its place, and what a killed run leaves of both.

A release is built in the folder of its run, inside the private folder, so that no second draw lies next to a release.
Only if the release belongs on another file system is it built next to its place, in a hidden folder.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ghostpoi.release.manifest import MANIFEST
from ghostpoi.release.private_folder import OLD, STAGED, Run


@contextmanager
def staging_folder(run: Run, release: Path) -> Iterator[Path]:
    """Create an empty folder from which the release can be moved to its place; remove what is left of it."""
    place = run.folder if _can_move(run.folder, _beside(release, run)) else _beside(release, run)
    folder = place / STAGED
    shutil.rmtree(folder, ignore_errors=True)  # left by a killed process
    try:
        folder.mkdir(parents=True)
        yield folder
    finally:
        shutil.rmtree(folder if place == run.folder else place, ignore_errors=True)


def publish_folder(staging: Path, release: Path, replace: bool) -> None:
    """Move a complete folder to its place. An older release is removed only after the new one is there."""
    old = staging.with_name(OLD)
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
    name = re.compile(rf"\.{re.escape(release.name)}\.[0-9a-f]{{8}}\.partial(\.old)?")
    try:
        return sorted(path for path in release.parent.iterdir() if name.fullmatch(path.name))
    except PermissionError:  # the folder may be entered but not listed
        return []


def clean_up(release: Path, unfinished: Path) -> None:
    """Put an older release back if a killed run had moved it away; remove what killed runs left next to it."""
    beside = leftovers(release)
    for old in (unfinished / OLD, *(path if path.name.endswith(".old") else path / OLD for path in beside)):
        if not release.exists() and (old / MANIFEST).exists():
            os.replace(old, release)
    for path in beside:
        shutil.rmtree(path)


def _beside(release: Path, run: Run) -> Path:
    return release.with_name(f".{release.name}.{run.token}.partial")


def _can_move(source: Path, target: Path) -> bool:
    """Try whether folders can be moved there: one file system may be mounted in two places."""
    trial = source / "trial"
    trial.mkdir(exist_ok=True)
    try:
        os.rename(trial, target)
    except OSError:
        trial.rmdir()
        return False
    target.rmdir()
    return True
