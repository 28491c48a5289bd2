"""The scripts of the docs folder, which are no package."""

import importlib.util
from types import ModuleType

from conftest import ROOT

DOCS = ROOT / "docs"


def script(name: str) -> ModuleType:
    """A script of the docs folder."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
