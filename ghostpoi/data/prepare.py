"""From a check-in file to prepared data."""

from pathlib import Path

from ghostpoi.data import candidates, formats, sessions
from ghostpoi.data.prepared import Prepared
from ghostpoi.settings import Settings


def prepare_file(path: Path, mapping: dict[str, str] | None = None, settings: Settings | None = None) -> Prepared:
    """Read, filter, segment, split, and find candidates."""
    settings = settings or Settings()
    table, _ = formats.read(path, mapping)
    data = sessions.build(table, settings.filters)
    words = data.vocabulary
    sets = candidates.find(words.lat, words.lon, words.category, settings.candidates)
    return Prepared(words, data.train, data.val, data.test, sets, path.name.split(".")[0])
