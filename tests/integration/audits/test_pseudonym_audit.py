"""Audits of releases with pseudonyms: the private map restores rows and users, and adversaries see pseudonyms."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_city import SETS, called, city, release, sentence

from ghostpoi.audits.controls import default_adversaries
from ghostpoi.audits.match import align, read_pair
from ghostpoi.audits.request import AuditRequest
from ghostpoi.formats import Source

SPLIT = ("--set", "filters.train_share=0.6", "--set", "filters.val_share=0.2")
FAST = ("--victim", "markov", "--seeds", "1", "--no-naturalness", "--leak", "0.3", *SPLIT)
pytestmark = pytest.mark.usefixtures("one_window")


def made(pseudonyms: str) -> Path:
    return release("crowd-halves", "txt", "--pseudonyms", pseudonyms).folder


def audited(folder: Path, *more: object) -> dict[str, Any]:
    done = called("audit", city(), folder, *FAST, "--json", "--no-store", *more)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("pseudonyms", ["session", "week"])
def test_sessions_are_those_of_the_same_release_with_kept_ids(pseudonyms: str) -> None:
    kept, hidden = (read_pair(city(), made(kind), {}) for kind in ("keep", pseudonyms))
    chosen = AuditRequest(file=Source(city()), release=Source(made("keep")), set=SPLIT[1::2])
    filters = chosen.settings_for(kept.manifest).filters
    a, b = align(kept, filters), align(hidden, filters)
    for name in ("user", "start", "time", "row", "poi"):
        assert (getattr(a.train, name) == getattr(b.train, name)).all()
    assert (a.released == b.released).all()  # the seed is the same, and pseudonyms change no venue
    assert a.pseudonym is None
    assert b.pseudonym is not None
    users = len(np.unique(b.train.user))
    assert users < len(np.unique(b.pseudonym)) <= len(b.train)
    for pseudonym in np.unique(b.pseudonym):
        assert len(np.unique(b.train.user[b.pseudonym == pseudonym])) == 1


def test_a_full_audit_relinks_and_says_so() -> None:
    found = audited(made("session"))
    assert found["pseudonyms"] == "session"
    assert set(found["adversaries"]) == set(default_adversaries(pseudonyms=True, columns=bool(found["kept_columns"])))
    assert found["not_run"] == []
    part = audited(made("session"), "--adversaries", "none")
    assert "relink" in part["not_run"]


def test_pseudonyms_cost_adversaries_who_count_on_users() -> None:
    """Where the draws of a user reveal most: from sets that differ between venues, and at homes."""
    names, sets = ("--adversaries", "frequency,habits+leak"), ("--set", "hide.homes=false")
    kept, *others = (
        audited(release("random", "txt", "--pseudonyms", kind, *sets).folder, *names)["adversaries"]
        for kind in ("keep", "session", "week")
    )
    for hidden in others:
        assert hidden["frequency"] == kept["frequency"]
        assert hidden["habits+leak"]["restored"]["mean"] < kept["habits+leak"]["restored"]["mean"] - 0.03


def test_kept_ids_never_face_the_relinker() -> None:
    found = audited(made("keep"))
    assert found["pseudonyms"] == "keep"
    assert "relink" not in found["adversaries"]
    assert found["not_run"] == []
    done = called("audit", city(), made("keep"), *FAST, "--adversaries", "relink")
    assert "--adversaries relink: the release keeps the user ids" in sentence(done)


def test_the_stored_audit_names_the_pseudonyms(tmp_path: Path) -> None:
    for source, name in ((made("session"), "r"), (Path(f"{made('session')}.private"), "r.private")):
        shutil.copytree(source, tmp_path / name)
    done = called("audit", city(), tmp_path / "r", *FAST, "--adversaries", "none")
    assert done.returncode == 0, done.stderr
    stored = json.loads((tmp_path / "r" / "manifest.json").read_text())["audit"]
    assert stored["pseudonyms"] == "session"
    assert "relink" in stored["not_run"]
    assert called("verify", tmp_path / "r").returncode == 0


def test_without_the_private_map_it_is_refused(tmp_path: Path) -> None:
    shutil.copytree(made("session"), tmp_path / "r")
    said = sentence(called("audit", city(), tmp_path / "r", *FAST, "--no-store"))
    assert "does not hold the private map" in said
    assert "--private" in said
    other = tmp_path / "other"
    done = called("protect", city(), "-o", other, "--method", "crowd", "--pseudonyms", "session", *SETS)
    assert done.returncode == 0, done.stderr
    said = sentence(called("audit", city(), tmp_path / "r", *FAST, "--no-store", "--private", f"{other}.private"))
    assert "the map of another release or file" in said
    assert "--private" in said
