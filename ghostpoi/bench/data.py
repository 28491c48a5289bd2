"""What the benchmarks run on: prepared data if given, else NYC where present, else a synthetic city."""

import os
import tempfile
from pathlib import Path

from ghostpoi.data import prepared as dataset_file
from ghostpoi.data.prepared import Prepared

NYC = "dataset_TSMC2014_NYC.txt.xz"


def load(path: Path | None) -> Prepared:
    """Sessions, vocabulary and candidate sets to measure on."""
    if path is not None:
        return dataset_file.load(path)
    from ghostpoi.data.prepared import prepare_file

    nyc = Path(os.environ.get("GHOSTPOI_DATA", "../shared/data")) / NYC
    if nyc.is_file():
        return prepare_file(nyc)
    return synthetic(1000, 4000, 250)


def synthetic(users: int, pois: int, days: int) -> Prepared:
    """A synthetic city, prepared."""
    from ghostpoi.data.prepared import prepare_file
    from ghostpoi.data.synthetic_file import write_city

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "synthetic.txt"
        write_city(path, users, pois, days, 0)
        return prepare_file(path)
