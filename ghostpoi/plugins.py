"""Registries of plug-ins: the built-in ones, and those that installed packages register through entry points.

A package adds a method with these lines in its pyproject.toml:

    [project.entry-points."ghostpoi.methods"]
    my-method = "my_package:MyMethod"

Built-in plug-ins are named in the same way. Each is imported when it is asked for: a command needs few of them.
Here is also which extra of the package installs an optional module, and what to say where it is missing.
"""

import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, TypeVar

from ghostpoi.errors import InputError

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Plug-ins of one kind by name, built-in ones first."""

    def __init__(self, kind: str, package: str, builtin: dict[str, str]) -> None:
        self.kind, self.group = kind, f"ghostpoi.{kind}"  # e.g. "methods", "ghostpoi.methods"
        self.builtin: dict[str, T | EntryPoint] = {  # an entry point until it is asked for
            name: EntryPoint(name, f"{package}.{place}", self.group) for name, place in builtin.items()
        }

    @cached_property
    def _installed(self) -> dict[str, T]:
        found: dict[str, T] = {}
        for entry in entry_points(group=self.group):
            package = entry.dist.name if entry.dist else "its package"
            if entry.name in self.builtin or entry.name in found:
                raise InputError(f"two {self.kind} are named {entry.name!r}; uninstall {package} or rename its plug-in")
            try:
                found[entry.name] = _load(entry)
            except Exception as e:
                problem = f"the plug-in {entry.name!r} of {package} cannot be loaded ({e})"
                raise InputError(f"{problem}; update or uninstall it") from e
        return found

    def __getitem__(self, name: str) -> T:
        # Built-in names first: a plug-in package that imports ghostpoi must not be loaded in the middle of that import.
        if name not in self.builtin:
            return self._installed[name]
        plugin = self.builtin[name]
        if isinstance(plugin, EntryPoint):
            plugin = self.builtin[name] = _load(plugin)
        return plugin

    def __iter__(self) -> Iterator[str]:
        yield from self.builtin
        yield from self._installed

    def __len__(self) -> int:
        return len(self.builtin) + len(self._installed)


def _load(entry: EntryPoint) -> Any:
    """Import a plug-in: an object, or a class that is called without arguments."""
    plugin = entry.load()
    return plugin() if isinstance(plugin, type) else plugin


KINDS = ("methods", "adversaries", "victims", "formats", "exports")


def at_fault(error: BaseException) -> str | None:
    """Return the name of the installed plug-in in whose module an error was raised, or None."""
    files, trace = set(), error.__traceback__
    while trace is not None:
        files.add(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    for entry in (entry for kind in KINDS for entry in entry_points(group=f"ghostpoi.{kind}")):
        if getattr(sys.modules.get(entry.module), "__file__", None) in files:
            return entry.name
    return None


MODULES = {
    "torch": "models",
    "safetensors": "models",
    "matplotlib": "report",
    "distributed": "dask",
    "adbc_driver_postgresql": "databases",
    "adbc_driver_sqlite": "databases",
    "duckdb": "databases",
    "obstore": "s3",
    "starlette": "studio",
    "uvicorn": "studio",
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
