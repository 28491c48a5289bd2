"""What a series refuses: one sentence, exit code 2, and nothing is written."""

import json
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from monthly_city import Row, clean_rows, content, day, days, release_in, written
from small_city import called, scratch, sentence

from ghostpoi.audits.several import audit_series
from ghostpoi.draw.methods import METHODS
from ghostpoi.release.series.add import SeriesRelease

KEPT = {"crowd", "crowd-halves", "k-anonymous", "randomised-response"}
NEEDS_MODELS_OR_NEIGHBOURS = sorted(set(METHODS.builtin) - KEPT)
OTHERS = {
    "method": (
        ["--method", "k-anonymous"],
        "--method k-anonymous: {0} is a series of crowd; use what the series uses ",
    ),
    "size": (["--set", "method.size=8"], "method.size is 8 here and 48 in {0}; use what the series uses (ghostpoi "),
    "speed": (["--set", "speed.limit_kmh=90"], "speed.limit_kmh is 90.0 here and 60.0 in {0}; use what the "),
    "users": (["--pseudonyms", "week"], "identity.pseudonyms is week here and keep in {0}; use what the series uses "),
    "gap": (["--set", "filters.session_gap_s=9"], "filters.session_gap_s is 9 here and 86400 in {0}; use what "),
    "rows": (["--no-candidate", "withhold"], "{0} is a series with --no-candidate keep; use what the series uses "),
    "seed": (["--seed", str(1 << 100)], "--seed differs from the seed of the series {0}; leave --seed out"),
    "zone": (
        ["--timezone", "Europe/Paris"],
        ": how its values are read (timezone=Europe/Paris) should be none; give files of one kind",
    ),
    "column": (["--drop", "timezone_offset"], ": its columns (user, venue_id, category_id, category, latitude, "),
}


@cache
def begun() -> Path:
    """A folder with a series of one release."""
    folder = scratch() / "refusals"
    folder.mkdir()
    release_in(folder / "series", days(0, 20), folder / "first")
    return folder


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(begun(), tmp_path / "here"))


def refused(here: Path, *words: object, file: Path | None = None, name: str = "second") -> str:
    """The sentence with which a second release is refused; nothing has changed."""
    before = content(here)
    done = called("protect", file or days(20, 40), "-o", here / name, "--series", here / "series", *words)
    said = sentence(done)
    assert content(here) == before
    assert not list(here.glob(".*"))
    return said


@pytest.mark.parametrize("what", OTHERS)
def test_another_method_or_settings_than_the_series(what: str, here: Path) -> None:
    words, expected = OTHERS[what]
    assert expected.format(here / "series") in refused(here, *words)


@pytest.mark.parametrize("method", NEEDS_MODELS_OR_NEIGHBOURS)
def test_a_method_that_cannot_keep_its_sets(method: str, tmp_path: Path) -> None:
    assert refused(tmp_path, "--method", method) == (
        f"--series: the method {method} cannot keep its sets from release to release; use crowd, crowd-halves, "
        "k-anonymous or randomised-response"
    )


def test_a_crowd_that_follows_a_model(tmp_path: Path) -> None:
    said = refused(tmp_path, "--set", "method.beta=0.5")
    assert said.startswith("--series: the method crowd with method.beta above 0 cannot keep its sets")


def test_files_whose_venues_a_series_cannot_keep(tmp_path: Path) -> None:
    rows = [{"user": u, "venue_id": f"v{v}", "category": "c", "lat": 1.0, "lon": 0.001 * v, "time": 60 * v + u}
            for u in range(4) for v in range(40)]  # fmt: skip
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ids = [{name: row[name] for name in ("user", "venue_id", "time")} for row in rows]
    (tmp_path / "visits.csv").write_text(
        "\n".join(["user,venue_id,time", *(",".join(map(str, row.values())) for row in ids)])
    )
    venues = {row["venue_id"]: f"{row['venue_id']},c,{row['lat']},{row['lon']}" for row in rows}
    (tmp_path / "venues.csv").write_text("\n".join(["venue_id,category,lat,lon", *venues.values()]))
    for words, said in (
        ([tmp_path / "rows.jsonl"], "this format cannot form a series; use CSV, TSV, TSMC2014 or Parquet"),
        ([tmp_path / "visits.csv", "--venues", tmp_path / "venues.csv"], "--series and --venues exclude each other"),
    ):
        done = called("protect", *words, "-o", tmp_path / "release", "--series", tmp_path / "series")
        assert said in sentence(done)
        assert not (tmp_path / "series").exists()


def test_a_note_that_is_damaged(here: Path) -> None:
    note = here / "series" / "series.json"
    whole = note.read_text()
    seed = json.loads(whole)["seed"]
    swaps = [('"number": 1', '"number": 2'), ('"complete"', '"done"'), (seed, "x"), ('"rows": ', '"rows": "" '),
             ('"repeated": 0', '"repeated": "0"'), ('"venues-0001.npz"', '"../venues-0001.npz"')]  # fmt: skip
    for text in (whole[:-20], whole[: len(whole) // 2], "", "[]", *(whole.replace(*swap) for swap in swaps)):
        note.write_text(text)
        said = refused(here)
        assert said == f"{note} is damaged; restore the series folder from a backup"
        assert seed not in said
        assert sentence(called("series", "show", here / "series")) == said


@pytest.mark.parametrize("name", ["venues-0001.npz", "rows-0001.parquet", "users-0001.parquet", "fields-0001.csv"])
@pytest.mark.parametrize("how", ["missing", "damaged"])
def test_a_folder_that_has_lost_a_file(name: str, how: str, here: Path) -> None:
    path = here / "series" / name
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes() + b"x")
    assert refused(here) == (
        f"the series folder {here / 'series'} is damaged: {name} is {how}; restore it from a backup"
    )
    done = called("series", "verify", here / "series")
    assert done.returncode == 1
    assert f"{name} is {how}" in done.stdout


def test_a_folder_without_its_note_or_with_other_files(here: Path) -> None:
    (here / "series" / "series.json").unlink()
    assert "holds files but no series.json" in refused(here)
    assert "is not a series folder: it has no series.json" in sentence(called("series", "verify", here / "series"))


def test_folders_inside_each_other(here: Path) -> None:
    file = days(20, 40)
    before = content(here)
    pairs = [("second", "second/series"), ("series/second", "series"), ("second", "second"),
             ("second", "second.private/x")]  # fmt: skip
    for release, series in ((here / one, here / two) for one, two in pairs):
        said = sentence(called("protect", file, "-o", release, "--series", series))
        assert "would be inside each other; choose another folder" in said
    assert content(here) == before


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    said = sentence(called("protect", days(0, 20), "-o", tmp_path / "r", "--series", tmp_path / "no" / "series"))
    assert said == f"the folder {tmp_path / 'no'} does not exist; create it first"


def test_a_first_file_that_is_refused_leaves_no_series(tmp_path: Path) -> None:
    chosen = [row | {"venue_name": f"visit {n}"} for n, row in enumerate(clean_rows(days(0, 20)))]
    file = tmp_path / "file.csv"
    file.write_text("\n".join([",".join(chosen[0]), *(",".join(row.values()) for row in chosen)]) + "\n")
    assert "venue_name" in refused(tmp_path, file=file)
    assert not (tmp_path / "series").exists()


def test_rows_that_were_released_at_another_venue(here: Path, tmp_path: Path) -> None:
    chosen = [dict(row) for row in clean_rows(days(0, 20))]
    others = [row for row in chosen if row["venue_id"] != chosen[7]["venue_id"]]
    venue = ("venue_id", "category_id", "category", "latitude", "longitude")
    chosen[7] |= {name: others[0][name] for name in venue}
    file = written(tmp_path / "changed.csv", chosen)
    assert refused(here, file=file) == (
        f"{file}: the series has released the user and time of check-in 8 at another venue (1 row in all), and a "
        "second draw would reveal more about the visit; give these rows as they were, or leave them out"
    )


def test_a_second_check_in_at_the_same_time_is_no_change(here: Path, tmp_path: Path) -> None:
    chosen = [dict(row) for row in clean_rows(days(0, 20))]
    other = next(row for row in chosen if row["venue_id"] != chosen[7]["venue_id"])
    venue = ("venue_id", "category_id", "category", "latitude", "longitude")
    chosen.insert(8, chosen[7] | {name: other[name] for name in venue})
    done = release_in(here / "series", written(tmp_path / "more.csv", chosen), here / "second")
    assert done.manifest["series"]["repeated"] == len(chosen) - 1


def test_rows_whose_pseudonyms_cannot_be_repeated(tmp_path: Path) -> None:
    """Two sessions of a user become one, because a row between them is new."""
    chosen = clean_rows(days(0, 40))
    between = next(
        two
        for user in sorted({row["user"] for row in chosen})
        for one, two, three in windows([row for row in chosen if row["user"] == user])
        if max(day(two) - day(one), day(three) - day(two)) <= HOURS / 24 < day(three) - day(one) < 0.5
        and morning(one) < morning(three)
    )
    words = ("--pseudonyms", "session", "--set", f"filters.session_gap_s={HOURS * 3600}")
    first = written(tmp_path / "first.csv", [row for row in chosen if row != between])
    release_in(tmp_path / "series", first, tmp_path / "first", *words)
    said = refused(tmp_path, *words, file=days(0, 40))
    assert "has rows that were released before, in other sessions: their pseudonyms cannot be repeated" in said


HOURS = 4


def morning(row: Row) -> int:
    """The hours since four in the morning, in New York."""
    return (int(row["utc_time"][11:13]) - 9) % 24


def windows(own: list[Row]) -> Iterator[tuple[Row, Row, Row]]:
    return zip(own, own[1:], own[2:], strict=False)


def test_two_at_once_on_one_series(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, said = SeriesRelease.draw, []

    def meanwhile(*arguments: Any, **more: Any) -> Any:
        if not said:
            done = called("protect", days(40, 50), "-o", here / "third", "--series", here / "series")
            said.append(sentence(done))
        return real(*arguments, **more)

    monkeypatch.setattr(SeriesRelease, "draw", meanwhile)
    release_in(here / "series", days(20, 40), here / "second")
    waits = "wait until it has finished, or choose another folder"
    assert said == [f"another ghostpoi is writing {here / 'series'}; {waits}"]
    assert not (here / "third").exists()


def test_a_dry_run_and_an_audit_of_nothing(here: Path, tmp_path: Path) -> None:
    assert refused(here, "--dry-run") == "--dry-run estimates a release that stands alone; leave --series out"
    audit = ("audit", days(0, 20), here / "first", "--series")
    one = sentence(called(*audit, here / "series"))
    assert one == f"--series {here / 'series'} has 1 complete releases; several months take at least two"
    release_in(here / "series", days(20, 40), here / "second")
    note = here / "series" / "series.json"
    other = sentence(called(*audit[:2], tmp_path, "--series", here / "series"))
    assert other == f"--series {note.parent} does not hold {tmp_path}; give the series or the folder of this release"
    none = sentence(called(*audit, tmp_path / "nothing"))
    assert none.endswith("is not a folder; give a series folder, or a folder of releases")


def test_an_audit_goes_on_without_a_release_that_moved(tmp_path: Path) -> None:
    for n in range(3):
        release_in(tmp_path / "series", days(20 * n, 20 * n + 20), tmp_path / f"{n}")
    assert audit_series(tmp_path / "series", tmp_path / "2")["not_compared"] == []
    (tmp_path / "0").rename(tmp_path / "elsewhere")
    found = audit_series(tmp_path / "series", tmp_path / "2")
    assert found["releases"] == [str(tmp_path / "1"), str(tmp_path / "2")]
    assert found["not_compared"] == [str(tmp_path / "0")]
    assert found["verdict"].endswith(f" Not compared, because no longer in place: {tmp_path / '0'}.")
    (tmp_path / "1").rename(tmp_path / "elsewhere-too")
    said = sentence(called("audit", days(40, 60), tmp_path / "2", "--series", tmp_path / "series"))
    assert (
        f"fewer than two releases are left, because these are missing: {tmp_path / '0'}, {tmp_path / '1'}; move" in said
    )


def test_a_release_that_needs_its_private_folder(here: Path) -> None:
    shutil.rmtree(here / "first.private")
    said = sentence(called("verify", here / "first", "--against", days(0, 20)))
    assert said.startswith("the release belongs to a series, and ")
    assert called("verify", here / "first").returncode == 0


def test_a_release_changed_behind_the_ledger(here: Path) -> None:
    data = here / "first" / "checkins.csv"
    data.write_text(data.read_text() + "\n")
    note = here / "series" / "series.json"  # the ledger names the folder that was copied
    note.write_text(note.read_text().replace(str(begun()), str(here)))
    done = called("series", "verify", here / "series", "--json")
    assert done.returncode == 1
    assert "the SHA-256 of checkins.csv differs from the manifest" in done.stdout
    shutil.rmtree(here / "first")
    assert "no longer at" in called("series", "verify", here / "series").stdout
