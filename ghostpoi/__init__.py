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
TYPE_CHECKING = False  # type checkers take it for true; importing `typing` would delay the first handler of Ctrl-C
if TYPE_CHECKING:
    from ghostpoi.api.audits import Audit, Choice, Person, audit, choose, person
    from ghostpoi.api.checks import Inspection, Verification, inspect, verify
    from ghostpoi.api.outputs import Export, Report, export, report, synth
    from ghostpoi.api.release import Release, protect
else:
    MODULES = {
        "audits": ("Audit", "Choice", "Person", "audit", "choose", "person"),
        "checks": ("Inspection", "Verification", "inspect", "verify"),
        "outputs": ("Export", "Report", "export", "report", "synth"),
        "release": ("Release", "protect"),
    }

    def __getattr__(name: str):
        # Imported on demand, so that `import ghostpoi`, `ghostpoi --help` and each step are fast.
        from importlib import import_module

        if sys.platform == "win32" and name in __all__:
            raise InputError(WINDOWS)
        for module, names in MODULES.items():
            if name in names:
                return getattr(import_module(f"ghostpoi.api.{module}"), name)
        raise AttributeError(f"module 'ghostpoi' has no attribute {name!r}")


__version__ = "0.1.0"

__all__ = [
    "Audit", "Choice", "Export", "InputError", "Inspection", "Person", "Release", "Report", "Verification",
    "__version__", "audit", "choose", "export", "inspect", "person", "protect", "report", "synth", "verify",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
