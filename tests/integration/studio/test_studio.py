"""The studio over HTTP, without a browser; `make nightly` goes the whole way in Chromium."""

import json
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError

import polars as pl
import pytest
from running_studio import running

import ghostpoi
from ghostpoi.api.door import PYTHON
from ghostpoi.errors import InputError
from ghostpoi.studio.child import release


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("desk") / "city.csv"
    table = ghostpoi.synth(users=80, pois=200, days=45, seed=4)
    note = [f"{venue[:6]} was nice {n}" for n, venue in enumerate(table["venue_id"])]
    table.with_columns(note=pl.Series(note)).write_csv(path)
    return path


def test_columns_are_shown_corrected_and_decided_on(city: Path) -> None:
    before = city.read_bytes()
    with running(city) as desk:
        told = desk.until("/columns")
        assert "leave it out with “leave out: note”" in told
        assert "These are right" not in told
        assert "decide on the columns first" in desk.until("/leaks")
        with pytest.raises(HTTPError) as refused:
            desk.post("/columns", **{"field-0": "user", "field-1": "user"})
        assert "cannot both be the person" in refused.value.read().decode()
        names = city.read_text().splitlines()[0].split(",")
        desk.post("/columns", **{f"fate-{names.index('note')}": "drop"})
        told = desk.until("/columns")
        rows, people = pl.read_csv(city).height, pl.read_csv(city)["user"].n_unique()
        assert f"<strong>{rows:,}</strong> visits of <strong>{people}</strong> people" in told
        assert "These are right" in told
        assert 'columns = "' not in desk.get("/settings.toml")
        assert "of next visits could be guessed" in desk.until("/leaks")  # a trial on a sample
        code, said = desk.end()
    assert (code, "the studio has ended" in said, "Traceback" in said) == (0, True, False)
    private = city.with_name("city.csv.private")
    files = [one for one in private.rglob("*") if one.is_file() and one.parent.name != "release"]  # of the trial
    assert {stat.S_IMODE(one.stat().st_mode) for one in files} == {0o600}
    assert {stat.S_IMODE(one.stat().st_mode) for one in (private, private / "studio")} == {0o700}
    assert city.read_bytes() == before
    assert sorted(one.name for one in city.parent.iterdir()) == ["city.csv", "city.csv.private"]


def test_a_file_without_known_columns_can_be_mapped(tmp_path: Path, city: Path) -> None:
    first, rest = city.read_text().split("\n", 1)
    strange = tmp_path / "strange.csv"
    strange.write_text(",".join(f"c{n}" for n in range(first.count(",") + 1)) + "\n" + rest)
    with running("--folder", tmp_path) as desk:
        assert "strange.csv" in desk.get("/")
        desk.post("/open", path=str(strange))
        told = desk.until("/columns")
        assert "This cannot go on yet" in told
        fields = {"user": "user", "venue_id": "poi", "latitude": "lat", "longitude": "lon", "utc_time": "time"}
        names = first.split(",")
        form = {f"field-{names.index(name)}": field for name, field in fields.items()}
        desk.post("/columns", **form, **{f"fate-{names.index('note')}": "drop"})
        assert "These are right" in desk.until("/columns")
        assert f'user = "c{names.index("user")}"' in desk.get("/settings.toml")


def test_what_columns_are_called_is_proposed_where_others_are_not_known(tmp_path: Path, city: Path) -> None:
    first, rest = city.read_text().split("\n", 1)
    strange = tmp_path / "strange.csv"
    strange.write_text(first.replace("user", "Kunde").replace("utc_time", "moment") + "\n" + rest)
    with running(strange) as desk:
        told = desk.until("/columns")
    assert "choose below which column holds the person, which the time;" in told
    assert "selected>the latitude" in told
    assert "selected>the person" not in told


def test_the_button_ends_it_and_its_child(city: Path) -> None:
    with running(city) as desk:
        desk.post("/columns", order="time")  # which begins to read
        child = children(desk.process.pid)
        assert len(child) == 1
        assert "The studio has ended" in desk.post("/end")
        assert desk.process.wait(600) == 0
        assert not [pid for pid in child if Path(f"/proc/{pid}").exists()]


def children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(one) for one in found.stdout.split()]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [(["none.csv"], "none.csv is not a file"), (["--folder", "none"], "there is no such folder"),
     (["--port", "70000"], "65535")],
)  # fmt: skip
def test_bad_arguments_are_refused(tmp_path: Path, arguments: list[str], says: str) -> None:
    command = [sys.executable, "-m", "ghostpoi", "studio", "--no-browser", *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert not list(tmp_path.iterdir())


STEPS = ["protect", "verify", "audit", "report", "report", "report"]


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Mapping[str, Any]]]:
    """The steps of the Python API that a release calls; the one that the title names is interrupted."""
    found: list[tuple[str, Mapping[str, Any]]] = []

    class Verified:
        checks: tuple[Any, ...] = ()

    def fake(name: str) -> Any:
        def step(door: Any, given: Any) -> Any:
            found.append((name, vars(given)))
            if vars(given).get("title") == name:
                raise KeyboardInterrupt
            return Verified() if name == "verify" else None

        return SimpleNamespace(__wrapped__=step)

    for name in set(STEPS):
        monkeypatch.setattr(ghostpoi, name, fake(name), raising=False)
    return found


def test_a_release_goes_on_with_the_step_that_was_interrupted(
    tmp_path: Path, called: list[tuple[str, Mapping[str, Any]]]
) -> None:
    request = {"file": "city.csv", "release": str(tmp_path / "out"), "private": "p", "map": {},
               "config": "c.toml", "changes": {}, "reading": {}, "audit": {}, "about": {"title": "report"}}  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        release(tmp_path, request, PYTHON)
    assert [name for name, _ in called] == STEPS[:4]
    called.clear()
    made = release(tmp_path, request | {"about": {}}, PYTHON)
    assert [name for name, _ in called] == STEPS[3:]
    assert made == {"made": {"release": request["release"], "private": request["private"]}}


def test_an_interrupted_protect_is_resumed(tmp_path: Path, called: list[tuple[str, Mapping[str, Any]]]) -> None:
    (tmp_path / "steps.json").write_text(json.dumps({"now": "protect"}))
    request = {"file": "city.csv", "release": str(tmp_path / "out"), "private": "p", "map": {}, "config": "c.toml",
               "changes": {"drop": ["note"]}, "reading": {"timezone": "UTC"}, "audit": {}, "about": {}}  # fmt: skip
    release(tmp_path, request, PYTHON)
    assert (called[0][1]["resume"], called[0][1]["force"]) == (True, False)
    assert (called[0][1]["drop"], called[0][1]["timezone"]) == (["note"], "UTC")


def test_a_release_that_fails_its_checks_is_not_attacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, called: list[tuple[str, Mapping[str, Any]]]
) -> None:
    class Failed:
        checks = ()

        def __bool__(self) -> bool:
            return False

    monkeypatch.setattr(ghostpoi, "verify", SimpleNamespace(__wrapped__=lambda *given, **keywords: Failed()))
    request = {"file": "city.csv", "release": str(tmp_path / "out"), "private": "p", "map": {}, "config": "c.toml",
               "changes": {}, "reading": {}, "audit": {}, "about": {}}  # fmt: skip
    with pytest.raises(InputError, match="do not publish it"):
        release(tmp_path, request, PYTHON)
    assert [name for name, _ in called] == ["protect"]
