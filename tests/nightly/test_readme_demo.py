"""README shows what the demonstration prints on its whole city."""

from pathlib import Path

import pytest
from conftest import ROOT
from docs_scripts import script

from ghostpoi.cli import study as demo


def test_readme_shows_what_the_demo_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = script("rerun_readme")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "OTHERS", ())  # the releases for comparison come later, and README does not show them
    demo.demo(Path("demo"), quick=False)
    assert readme.block((ROOT / "README.md").read_text("utf-8")) == readme.excerpt(capsys.readouterr().out)
