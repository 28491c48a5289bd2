"""Data for the benchmarks: a prepared file if given, else NYC if present, else a synthetic city."""

import os
from pathlib import Path

import numpy as np

from ghostpoi.data import prepared
from ghostpoi.data.prepared import Prepared
from ghostpoi.data.sessions import Sessions
from ghostpoi.formats.prepare import prepare_city, prepare_file

NYC = "dataset_TSMC2014_NYC.txt.xz"


def load(path: Path | None) -> Prepared:
    """Load the prepared file, or find or make data if there is no path."""
    if path is not None:
        return prepared.load(path)
    nyc = Path(os.environ.get("GHOSTPOI_DATA", "../shared/data")) / NYC
    return prepare_file(nyc) if nyc.is_file() else prepare_city(1000, 4000, 250, 0)


def sample(sessions: Sessions, count: int) -> Sessions:
    """Draw `count` sessions, at least one and at most all. Every call draws the same ones."""
    pick = np.zeros(len(sessions), bool)
    pick[np.random.default_rng(0).permutation(len(pick))[: max(1, count)]] = True
    return sessions.take(pick)
