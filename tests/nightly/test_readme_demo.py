"""README shows what the demonstration prints on its whole city."""

import importlib.util
from pathlib import Path

import pytest
from conftest import ROOT

from ghostpoi.cli import study as demo


def test_readme_shows_what_the_demo_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = importlib.util.spec_from_file_location("rerun_readme", ROOT / "docs" / "rerun_readme.py")
    assert spec
    assert spec.loader
    readme = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(readme)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "OTHERS", ())  # the releases for comparison come later, and README does not show them
    demo.demo(Path("demo"))
    assert readme.block((ROOT / "README.md").read_text("utf-8")) == readme.excerpt(capsys.readouterr().out)
