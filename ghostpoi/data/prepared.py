"""Prepared data as one .npz: all that the study and a bare GPU machine need. It is made of clean data: owner only."""

import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.errors import InputError
from ghostpoi.files import replacing

PARTS = ("train", "val", "test")
SESSION_FIELDS = ("user", "start", "poi", "time", "row")
VOCABULARY_FIELDS = ("lat", "lon", "category", "source")


@dataclass(frozen=True)
class Prepared:
    """A vocabulary, the split sessions over it and the candidate sets."""

    vocabulary: Vocabulary
    train: Sessions
    val: Sessions
    test: Sessions
    candidates: Candidates
    name: str


def save(path: Path, data: Prepared) -> None:
    """Write the file, complete or not at all."""
    arrays = {f: getattr(data.vocabulary, f) for f in VOCABULARY_FIELDS}
    arrays |= {f"{part}_{f}": getattr(getattr(data, part), f) for part in PARTS for f in SESSION_FIELDS}
    arrays |= {"candidates": data.candidates.poi, "radius_km": data.candidates.radius_km, "name": np.array(data.name)}
    with replacing(path, mode=0o600) as out:
        np.savez_compressed(out, **arrays)


def load(path: Path) -> Prepared:
    """Read a file that `prepare` wrote."""
    try:
        with np.load(path, allow_pickle=False) as z:
            words = Vocabulary(*(z[f] for f in VOCABULARY_FIELDS))
            train, val, test = (Sessions(*(z[f"{part}_{f}"] for f in SESSION_FIELDS)) for part in PARTS)
            return Prepared(words, train, val, test, Candidates(z["candidates"], z["radius_km"]), str(z["name"]))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; make it with ghostpoi prepare FILE -o {path}") from None
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as e:
        raise InputError(f"{path} is not prepared data ({e}); make it with ghostpoi prepare FILE -o {path}") from None
