"""Files are the database: one JSON per finished cell, written whole; one run at a time per folder of results."""

import fcntl
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ghostpoi.errors import InputError
from ghostpoi.files import replacing


def cell_name(method: str, adversary: str, leak: float | None, victim: str) -> str:
    """The file of a cell: readable, and safe as a file name."""
    parts = [re.sub(r"[^A-Za-z0-9.=+-]+", "_", method), adversary]
    if leak is not None:
        parts.append(f"leak{leak:g}")
    return "__".join([*parts, victim]) + ".json"


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as out:
        out.write((json.dumps(value, indent=1) + "\n").encode())


def read_json(path: Path) -> dict[str, Any] | None:
    """What was written; None if nothing was or it cannot be read."""
    try:
        value: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return value


def read_cells(folder: Path) -> list[dict[str, Any]]:
    """All finished cells of a study under one protocol."""
    cells = [read_json(path) for path in sorted(folder.glob("*.json"))]
    return [cell for cell in cells if cell is not None]


def key(*parts: object) -> str:
    """A short name for the work that these decide."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()[:24]


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the folder for one run; a second run is told so. A run that was killed holds nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"another run is writing to {folder}; wait for it or choose another --results") from None
        yield
