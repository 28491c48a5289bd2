"""Release check-ins that stay plausible but cannot be learned from, and measure what adversaries still learn.

import ghostpoi
release = ghostpoi.protect("checkins.csv", output="release")  # or a data frame
"""

import os
import sys

from ghostpoi.errors import InputError

# OpenMP reads this when torch is imported: threads that wait for each other then sleep instead of spinning. On a busy
# machine, spinning takes several times the CPU time of the work itself. On an idle one, it makes little difference.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

WINDOWS = (
    "Windows is not supported, because files there cannot be locked and replaced as a release needs; run ghostpoi in "
    "WSL, or in a container"
)
RESULTS = ("Audit", "Choice", "Export", "Inspection", "Person", "Release", "Report", "Verification")
STEPS = ("audit", "choose", "export", "inspect", "person", "protect", "report", "synth", "verify")


def __getattr__(name: str):
    # Imported on demand, so that `import ghostpoi`, `ghostpoi --help` and each step are fast. Types: __init__.pyi.
    from importlib import import_module

    if name not in RESULTS + STEPS:
        raise AttributeError(f"module 'ghostpoi' has no attribute {name!r}")
    if sys.platform == "win32":
        raise InputError(WINDOWS)
    return getattr(import_module("ghostpoi.api.steps" if name in STEPS else "ghostpoi.api.results"), name)


__version__ = "0.1.0"

__all__ = [
    "Audit", "Choice", "Export", "InputError", "Inspection", "Person", "Release", "Report", "Verification",
    "__version__", "audit", "choose", "export", "inspect", "person", "protect", "report", "synth", "verify",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
