"""Registries of plug-ins: the built-in ones, and those that installed packages register through entry points.

A package adds a method with these lines in its pyproject.toml:

    [project.entry-points."ghostpoi.methods"]
    my-method = "my_package:MyMethod"
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from ghostpoi.errors import InputError

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Plug-ins of one kind by name, built-in ones first."""

    def __init__(self, kind: str, builtin: dict[str, T]) -> None:
        self.kind = kind  # e.g. "methods"; the entry-point group is then "ghostpoi.methods"
        self.builtin = builtin

    @cached_property
    def _installed(self) -> dict[str, T]:
        found: dict[str, T] = {}
        for entry in entry_points(group=f"ghostpoi.{self.kind}"):
            package = entry.dist.name if entry.dist else "its package"
            if entry.name in self.builtin or entry.name in found:
                raise InputError(f"two {self.kind} are named {entry.name!r}; uninstall {package} or rename its plug-in")
            try:
                plugin = entry.load()
                found[entry.name] = plugin() if isinstance(plugin, type) else plugin
            except Exception as e:
                problem = f"the plug-in {entry.name!r} of {package} cannot be loaded ({e})"
                raise InputError(f"{problem}; update or uninstall it") from e
        return found

    def __getitem__(self, name: str) -> T:
        # Built-in names first: a plug-in package that imports ghostpoi must not be loaded in the middle of that import.
        return self.builtin[name] if name in self.builtin else self._installed[name]

    def __iter__(self) -> Iterator[str]:
        yield from self.builtin
        yield from self._installed

    def __len__(self) -> int:
        return len(self.builtin) + len(self._installed)
