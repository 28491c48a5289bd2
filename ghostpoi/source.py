"""The code behind a result as a hash, so that a cache misses when the code that made its content changes.

The hash covers a module and all modules of its package that it imports. A package's `__init__` only collects names: a
name is followed to the module that defines it, and a registry is not followed, because a stage names the plug-ins that
it uses. Comments, docstrings and blank lines do not count. Files are read, not imported: the hash is the same on every
machine.
"""

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

INIT = "__init__.py"


class Module(NamedTuple):
    """What counts of a module."""

    lines: tuple[str, ...]
    uses: tuple[str, ...]  # modules of the same package


def code_of(*stages: object) -> str:
    """Return a short hash of the code of stages: modules by name, classes, functions, or objects of classes."""
    found: dict[str, Module] = {}
    todo = [_name(stage) for stage in stages]
    while todo:
        name = todo.pop()
        if name not in found:
            found[name] = _read(name)
            todo += found[name].uses
    digest = hashlib.sha256()
    for name in sorted(found):
        digest.update("\n".join((name, *found[name].lines, "")).encode())
    return digest.hexdigest()[:16]


def _name(stage: object) -> str:
    if isinstance(stage, str):
        return stage
    return str(stage.__module__ if hasattr(stage, "__qualname__") else type(stage).__module__)


@cache
def _root(package: str) -> Path | None:
    """The folder of a package, or the file of a module that lies in no package."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)


@cache
def _file(name: str) -> Path | None:
    """The source file of a module; None if there is none."""
    package, *inner = name.split(".")
    root = _root(package)
    if root is None or root.is_file():
        return None if inner else root
    path = root.joinpath(*inner)
    return next((file for file in (path / INIT, path.with_suffix(".py")) if file.is_file()), None)


@cache
def _read(name: str) -> Module:
    path = _file(name)
    if path is None or path.suffix != ".py":  # compiled, or made at run time
        return Module((), ())
    text = path.read_text("utf-8")
    nodes = list(ast.walk(ast.parse(text)))
    silent = {number for node in nodes for number in _docstring(node)}
    lines = (line.rstrip() for number, line in enumerate(text.splitlines(), 1) if number not in silent)
    uses = {used for node in nodes for used in _imports(node, name.partition(".")[0])}
    return Module(tuple(line for line in lines if line and not line.lstrip().startswith("#")), tuple(sorted(uses)))


def _docstring(node: ast.AST) -> range:
    """The lines of a node's docstring."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node, clean=False):
        first = node.body[0]
        return range(first.lineno, (first.end_lineno or first.lineno) + 1)
    return range(0)


def _imports(node: ast.AST, package: str) -> Iterator[str]:
    """The modules of a package that an import statement leads to."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names if alias.name.partition(".")[0] == package]
        yield from (name for name in names if not _collects(name))
    elif isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == package:
        for alias in node.names:
            if found := _origin(node.module, alias.name):
                yield found


def _origin(module: str, name: str) -> str | None:
    """The module that `from module import name` leads to; None for what a package's `__init__` itself defines."""
    if (file := _file(inner := f"{module}.{name}")) is not None:
        return None if file.name == INIT else inner
    if not _collects(module):
        return module if _file(module) else None
    return _collected(module).get(name)


def _collects(module: str) -> bool:
    file = _file(module)
    return file is not None and file.name == INIT


@cache
def _collected(package: str) -> dict[str, str]:
    """The names that a package's `__init__` imports from its modules, with these modules."""
    path = _file(package)
    tree = ast.parse(path.read_text("utf-8")) if path else ast.Module([], [])
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(package):
            names = {alias.asname or alias.name: _origin(node.module, alias.name) for alias in node.names}
            found.update({name: origin for name, origin in names.items() if origin})
    return found
