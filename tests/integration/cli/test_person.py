"""`ghostpoi person`: what a release says about one person, with and without its private folder."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from small_city import called, city, release, sentence

from ghostpoi import formats
from ghostpoi.formats import Source
from ghostpoi.release.manifest import checked_manifest, read_data


def asked(folder: Path, user: str, *more: object) -> dict[str, Any]:
    done = called("person", folder, "--user", user, "--json", *more)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def somebody() -> tuple[str, int]:
    """The id of the person with most rows, and their number."""
    table = formats.read(Source(city()), {}).table
    counts = np.bincount(table.user)
    return str(table.user_ids[counts.argmax()]), int(counts.max())


def test_the_release_alone_says_what_it_shows_and_nothing_clean() -> None:
    folder, (user, rows) = release("crowd", "txt").folder, somebody()
    found = asked(folder, user)
    table = read_data(folder, checked_manifest(folder)).table
    own = table.user_ids[table.user] == user
    assert (found["rows"], found["ids"], found["venues"]) == (rows, 1, len(np.unique(table.venue[own])))
    assert [one["venue"] for one in found["checkins"]] == table.venue_ids[table.venue[own]].tolist()
    assert "clean" not in json.dumps(found)
    assert found["singled_out"]["minute"]["5"] == 1.0
    assert 0 <= found["linked_sessions"]["right"] <= found["linked_sessions"]["of"]
    text = called("person", folder, "--user", user).stdout
    assert f"{rows:,} rows" in text
    assert "clean:" not in text


def test_the_private_folder_tells_the_clean_venues_and_undoes_pseudonyms() -> None:
    made, (user, rows) = release("crowd", "txt", "--pseudonyms", "session"), somebody()
    assert sentence(called("person", made.folder, "--user", user)).startswith(
        f"{made.folder} shows no user '{user}'; its user ids are pseudonyms: name the private folder with --private"
    )
    found = asked(made.folder, user, "--private", f"{made.folder}.private")
    assert found["rows"] == rows
    assert found["ids"] > 5
    clean = formats.read(Source(city()), {}).table
    own = clean.user_ids[clean.user] == user
    assert sorted(one["clean_venue"] for one in found["checkins"]) == sorted(clean.venue_ids[clean.venue[own]].tolist())
    alone = asked(made.folder, found["checkins"][0]["id"])  # who knows the pseudonym sees its rows
    assert 0 < alone["rows"] < rows


def test_an_unknown_id_is_refused() -> None:
    folder = release("crowd", "txt").folder
    done = called("person", folder, "--user", "nobody")
    assert (done.returncode, sentence(done)) == (2, f"{folder} holds no row of 'nobody'; check the id")
