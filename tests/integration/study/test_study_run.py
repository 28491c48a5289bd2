"""A tiny study end to end on a synthetic city: its cells, its second run, its interruptions, its bad input."""

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from docs_scripts import script
from fake_results import Fabricated
from small_city import called

from docs.blocks.frontier import nearest
from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.adversaries.bridges import Bridge
from ghostpoi.attack.adversaries.lookups import Frequency
from ghostpoi.attack.victims import base as victims_base
from ghostpoi.attack.victims.neural import Transformer
from ghostpoi.audits import grid
from ghostpoi.cli import study as commands
from ghostpoi.data import prepared as dataset_file
from ghostpoi.data.prepared import Prepared
from ghostpoi.data.synthetic_files import write_city
from ghostpoi.draw.methods.unlearnable import TsUe
from ghostpoi.draw.publication import Task
from ghostpoi.draw.walks import Substitution
from ghostpoi.errors import InputError
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Training
from ghostpoi.study import plan, prepare_file, run
from ghostpoi.study.results import Results
from ghostpoi.study.store import STAGES, identity, only_run, some_seeds

calibrate = script("rerun_calibration")
TINY = "surrogate.dim=16 surrogate.heads=2 lm.dim=16 lm.heads=2 rounds.outer=1 rounds.inner=1 lm_training.epochs=1"
GHOST = f"ghost {TINY}"
STUDY = f"""
title = "tiny"
methods = ["{GHOST}"]
adversaries = ["none", "bridge", "frequency"]
leak = [0.1]
seeds = 2
"""
CELLS = 1 + 2 + 2 * (3 + 1) + 2 + 3  # clean, leak-only and -stay, two methods with leak-mixed, two releases, floors


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("city")
    write_city(folder / "city.csv", 40, 80, 40, 0)
    dataset_file.save(folder / "city.npz", prepare_file(folder / "city.csv"))
    return folder / "city.npz"


@pytest.fixture
def data(city: Path) -> Prepared:
    return dataset_file.load(city)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(STUDY)
    return path


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Victims and denoisers that take no time."""
    small = ModelSettings(dim=16, heads=2, tied=True), Training(epochs=1)
    for module in (run, victims_base):
        monkeypatch.setattr(module, "victim_settings", lambda protocol: small)
    monkeypatch.setitem(ADVERSARIES.builtin, "bridge", Bridge(*small))


def go(study: Path, data: Prepared, results: Path) -> Path:
    return run.Runner(plan.load(str(study)), "paper", data, torch.device("cpu"), results, lambda text: None).run()


def cells_in(file: Path) -> list[dict[str, Any]]:
    """The stored cells, with their stages in place of the hash."""
    known = json.loads(file.with_name(STAGES).read_text()) if file.exists() else {}
    lines = map(json.loads, file.read_text().splitlines() if file.exists() else [])
    return [cell | {"stages": known[cell["stages"]]} for cell in lines]


def without_clocks(value: Any) -> Any:
    """Cells are the same but for the seconds in them."""
    if isinstance(value, dict):
        return {k: without_clocks(v) for k, v in value.items() if not k.endswith("seconds")}
    return value


def measures(file: Path) -> list[Any]:
    return [without_clocks(cell) for cell in cells_in(file)]


def without_order(file: Path) -> list[str]:
    return sorted(json.dumps(cell, sort_keys=True) for cell in measures(file))


def refuse(*arguments: object, **options: object) -> None:
    raise AssertionError("nothing was left to do")


def test_a_gpu_measures_the_controls_of_all_seeds_first(study: Path, data: Prepared, tmp_path: Path) -> None:
    def runner(device: str) -> run.Runner:
        return run.Runner(plan.load(str(study)), "paper", data, torch.device(device), tmp_path, lambda text: None)

    (both,), (controls, *rest) = runner("cpu").portions(), runner("meta").portions()  # no GPU is needed for a plan
    assert (both.seeds, both.controls) == ([0, 1], False)
    assert (controls.seeds, controls.controls, controls.tasks) == ([0, 1], True, {})
    assert [(one.seeds, one.controls) for one in rest] == [([0], False), ([1], False)]
    alone = runner("cpu")
    alone.measure(controls.seeds, controls=True)
    assert {cell["method"] for cell in cells_in(alone.store.path("tiny"))} == {"clean"}
    alone.measure([0, 1])
    assert without_order(alone.store.path("tiny")) == without_order(go(study, data, tmp_path / "other"))


def test_cells_controls_and_a_second_run(
    study: Path, data: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = go(study, data, tmp_path / "results")
    assert file == tmp_path / "results" / "tiny-paper.jsonl"
    before = file.read_bytes()
    assert len(cells_in(file)) == CELLS
    found = Results.read(tmp_path / "results", str(study), "paper")
    assert found.methods == [GHOST, "random"]  # the control is part of every study
    for method in found.methods:
        for adversary in ("none", "bridge", "frequency", "leak-mixed"):
            assert len(found.accuracy(method, adversary, 0.1) or ()) == 2
        assert found.value(method, "category_match") == {"mean": 1.0, "std": 0.0, "seeds": [1.0, 1.0]}
    identity = found.measures("random", "bridge", 0.1)["denoiser_identity"]
    assert [seed[0] for seed in identity] == [1.0, 1.0]
    assert found.floor("popularity") is not None
    stay, moved = found.floor("stay"), found.on_moves
    assert stay
    assert moved.floor("stay") == 0
    clean, on_moves = (r.accuracy("clean", "clean") for r in (found, moved))
    assert clean
    assert on_moves
    assert clean != on_moves
    assert moved.value(GHOST, "markov") is not None

    monkeypatch.setattr(run, "publish", refuse)
    monkeypatch.setattr(grid, "train_each", refuse)
    go(study, data, tmp_path / "results")
    assert file.read_bytes() == before


def test_cells_of_an_older_stage_are_measured_again(
    study: Path, data: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = go(study, data, tmp_path / "results")
    before = cells_in(file)
    monkeypatch.setattr(Frequency, "version", 2)
    monkeypatch.setattr(run, "publish", refuse)  # nothing else is made again
    go(study, data, tmp_path / "results")
    for old, new in zip(before, cells_in(file), strict=True):
        raised = {"adversary/frequency": 2} if old.get("adversary") == "frequency" else {}
        assert new["stages"] == old["stages"] | raised


def test_cells_of_other_data_are_measured_again(study: Path, data: Prepared, tmp_path: Path) -> None:
    before = cells_in(go(study, data, tmp_path / "results"))
    shorter = replace(data, test=data.test.take(np.arange(len(data.test)) > 0))
    after = cells_in(go(study, shorter, tmp_path / "results"))
    assert len(after) == len(before)
    assert {cell["content"] for cell in before} == {data.content}
    assert {cell["content"] for cell in after} == {shorter.content}


def test_a_cell_names_the_stages_that_it_went_through(study: Path, data: Prepared, tmp_path: Path) -> None:
    cells = {(c["kind"], c["method"], c.get("adversary")): c for c in cells_in(go(study, data, tmp_path / "results"))}
    drawn = {"candidates": 1, "method/random": 1, "draw": 1}
    victim = {"victim/transformer": 1, "accuracy": 1}
    attack = {"evidence": 1, "adversary/bridge": 1, "restoration": 1}
    assert cells["accuracy", "random", "bridge"]["stages"] == drawn | attack | victim
    assert cells["accuracy", "random", "leak-mixed"]["stages"] == drawn | {"evidence": 1, "restoration": 1} | victim
    assert cells["accuracy", "clean", "clean"]["stages"] == victim
    assert cells["accuracy", "clean", "leak-only"]["stages"] == {"evidence": 1} | victim
    assert cells["accuracy", "clean", "leak-stay"]["stages"] == {"evidence": 1, "adversary/distilled": 1} | victim
    assert cells["floor", "clean", None]["stages"] == {"accuracy": 1}
    assert cells["floor", "random", None]["stages"] == drawn | {"accuracy": 1}
    measures = {"trajectory-lm": 1, "plausibility": 1, "utility": 1}
    assert cells["release", "random", None]["stages"] == drawn | measures
    assert list(cells["release", GHOST, None]["stages"]) == [
        "candidates", "trajectory-lm", "method/ghost", "draw", "plausibility", "utility",
    ]  # fmt: skip


def test_more_seeds_join_those_that_are_there(
    study: Path, data: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, made = tmp_path / "results", list[int]()
    two = {identity(cell): cell for cell in cells_in(go(study, data, results))}
    study.write_text(STUDY.replace("seeds = 2", "seeds = 3"))
    assert Results.read(results, str(study), "paper").value("random", "none") is None
    publish = run.publish
    monkeypatch.setattr(
        run, "publish", lambda task, seed, device: made.append(seed.value) or publish(task, seed, device)
    )
    before = run.hardware(torch.device("cpu"))
    monkeypatch.setattr(run, "hardware", lambda device: "a card")
    file = go(study, data, results)
    assert made == [2, 2]
    for cell in cells_in(file):
        assert cell["seeds"] == [0, 1, 2]
        if (cell["kind"], cell["method"]) != ("floor", "clean"):
            assert cell["hardware"] == f"{before} and a card"
            assert some_seeds(cell["measures"], [0, 1]) == two[identity(cell)]["measures"]
    assert len(Results.read(results, str(study), "paper").series("random", "none") or ()) == 3
    study.write_text(STUDY)
    assert len(Results.read(results, str(study), "paper").series("random", "none") or ()) == 2


def test_seeds_of_several_studies_join(study: Path, data: Prepared, tmp_path: Path) -> None:
    go(study, data, tmp_path / "results")
    wider = tmp_path / "wider.toml"
    wider.write_text(STUDY.replace("seeds = 2", "seeds = 3"))
    for cell in cells_in(go(wider, data, tmp_path / "results")):
        assert cell["seeds"] == [0, 1, 2]


def test_a_detector_may_be_asked_for_later(study: Path, data: Prepared, tmp_path: Path) -> None:
    go(study, data, tmp_path / "results")
    study.write_text(STUDY + "detector = true\n")
    released = [cell for cell in cells_in(go(study, data, tmp_path / "results")) if cell["kind"] == "release"]
    assert released
    for cell in released:
        assert len(cell["measures"]["detector"]["auc"]) == 2


def test_distances_may_be_asked_for_later(data: Prepared, tmp_path: Path) -> None:
    asked = 'methods = ["crowd"]\nadversaries = ["none", "posterior"]\nseeds = 1\nvictims = ["counting"]\n'
    (study := tmp_path / "near.toml").write_text(asked)
    go(study, data, tmp_path / "results")
    study.write_text(asked + "distance = true\n")
    for cell in cells_in(go(study, data, tmp_path / "results")):
        scored = cell["kind"] == "accuracy" or (cell["kind"], cell["method"]) == ("floor", "clean")
        assert ("distance" in cell["measures"]) == ("distance" in cell["stages"]) == scored
        if cell["kind"] == "accuracy":
            assert 0 <= cell["measures"]["distance"]["within_1km"][0] <= 1
        elif scored:
            assert set(cell["measures"]["distance"]) == {"stay", "popularity"}
    found = Results.read(tmp_path / "results", str(study), "paper", data.name)
    assert nearest(found, "crowd", "within_1km")
    assert not found.unmeasured


def test_a_study_without_naturalness_trains_no_model(data: Prepared, tmp_path: Path) -> None:
    asked = 'methods = ["crowd"]\nadversaries = ["none"]\nseeds = 1\nvictims = ["counting"]\n'
    (study := tmp_path / "plain.toml").write_text(asked + "naturalness = false\n")
    released = [cell for cell in cells_in(go(study, data, tmp_path / "results")) if cell["kind"] == "release"]
    assert released
    for cell in released:
        assert "naturalness" not in cell["measures"]
        assert "trajectory-lm" not in cell["stages"]
    assert not (tmp_path / "results" / ".work" / "trajectory_lm").exists()
    study.write_text(asked)
    released = [cell for cell in cells_in(go(study, data, tmp_path / "results")) if cell["kind"] == "release"]
    assert all(cell["measures"]["naturalness"] and cell["stages"]["trajectory-lm"] for cell in released)


def test_methods_that_draw_freely_run_in_a_study(data: Prepared, tmp_path: Path) -> None:
    lm = "lm.dim=16 lm.heads=2 lm_training.epochs=1"
    (path := tmp_path / "free.toml").write_text(
        f'methods = ["geo-indistinguishability method.epsilon=8.0", "synthetic {lm}", "random {lm}"]\n'
        'adversaries = ["none", "habits"]\nleak = [0.1]\nseeds = 1\n'
    )
    go(path, data, tmp_path / "results")
    found = Results.read(tmp_path / "results", str(path), "paper")
    near, made_up = found.methods[:2]
    a, b = (found.value(method, "mean_km") for method in (near, made_up))
    assert a
    assert b
    assert a["mean"] < b["mean"] / 2  # noise of 250 m, against sessions that depend on no clean row
    assert found.accuracy(near, "habits")
    assert found.accuracy(made_up, "habits")


def test_deleted_cells_come_back_the_same(
    study: Path, data: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = go(study, data, tmp_path / "results")
    before = file.read_text().splitlines()
    file.write_text("".join(f"{line}\n" for line in before[::2]))
    monkeypatch.setattr(run, "publish", refuse)  # all of it is still under .work
    monkeypatch.setattr(grid, "train_each", refuse)
    go(study, data, tmp_path / "results")
    assert sorted(file.read_text().splitlines()) == sorted(before)


def test_work_is_private(study: Path, data: Prepared, tmp_path: Path) -> None:
    work = go(study, data, tmp_path / "results").parent / ".work"
    kept = [path for path in work.rglob("*") if path.suffix != ".lock"]
    found = {path.name for path in work.iterdir()} - {"tiny-paper.lock"}
    assert found == {"releases", "measures", "restorations", "victims", "trajectory_lm"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept if path.is_file()} == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (work, *kept) if path.is_dir()} == {0o700}


def test_without_victims_everything_else_is_prepared(
    study: Path, data: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = run.Runner(
        plan.load(str(study)), "paper", data, torch.device("cpu"), tmp_path / "results", lambda text: None
    )
    file = runner.run(victims=False)
    assert not file.exists()
    work = tmp_path / "results" / ".work"
    assert len(list((work / "releases").iterdir())) == 4  # two methods, two seeds
    assert len(list((work / "restorations").iterdir())) == 2 * 2 * (3 + 1)  # with leak-mixed
    assert len(list((work / "measures").iterdir())) == 4
    assert not list((work / "victims").iterdir())
    for where, name in ((run, "publish"), (run, "plausibility"), (run, "utility"), (run, "naturalness")):
        monkeypatch.setattr(where, name, refuse)
    assert len(cells_in(runner.run())) == CELLS


def test_other_victims_and_several_releases(data: Prepared, tmp_path: Path) -> None:
    study = tmp_path / "more.toml"
    study.write_text(
        'methods = ["crowd"]\nadversaries = ["none"]\nvictims = ["markov"]\nseeds = 1\nreleases = [1, 2]\n'
    )
    found = {(cell["method"], cell.get("adversary")): cell for cell in cells_in(go(study, data, tmp_path / "results"))}
    one, two = (found["crowd", f"multi-release-{k}"]["measures"] for k in (1, 2))
    assert (one["releases"], two["releases"]) == ([1], [2])
    assert one["restored"] <= two["restored"]
    assert {cell["victim"] for cell in found.values() if cell["kind"] == "accuracy"} == {"markov"}


@pytest.mark.parametrize("at", ["publish", "victims"])
def test_a_killed_run_goes_on(
    study: Path, data: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    whole = measures(go(study, data, tmp_path / "whole"))
    module, name = (run, "publish") if at == "publish" else (Transformer, "train")
    real, calls = getattr(module, name), []

    def dies(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, dies)
        with pytest.raises(KeyboardInterrupt):
            go(study, data, tmp_path / "results")
    file = tmp_path / "results" / "tiny-paper.jsonl"
    assert len(cells_in(file)) < CELLS
    assert not list((tmp_path / "results").rglob("*.partial"))

    again: list[int] = []

    def counts(*arguments: Any, **options: Any) -> Any:
        again.append(1)
        return real(*arguments, **options)

    monkeypatch.setattr(module, name, counts)
    go(study, data, tmp_path / "results")
    assert measures(file) == whole
    assert len(again) == (3 if at == "publish" else 21)  # the first of 4 releases, or of 22 victims, was kept


def test_a_second_run_at_once_is_refused(study: Path, city: Path, tmp_path: Path) -> None:
    results = tmp_path / "results"
    with only_run(results, "tiny-paper"):
        done = called("study", "run", study, "--data", city, "--results", results, "--protocol", "paper")
    assert done.returncode == 2
    assert "another run of tiny-paper is writing" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(results.glob("*.jsonl"))
    with only_run(results, "tiny-paper"):  # a run that is over holds no lock
        pass


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("title = ", "not valid TOML"),
        (STUDY + "colour = 1", "unknown key 'colour'"),
        (STUDY + "fewer = { town = 0 }", "'fewer' must be a table of data and its number of seeds"),
        (STUDY.replace(GHOST, "gost"), "no method 'gost'; did you mean ghost"),
        (STUDY.replace(GHOST, "ghost method.gamma=1"), "gamma"),
        (STUDY.replace(GHOST, "ghost method.alpha=much"), "alpha"),
        (STUDY.replace('"bridge"', '"brigde"'), "no adversary 'brigde'; choose from none"),
        (STUDY + 'victims = ["oracle"]', "no victim 'oracle'; choose from transformer"),
        (STUDY + 'victims = "markov"', "'victims' must be a list of victims"),
        (STUDY + "releases = [0]", "'releases' must be"),
        (STUDY + 'detector = "yes"', "'detector' must be true or false"),
        (STUDY.replace(f'["{GHOST}"]', "[]"), "'methods' must be a list"),
        (STUDY.replace("[0.1]", "[0.0]"), "'leak' must be"),
        (STUDY.replace("[0.1]", "[1.5]"), "'leak' must be"),
        (STUDY.replace("[0.1]", '["all"]'), "'leak' must be"),
        (STUDY.replace("seeds = 2", "seeds = 0"), "'seeds' must be"),
    ],
)
def test_bad_studies(study: Path, text: str, says: str) -> None:
    study.write_text(text)
    with pytest.raises(InputError, match=says) as caught:
        plan.load(str(study))
    assert "\n" not in str(caught.value)


def test_bad_input_on_the_command_line(study: Path, city: Path, tmp_path: Path) -> None:
    for arguments, says in (
        (("nothing", "--data", city), "no study 'nothing'"),
        ((study, "--data", tmp_path / "absent.npz"), "does not exist"),
        ((study, "--data", city, "--protocol", "weak"), "no protocol 'weak'"),
    ):
        done = called("study", "run", *arguments, "--results", tmp_path / "results")
        assert done.returncode == 2, done.stderr
        assert says in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_run_that_prints_its_tables(
    city: Path, study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Fabricated(tmp_path / "results", str(study), "paper").accuracy("random", "none", [0.1] * 3)  # another city, NYC
    commands.run([str(study)], city, "paper", "cpu", tmp_path / "results", 1, victims=True, show_tables=True)
    told = capsys.readouterr().out
    commands.tables(str(study), tmp_path / "results", "paper", latex=False, city=dataset_file.load(city).name)
    printed = capsys.readouterr().out
    assert "random (control)" in printed
    assert told.endswith(printed)
    assert "NYC" not in printed


@pytest.mark.parametrize("name", plan.names())
def test_studies_that_come_along(name: str) -> None:
    study = plan.load(name)
    # What the default gives away is measured against what needs no release.
    assert ("random" in [variant.text for variant in study.methods]) == (name != "frontier")
    assert study.seeds >= 3


def test_calibration_looks_at_the_clean_model_and_the_rate_alone(
    data: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibrate, "EPOCHS", 2)
    monkeypatch.setattr(calibrate, "victim_settings", victims_base.victim_settings)
    said: list[str] = []
    cpu = torch.device("cpu")
    clean = calibrate.clean_epochs(data, "paper", cpu, 1, said.append)
    assert [len(curve) for curve in clean["curves"]] == [2]
    best = min(clean["curves"][0], key=lambda a: abs(a - calibrate.CLEAN_ACCURACY))
    assert clean["acc@1"] == best == clean["curves"][0][clean["epochs"] - 1]

    def rate(task: Task, seed: Seed, device: torch.device) -> Substitution:
        """Substitutes as many positions as the radius says, in hundredths."""
        assert isinstance(task.settings.method, TsUe)
        poi = task.sessions.poi.copy()
        many = int(len(poi) * min(1.0, task.settings.method.reach / 100))
        poi[:many] = poi[:many] % (len(task.vocabulary) - 1) + 1
        return Substitution(poi, np.zeros(len(poi), bool))

    monkeypatch.setattr(calibrate, "publish", rate)
    found = calibrate.reach(data, "paper", cpu, 12, said.append)
    assert found["reach"] == pytest.approx(74.9, rel=0.02)
    assert found["rate"] == pytest.approx(calibrate.RATE, abs=0.01)


@pytest.mark.parametrize(("device", "batches"), [("cpu", [[0, 0, 1, 1]]), ("cuda", [[0, 0], [1, 1]])])
def test_victims_of_a_seed_train_together_on_cuda_and_all_side_by_side_on_a_cpu(
    study: Path, data: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, batches: list[list[int]]
) -> None:
    runner = run.Runner(plan.load(str(study)), "paper", data, torch.device(device), tmp_path, lambda text: None)
    seen = []

    def record(self: grid.Grid, victim: str, contests: list[tuple[grid.Contest, int]]) -> list[dict[str, int]]:
        seen.append([seed for _, seed in contests])
        return [{"epochs": seed} for _, seed in contests]

    monkeypatch.setattr(grid.Grid, "_victims", record)
    contests = [grid.Contest("clean", name, 0.1, "markov") for name in ("clean", "leak-only")]
    measured = runner._grid.measures(contests)
    assert seen == batches
    assert measured == {contest: {"epochs": [0, 1]} for contest in contests}
