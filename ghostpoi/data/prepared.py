"""Prepared data in one .npz file, for studies on a bare GPU machine. It is clean data: only the owner may read it."""

import hashlib
import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ghostpoi.data import sessions
from ghostpoi.data.candidates import Candidates, candidate_sets
from ghostpoi.data.checkins import Checkins
from ghostpoi.data.places import of_sessions, with_use
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.errors import InputError
from ghostpoi.files import replacing
from ghostpoi.options import option
from ghostpoi.settings import Settings

PARTS = ("train", "val", "test")
SESSION_FIELDS = ("user", "start", "poi", "time", "row")
VOCABULARY_FIELDS = ("lat", "lon", "category", "venue")


@dataclass(frozen=True)
class Prepared:
    """A vocabulary, its sessions split in three parts, and its candidate sets."""

    vocabulary: Vocabulary
    train: Sessions
    val: Sessions
    test: Sessions
    candidates: Candidates
    name: str

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it but the name, as the file holds it."""
        found = {f: getattr(self.vocabulary, f) for f in VOCABULARY_FIELDS}
        found |= {f"{part}_{f}": getattr(getattr(self, part), f) for part in PARTS for f in SESSION_FIELDS}
        return found | {"candidates": self.candidates.poi, "radius_km": self.candidates.radius_km}

    @cached_property
    def content(self) -> str:
        """A short hash of the arrays: what the data is, whatever its name."""
        digest = hashlib.sha256()
        for name, array in self.arrays.items():
            digest.update(f"{name} {array.dtype} {array.shape}\n".encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:16]


def prepare(table: Checkins, settings: Settings, name: str) -> Prepared:
    """Build and split the sessions of check-ins, and find the candidate sets."""
    rule = settings.candidates
    if not table.category_field and rule.category == "exact":
        raise InputError(
            f"{table.name} has no category, which candidate sets follow; name its column with "
            f"{option('map', 'category=COLUMN')}, or use {option('set', 'candidates.category=learned')}"
        )
    data = sessions.build(table, settings.filters)
    places = of_sessions(data.train, data.vocabulary)
    sets = candidate_sets(with_use(places, data.train) if rule.category == "learned" else places, rule)
    return Prepared(data.vocabulary, data.train, data.val, data.test, sets, name)


def save(path: Path, data: Prepared) -> None:
    """Write prepared data to a file."""
    with replacing(path, mode=0o600) as out:
        np.savez_compressed(out, allow_pickle=False, **data.arrays, name=np.array(data.name))


def load(path: Path) -> Prepared:
    """Read a file that `save` wrote."""
    try:
        with np.load(path, allow_pickle=False) as z:
            vocabulary = Vocabulary(*(z[f] for f in VOCABULARY_FIELDS))
            train, val, test = (Sessions(*(z[f"{part}_{f}"] for f in SESSION_FIELDS)) for part in PARTS)
            return Prepared(vocabulary, train, val, test, Candidates(z["candidates"], z["radius_km"]), str(z["name"]))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; make it with ghostpoi prepare FILE -o {path}") from None
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as e:
        raise InputError(f"{path} is not prepared data ({e}); make it with ghostpoi prepare FILE -o {path}") from None
