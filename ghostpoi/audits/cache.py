"""A private folder of finished work: releases, their measures, restorations and victims.

A file is named by a key of everything that decides its content, so an interrupted run continues where it stopped and
runs share what they have in common. The content is derived from clean data: only its owner can read it.
"""

import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from ghostpoi.data.checkins import Bytes, Ints
from ghostpoi.errors import InputError
from ghostpoi.files import make_private_folder, remove_partial, replacing
from ghostpoi.options import option

Kind = Literal["releases", "measures", "restorations", "victims"]


@dataclass(frozen=True)
class Record:
    """One piece of finished work: its measures, the POIs of a release or a restoration, the hits of a victim."""

    measures: dict[str, Any]
    poi: Ints = field(default_factory=lambda: np.zeros(0, np.int32))  # (N,)
    hits: Bytes = field(default_factory=lambda: np.zeros(0, np.uint8))  # a bit per test step: ranked first


@dataclass(frozen=True)
class Cache:
    """Records in a folder. A damaged file counts as missing."""

    folder: Path

    def __post_init__(self) -> None:
        for name in ("", *get_args(Kind)):
            make_private_folder(self.folder / name)
            remove_partial(self.folder / name)

    def load(self, kind: Kind, key: str) -> Record | None:
        """Read a record; None if it is missing."""
        try:
            with np.load(self.folder / kind / f"{key}.npz", allow_pickle=False) as z:
                hits = {"hits": z["hits"]} if "hits" in z else {}
                return Record(json.loads(str(z["measures"])), z["poi"], **hits)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def store(self, kind: Kind, key: str, record: Record) -> None:
        """Write a record, complete or not at all."""
        with replacing(self.folder / kind / f"{key}.npz", mode=0o600) as out:
            np.savez_compressed(out, poi=record.poi, hits=record.hits, measures=json.dumps(record.measures))

    def get(self, kind: Kind, key: str, make: Callable[[], Record]) -> Record:
        """Read a record, or make and store it."""
        found = self.load(kind, key)
        if found is None:
            found = make()
            self.store(kind, key, found)
        return found


def default_folder() -> Path:
    """Return the folder of the cache in the user's home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ghostpoi" / "audit"


def open_cache(folder: Path) -> Cache:
    """Open a cache that the user may have named."""
    try:
        return Cache(folder)
    except OSError as e:
        raise InputError(
            f"the cache folder {folder} cannot be used ({(e.strerror or str(e)).lower()}); choose another with "
            f"{option('cache')}"
        ) from None
