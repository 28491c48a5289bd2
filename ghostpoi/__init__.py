"""Release check-ins that stay plausible but cannot be learned from, and measure what adversaries still learn.

import ghostpoi, polars
released = ghostpoi.protect(polars.read_csv("checkins.csv"))
"""

import os

from ghostpoi.errors import InputError

# Read by OpenMP when torch is imported. Threads that wait for each other then sleep instead of spinning: beside other
# work, spinning takes several times the CPU time of the work itself. On an idle machine it makes little difference.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

TYPE_CHECKING = False  # type checkers take it for true; importing `typing` would delay the first handler of Ctrl-C
if TYPE_CHECKING:
    from typing import Any

__version__ = "0.1.0"

__all__ = ["InputError", "__version__", "protect"]


def __getattr__(name: str) -> "Any":
    # Imported on demand, so that `ghostpoi --help` does not wait for torch.
    if name == "protect":
        from ghostpoi.api import protect

        return protect
    raise AttributeError(f"module 'ghostpoi' has no attribute {name!r}")
