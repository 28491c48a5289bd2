"""Optional dependencies: which extra of the package installs a module, and what to say where it is missing."""

from importlib.util import find_spec

from ghostpoi.errors import InputError

MODULES = {
    "torch": "models",
    "safetensors": "models",
    "matplotlib": "report",
    "distributed": "dask",
}  # the rest is always installed


def missing(module: str) -> str | None:
    """Return the sentence for a module that cannot be imported; None if no extra installs it."""
    module = module.partition(".")[0]
    if module not in MODULES:
        return None
    return f"this needs {module}, which is not installed; install it with: pip install 'ghostpoi[{MODULES[module]}]'"


def need(extra: str) -> None:
    """Refuse to go on without an extra, before anything is written."""
    for module in (name for name, of in MODULES.items() if of == extra):
        if find_spec(module) is None:
            raise InputError(str(missing(module)))
