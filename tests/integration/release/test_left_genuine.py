"""Rows that keep their clean venue: the same count in what protect prints, the manifest, the card and the page."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import sample_releases
from small_city import called, city, protect, release

from ghostpoi import formats
from ghostpoi.draw.whole_table import genuine_rows, prepare
from ghostpoi.release.manifest import settings_of

SLOW = ("--set", "speed.limit_kmh=2")  # so that some rows are kept for speed


def rows_file(folder: Path) -> Path:
    """140 rows at 7 venues; one of them, with 20 rows, is alone in its category."""
    rows = [
        [f"u{k % 3}", f"v{v}", "lone" if v == 6 else "c", 1 + 0.001 * v, 2, 1_333_400_000 + 1800 * k, f"n{v}"]
        for k in range(140)
        for v in [k % 7]
    ]
    return sample_releases.write_csv(folder / "in.csv", rows)


@pytest.mark.parametrize(
    ("method", "more"), [("random", ()), ("random", SLOW), ("ts-ue", ()), ("crowd", ()), ("crowd", SLOW)]
)
def test_the_count_is_that_of_the_rows_and_verify_can_recompute_it(method: str, more: tuple[str, ...]) -> None:
    made = release(method, "txt", *more)
    rows, clean, released = made.manifest["rows"], formats.read(made.file), formats.read(made.data)
    groups = [rows[group] for group in ("in_sessions", "outside_sessions")]
    same = clean.rows.get_column("venue_id") == released.rows.get_column("venue_id")
    no_candidate = sum(group["no_candidate"] for group in groups)
    left = no_candidate if method == "crowd" else int(same.sum())
    assert rows["left_genuine"] == {"rows": left, "share": round(left / len(clean.table), 3)}
    assert rows["drawn_own"]["rows"] == int(same.sum()) - left
    assert (rows["drawn_own"]["rows"] > 0) == (method == "crowd")
    kept = sum(group["kept_by_speed"] + group["kept_by_method"] for group in groups)
    assert left + rows["drawn_own"]["rows"] == no_candidate + kept
    number = {name: venue for venue, name in enumerate(clean.table.venue_ids)}
    venue = np.array([number[name] for name in released.table.venue_ids])[released.table.venue]
    settings = settings_of(made.manifest)
    every = np.arange(len(venue))
    found = genuine_rows(prepare(clean.table, settings), settings.method, every, venue)
    assert found == {name: rows[name]["rows"] for name in found}


def test_the_first_line_after_the_status_says_it() -> None:
    for method in ("random", "crowd"):
        made = release(method)
        left, own = (made.manifest["rows"][name] for name in ("left_genuine", "drawn_own"))
        lines = made.done.stdout.splitlines()
        assert lines[0].startswith("Treat this release as personal data")
        first = lines[1]
        both = (left["rows"] + own["rows"]) / made.manifest["data"]["rows"]
        assert f" rows released with {method}; {both:.1%} keep their clean venue: {left['rows']:,} " in first
        assert f" ({left['share']:.1%}) are left genuine" in first
        assert (f", {own['rows']:,} ({own['share']:.1%}) drew it by chance" in first) == (method == "crowd")
        assert ("note: crowds with few venues" in made.done.stdout) == (own["share"] > 1 / 3)


def test_withheld_rows_are_not_left_genuine(tmp_path: Path) -> None:
    file = rows_file(tmp_path)
    kept = protect(file, tmp_path / "kept", "--method", "random", *sample_releases.SETS)
    assert kept.manifest["rows"]["left_genuine"] == {"rows": 20, "share": 0.143}
    withheld = protect(
        file, tmp_path / "withheld", "--method", "random", "--no-candidate", "withhold", *sample_releases.SETS
    )
    assert withheld.manifest["rows"]["left_genuine"] == {"rows": 0, "share": 0.0}
    assert (
        "120 rows released with random; 0.0% keep their clean venue: 0 (0.0%) are left genuine" in withheld.done.stdout
    )


def test_card_croissant_and_page_say_it_below_the_headline(tmp_path: Path) -> None:
    folder = protect(rows_file(tmp_path), tmp_path / "r", "--method", "random", *sample_releases.SETS).folder
    unclear = sample_releases.audit() | {"verdict": "cannot tell"}
    for audit in (None, sample_releases.audit(), unclear):
        if audit:
            sample_releases.put_audit(folder, audit)
        assert called("report", folder).returncode == 0
        card = (folder / "card.md").read_text()
        left = (
            "14.3% of the released rows keep their clean venue: 14.3% (20 of 140) are left genuine, because they have"
        )
        assert left in card
        assert (
            "14.3% of the released rows are left genuine"
            in json.loads((folder / "croissant.json").read_text())["description"]
        )
        page = (folder / "report.html").read_text()
        made = page.split('<section id="made"')[1].split('<div class="numbers')[0].split("</h2>")[1]
        assert left in " ".join(re.sub("<[^>]*>", " ", made).split())
        assert "drew it from their set" not in page


def test_the_page_tells_rows_that_drew_their_own_venue_apart(tmp_path: Path) -> None:
    folder = sample_releases.copied(release("crowd"), tmp_path)
    assert called("report", folder).returncode == 0
    own = release("crowd").manifest["rows"]["drawn_own"]
    page = " ".join((folder / "report.html").read_text().split())
    assert f"{own['share']:.1%} ({own['rows']:,}) drew it from their set by chance" in page
    assert "| drew its own venue |" in (folder / "card.md").read_text()
    assert called("verify", folder, "--against", city()).returncode == 0
