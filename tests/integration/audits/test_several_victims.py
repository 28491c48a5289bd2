"""Audits with several victims and with adversaries that predict: what each contest is, and which figure counts."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from round_city import CLEAN, POIS, run, text
from small_city import called

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.adversaries.base import Adversary, Device, Evidence, Prediction, Predictor, Seed
from ghostpoi.attack.counting import Scores
from ghostpoi.attack.victims import VICTIMS
from ghostpoi.attack.victims.base import Exam, Job, Result, Victim
from ghostpoi.attack.victims.counts import Chain, Markov
from ghostpoi.attack.victims.judge import judged
from ghostpoi.audits import audit, grid
from ghostpoi.audits.controls import ITSELF
from ghostpoi.data.sessions import Sessions


class Stay:
    """Expects everybody to stay."""

    def probabilities(self, sessions: Sessions) -> Iterator[Scores]:
        inside = np.append(np.diff(sessions.session_of()) == 0, False)[: sessions.positions]
        yield np.eye(POIS + 1)[sessions.poi[inside]]


@dataclass(frozen=True)
class Staying(Victim):
    """Learns nothing."""

    label = "Staying"
    summary = "A victim that expects people to stay."
    knows_users = False

    def train(self, jobs: Sequence[Job], exam: Exam, protocol: str) -> list[Result]:
        for job in jobs:
            exam.progress(job.name, 1.0)
        return [judged(job.name, job.seed, Stay(), exam, 0.0) for job in jobs]


@dataclass(frozen=True)
class Seer(Predictor):
    """Ignores the release and learns the clean sessions that weights are chosen by."""

    number, title, holds, does = 97, "seer", "clean validation sessions", "counts their steps"
    uses_leak = False

    def predict(self, evidence: Evidence, validation: Sessions, seed: Seed, device: Device) -> Prediction:
        assert not evidence.leaked.any()
        return Prediction(Chain(*Markov().counts(validation, evidence.rows)), evidence.released.poi)


@pytest.fixture
def rotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A city of people who go round a circle, and a release of other venues; `seer` and `staying` are registered."""
    monkeypatch.setitem(ADVERSARIES.builtin, "seer", Seer())
    monkeypatch.setitem(VICTIMS.builtin, "staying", Staying())
    (tmp_path / "clean.csv").write_text(text(CLEAN))
    (tmp_path / "release.csv").write_text(text([(u, (7 * p + 5) % POIS, t) for u, p, t in CLEAN]))
    return tmp_path / "clean.csv", tmp_path / "release.csv"


def test_each_adversary_counts_with_the_victim_that_validates_best(rotated: tuple[Path, Path]) -> None:
    asked = {"victims": ("staying", "markov"), "adversaries": ("none", "seer"), "seeds": 2, "set": ()}
    found = run(*rotated, **asked)
    assert found["victims"] == ["staying", "markov"]
    clean, none, seer = found["clean"], found["adversaries"]["none"], found["adversaries"]["seer"]
    assert clean["victim"] == "markov"
    assert set(clean["by_victim"]) == {"staying", "markov"}
    assert clean["acc@1"] == clean["by_victim"]["markov"]["acc@1"]
    assert clean["by_victim"]["staying"]["acc@1"]["mean"] == 0.0  # nobody stays
    assert clean["by_victim"]["markov"]["validation"]["mean"] > 0.5
    assert none["by_victim"].keys() == clean["by_victim"].keys()
    assert seer["victim"] == ITSELF
    assert seer["by_victim"].keys() == {ITSELF}
    assert seer["validation"]["seeds"] == [1.0, 1.0]
    assert seer["acc@1"]["mean"] > 0.5 > none["acc@1"]["mean"]
    assert seer["restored"]["mean"] == none["restored"]["mean"]
    assert found["strongest"] == "seer"
    for control in ("leak-only", "leak-stay", "leak-mixed", "random"):
        assert found["controls"][control]["by_victim"].keys() == {"staying", "markov"}
    assert found["controls"]["random+seer"]["victim"] == ITSELF  # the strongest also faces the random release
    assert "by_victim" not in found["controls"]["stay"]


def test_distances_of_guesses_stand_beside_accuracy(rotated: tuple[Path, Path]) -> None:
    found = run(*rotated, victims=("staying", "markov"), adversaries=("none", "seer"), set=(), seeds=2)
    stay, guess = found["controls"]["stay"]["distance"], found["clean"]["by_victim"]["staying"]["distance"]
    assert stay["steps"] == guess["steps"] == found["test_positions"]
    assert stay["far_moves"] == guess["far_moves"] == 0  # the circle is 900 m wide
    assert stay["within_2km"]["seeds"] == [1.0, 1.0]
    assert guess["within_2km"]["seeds"] == [1.0, 1.0]
    clean, seer = (one["distance"]["within_0.5km"] for one in (found["clean"], found["adversaries"]["seer"]))
    assert clean["mean"] >= found["clean"]["acc@1"]["mean"]
    assert len(seer["seeds"]) == 2
    assert found["adversaries"]["none"]["by_victim"]["markov"]["distance"].keys() == stay.keys()


def test_an_audit_with_a_predictor_is_resumed_from_the_cache(
    rotated: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"victims": ("markov",), "adversaries": ("none", "seer"), "seeds": 2, "set": ()}
    first = run(*rotated, **asked)

    def refuse(*arguments: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(Seer, "predict", refuse)
    assert run(*rotated, **asked) == first


def test_what_needs_no_seed_is_restored_once_for_all_seeds(
    rotated: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    purify = grid.purify

    def counted(adversary: Adversary, *arguments: Any) -> Any:
        asked.append(adversary.title)
        return purify(adversary, *arguments)

    monkeypatch.setattr(grid, "purify", counted)
    monkeypatch.setattr(audit, "MOST_WINDOWS", 1)  # each further window is a grid of its own
    found = run(*rotated, victims=("markov",), adversaries=("none", "habits", "frequency"), set=(), seeds=3)
    assert asked.count("user habits") == 1
    assert asked.count("frequency table") >= 3
    assert len(found["adversaries"]["habits"]["restored"]["seeds"]) == 3


def test_predictions_that_restore_nothing_have_no_recovered_share(
    rotated: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Seer, "predict", lambda *arguments: Prediction(Stay()))
    found = run(*rotated, victims=("markov",), adversaries=("none", "seer"), set=())
    assert "restored" not in found["adversaries"]["seer"]
    assert "restored" in found["adversaries"]["none"]


def test_victims_of_a_command_are_a_list(tmp_path: Path) -> None:
    (tmp_path / "clean.csv").write_text(text(CLEAN))
    words = (
        "audit",
        tmp_path / "clean.csv",
        tmp_path / "clean.csv",
        "--cache",
        tmp_path / "cache",
        "--adversaries",
        "none",
    )
    done = called(*words, "--victim", "markov,markov", "--seeds", 1, "--no-naturalness", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["victims"] == ["markov"]
    assert found["adversaries"]["none"]["victim"] == "markov"


def test_a_predictor_must_predict_and_restores_nothing() -> None:
    about = {"number": 98, "title": "idle", "holds": "nothing", "does": "nothing"}
    with pytest.raises(TypeError, match="abstract class Idle"):
        type("Idle", (Predictor,), about)()
    with pytest.raises(TypeError, match="A97 seer restores no sessions"):
        Adversary.restore(Seer(), None, Seed(0), None)  # type: ignore[arg-type]
