"""The limit on what is read into memory, which stops endless pipes and decompression bombs."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from ghostpoi.errors import InputError
from ghostpoi.options import option

USUAL = 4 * 10**9  # bytes; the largest public check-in files have about 2 GB, and parsing takes six times the text
MAX_RATIO = 200  # real tables shrink to a tenth; bombs shrink to a hundredth and less
SMALL = 64 * 10**6  # bytes that may be read whatever their ratio
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


@dataclass(frozen=True)
class SizeLimit:
    """A number of bytes. A limit that the user chose also lifts the limit on the ratio."""

    size: int
    chosen: bool = False

    def check(self, path: Path, size: int, packed: int | None = None) -> None:
        """Refuse content of this size. `packed` is the size of the compressed file that it came from."""
        if size > self.size:
            verb = "is larger than" if packed is None else "expands to more than"
            raise InputError(
                f"{path} {verb} {shown(self.size)}; allow more with {option('max_size', shown(4 * self.size))}"
            )
        if packed is not None and not self.chosen and size > max(SMALL, MAX_RATIO * packed):
            raise InputError(
                f"{path} expands to more than {MAX_RATIO} times its size, as a decompression bomb does; if that is "
                f"right, read it with {option('max_size', shown(self.size))}"
            )


def usual_limit() -> SizeLimit:
    """Return the limit without --max-size: 4 GB, or an eighth of the memory if that is less."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not every system can say
        return SizeLimit(USUAL)
    return SizeLimit(min(USUAL, memory // 8))


_limit: ContextVar[SizeLimit | None] = ContextVar("limit", default=None)


def chosen_limit() -> SizeLimit | None:
    """Return the limit that the user chose; None if there is none."""
    return _limit.get()


def current_limit() -> SizeLimit:
    """Return the limit that applies here."""
    return _limit.get() or usual_limit()


@contextmanager
def at_most(text: str | None) -> Iterator[None]:
    """Read at most this much inside the block, e.g. "20GB". None means the usual limit."""
    with limited_to(None if text is None else SizeLimit(bytes_of(text, "max_size"), chosen=True)):
        yield


@contextmanager
def limited_to(limit: SizeLimit | None) -> Iterator[None]:
    """Apply a limit inside the block."""
    token = _limit.set(limit)
    try:
        yield
    finally:
        _limit.reset(token)


def bytes_of(text: str, name: str) -> int:
    """Return the size that an option names, e.g. 20GB, in bytes."""
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?) ?([KMGT]I?)?B?", text.strip().upper())
    size = int(float(match[1]) * UNITS[match[2] or ""]) if match else 0
    if size <= 0:
        given, example = option(name, text, shown=repr), option(name, "20GB")
        raise InputError(f"{given} is not a size; give a number with a unit, e.g. {example}")
    return size


def shown(size: int) -> str:
    """Return a size as --max-size takes it, e.g. 4GB."""
    for unit in ("T", "G", "M", "K"):
        if size >= UNITS[unit]:
            return f"{size / UNITS[unit]:.3g}{unit}B"
    return f"{size}B"
