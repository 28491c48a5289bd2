"""`ghostpoi series forget`: a person leaves the series folder, and later files may not bring the person back."""

import json
from pathlib import Path

import numpy as np
from monthly_city import days, release_in, rows, written
from small_city import called, sentence

from ghostpoi.release.series.ledger import ROWS, USERS, read, read_series


def test_a_person_is_removed_and_may_not_come_back(tmp_path: Path) -> None:
    series, first, second = tmp_path / "series", days(0, 30), days(15, 45)
    for number, file in enumerate((first, second), 1):
        release_in(series, file, tmp_path / f"r{number}", "--pseudonyms", "session")
    user = rows()[0]["user"]
    note = read_series(series)
    before = [len(read(note, ROWS, entry)) for entry in note.entries]

    done = called("series", "forget", series, "--user", user, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    hers = {
        line for file in (first, second) for line in file.read_text().splitlines()[1:] if line.split(",")[0] == user
    }
    assert found["rows"] == len(hers)
    assert [one["number"] for one in found["releases"]] == [1, 2]
    assert sum(before) - sum(len(read(note, ROWS, entry)) for entry in note.entries) == len(hers)
    others = {row.split(",")[0] for row in first.read_text().splitlines()[1:]} - {user}
    assert len(read(note, USERS, note.entries[0])) == len(others)
    assert called("series", "verify", series).returncode == 0
    text = called("series", "forget", series, "--user", user)  # again: of rows, nothing is left
    assert text.returncode == 2

    third = days(40, 60)
    refused = called("protect", third, "-o", tmp_path / "r3", "--series", series, "--pseudonyms", "session")
    assert refused.returncode == 2
    assert f"the series has forgotten 1 of its users, for example {user!r}; leave their rows out" in refused.stderr
    without = [row for row in csv_rows(third) if row["user"] != user]
    release_in(series, written(tmp_path / "without.csv", without), tmp_path / "r3", "--pseudonyms", "session")
    assert len(np.unique(read_series(series).forgotten)) == 1


def csv_rows(path: Path) -> list[dict[str, str]]:
    lines = path.read_text().splitlines()
    names = lines[0].split(",")
    return [dict(zip(names, line.split(","), strict=True)) for line in lines[1:]]


def test_an_unknown_person_is_refused(tmp_path: Path) -> None:
    release_in(tmp_path / "series", days(0, 30), tmp_path / "r1")
    done = called("series", "forget", tmp_path / "series", "--user", "nobody")
    assert (done.returncode, sentence(done)) == (
        2, f"{tmp_path / 'series'} has released no rows of the user 'nobody'; give "
        "the id as the files write it",
    )  # fmt: skip


def test_an_id_may_have_capitals_and_zeros(tmp_path: Path) -> None:
    series = tmp_path / "series"
    own = [row | {"user": f"Anna-{int(row['user']):04}"} for row in csv_rows(days(0, 30))]
    release_in(series, written(tmp_path / "named.csv", own), tmp_path / "r1")
    user = own[0]["user"]
    done = called("series", "forget", series, "--user", user, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == sum(row["user"] == user for row in own)
    assert called("series", "forget", series, "--user", user).returncode == 2  # nothing is left
