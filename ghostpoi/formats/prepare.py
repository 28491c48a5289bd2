"""Read a check-in file, or make a synthetic one, and prepare it for studies."""

from pathlib import Path
from tempfile import TemporaryDirectory

from ghostpoi import formats
from ghostpoi.data.prepared import Prepared, prepare
from ghostpoi.data.synthetic_files import write_city
from ghostpoi.formats import Source
from ghostpoi.settings import Settings


def prepare_file(
    source: Source | Path, mapping: dict[str, str] | None = None, settings: Settings | None = None
) -> Prepared:
    """Read a check-in file, build and split its sessions, and find the candidate sets."""
    source = Source.of(source)
    return prepare(formats.read(source, mapping).table, settings or Settings(), source.path.name.split(".")[0])


def prepare_city(users: int, pois: int, days: int, seed: int) -> Prepared:
    """Make a synthetic city and prepare it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "synthetic.txt"
        write_city(path, users, pois, days, seed)
        return prepare_file(path)
