"""The demonstration, on a smaller city than it uses, and through the same code."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from ghostpoi import demo


def test_the_demo_ends_with_a_verified_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "USERS", 120)
    monkeypatch.setattr(demo, "POIS", 300)
    monkeypatch.setattr(demo, "DAYS", 100)
    text = io.StringIO()
    demo.run(tmp_path / "demo", Console(file=text, width=120, highlight=False))
    assert "FAIL" not in text.getvalue()
    assert text.getvalue().count("pass  ") == 8
    assert (tmp_path / "demo" / "release" / "manifest.json").is_file()
    assert not list((tmp_path / "demo" / "release").glob("*seed*"))
