"""The page for the data protection officer: what it states, two printed sides, and what it refuses."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from small_city import called, city, release, sentence

from ghostpoi.audits.persons import TOPICS

SPLIT = ("--set", "filters.train_share=0.6", "--set", "filters.val_share=0.2")
FAST = ("--victim", "markov", "--seeds", "1", "--no-naturalness", "--leak", "0.3", "--adversaries", "none", *SPLIT)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of an audited release."""
    folder = tmp_path_factory.mktemp("dpia") / "made"
    shutil.copytree(release("crowd", "txt").folder, folder)
    assert called("audit", city(), folder, *FAST).returncode == 0
    done = called("report", folder, "--dpia", "--title", "Check-ins <of a city>")
    assert (done.returncode, done.stdout.strip()) == (0, str(folder / "dpia.html")), done.stderr
    return folder / "dpia.html"


def test_it_states_the_tests_with_controls_and_no_badge(page: Path) -> None:
    text = page.read_text()
    assert "Check-ins &lt;of a city&gt;" in text
    assert "<strong>Personal data.</strong>" in text
    assert not re.search(r"compliant|compliance|certified|anonymised data", text)
    for test in ("Singling out", "Linkability", "Inference"):
        assert f"{test}:" in text
    table = text[text.index('<table id="tests">') : text.index("</table>")]
    figures = re.findall(
        r'<tr><td>[^<]+</td><td class="value">[^<]+</td><td class="value">[^<]+</td><td [^>]+>([^<]*)', table
    )
    assert len(figures) >= 4
    assert all(re.fullmatch(r"[\d.]+%", control) for control in figures)
    assert "none set" in table
    assert "re-identification of people" in text
    assert "This release stands alone" in text
    assert called("verify", page.parent).returncode == 0


@pytest.mark.skipif(not shutil.which("chromium"), reason="chromium is not installed")
def test_it_prints_on_two_sides_with_every_figure(page: Path, tmp_path: Path) -> None:
    folder, pdf = tmp_path / "made", tmp_path / "page.pdf"
    shutil.copytree(page.parent, folder)
    (folder / "manifest.sig").unlink(missing_ok=True)
    manifest = json.loads((folder / "manifest.json").read_text())
    figure = {"mean": 0.855, "low": 0.84, "high": 0.87, "median": 1.0, "p95": 1.0}
    each = dict.fromkeys(("release", "control", "clean", "clean_control", "anybody"), figure)
    manifest["audit"]["persons"] |= {
        "unicity": {name: {"4": each} for name in ("minute", "hour", "part_place")},
        "linkage": dict.fromkeys(("sessions", "precision_at_10", "precision_at_25"), each),
        "next_release": dict.fromkeys(("ids", "precision_at_10", "precision_at_50"), each),
        "home": dict.fromkeys(("exact", "within_1km"), each), "sensitive": dict.fromkeys(TOPICS, each),
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert called("report", folder, "--dpia", "--title", "Check-ins of a city").returncode == 0
    page = folder / "dpia.html"
    assert page.read_text().count("85.5%") == 3 * 15  # release, control and clean file
    browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command = [*browser, "--no-pdf-header-footer", f"--print-to-pdf={pdf}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    content = pdf.read_bytes()
    assert len(re.findall(rb"/Type\s*/Page\b", content)) == 2
    assert re.search(rb"/MediaBox\s*\[0 0 59[45][\d.]* 84[12][\d.]*\]", content)  # A4


def test_it_needs_an_audit_and_a_release_folder(tmp_path: Path) -> None:
    folder = release("crowd", "txt").folder
    assert sentence(called("report", folder, "--dpia")) == (
        f"{folder} has no audit of persons, and this page reports one; run ghostpoi audit first"
    )
    assert sentence(called("report", city(), "--dpia")).startswith("--dpia is about a release of protect")
    assert sentence(called("report", folder, "--dpia", "--with-clean", "--private", folder)) == (
        "--dpia describes a single published release; leave out --with-clean and --private"
    )
