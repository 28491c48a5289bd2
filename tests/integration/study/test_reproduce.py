"""The one command that makes every cell: all studies, both protocols, several data sets; it resumes."""

import json
from pathlib import Path

import pytest
from small_city import called

from ghostpoi.attack.victims import base as victims_base
from ghostpoi.cli import study as commands
from ghostpoi.data import prepared
from ghostpoi.data.synthetic_files import write_city
from ghostpoi.settings import ModelSettings, Training
from ghostpoi.study import plan, prepare_file, run
from ghostpoi.study.plan import PROTOCOLS


@pytest.fixture
def cities(tmp_path: Path) -> list[Path]:
    made = []
    for number, name in enumerate(("nyc", "other")):
        write_city(tmp_path / f"{name}.csv", 40, 80, 40, number)
        made.append(tmp_path / f"{name}.npz")
        prepared.save(made[-1], prepare_file(tmp_path / f"{name}.csv"))
    return made


@pytest.fixture
def studies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two small studies that share their cells of `random`, and a victim that learns nothing."""
    model = ModelSettings(dim=16, heads=2)
    monkeypatch.setattr(run, "victim_settings", lambda protocol: (model, Training(epochs=1)))
    monkeypatch.setattr(victims_base, "victim_settings", lambda protocol: (model, Training(epochs=1)))
    monkeypatch.setattr(plan, "FOLDER", tmp_path)
    lm = "lm.dim=16 lm.heads=2 lm_training.epochs=1"
    (tmp_path / "one.toml").write_text(f'methods = ["random {lm}"]\nadversaries = ["none"]\nseeds = 1\n')
    (tmp_path / "two.toml").write_text(
        f'methods = ["random {lm}", "crowd {lm}"]\nadversaries = ["none", "frequency"]\nseeds = 1\n'
    )
    monkeypatch.setattr(plan, "STUDIES", ("one", "two"))


@pytest.mark.usefixtures("studies")
def test_every_study_city_and_protocol(
    cities: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    commands.reproduce(cities, "cpu", results=tmp_path / "results", workers=1)
    told = capsys.readouterr()
    files = sorted(path.name for path in (tmp_path / "results").glob("*.jsonl"))
    assert files == sorted(f"{study}-{protocol}.jsonl" for study in ("one", "two") for protocol in PROTOCOLS)
    assert sorted(Path(line).name for line in told.out.splitlines()) == files
    for file in files:
        cells = [json.loads(line) for line in (tmp_path / "results" / file).read_text().splitlines()]
        assert {cell["data"] for cell in cells} == {"nyc", "other"}
        assert len({cell["commit"] for cell in cells}) == 1
    assert "one, strong, nyc" in told.err
    assert "minutes" in told.err
    assert "measurements are missing" in told.err

    def refuse(*arguments: object) -> None:
        raise AssertionError("nothing was left to do")

    monkeypatch.setattr(run.Runner, "_measured", refuse)
    monkeypatch.setattr(run, "publish", refuse)
    commands.reproduce(cities, "cpu", results=tmp_path / "results", workers=1)
    assert "0 measurements are missing" in capsys.readouterr().err


def test_a_missing_city_is_named(tmp_path: Path) -> None:
    done = called("study", "reproduce", "--data", tmp_path / "absent.npz")
    assert done.returncode == 2
    assert "absent.npz" in done.stderr
