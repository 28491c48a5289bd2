"""Title, publisher and licence: options of `report`, in all three pages."""

import json
from pathlib import Path

import pytest
from croissant_files import dataset
from sample_releases import HOSTILE, copied
from small_city import called, release, sentence

SAID = ["--title", "City walks 2012", "--publisher", "Town Hall", "--license", "cc-by-4.0"]


def test_all_pages_say_it(tmp_path: Path) -> None:
    folder = copied(release(), tmp_path)
    done = called("report", folder, *SAID)
    assert done.returncode == 0, done.stderr
    page, card, meta = ((folder / name).read_text() for name in ("report.html", "card.md", "croissant.json"))
    assert "<title>City walks 2012</title>" in page
    assert "<h1>City walks 2012</h1>" in page
    assert "<p>Town Hall; licence: cc-by-4.0</p>" in page
    assert card.startswith('---\nlicense: "cc-by-4.0"\npretty_name: "City walks 2012"\n')
    assert "\n# City walks 2012\n\nPublished by Town Hall.\n" in card
    found = json.loads(meta)
    assert (found["name"], found["license"]) == ("City walks 2012", "cc-by-4.0")
    assert (found["publisher"]["name"], found["creator"]["name"]) == ("Town Hall", "Town Hall")
    assert dataset(folder / "croissant.json").metadata.license == ["cc-by-4.0"]
    assert called("verify", folder).returncode == 0


def test_nothing_is_said_by_default(tmp_path: Path) -> None:
    folder = copied(release(), tmp_path)
    assert called("report", folder).returncode == 0
    assert "Published by" not in (folder / "card.md").read_text()
    assert (folder / "card.md").read_text().startswith('---\nlicense: unknown\npretty_name: "Protected check-ins"\n')
    assert "publisher" not in json.loads((folder / "croissant.json").read_text())


@pytest.mark.parametrize("text", [text for text in HOSTILE if text.isprintable()])
def test_no_text_breaks_a_page(text: str, tmp_path: Path) -> None:
    folder = copied(release(), tmp_path)
    assert called("report", folder, "--title", text, "--publisher", text, "--license", text).returncode == 0
    page, card, meta = ((folder / name).read_text() for name in ("report.html", "card.md", "croissant.json"))
    assert json.loads(meta)["license"] == text
    assert json.loads(card.splitlines()[1].removeprefix("license: ")) == text
    assert "<img src=x" not in page
    assert "<script>window" not in page + card.split("---\n", 2)[2]


@pytest.mark.parametrize("text", ["two\nlines", " ", "x" * 201])
def test_what_is_no_line_is_refused(text: str, tmp_path: Path) -> None:
    folder = copied(release(), tmp_path)
    said = sentence(called("report", folder, "--title", text))
    assert said.startswith("--title ")
    assert said.endswith(": give one line of at most 200 characters")
    assert not (folder / "card.md").exists()
