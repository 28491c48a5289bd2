"""Reports on files of other tools, and comparisons, which need releases of one file, whoever made them."""

import hashlib
import json
import re
import shutil
from functools import cache
from pathlib import Path

import pytest
import sample_releases
import small_city
from sample_releases import AUDIT
from small_city import MAP, called, city, scratch, sentence

from ghostpoi import formats


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return sample_releases.copied(small_city.release("ghost"), tmp_path)


@cache
def other() -> Path:
    """Another tool's release of the city: the same rows in reverse order, with some venues that it invented."""
    lines = small_city.release("random").data.read_text("latin-1").splitlines()
    lines = [re.sub("\t", "\tnew-", line, count=1) if k % 5 == 0 else line for k, line in enumerate(lines)]
    path = scratch() / "other.txt"
    path.write_text("\n".join(lines[::-1]) + "\n", "latin-1")
    return path


@cache
def audited() -> tuple[Path, Path]:
    """A file of another tool and what `audit --json` printed about it."""
    file, result = scratch() / "plain.txt", scratch() / "audit.json"
    shutil.copy(small_city.release("random").data, file)
    done = called(
        "audit", city(), file, "--seeds", 1, "--adversaries", "none,frequency", "--no-naturalness", "--json", "--cache",
        scratch() / "audit", "--device", "cpu", *(word for text in AUDIT for word in ("--set", text)),
        "--set", "filters.min_poi_checkins=5",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result.write_text(done.stdout)
    return file, result


def words(page: Path) -> str:
    text = re.sub(r"<(script|style)\b.*?</\1>", "", page.read_text("utf-8"), flags=re.S)
    return " ".join(re.sub("<[^>]*>", " ", text).split())


def test_a_file_without_an_audit_is_reported_and_nothing_is_claimed(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = called("report", other(), "-o", page)
    assert (done.returncode, done.stdout) == (0, f"{page}\n"), done.stderr
    text = words(page)
    rows = len(formats.read(other()).table)
    assert text.startswith("Report on other.txt ")
    assert f"{rows:,} check-ins by 56 users" in text
    assert "released by another tool" in text
    assert "Not audited yet" in text
    assert "ghostpoi report other.txt --audit audit.json -o page.html" in text
    assert hashlib.sha256(other().read_bytes()).hexdigest() in text
    assert "Which of these rows are genuine is not known." in text
    for claim in (
        "no clean data",
        "left genuine",
        "displacement of the substituted rows",
        "GHOST",
        "What this release does not",
    ):
        assert claim not in text
    charts = sample_releases.chart_ids(page.read_text())
    assert charts == {"speed", "popularity", "top", "categories", "gyration", "hours"}
    assert not [p for p in tmp_path.iterdir() if p != page]


def test_an_audit_of_a_file_belongs_to_its_content(tmp_path: Path) -> None:
    file, audit = audited()
    page = tmp_path / "page.html"
    assert called("report", file, "--audit", audit, "-o", page).returncode == 0
    found, text = json.loads(audit.read_text()), words(page)
    assert found["release_sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert "Not audited yet" not in text
    assert f"{found['test_positions']:,} clean test positions" in text
    assert f"{found['plausibility']['mean_km']:.2f} km mean displacement of the substituted rows" in text
    refused = called("report", other(), "--audit", audit, "-o", tmp_path / "x.html")
    assert f"--audit {audit} measured none of these files" in sentence(refused)
    refused = called("report", file, "--audit", audit, "--audit", audit, "-o", tmp_path / "x.html")
    assert "give one audit of each file" in sentence(refused)
    (tmp_path / "no.json").write_text('{"clean": 7}')
    refused = called("report", file, "--audit", tmp_path / "no.json", "-o", tmp_path / "x.html")
    assert "is not what ghostpoi audit --json prints" in sentence(refused)
    assert not (tmp_path / "x.html").exists()


def test_a_file_is_compared_with_a_release(release: Path) -> None:
    file, audit = audited()
    assert called("report", release, "--compare", file, "--audit", audit).returncode == 0
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', (release / "report.html").read_text(), re.S)
    cells = {name: re.sub("<[^>]*>", " ", row).split() for name, row in rows}
    assert cells["GHOST"][:2] == ["not", "audited"]
    assert cells["plain.txt"][:2] == ["1", "seed,"]
    assert cells["plain.txt"][-1] == "km"
    assert called("verify", release).returncode == 0


def test_rows_are_matched_by_user_and_time_and_invented_venues_are_shown(release: Path, tmp_path: Path) -> None:
    private = tmp_path / "release.private"
    done = called("report", release, "--private", private, "--with-clean", "--compare", other())
    assert done.returncode == 0, done.stderr
    shown = sample_releases.embedded((private / "report.html").read_text(), "map-data")
    assert shown["methods"] == ["GHOST", "other.txt"]
    theirs = formats.read(other()).table
    users, venues = theirs.user_ids[theirs.user], theirs.venue_ids[theirs.venue]
    invented = 0
    for example in shown["examples"]:
        user = example["label"].split(",")[0].removeprefix("user ")
        for venue in example["sides"][1]["venue"]:
            assert venue in venues[users == user]
            invented += venue.startswith("new-")
        assert None not in example["sides"][1]["moved"]
    assert invented > 0


def test_columns_of_a_file_are_named_with_map(tmp_path: Path) -> None:
    file = small_city.release("random", "csv").data
    assert "--map" in sentence(called("report", file, "-o", tmp_path / "page.html"))
    assert called("report", file, "-o", tmp_path / "page.html", *MAP).returncode == 0


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_release_of_another_file_is_refused(kind: str, release: Path, tmp_path: Path) -> None:
    lines = city().read_text("latin-1").splitlines()
    (half := tmp_path / "half.txt").write_text("\n".join(lines[: len(lines) // 2]) + "\n", "latin-1")
    missing = len(lines) - len(lines) // 2
    if kind == "folder":
        half = small_city.protect(half, tmp_path / "half", "--method", "random").folder
    said = sentence(called("report", release, "--compare", half))
    assert re.fullmatch(
        rf"--compare {half}: it lacks {missing:,} rows of the release, for example user \S+ at \S+Z; "
        "compare releases of one file",
        said,
    )
    page = tmp_path / "x.html"
    said = sentence(called("report", half, "--compare", release, "-o", page))
    assert f"it has {missing:,} rows that the release lacks" in said
    assert not page.exists()


def test_only_rows_that_a_manifest_counts_as_withheld_may_be_missing(tmp_path: Path) -> None:
    made = small_city.release("random", "txt", "--no-candidate", "withhold")
    part, count = sample_releases.copied(made, tmp_path), made.manifest["rows"]["withheld"]
    whole = small_city.release("random").folder
    assert count > 0
    assert called("report", part, "--compare", whole).returncode == 0
    assert called("report", part, "--compare", other()).returncode == 0
    lines = city().read_text("latin-1").splitlines()
    (short := tmp_path / "short.txt").write_text("\n".join(lines[:-count]) + "\n", "latin-1")
    assert "it lacks" in sentence(called("report", part, "--compare", short))
    (longer := tmp_path / "long.txt").write_text("\n".join([*lines, lines[0]]) + "\n", "latin-1")
    assert f"it has {count + 1:,} rows that the release lacks" in sentence(called("report", part, "--compare", longer))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ([], "is a file, so the page has no folder; name the page with -o page.html"),
        (["-o", "OTHER"], "would overwrite what the page is about"),
        (["-o", "x.html", "--private", "PRIVATE", "--with-clean"], "only a release of protect has a private folder"),
        (["-o", "x.html", "--audit", "nowhere"], "--audit nowhere cannot be read (no such file or directory)"),
    ],
)
def test_refusals(
    options: list[str], says: str, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = other().read_bytes()
    names = {"OTHER": str(other()), "PRIVATE": f"{release}.private"}
    assert says in sentence(called("report", other(), *(names.get(option, option) for option in options)))
    assert other().read_bytes() == before
    assert not list(tmp_path.glob("*.html"))
