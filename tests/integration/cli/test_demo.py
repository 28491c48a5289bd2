"""The demonstration, all of it, on a smaller city than it uses."""

import json
from pathlib import Path

import pytest

from ghostpoi import verify
from ghostpoi.cli import study as demo


@pytest.mark.usefixtures("one_window")
def test_the_demo_ends_with_a_verified_release_and_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "USERS", 40)
    monkeypatch.setattr(demo, "POIS", 120)
    monkeypatch.setattr(demo, "DAYS", 50)
    folder = tmp_path / "demo"
    demo.demo(folder, quick=False)
    text = capsys.readouterr().out
    assert "FAIL" not in text
    assert text.count("\npass  ") == 15
    assert sorted(p.name for p in (folder / "release").iterdir()) == [
        "card.md", "checkins.txt", "croissant.json", "manifest.json", "manifest.sig", "report.html",
    ]  # fmt: skip
    assert verify(folder / "release", against=folder / "city.txt").passed
    assert all((folder / f"release-{method}" / "manifest.json").is_file() for method in demo.OTHERS)
    page, own = folder / "release" / "report.html", folder / "release.private" / "report.html"
    assert text.splitlines()[-1].endswith(str(page))
    assert "Not audited yet" not in page.read_text()
    assert "artial audit" not in page.read_text() + text  # it runs the whole default set
    ours, other = (json.loads((folder / name / "manifest.json").read_text()) for name in ("release", "release-ghost"))
    assert ours["audit"]["not_run"] == other["audit"]["not_run"] == []
    assert "Contains clean data" not in page.read_text()
    assert "Contains clean data" in own.read_text()
    assert own.stat().st_mode & 0o777 == 0o600
