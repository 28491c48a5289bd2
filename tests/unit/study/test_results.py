"""Which cells belong to a study, and which city is read."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from fake_results import Fabricated
from study_cells import main_cells

from docs.blocks.frontier import gives_away, near, nearest
from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.adversaries.lookups import NoAdversary
from ghostpoi.audits.measures.gaps import spread
from ghostpoi.errors import InputError
from ghostpoi.study import plan
from ghostpoi.study.results import NO_LEAK, Attack, Results


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


def test_large_data_may_have_fewer_seeds(tmp_path: Path) -> None:
    study = tmp_path / "mine.toml"
    study.write_text('methods = ["ghost"]\nadversaries = ["none"]\nfewer = { town = 2 }\n')
    for data in ("town", "village"):
        Fabricated(tmp_path, str(study), data=data, seeds=2).accuracy("ghost", "none", [0.1, 0.2])
    town, village = (Results.read(tmp_path, str(study), "paper", data) for data in ("town", "village"))
    assert (town.study.seeds, town.series("ghost", "none")) == (2, [0.1, 0.2])
    assert (village.study.seeds, village.series("ghost", "none")) == (3, None)


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


def test_the_strongest_with_and_without_a_leak(tmp_path: Path) -> None:
    (path := tmp_path / "s.toml").write_text(
        'methods = ["crowd"]\nadversaries = ["none", "posterior-no-leak", "posterior"]'
    )
    cells = Fabricated(tmp_path, str(path), "strong")
    cells.accuracy("crowd", "none", [0.06] * 3)
    cells.accuracy("crowd", "posterior-no-leak", [0.08] * 3, None, "itself")
    cells.accuracy("crowd", "posterior", [0.12] * 3, 0.05, "itself")
    found = cells.results()
    assert found.without_leak("crowd") == Attack("posterior-no-leak", spread([0.08] * 3))
    assert found.worst("crowd") == Attack("posterior", spread([0.12] * 3))


def test_what_a_release_gives_away_over_what_needs_none(main: Fabricated) -> None:
    main.floors({}, popularity={"acc@1": 0.01}, stay={"acc@1": 0.07})
    found = main.results()
    assert found.control(NO_LEAK) == found.control() == Attack("stay", spread([0.07] * 3))
    main.accuracy("clean", "leak-stay", [0.09, 0.1, 0.11], 0.05)
    found = main.results()
    assert found.control() == Attack("leak-stay", spread([0.09, 0.1, 0.11]))
    given = [gives_away(found, "ghost", leak) for leak in (NO_LEAK, None)]
    assert [g and g.difference["mean"] for g in given] == pytest.approx([-0.01, -0.01])
    assert found.worst_case("ghost", NO_LEAK) == found.control(NO_LEAK)  # an adversary can ignore the release
    assert gives_away(found, "em") is None


def test_the_difference_to_staying_has_an_error_over_test_steps(main: Fabricated) -> None:
    main.floors({}, popularity={"acc@1": 0.01}, stay={"acc@1": 0.1}, distance={"stay": {"steps": 1000.0}})
    main.accuracy("ghost", "none", [0.12] * 3, moves={"acc@1": [0.1] * 3})  # gained .09, lost .07
    gap = gives_away(main.results(), "ghost", NO_LEAK)
    assert gap is not None
    assert gap.sampling_error == pytest.approx(((0.09 + 0.07 - 0.02**2) / 1000) ** 0.5)


def test_how_near_guesses_are(main: Fabricated) -> None:
    def within(*share: float) -> dict[str, object]:
        return {"distance": {"within_1km": list(share)}}

    main.floors({}, stay={"acc@1": 0.07}, distance={"stay": {"within_1km": 0.48}, "popularity": {"within_1km": 0.1}})
    main.accuracy("ghost", "none", [0.05] * 3, **within(0.3, 0.4, 0.5))
    main.accuracy("ghost", "frequency", [0.07] * 3, 0.05, **within(0.5, 0.5, 0.5))
    found = main.results()
    assert near(found, "clean", "stay", "within_1km") == spread([0.48])
    assert nearest(found, "ghost", "within_1km") == Attack("frequency", spread([0.5] * 3))
    assert nearest(found, "ghost", "within_1km", NO_LEAK) == Attack("stay", spread([0.48]))
    assert nearest(found, "ghost", "within_2km") is None


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
