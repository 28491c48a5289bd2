"""Studies: a small TOML file names methods, adversaries, leak ratios and seeds; a run makes one JSON per cell."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ghostpoi.data.prepared import Prepared, prepare
from ghostpoi.settings import Settings

if TYPE_CHECKING:
    from ghostpoi.formats import Source


def prepare_file(
    source: Source | Path, mapping: dict[str, str] | None = None, settings: Settings | None = None
) -> Prepared:
    """Read a check-in file, build and split its sessions, and find the candidate sets."""
    from ghostpoi import formats  # needs polars, which `study run` goes without

    source = formats.Source.of(source)
    return prepare(formats.read(source, mapping).table, settings or Settings(), source.path.name.split(".")[0])


def prepare_city(users: int, pois: int, days: int, seed: int) -> Prepared:
    """Make a synthetic city and prepare it."""
    from ghostpoi.data.synthetic_files import write_city

    with TemporaryDirectory() as folder:
        path = Path(folder) / "synthetic.txt"
        write_city(path, users, pois, days, seed)
        return prepare_file(path)
