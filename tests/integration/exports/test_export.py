"""Exports: the files that other tools train on, and what of them may be clean."""

import os
import shutil
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pandas
import pytest
import sample_releases
import small_city
from city_exports import PARTS, Step, exported, release, rows, steps
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st
from small_city import SEED, called, scratch, sentence

from ghostpoi import formats
from ghostpoi.data import sessions
from ghostpoi.data.checkins import Checkins
from ghostpoi.data.sessions import Sessions
from ghostpoi.exports import EXPORTS
from ghostpoi.exports.atomic_files import HISTORY, token
from ghostpoi.release.manifest import PRIVATE_MARK, settings_of

GOLDEN = ROOT / "tests" / "golden"


@cache
def tiny() -> small_city.Release:
    """Two users; venue and category ids that a text file for pandas must encode."""
    rows = []
    for k in range(34):
        user, v = ("ann b" if k < 30 else "ben"), (7 * k + k // 4) % 6
        time = 1_333_400_000 + 2 * sample_releases.DAY * (k // 3) + 3600 * (k % 3)
        rows.append([user, f'v "{v}"', "N/A", 1 + 0.001 * v, 2 - 0.001 * v, time, f"n{v}"])
    folder = scratch() / "tiny"
    folder.mkdir()
    return small_city.protect(
        sample_releases.write_csv(folder / "in.csv", rows), folder / "release",
        "--method", "random", "--seed", SEED, *sample_releases.SETS,
    )  # fmt: skip


def expected(part: Sessions, table: Checkins, venue: np.ndarray) -> list[Step]:
    """The steps of sessions whose rows show these venues."""
    found = []
    for start, end in zip(part.start[:-1], part.start[1:], strict=True):
        names = [str(table.venue_ids[v]) for v in venue[part.row[start:end]]]
        user = str(table.user_ids[table.user[part.row[start]]])
        found += [
            (user, names[max(0, k - HISTORY) : k], names[k], int(part.time[start + k])) for k in range(1, len(names))
        ]
    return sorted(found)


@pytest.mark.parametrize("to", ["recbole", "libcity", "getnext", "flashback", "skmob"])
@pytest.mark.parametrize("private", [False, True])
def test_the_files_are_these(to: str, private: bool) -> None:
    folder, golden = exported(tiny(), private, to=to), GOLDEN / f"{to}{'-private' * private}"
    files = {path.name: path.read_text("utf-8") for path in folder.iterdir()}
    if os.environ.get("GHOSTPOI_RECORD"):
        shutil.rmtree(golden, ignore_errors=True)
        shutil.copytree(folder, golden)
    assert files == {path.name: path.read_text("utf-8") for path in golden.iterdir()}


def test_a_public_export_says_what_the_release_says_and_nothing_else() -> None:
    folder, table = exported(release(), private=False), formats.read(release().data).table
    assert {p.name for p in folder.iterdir()} == {"README.md", "city.inter", "city.item", "city.yaml"}
    shown = zip(table.user_ids[table.user], table.venue_ids[table.venue], table.time.tolist(), strict=True)
    found = [(user, venue, int(time)) for user, venue, time in rows(folder / "city.inter")]
    assert sorted(found) == sorted(shown)
    items = {venue: (float(lat), float(lon), category) for venue, lat, lon, category in rows(folder / "city.item")}
    v = table.venues
    assert items == {
        table.venue_ids[k]: (v.lat[k], v.lon[k], table.category_ids[v.category[k]])
        for k in range(1, len(table.venue_ids))
    }
    assert folder.stat().st_mode & 0o777 == 0o755
    assert "It says nothing that the release does not say." in (folder / "README.md").read_text()


def test_a_private_export_has_the_sessions_of_the_clean_file_and_its_split() -> None:
    folder, table = exported(release(), private=True), formats.read(release().file).table
    released = formats.read(release().data).table
    data = sessions.build(table, settings_of(release().manifest).filters)
    number = {name: k for k, name in enumerate(table.venue_ids)}
    shown = np.array([number[released.venue_ids[v]] for v in released.venue])
    assert steps(folder, "clean") == expected(data.train, table, table.venue)
    assert steps(folder, "valid") == expected(data.val, table, table.venue)
    assert steps(folder, "test") == expected(data.test, table, table.venue)
    assert steps(folder, "train") == expected(data.train, table, shown)
    assert len(steps(folder, "test")) == data.test.positions - len(data.test) > 50
    public = exported(release(), private=False)
    assert (folder / "city.inter").read_bytes() == (public / "city.inter").read_bytes()
    assert {item[0] for item in rows(folder / "city.item")} == set(table.venue_ids[1:])


@pytest.mark.parametrize("to", EXPORTS)
def test_a_private_export_is_marked_and_only_its_owner_may_read_it(to: str) -> None:
    folder = exported(release(), private=True, to=to)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    about = (folder / "README.md").read_text()
    assert "**This folder is private: it holds clean data. Never publish it.**" in about
    assert f"<!-- {PRIVATE_MARK} -->" in about


def test_a_private_export_of_moved_sessions_has_the_sessions_of_the_clean_times() -> None:
    kept = exported(release("crowd"), private=True)
    moved = exported(release("crowd", "--times", "shift", "--pseudonyms", "session"), private=True)
    for part in ("valid", "test", "clean"):
        assert steps(moved, part) == steps(kept, part)
    shown, clean = steps(moved, "train"), steps(kept, "train")
    week = 7 * 86_400
    assert len(shown) == len(clean)
    assert {step[3] % 3600 for step in shown} == {0}
    assert sorted(step[3] % week for step in shown) == sorted(step[3] % week // 3600 * 3600 for step in clean)
    assert len({step[3] for step in shown} & {step[3] // 3600 * 3600 for step in clean}) < len(shown) / 2


def test_pseudonyms_change_the_training_part_alone() -> None:
    kept = exported(release("crowd"), private=True)
    hidden = exported(release("crowd", "--pseudonyms", "session"), private=True)
    for part in ("valid", "test", "clean"):
        assert steps(hidden, part) == steps(kept, part)
    users = {step[0] for step in steps(kept, "clean")}
    assert users.isdisjoint(step[0] for step in steps(hidden, "train"))
    assert [step[1:] for step in steps(kept, "train")] != [step[1:] for step in steps(hidden, "clean")]
    assert sorted(step[3] for step in steps(kept, "train")) == sorted(step[3] for step in steps(hidden, "train"))


def test_withheld_rows_are_in_no_part() -> None:
    made = release("random", "--no-candidate", "withhold")
    assert made.manifest["rows"]["withheld"] > 0
    folder = exported(made, private=True)
    shown = {(user, time) for user, _, time in rows(folder / "city.inter")}
    for part in PARTS:
        found = {(user, time) for user, _, _, time in rows(folder / f"city.{part}.inter")}
        assert found
        assert found <= shown


@pytest.mark.parametrize("name", EXPORTS)
@pytest.mark.parametrize("private", [False, True])
def test_every_export_has_plain_files_and_repeats_itself(name: str, private: bool) -> None:
    folder = exported(release(), private, "city", name)
    again = exported.__wrapped__(release(), private, "city", name)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == {p.name: p.read_bytes() for p in again.iterdir()}
    assert f"# city\n\nA release of ghostpoi, exported for {name}.\n" in (folder / "README.md").read_text()
    assert EXPORTS[name].summary in " ".join(called("plugins").stdout.split())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--to", "recbola"], "--to recbola: unknown export; choose one of recbole"),
        (["-o", "RELEASE/export"], "lies inside the release"),
        (["-o", "nowhere/export"], "the folder nowhere does not exist; create it first"),
        (["-o", "there"], "there exists already; choose another folder with -o, or remove it"),
        (["--private", "OTHER"], "belongs to another release than"),
        (["--private", "there"], "--private there holds no pairs.npz; give the private folder that protect wrote"),
    ],
)
def test_refusals(options: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").mkdir()
    made, other = release(), release("crowd")
    words = [word.replace("RELEASE", str(made.folder)).replace("OTHER", str(other.private)) for word in options]
    given = {"--to": "recbole", "-o": "export"} | dict([words])
    said = sentence(called("export", made.folder, *(word for pair in given.items() for word in pair)))
    assert says in said
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]
    assert not (made.folder / "export").exists()


def test_a_damaged_release_is_refused(tmp_path: Path) -> None:
    folder = sample_releases.copied(release(), tmp_path)
    with (folder / release().data.name).open("ab") as out:
        out.write(b"\n")
    said = sentence(called("export", folder, "--to", "recbole", "-o", tmp_path / "x"))
    assert f"{folder} is damaged (the SHA-256 of" in said
    assert not (tmp_path / "x").exists()


def test_a_release_without_steps_to_test_on_is_refused_with_private_only(tmp_path: Path) -> None:
    made = sample_releases.ten_rows()
    words = ["export", made.folder, "--to", "recbole", "-o", tmp_path / "x"]
    said = sentence(called(*words, "--private", made.private))
    assert "no session of the part 'train' has two check-ins, so there is no step to predict" in said
    assert not (tmp_path / "x").exists()
    assert called(*words).returncode == 0


@given(st.text(min_size=1))
def test_tokens_are_read_back_by_pandas(text: str) -> None:
    written = token(text)
    assert unquote(written) == text
    assert not set(written) & set(' \t\r\n"')
    assert len(written.split()) == 1


@pytest.mark.parametrize("text", sorted(pandas._libs.parsers.STR_NA_VALUES - {""}))
def test_no_token_is_a_missing_value(text: str) -> None:
    assert token(text) not in pandas._libs.parsers.STR_NA_VALUES
    assert unquote(token(text)) == text
