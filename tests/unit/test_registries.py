"""A registry knows the names of its plug-ins and imports one when it is asked for."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ghostpoi.plugins import Registry


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry[object]]:
    """A registry of a class, an object and a plug-in with a bug."""
    folder = tmp_path / "someplugins"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "good.py").write_text("class Good: ...\n\nready = 5\n")
    (folder / "bad.py").write_text("import no_such_module\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield Registry("tests", "someplugins", {"b": "good:Good", "a": "good:ready", "bad": "bad:Bad"})
    for name in [name for name in sys.modules if name.startswith("someplugins")]:
        del sys.modules[name]


def test_names_are_known_in_their_order_without_any_import(registry: Registry[object]) -> None:
    assert (list(registry), len(registry)) == (["b", "a", "bad"], 3)
    assert "someplugins" not in sys.modules


def test_a_class_becomes_one_object_and_an_object_stays(registry: Registry[object]) -> None:
    made = registry["b"]
    assert type(made).__name__ == "Good"
    assert registry["b"] is made
    assert registry["a"] == 5
    assert "someplugins.bad" not in sys.modules


def test_a_bug_in_a_plug_in_is_not_taken_for_an_unknown_name(registry: Registry[object]) -> None:
    assert "c" not in registry
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        registry.get("bad")
