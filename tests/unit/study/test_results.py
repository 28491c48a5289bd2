"""Which cells belong to a study, and which city is read."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from fake_results import Fabricated
from study_cells import main_cells

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.adversaries.lookups import NoAdversary
from ghostpoi.errors import InputError
from ghostpoi.study import plan
from ghostpoi.study.results import Results


@pytest.fixture
def main(tmp_path: Path) -> Fabricated:
    return main_cells(tmp_path)


def test_which_cells_count(main: Fabricated) -> None:
    before = main.results().series("ghost", "none")
    main.put("ghost", kind="accuracy", adversary="none", victim="transformer", settings="other", measures={})
    assert main.results().series("ghost", "none") == before
    assert Results.read(main.folder, "manifold", "paper").series("ghost", "none") == before  # measured by another study
    main.accuracy("ghost", "none", [0.1] * 3)
    assert main.results().series("ghost", "none") == [0.1] * 3  # the newest


def test_a_cell_with_too_few_seeds_does_not_count(tmp_path: Path) -> None:
    cells = Fabricated(tmp_path, seeds=2)
    cells.accuracy("ghost", "none", [0.9] * 2)
    assert cells.results().series("ghost", "none") is None


def test_cities_share_a_folder(main: Fabricated) -> None:
    other = Fabricated(main.folder, data="gowalla_california")
    for method in ("ghost", "pgd", "em", "random", "ghost-sym"):
        other.method(method, [0.1] * 3)
    found = Results.read(main.folder, "main", "paper")
    assert (found.data, found.series("pgd", "none")) == ("dataset_TSMC2014_NYC", [0.06] * 3)
    found = Results.read(main.folder, "main", "paper", "gowalla_california")
    assert (found.data, found.city, found.series("pgd", "none")) == ("gowalla_california", None, [0.1] * 3)
    assert Results.read(main.folder, "main", "paper", "nowhere").cells == ()


def test_without_nyc_the_city_that_answers_most_is_read(tmp_path: Path) -> None:
    for data, methods in (("town", ["ghost"]), ("village", ["ghost", "pgd"])):
        cells = Fabricated(tmp_path, data=data)
        for method in methods:
            cells.method(method, [0.1] * 3)
    assert Results.read(tmp_path, "main", "paper").data == "village"
    assert Results.read(tmp_path / "empty", "main", "paper").data == "dataset_TSMC2014_NYC"


def test_folders_that_cannot_be_read(main: Fabricated) -> None:
    with pytest.raises(InputError, match="there is no protocol 'weak'"):
        Results.read(main.folder, "main", "weak")
    with (main.folder / "main-paper.jsonl").open("a") as file:
        file.write('{"a": 1}\n')
    with pytest.raises(InputError, match="is not a cell"):
        main.results()


def test_parts_of_the_test_steps(main: Fabricated) -> None:
    parts = {"moves": {"acc@1": [0.04] * 3}, "last": {"acc@1": [0.03] * 3}}
    main.accuracy("ghost", "none", [0.05] * 3, **parts)
    found = main.results()
    assert found.on_moves.series("ghost", "none") == found.series("ghost", "A1 on moves") == [0.04] * 3
    assert replace(found, part="last").series("ghost", "none") == [0.03] * 3


def test_what_needs_no_release_is_a_method_that_only_a1_faces(main: Fabricated) -> None:
    found = main.results()
    assert found.series("leak-only", "none") == [0.03] * 3
    assert found.series("clean", "none") == found.series("clean", "clean") == [0.13, 0.14, 0.15]
    assert found.series("popularity", "none") == [0.01] * 3
    assert found.series("popularity", "prot") == pytest.approx([0.12, 0.13, 0.14])
    assert found.series("popularity", "bridge") is None
    assert found.series("stay", "none") is None  # not measured


def test_cells_from_before_pseudonyms_still_count() -> None:
    kept, rotated = (plan.Variant(text).recorded("strong") for text in ("ghost", "ghost identity.pseudonyms=session"))
    assert "identity" not in kept
    assert rotated["identity"] == {"pseudonyms": "session"}


def test_who_needs_pseudonyms_attacks_only_pseudonyms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    relinks = type("Relinks", (NoAdversary,), {"needs_pseudonyms": True})
    monkeypatch.setitem(ADVERSARIES.builtin, "relinks", relinks())
    everybody = tmp_path / "everybody.toml"
    methods = ["crowd", "crowd identity.pseudonyms=session", "random"]
    everybody.write_text(f'methods = {json.dumps(methods)}\nadversaries = "all"\n')
    study = plan.load(str(everybody))
    assert study.adversaries[-1] == "relinks"  # a plan for all adversaries has every new one
    assert "multi-release" not in study.adversaries
    assert "relinks" in study.attackers("crowd identity.pseudonyms=session")
    assert "relinks" not in study.attackers("crowd")
