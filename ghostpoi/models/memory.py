"""Return freed memory to the operating system.

Batches of many shapes leave holes in the C library's heap. Without this, training on NYC grows by 70 MB an epoch.
"""

import ctypes
from collections.abc import Callable
from contextlib import suppress

_malloc_trim: Callable[[int], int] | None = None
with suppress(OSError, TypeError):  # Windows has no library of that name
    _malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it


def trim_heap() -> None:
    """Return free memory to the operating system if the C library can."""
    if _malloc_trim is not None:
        _malloc_trim(0)
