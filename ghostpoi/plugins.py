"""Registries of plug-ins: the built-in ones, and those that installed packages register through entry points.

A package adds a method with these lines in its pyproject.toml:

    [project.entry-points."ghostpoi.methods"]
    my-method = "my_package:MyMethod"
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from ghostpoi.errors import InputError

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Plug-ins of one kind by name, built-in ones first."""

    def __init__(self, kind: str, builtin: dict[str, T]) -> None:
        self.kind = kind  # e.g. "methods"; the entry-point group is then "ghostpoi.methods"
        self.builtin = builtin

    @cached_property
    def _all(self) -> dict[str, T]:
        found = dict(self.builtin)
        for entry in entry_points(group=f"ghostpoi.{self.kind}"):
            if entry.name in found:
                raise InputError(
                    f"two {self.kind} are named {entry.name!r}; uninstall {_package(entry)} or rename its plug-in"
                )
            try:
                plugin = entry.load()
                found[entry.name] = plugin() if isinstance(plugin, type) else plugin
            except Exception as e:
                raise InputError(
                    f"the plug-in {entry.name!r} of {_package(entry)} cannot be loaded ({e}); update or uninstall it"
                ) from e
        return found

    def __getitem__(self, name: str) -> T:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else "its package"
