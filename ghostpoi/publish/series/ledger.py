"""The series folder: what all of its releases share, and the ledger of what was released when.

`series.json` holds both. It is replaced as a whole, so it is never half-written. The files that an entry names are
written before it. An entry is written as `begun` before its release gets its place, and as `complete` afterwards. From
the first moment on, its draws count as released: a killed run can lose nothing.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ghostpoi.errors import InputError
from ghostpoi.files import PARTIAL, make_private_folder, remove_partial, replacing
from ghostpoi.options import option
from ghostpoi.randomness import Seed

NOTE = "series.json"
FORMAT = 1
BEGUN, COMPLETE, REPLACED = "begun", "complete", "replaced"


@dataclass(frozen=True)
class Entry:
    """One release in the ledger."""

    number: int
    status: str
    begun: str  # UTC
    completed: str | None
    release: str
    private: str
    input: str  # keyed hash of the file
    data_sha256: str  # of the released data
    first: int  # UTC seconds of the earliest row
    last: int
    rows: int  # released ones
    repeated: int  # of them, rows that an earlier release showed
    new_venues: int
    new_guests: int  # of them, venues that joined the crowd of another
    files: dict[str, str]  # what the series folder keeps of it: name -> SHA-256


@dataclass(frozen=True)
class Series:
    """A series folder as its note describes it. `repr` hides the seed."""

    folder: Path
    seed: Seed
    method: str
    settings: dict[str, dict[str, Any]]  # those that decide the draws
    columns: dict[str, Any]  # names, roles and the form of the file
    entries: tuple[Entry, ...] = ()
    created: str = field(default_factory=lambda: now())

    def named(self, kind: str, number: int, ending: str) -> Path:
        """Return the path of a file of an entry."""
        return self.folder / f"{kind}-{number:04}{ending}"

    def entry(self, changed: Entry) -> "Series":
        """Return the series with this entry in place of the one with its number, or as the last one."""
        others = [e for e in self.entries if e.number != changed.number]
        return replace(self, entries=tuple(sorted([*others, changed], key=lambda e: e.number)))

    def store(self) -> None:
        """Write the note."""
        make_private_folder(self.folder)
        remove_partial(self.folder)
        note = {name: getattr(self, name) for name in ("created", "method", "settings", "columns")}
        note |= {"releases": [asdict(entry) for entry in self.entries]}
        text = json.dumps({"format": FORMAT, "seed": f"{self.seed.value:x}"} | note, indent=2, ensure_ascii=False)
        with replacing(self.folder / NOTE, mode=0o600) as out:
            out.write(text.encode())


def now() -> str:
    """Return the time as text."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def read_series(folder: Path) -> Series:
    """Read a series folder; refuse one that is damaged."""
    path = folder / NOTE
    if not path.is_file():
        raise InputError(
            f"{folder} is not a series folder: it has no {NOTE}; give the folder of protect {option('series')}"
        )
    try:
        found = json.loads(path.read_text("utf-8"))
        if found["format"] != FORMAT:
            raise InputError(f"{path} was written by another version of ghostpoi; use that version")
        entries = tuple(_entry(one) for one in found["releases"])
        if [entry.number for entry in entries] != list(range(1, len(entries) + 1)):
            raise ValueError
        if not all(isinstance(found[name], dict) for name in ("settings", "columns")):
            raise TypeError
        seed = Seed(int(found["seed"], 16))
        return Series(
            folder, seed, str(found["method"]), found["settings"], found["columns"], entries, str(found["created"])
        )
    except (ValueError, KeyError, TypeError, AttributeError):  # the message must not quote the note: it holds the seed
        raise InputError(f"{path} is damaged; restore the series folder from a copy") from None


def _entry(stored: dict[str, Any]) -> Entry:
    entry = Entry(**stored)
    for f in fields(Entry):
        kind: Any = dict if f.name == "files" else f.type
        if not isinstance(getattr(entry, f.name), kind):
            raise TypeError
    if entry.status not in (BEGUN, COMPLETE, REPLACED) or any(Path(name).name != name for name in entry.files):
        raise ValueError
    return entry


def check_new(folder: Path) -> None:
    """Refuse to start a series in a folder that holds anything but what a killed process left of the note."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{option('series', folder)} is a file; give a folder")
    if folder.exists() and any(not path.match(f".{NOTE}.*{PARTIAL}") for path in folder.iterdir()):
        raise InputError(
            f"{option('series', folder)} holds files but no {NOTE}, so it is another folder or a part of a series; "
            "give an empty or new folder, or restore the series from a copy"
        )


def damage(series: Series) -> list[str]:
    """Return what is wrong with the files that the ledger names."""
    found = []
    for entry in series.entries:
        for name, digest in entry.files.items():
            path = series.folder / name
            if not path.is_file():
                found.append(f"{name} is missing")
            elif sha256(path) != digest:
                found.append(f"{name} is damaged")
    return found


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
