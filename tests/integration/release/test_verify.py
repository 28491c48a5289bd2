"""verify: every release passes, and every manipulation fails the right check."""

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sample_releases import put_manifest
from small_city import Release, called, city, prepared, release, rich_csv, rich_parquet, sentence

from ghostpoi.draw.methods import METHODS
from ghostpoi.release.manifest import PRIVATE_MARK

FOLDER = ["signature", "data file", "nothing private", "manifest", "speed", "hidden venues"]
CHECKS = [
    *FOLDER, "rows", "category", "radius", "venue fields", "speed rule", "counts", "plausibility", "kept columns",
    "row order",
]  # fmt: skip


def lines(folder: Path, *more: object) -> dict[str, bool]:
    """Check name -> passed, from --json; the printed text must agree."""
    done = called("verify", folder, *more, "--json")
    report = json.loads(done.stdout)
    checks = {c["check"]: c["passed"] for c in report["checks"]}
    assert report["passed"] == all(checks.values())
    assert done.returncode == (0 if report["passed"] else 1)
    assert not done.stderr
    shown = called("verify", folder, *more)
    assert shown.returncode == done.returncode
    for name, passed in checks.items():
        assert f"{'pass' if passed else 'FAIL'}  {name}" in shown.stdout
    return checks


@pytest.mark.parametrize("method", METHODS)
def test_every_method_passes(method: str) -> None:
    folder = release(method).folder
    assert lines(folder) == dict.fromkeys(FOLDER, True)
    assert lines(folder, "--against", city()) == dict.fromkeys(CHECKS, True)


@pytest.mark.parametrize(("kind", "file"), [("csv", rich_csv), ("parquet", rich_parquet)])
def test_every_format_passes(kind: str, file: Callable[[], Path]) -> None:
    assert lines(release("random", kind).folder, "--against", file()) == dict.fromkeys(CHECKS, True)


@pytest.mark.parametrize(("method", "kept"), [("random", ""), ("crowd", "; the method does not keep categories")])
def test_the_line_of_categories_says_what_the_method_keeps(method: str, kept: str) -> None:
    made = release(method)
    checks = json.loads(called("verify", made.folder, "--against", made.file, "--json").stdout)["checks"]
    (category,) = (check for check in checks if check["check"] == "category")
    assert re.fullmatch(rf"([\d,]+) of [\d,]+ substitutes match{kept}", category["detail"])
    assert category["passed"]


def test_withheld_rows_pass() -> None:
    folder = release("random", "txt", "--no-candidate", "withhold").folder
    assert lines(folder, "--against", city()) == dict.fromkeys(CHECKS, True)


# Manipulations. Rows are lists of fields, which a manipulation changes in place.

Rows = list[list[str]]
Manifest = dict[str, Any]


def tampered(
    tmp_path: Path, change: Callable[[Rows, Manifest], object], patch_hash: bool = True, made: Release | None = None
) -> Path:
    made = made or release("random")
    folder = tmp_path / "t"
    shutil.copytree(made.folder, folder)
    rows = [line.split("\t") for line in made.data.read_text("latin-1").splitlines()]
    manifest = made.manifest
    change(rows, manifest)
    data = "".join("\t".join(row) + "\n" for row in rows).encode("latin-1")
    (folder / "checkins.txt").write_bytes(data)
    if patch_hash:
        manifest["data"] |= {"sha256": hashlib.sha256(data).hexdigest(), "rows": len(rows)}
    put_manifest(folder, manifest)
    return folder


def clean_rows() -> Rows:
    return [line.split("\t") for line in city().read_text("latin-1").splitlines()]


def substituted(rows: Rows) -> list[int]:
    return [i for i, (a, b) in enumerate(zip(rows, clean_rows(), strict=True)) if a[1] != b[1]]


def show(rows: Rows, row: int, poi: int) -> None:
    """Give a row all fields of a venue."""
    table = prepared().table
    donor = clean_rows()[int(np.flatnonzero(table.venue == poi)[0])]
    rows[row][1:6] = donor[1:6]


def drop_row(rows: Rows, manifest: Manifest) -> None:
    del rows[5]


def swap_rows(rows: Rows, manifest: Manifest) -> None:
    rows[3], rows[40] = rows[40], rows[3]


def other_category(rows: Rows, manifest: Manifest) -> None:
    p = prepared()
    i = next(i for i in substituted(rows) if not p.hidden[p.table.venue[i]])
    category = p.table.venues.category
    others = np.flatnonzero(category[1:] != category[p.table.venue[i]]) + 1
    show(rows, i, int(others[0]))


def far_away(rows: Rows, manifest: Manifest) -> None:
    """A venue of the same category that is in no candidate set of the row's venue."""
    p = prepared()
    for i in substituted(rows):
        anchor, category, known = int(p.table.venue[i]), p.table.venues.category, p.data.vocabulary.venue
        same = np.flatnonzero(category == category[anchor])
        near = known[p.session_sets.poi[np.flatnonzero(known == anchor)]].ravel().tolist()
        far = set(same.tolist()) - set(p.venue_sets.poi[anchor].tolist()) - set(near) - {anchor}
        if far:
            show(rows, i, min(far))
            return
    pytest.fail("the city is too small to have a venue far away")


def stale(field: int) -> Callable[[Rows, Manifest], None]:
    def change(rows: Rows, manifest: Manifest) -> None:
        clean = clean_rows()
        i = next(i for i in substituted(rows) if rows[i][field] != clean[i][field])
        rows[i][field] = clean[i][field]

    return change


def mixed_kept(rows: Rows, manifest: Manifest) -> None:
    """A row that was kept shows another venue's latitude."""
    changed = set(substituted(rows))
    i = next(i for i in range(len(rows)) if i not in changed)
    rows[i][4] = next(row[4] for row in rows if row[4] != rows[i][4])


def restored(rows: Rows, manifest: Manifest) -> None:
    i = substituted(rows)[0]
    rows[i] = clean_rows()[i]


def unknown_venue(rows: Rows, manifest: Manifest) -> None:
    rows[substituted(rows)[0]][1] = "f" * 24


def later(rows: Rows, manifest: Manifest) -> None:
    rows[7][7] = rows[8][7] if rows[8][7] != rows[7][7] else "Tue Apr 03 18:00:09 +0000 2012"


def faster(rows: Rows, manifest: Manifest) -> None:
    manifest["speed"]["steps_over_limit"] += 1


TAMPER: dict[str, tuple[Callable[[Rows, Manifest], object], str, bool]] = {
    "a row dropped": (drop_row, "rows", True),
    "rows swapped": (swap_rows, "rows", True),
    "another time": (later, "rows", True),
    "another category": (other_category, "category", True),
    "outside the radius": (far_away, "radius", True),
    "a stale latitude": (stale(4), "venue fields", True),
    "a stale longitude": (stale(5), "venue fields", True),
    "a mixed row that was kept": (mixed_kept, "venue fields", True),
    "a clean row put back": (restored, "counts", True),
    "a venue from elsewhere": (unknown_venue, "venues", True),
    "fewer counted": (lambda rows, m: m["rows"]["in_sessions"].update(substituted=3), "counts", True),
    "one withheld": (lambda rows, m: m["rows"].update(withheld=1), "rows", True),
    "a speed count": (faster, "speed", False),
    "a number of steps": (lambda rows, m: m["speed"].update(steps=1), "speed", False),
    "a seed": (lambda rows, m: m.update(seed=7), "nothing private", False),
    "a hidden seed": (lambda rows, m: m["settings"]["rounds"].update(seed=7), "nothing private", False),
    "a seed in a list": (lambda rows, m: m.update(audit=[{"x": [{"seed": 7}]}]), "nothing private", False),
    "unknown measures": (lambda rows, m: m.update(clean_popularity={}), "nothing private", False),
}


@pytest.mark.parametrize("case", TAMPER)
def test_tampering_fails_on_the_right_line(case: str, tmp_path: Path) -> None:
    change, line, needs_clean = TAMPER[case]
    folder = tampered(tmp_path, change)
    got = lines(folder, "--against", city())
    assert got[line] is False
    assert got["data file"]
    if not needs_clean:
        assert lines(folder)[line] is False


def test_nothing_changed_is_no_tampering(tmp_path: Path) -> None:
    assert all(lines(tampered(tmp_path, lambda rows, manifest: None), "--against", city()).values())


def test_a_changed_byte(tmp_path: Path) -> None:
    folder = tampered(tmp_path, lambda rows, manifest: rows[0].__setitem__(3, "x"), patch_hash=False)
    assert lines(folder, "--against", city()) == {"signature": True, "data file": False, "nothing private": True}
    (folder / "checkins.txt").unlink()
    assert lines(folder) == {"signature": True, "data file": False, "nothing private": True}


@pytest.mark.parametrize("name", ["seed", "pairs.npz", ".hidden", "unfinished/run.json", "checkins.txt.bak"])
def test_a_private_file_in_the_release(name: str, tmp_path: Path) -> None:
    folder = tampered(tmp_path, lambda rows, manifest: None)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("7")
    assert lines(folder)["nothing private"] is False
    assert name.split("/")[0] in called("verify", folder).stdout


def test_public_pages_are_fine(tmp_path: Path) -> None:
    folder = tampered(tmp_path, lambda rows, manifest: None)
    for name, text in (("report.html", "x"), ("card.md", "| `seed` | x |\n3 seeds: a, b"), ("croissant.json", "{}")):
        (folder / name).write_text(text)
    assert lines(folder)["nothing private"]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("card.md", "# Card\n\nseed: 7\n", "card.md with seed"),
        ("card.md", "---\nlicense: mit\nprivate: /home/me\n---\n", "card.md with private"),
        ("card.md", "| **Pairs** = 1 |", "card.md with pairs"),
        ("croissant.json", '{"a": [{"seed": 7}]}', "croissant.json with seed"),
        ("croissant.json", "seed", "croissant.json with content that cannot be read"),
        ("report.html", f"<body class='{PRIVATE_MARK}'>", "report.html with clean data"),
        ("card.md", f"<!-- {PRIVATE_MARK} -->", "card.md with clean data"),
        ("report.html", b"\xff\x00", "report.html with content that cannot be read"),
    ],
)
def test_something_private_in_a_public_page(name: str, text: str | bytes, found: str, tmp_path: Path) -> None:
    folder = tampered(tmp_path, lambda rows, manifest: None)
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    assert lines(folder)["nothing private"] is False
    assert found in " ".join(called("verify", folder).stdout.split())


@pytest.mark.parametrize("name", ["card.md", "croissant.json", "report.html"])
def test_a_page_must_be_a_plain_file(name: str, tmp_path: Path) -> None:
    folder = tampered(tmp_path, lambda rows, manifest: None)
    (folder / name).symlink_to(tmp_path / "nowhere")
    assert lines(folder)["nothing private"] is False
    (folder / name).unlink()
    (folder / name).mkdir()
    assert lines(folder)["nothing private"] is False


# Bad input.


def test_no_release(tmp_path: Path) -> None:
    assert sentence(called("verify", tmp_path / "no")).endswith("is not a folder; give the folder that protect wrote")
    assert "is not a folder" in sentence(called("verify", city()))
    assert "has no manifest.json, so it is not a complete release" in sentence(called("verify", tmp_path))


def without(section: str, key: str | None = None) -> Callable[[Rows, Manifest], object]:
    return lambda rows, m: m.pop(section) if key is None else m[section].pop(key)


BROKEN: list[Callable[[Rows, Manifest], object]] = [
    *(without(section) for section in ("data", "columns", "rows", "settings", "speed")),
    without("data", "sha256"),
    without("data", "format"),
    without("speed", "limit_kmh"),
    without("rows", "withheld"),
    lambda rows, m: m["data"].update(file="../city.txt"),
    lambda rows, m: m["data"].update(file=7),
    lambda rows, m: m["data"].update(format="nope"),
    lambda rows, m: m["columns"].update(fields=[]),
    lambda rows, m: m["columns"].update(fields={"poi": "nope"}),
    lambda rows, m: m["settings"].update(filters=3),
    lambda rows, m: m["settings"]["filters"].update(min_poi_checkins="many"),
    lambda rows, m: m["settings"]["filters"].update(nope=1),
]


@pytest.mark.parametrize("number", range(len(BROKEN)))
def test_a_broken_manifest_is_bad_input(number: int, tmp_path: Path) -> None:
    sentence(called("verify", tampered(tmp_path, BROKEN[number], patch_hash=False), "--against", city()))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7", '{"data": 1}', "\xff", "[" * 100_000])
def test_a_manifest_that_is_no_manifest(text: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(text.encode("latin-1"))
    assert "is not a manifest of ghostpoi" in sentence(called("verify", tmp_path))


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    folder = tampered(tmp_path, lambda rows, m: m["columns"]["changed_with_the_venue"].append("name"))
    assert lines(folder, "--against", city())["rows"] is False


def test_against_another_file(tmp_path: Path) -> None:
    pl.read_parquet(rich_parquet()).with_columns(pl.col("Who").cast(pl.String)).write_parquet(tmp_path / "x.parquet")
    folder = release("random", "parquet").folder
    assert lines(folder, "--against", tmp_path / "x.parquet")["rows"] is False
    assert lines(folder, "--against", rich_csv())["rows"] is False
    sentence(called("verify", folder, "--against", tmp_path / "none.parquet"))
    sentence(called("verify", folder, "--against", city()))
