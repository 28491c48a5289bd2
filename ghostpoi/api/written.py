"""Releases that steps are given: the path of a folder, or what `protect` returned."""

from pathlib import Path
from typing import Any, TypeAlias

from ghostpoi.api.reading import PathLike
from ghostpoi.api.release import Release
from ghostpoi.errors import InputError

ReleaseLike: TypeAlias = PathLike | Release[Any]


def folder_of(release: Any) -> Path:
    """Return the folder of a release."""
    if not isinstance(release, Release):
        return Path(release)
    if release.folder is None:
        raise InputError("this release is in memory only; write it to a folder: protect(..., output=FOLDER)")
    return release.folder


def private_of(release: Any, private: PathLike | None) -> Path | None:
    """Return the private folder that the caller names or, for what `protect` returned, the one that it wrote."""
    if private is None:
        return release.private if isinstance(release, Release) else None
    return Path(private)
