"""Tables that exist only in memory. Inside a block they have a path, and `formats.read` reads them like files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def _as_they_are(rows: Any) -> Any:
    return rows


@dataclass
class Content:
    """What a file would hold, the extension that it would have, and what its rows become once they are parsed."""

    data: bytes
    extension: str
    wrap: Callable[[Any], Any] = _as_they_are
    before: int = 0  # lines, or rows without lines, of a larger file that come before


_held: ContextVar[dict[Path, Content] | None] = ContextVar("held", default=None)


def content_of(path: Path) -> Content | None:
    """Return what is held under a path; None for the path of a file."""
    return (_held.get() or {}).get(path)


def before(path: Path) -> int:
    """Return how many lines or rows come before what is held under a path; 0 for the path of a file."""
    content = content_of(path)
    return 0 if content is None else content.before


def raw_bytes(path: Path) -> bytes:
    """Return the bytes of a file or of a table in memory, not decompressed."""
    content = content_of(path)
    return path.read_bytes() if content is None else content.data


@contextmanager
def held(name: str, content: Content) -> Iterator[Path]:
    """Hold a table inside the block and yield its path. Messages call it by its name, e.g. "the table"."""
    path = Path(name)
    token = _held.set((_held.get() or {}) | {path: content})
    try:
        yield path
    finally:
        _held.reset(token)
