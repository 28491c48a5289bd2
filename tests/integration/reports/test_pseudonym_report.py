"""Pages about a release with pseudonyms say so, leave out what would be nonsense, and still align rows."""

import json
import re
from pathlib import Path

import polars as pl
import pytest
from sample_releases import copied
from small_city import SEED, Release, called, city, protect, release, sentence

from ghostpoi import formats
from ghostpoi.formats import Source
from ghostpoi.reports.page_data import read_page_data

ABOUT = {
    "session": "User ids are random and change with every session, after a day at the latest. Places and hours "
    "can still link sessions.",
    "week": "User ids are random and change every week. Places and hours can still link weeks.",
}


@pytest.fixture(params=["session", "week"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def made_with(kind: str) -> Release:
    made = release("random", "txt", "--pseudonyms", kind)
    if not (made.folder / "card.md").exists():
        assert called("report", made.folder).returncode == 0
        assert called("verify", made.folder).returncode == 0
    return made


def flat(text: str) -> str:
    return " ".join(re.sub(r"&#\d+;", "", text).split())


def test_the_card_says_it(kind: str, tmp_path: Path) -> None:
    card = flat((made_with(kind).folder / "card.md").read_text())
    assert ABOUT[kind] in card
    assert "Times are genuine." in card  # the substitutes of homes may be of any category
    assert "their substitutes may have any category" in card
    assert "the same for every substitute" not in card
    assert "steps between the released rows of a user id" in card
    column = {"session": "User id; random, and new for every session.", "week": "User id; random, and new every week."}
    assert column[kind] in card
    assert "Users and times do not change" not in card
    assert "Usual hours and usual places can still link" in card
    kept = copied(release("random"), tmp_path)
    assert called("report", kept).returncode == 0
    card = flat((kept / "card.md").read_text())
    assert "User ids are random" not in card
    assert "Users and times are genuine." in card
    shown = copied(release("random", "txt", "--set", "hide.homes=false"), tmp_path / "shown")
    assert called("report", shown).returncode == 0
    card = flat((shown / "card.md").read_text())
    assert "Users, times and categories are genuine." in card
    assert "their substitutes may have any category" not in card
    assert "Category of the venue; the same for every substitute." in card


def test_croissant_says_it(kind: str) -> None:
    found = json.loads((made_with(kind).folder / "croissant.json").read_text())
    assert f"{ABOUT[kind]} Times are genuine." in found["description"]
    assert found["recordSet"][0]["description"] == "One record per check-in, in the order of time."
    assert "random, and new" in found["recordSet"][0]["field"][0]["description"]


def test_the_page_says_it_and_shows_no_statistics_of_users(kind: str) -> None:
    made = made_with(kind)
    page = (made.folder / "report.html").read_text()
    ids = made.manifest["identity"]["ids"]
    assert f"1,090 check-ins under {ids} user ids at" in flat(page)
    assert ABOUT[kind] in flat(page)
    assert 'id="chart-gyration"' not in page
    assert "steps between the released rows of a user id exceed" in page


def test_the_private_page_shows_each_row_beside_its_clean_one(kind: str) -> None:
    made, clean = made_with(kind), formats.read(city())
    data = read_page_data([Source(made.folder), Source(release("random").folder)], made.private)
    assert data.clean is not None
    rows = [line.split("\t") for line in made.data.read_text("latin-1").splitlines()]
    names = {(line[1], line[7]) for line in pl.DataFrame(clean.rows.held).iter_rows()}
    ids = clean.table.venue_ids
    assert all((ids[venue], row[7]) in names for venue, row in zip(data.clean, rows, strict=True))
    # The release that keeps user ids has the same venues, so it is aligned if they agree.
    assert (data.compared[0] == data.released).all()
    done = called("report", made.folder, "--private", made.private, "--with-clean")
    assert done.returncode == 0
    page = (made.private / "report.html").read_text()
    assert "Statistics per user are left out" in flat(page)
    assert "Radius of gyration" not in page


def test_releases_with_pseudonyms_are_compared_as_far_as_possible(tmp_path: Path) -> None:
    made, kept, other = made_with("session"), release("random"), made_with("week")
    for main, compared in ((made, kept), (kept, made), (made, other)):
        page = tmp_path / "page.html"
        assert called("report", main.folder, "--compare", compared.folder, "-o", page).returncode == 0
    ask = ("report", kept.folder, "--private", kept.private, "--with-clean", "--compare", made.folder)
    assert sentence(called(*ask)) == (
        f"--compare {made.folder}: its user ids are pseudonyms or its times are not those of the file, so its rows "
        "cannot be put next to clean ones; compare a release that keeps both, or leave --with-clean out"
    )
    short = tmp_path / "short.txt"
    short.write_bytes(b"".join(city().read_bytes().splitlines(keepends=True)[:900]))
    small = protect(short, tmp_path / "small", "--method", "random", "--seed", SEED)
    said = sentence(called("report", made.folder, "--compare", small.folder, "-o", tmp_path / "page.html"))
    assert "it lacks 190 rows of the release, for example 2012-" in said
