"""choose: the settings that are tried, what is recommended, and that the recommendation keeps its promise."""

import json
import os
import re
import stat
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from small_city import called, scratch, sentence
from telling_city import telling_csv

from ghostpoi.audits import choose as choosing
from ghostpoi.audits.choose import Option, Wishes, frontier, options
from ghostpoi.audits.verdicts import LEAKS
from ghostpoi.data.synthetic_files import write_city
from ghostpoi.draw.publication import publication
from ghostpoi.options import in_shell
from ghostpoi.release.manifest import PRIVATE_MARK
from ghostpoi.settings import override

FILTERS = ("--set", "filters.min_poi_checkins=5")
pytestmark = pytest.mark.usefixtures("one_window")


@cache
def city() -> Path:
    path = scratch() / "choose.txt"
    write_city(path, 100, 200, 50, 5)
    return path


@cache
def chosen(*more: str) -> tuple[int, dict[str, Any], str, Path]:
    page = scratch() / f"choice{len(more)}.html"
    where = ("-o", page, "--cache", scratch() / "choose-cache")
    with pytest.MonkeyPatch.context() as patch:
        if more:  # all settings are tried once
            patch.setattr(choosing, "options", lambda *about: options(*about)[:3])
        done = called("choose", city(), *where, *FILTERS, "--keep-category", "exact", "--seeds", 1, "--json", *more)
    return done.returncode, json.loads(done.stdout), done.stderr, page


def test_wishes_are_named_as_options() -> None:
    wishes = Wishes(max_mean_km=1.5, min_flows=0.6, max_popularity_js=0.03)
    assert wishes.missed({"mean_km": 1.5, "flows": 0.6, "popularity": 0.03}) == []
    missed = wishes.missed({"mean_km": 1.51, "flows": 0.59, "popularity": 0.04})
    assert [in_shell(one) for one in missed] == ["--max-mean-km 1.5", "--min-flows 0.6", "--max-popularity-js 0.03"]


@pytest.mark.parametrize(
    ("keep", "categories"), [("exact", {"exact"}), ("group", {"exact", "group"}), ("any", {"exact", "group", "any"})]
)
def test_only_settings_that_keep_the_category_are_tried(keep: Any, categories: set[str]) -> None:
    tried = options(Wishes(keep_category=keep))
    assert {option.category for option in tried} == categories
    assert len(set(tried)) == len(tried)
    for option in tried:  # each is a setting that protect takes
        method = override(publication("crowd"), option.assignments).method
        assert vars(method).items() >= vars(option).items()


def test_the_frontier_holds_what_nothing_beats() -> None:
    def trial(worst: float, flows: float, km: float) -> dict[str, float]:
        return {"given_away_of_fast": worst, "flows": flows, "mean_km": km}

    trials = [trial(0.1, 0.5, 1.0), trial(0.1, 0.5, 1.2), trial(0.09, 0.4, 1.0), trial(0.1, 0.5, 1.0)]
    assert frontier(trials) == [True, False, True, True]


def test_of_equally_protected_settings_the_most_useful_with_few_genuine_rows_is_recommended() -> None:
    def found(given: float, flows: float, genuine: float) -> dict[str, Any]:
        known = {"given_away": given, "given_away_error": 0.004, "flows": flows}
        return known | {"left_genuine": genuine, "popularity": 0.0}

    every = options(Wishes())[:4]
    each = [found(0.15, 0.5, 0.011), found(0.151, 0.6, 0.117), found(0.151, 0.55, 0.02), found(0.2, 0.9, 0.0)]
    measured = dict(zip(every, each, strict=True))
    assert choosing._best(every, measured) == every[2]
    assert choosing._best(every[:2], measured) == every[0]
    assert choosing._best(every[3:], measured) == every[3]
    assert choosing._best([], measured) is None


def test_names_tell_settings_apart() -> None:
    every = options(Wishes())
    assert len({option.name for option in every}) == len(every)
    assert Option("any", "popular", 16, 5.0).name == "crowds of 16 venues within 5 km, any category, by popularity"


def test_every_setting_stands_beside_controls_and_floors() -> None:
    _, found, _, _ = chosen()
    named = {"clean", "leak-only", "leak-stay", "popularity", "stay", "markov"}
    assert named == found["controls"].keys() == found["controls_on_moves"].keys()
    assert found["controls"]["stay"] > found["controls_on_moves"]["stay"] == 0
    assert found["controls"]["markov"] > found["controls"]["popularity"]
    assert len(found["tried"]) == len(options(Wishes(keep_category="exact")))
    for trial in found["tried"]:
        assert {*choosing.FAST, "leak-mixed", "leak-only", "stay"} <= trial["accuracy"].keys()
        assert trial["worst"] == max(each["mean"] for each in trial["accuracy"].values())
        assert trial["given_away"] == max(trial["gives_away"][leak]["mean"] for leak in LEAKS)
        clean = found["controls"]["clean"][0]
        assert trial["protection"] == pytest.approx(1 - trial["worst"] / clean, abs=1e-4)
        assert trial["complete"] or trial["given_away_of_fast"] == trial["given_away"]
        assert 0 < trial["worst_on_moves"] <= found["controls_on_moves"]["clean"][0]


def test_the_page_shows_all_settings_and_is_private() -> None:
    _, found, _, page = chosen()
    text = page.read_text()
    assert re.search(rf'<body class="{PRIVATE_MARK}">', text)
    assert page.stat().st_mode & 0o777 == 0o600
    assert text.count("<tr>") == 2 + len(found["tried"]) + len(found["tried_times"])
    assert not re.search(r'(src|href)="?(https?:)?//', text.split("<script>")[0])
    assert text.count('<tr class="control">') == len(found["controls"])


def test_what_no_setting_keeps_is_said() -> None:
    code, found, _, _ = chosen("--min-flows", "1", "--min-rhythm", "0.5", "--pseudonyms", "session")
    assert code == 1
    assert found["recommended"] is None
    assert found["nearest"]["missed"] == ["--min-flows 1"]


def test_times_are_chosen_by_what_they_cost() -> None:
    kept = chosen()[1]
    assert kept["times"] == "keep"
    assert [t["missed"] for t in kept["tried_times"]] == [[], *[["--min-rhythm 1"]] * 4]
    assert "--times" not in kept["nearest"]["command"]
    _, found, _, page = chosen("--min-flows", "1", "--min-rhythm", "0.5", "--pseudonyms", "session")
    rows = {t["times"]: t for t in found["tried_times"]}
    assert list(rows) == ["keep", "minute", "hour", "part-of-day", "shift"]
    assert {rows["keep"][name] for name in ("hours", "weekdays", "gaps", "singled_out")} == {1.0}
    assert rows["shift"]["gaps"] == rows["hour"]["gaps"] > 0.5 > rows["part-of-day"]["hours"]
    assert rows["shift"]["singled_out"] < rows["hour"]["singled_out"] < 1
    assert rows["shift"]["singled_out_with_place"] < rows["keep"]["singled_out_with_place"]
    assert rows["part-of-day"]["missed"] == ["--min-rhythm 0.5"]
    assert found["times"] == "shift"
    assert found["nearest"]["command"].endswith("--pseudonyms session --times shift")
    assert "the recommended command has <code>--times shift</code>" in page.read_text()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--set", "method.size=4"], "choose tries the settings of the method itself; leave it out"),
        (["--set", "identity.pseudonyms=week"], "--set identity.pseudonyms=week: use --pseudonyms instead"),
        (["--keep-category", "some"], "--keep-category some: use exact, group or any"),
        (["--leak", "0"], "--leak 0: give a share above 0 and at most 1"),
        (["-o", "nowhere/page.html"], "-o nowhere/page.html: give the name of a page in a folder that exists"),
    ],
)
def test_bad_wishes_are_one_sentence(more: list[str], said: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in sentence(called("choose", city(), *more))
    assert list(tmp_path.iterdir()) == []


def test_what_protect_refuses_is_refused_before_any_work(tmp_path: Path) -> None:
    done = called("choose", telling_csv(), "-o", tmp_path / "page.html", "--map", "user=Who", "--map", "poi=spot")
    assert "could reveal clean venues" in sentence(done)


def test_the_page_goes_into_a_private_folder_next_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "choose", lambda *asked: json.loads(json.dumps(chosen()[1])))
    (tmp_path / "in").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    file = tmp_path / "in" / "city.txt"
    file.write_bytes(city().read_bytes())
    options = (*FILTERS, "--keep-category", "exact", "--seeds", 1, "--cache", scratch() / "choose-cache")
    before = os.umask(0)
    try:
        done = called("choose", file, *options)
    finally:
        os.umask(before)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "in" / "city.txt.private"
    assert [path.name for path in folder.iterdir()] == ["choice.html"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "choice.html").stat().st_mode) == 0o600
    assert str(folder / "choice.html") in "".join(done.stdout.split())
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_refused_file_leaves_no_private_folder(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("no,table\n1,2\n")
    for file in ("x.csv", "missing.csv", "none/missing.csv", "*.tsv"):
        sentence(called("choose", tmp_path / file))
    assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]
    assert not tmp_path.with_name(f"{tmp_path.name}.private").exists()


def test_a_place_without_room_for_the_page_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(city().read_bytes())
    (tmp_path / "x.csv.private").write_text("a file")
    assert "cannot hold the page (file exists); name another with -o" in sentence(called("choose", tmp_path / "x.csv"))
