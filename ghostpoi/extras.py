"""Optional dependencies: which extra of the package installs a module, and what to say where it is missing."""

from importlib.util import find_spec
from pathlib import Path

from ghostpoi.errors import InputError

MODULES = {
    "torch": "models",
    "safetensors": "models",
    "matplotlib": "report",
    "distributed": "dask",
    "adbc_driver_postgresql": "databases",
    "adbc_driver_sqlite": "databases",
    "duckdb": "databases",
}  # the rest is always installed


def missing(module: str) -> str | None:
    """Return the sentence for a module that cannot be imported; None if no extra installs it."""
    module = module.partition(".")[0]
    if module not in MODULES:
        return None
    return f"this needs {module}, which is not installed; install it with: {installing(MODULES[module])}"


def installing(extra: str) -> str:
    """Return the command that installs an extra: from the clone that ghostpoi runs in, if it does."""
    clone = Path(__file__).resolve().parents[1]
    return f"pip install '{clone if (clone / 'pyproject.toml').is_file() else 'ghostpoi'}[{extra}]'"


def need(extra: str) -> None:
    """Refuse to go on without an extra, before anything is written."""
    for module in (name for name, of in MODULES.items() if of == extra):
        if find_spec(module) is None:
            raise InputError(str(missing(module)))
