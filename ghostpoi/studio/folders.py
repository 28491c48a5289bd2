"""Which files the studio may touch: those in the folders named at the start, wherever links lead."""

import re
from pathlib import Path
from typing import NamedTuple

from ghostpoi.errors import InputError

MOST = 500  # entries of a folder that are listed
TABLE = re.compile(r"\.(csv|tsv|txt|dat|parquet|jsonl?|ndjson|geojson|xlsx)(\.(gz|xz|bz2|zst|zip))?$", re.IGNORECASE)


class Entry(NamedTuple):
    """A file or folder of a list."""

    name: str
    path: Path
    folder: bool
    bytes: int


class Folders:
    """The folders that the studio was started with."""

    def __init__(self, folders: list[Path]) -> None:
        self.all = list(dict.fromkeys(folder.resolve(strict=True) for folder in folders))

    def allowed(self, path: Path) -> Path:
        """Return a path without links; refuse one that lies elsewhere. It need not exist."""
        try:
            found = path.resolve()
        except (OSError, RuntimeError, ValueError):
            raise InputError("this path cannot be read; choose a file of the list") from None
        if not any(found.is_relative_to(folder) for folder in self.all):
            raise InputError("this path lies outside the folders that the studio was started with")
        return found

    def file(self, text: str) -> Path:
        """Return a file of check-ins that may be opened."""
        path = self.allowed(Path(text))
        if not path.is_file():
            raise InputError(f"{path.name} is not a file; choose a file of the list")
        return path

    def entries(self, folder: Path) -> list[Entry]:
        """List folders, and files that may hold check-ins; what is hidden or private is left out."""
        found = list[Entry]()
        for path in sorted(folder.iterdir(), key=lambda one: one.name.lower()):
            if path.name.startswith(".") or path.name.endswith(".private") or len(found) == MOST:
                continue
            try:
                inside, stat = self.allowed(path), path.stat()
            except (InputError, OSError):
                continue
            if inside.is_dir():
                if not (inside / "manifest.json").exists():
                    found.append(Entry(path.name, inside, True, 0))
            elif TABLE.search(path.name):
                found.append(Entry(path.name, inside, False, stat.st_size))
        return sorted(found, key=lambda one: one.folder)
