"""Studies with pseudonyms: they share releases and victims with the same method, and no victim learns hidden users."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ghostpoi.attack.adversaries.relinking import Relinker
from ghostpoi.audits import grid
from ghostpoi.audits.grid import Contest, Grid, contests_between
from ghostpoi.data import prepared as dataset_file
from ghostpoi.data.prepared import Prepared
from ghostpoi.data.pseudonyms import of_sessions
from ghostpoi.data.synthetic_files import write_city
from ghostpoi.study import plan, prepare_file, run

ROTATED = "random identity.pseudonyms=session"
STUDY = f"""
methods = ["random", "{ROTATED}"]
adversaries = ["none", "habits", "relink"]
leak = [0.1]
seeds = 1
victims = ["markov"]
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("city")
    write_city(folder / "city.csv", 40, 80, 40, 0)
    dataset_file.save(folder / "city.npz", prepare_file(folder / "city.csv"))
    return dataset_file.load(folder / "city.npz")


@pytest.fixture
def runner(data: Prepared, tmp_path: Path) -> run.Runner:
    (tmp_path / "tiny.toml").write_text(STUDY)
    study = plan.load(str(tmp_path / "tiny.toml"))
    return run.Runner(study, "strong", data, torch.device("cpu"), tmp_path, lambda text: None)


def test_a_variant_with_pseudonyms_shares_the_release_and_alone_faces_the_relinker(
    runner: run.Runner, tmp_path: Path
) -> None:
    cells = [json.loads(line) for line in runner.run().read_text().splitlines()]
    assert len(list((tmp_path / ".work" / "releases").iterdir())) == 1
    found = {(c["method"], c.get("adversary")): c["measures"] for c in cells if c["kind"] == "accuracy"}
    assert ("random", "relink") not in found
    assert 0 <= found[ROTATED, "relink"]["linked"][0] <= 1
    assert found[ROTATED, "none"]["all"] == found["random", "none"]["all"]
    assert found[ROTATED, "habits"]["restored"] != found["random", "habits"]["restored"]  # it counts on users


@pytest.mark.parametrize("adversary", ["frequency", "habits", "leak-mixed"])
@pytest.mark.parametrize("release", ["random", ROTATED])
def test_a_victim_that_reads_users_gets_those_that_the_adversary_knows(
    runner: run.Runner, data: Prepared, monkeypatch: pytest.MonkeyPatch, adversary: str, release: str
) -> None:
    (contest,) = contests_between(release, adversary, 0.1, ["user"])
    seen = trained_on(runner._grid, contest, monkeypatch)
    leaked = grid.leak(data.train, 0.1, grid.Seed(0)) & (adversary != "habits")  # A7 has no leak
    known = leaked if release == ROTATED else np.ones(len(leaked), bool)
    assert (seen[known] == data.train.user[known]).all()
    assert not np.isin(seen[~known], data.train.user).any()
    assert len(np.unique(seen[~known])) == (~known).sum()


def test_with_the_relinker_it_gets_the_users_found(
    runner: run.Runner, data: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = data.train.user[::-1].copy()
    monkeypatch.setattr(Relinker, "users", lambda self, evidence: found)
    assert (trained_on(runner._grid, Contest(ROTATED, "relink", 0.1, "user"), monkeypatch) == found).all()


def test_a_victim_that_reads_no_users_gets_none(runner: run.Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not trained_on(runner._grid, Contest("random", "none", 0.1, "markov"), monkeypatch).any()


def test_weeks_hide_less_than_sessions(runner: run.Runner, data: Prepared) -> None:
    weekly = runner._grid.releases("random identity.pseudonyms=week").pseudonym
    assert weekly is not None
    assert (weekly == of_sessions(data.train, "week")).all()
    assert len(np.unique(data.train.user)) < len(np.unique(weekly)) < len(data.train)
    assert runner._grid.releases("random").pseudonym is None


def trained_on(g: Grid, contest: Contest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The users of the sessions that the victim of a contest is trained on, (S,)."""
    jobs: list[Any] = []
    monkeypatch.setattr(grid, "train_each", lambda victim, todo, exam, protocol: jobs.extend(todo) or [])
    with pytest.raises(KeyError):  # no victim was trained
        g.measures([contest])
    return jobs[0].train.user
