"""Release check-ins that stay plausible yet cannot be learned from, and measure what can still be learned.

import polars as pl, ghostpoi
released = ghostpoi.protect(pl.read_csv("checkins.csv"))
"""

from typing import Any

from ghostpoi.errors import InputError
from ghostpoi.version import __version__

__all__ = ["InputError", "__version__", "protect"]


def __getattr__(name: str) -> Any:
    # Late, so that `ghostpoi --help` does not wait for torch.
    if name == "protect":
        from ghostpoi.api import protect

        return protect
    raise AttributeError(f"module 'ghostpoi' has no attribute {name!r}")
