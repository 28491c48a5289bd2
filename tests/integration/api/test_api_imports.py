"""The public names are functions whatever else is imported, and cost no slow import."""

import subprocess
import sys

from conftest import ROOT

STEPS = ("audit", "choose", "export", "inspect", "person", "protect", "report", "synth", "verify")


def test_names_stay_functions_after_all_packages_are_imported() -> None:
    code = (
        "import pkgutil, importlib, ghostpoi\n"
        "[importlib.import_module(m.name) for m in pkgutil.walk_packages(ghostpoi.__path__, 'ghostpoi.')"
        " if not m.name.endswith('__main__')]\n"
        f"assert all(callable(getattr(ghostpoi, name)) for name in {STEPS!r})"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_the_import_takes_nothing_slow_along() -> None:
    code = (
        "import sys, ghostpoi\nghostpoi.protect, ghostpoi.Release\n"
        "print(*{'torch', 'polars', 'numpy', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "\n")
