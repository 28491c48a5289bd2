"""Faults of the system end with one sentence and exit code 2; exit code 1 only means that a check says no."""

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT, ghostpoi
from small_city import called, city, release, sentence

from ghostpoi.cli import commands, main

FULL = "ghostpoi: the output cannot be written (no space left on device); free some space or write it elsewhere\n"


@pytest.mark.parametrize(("command", "more"), [("inspect", ("--json",)), ("verify", ())])
def test_a_full_disk_behind_stdout(command: str, more: tuple[str, ...]) -> None:
    target = city() if command == "inspect" else release().folder
    code = "from ghostpoi.cli import main; main()"
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code, command, target, *more],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
    assert (done.returncode, done.stderr) == (2, FULL)


def as_nobody(*words: object) -> subprocess.CompletedProcess[str]:
    """Run the command line as a user who owns nothing here."""
    code = (
        "import os, ghostpoi.cli, ghostpoi.release.make, ghostpoi.release.verify, rich.table\n"  # unreadable to nobody
        "if os.geteuid() == 0: os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "ghostpoi.cli.main()"
    )
    return subprocess.run([sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, cwd=ROOT)


def test_a_folder_without_access(tmp_path: Path) -> None:
    inside = tmp_path / "closed" / "release"
    shutil.copytree(release().folder, inside)
    inside.parent.chmod(0)
    done = as_nobody("verify", inside)
    inside.parent.chmod(0o755)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "cannot be used (permission denied); check the path, its permissions and the disk" in done.stderr


def test_a_data_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "release"
    shutil.copytree(release().folder, copy)
    real = Path.open

    def refuse(path: Path, *arguments: object, **more: object) -> object:
        if path.name == "checkins.txt":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *arguments, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)
    said = sentence(called("verify", copy))
    assert (
        said
        == f"{copy / 'checkins.txt'} cannot be used (permission denied); check the path, its permissions and the disk"
    )


def test_a_name_that_is_too_long() -> None:
    said = sentence(called("verify", "x" * 300))
    assert said == f"{'x' * 300} cannot be used (file name too long); check the path, its permissions and the disk"


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr(commands, "mapping", fill)
    said = sentence(called("inspect", city()))
    assert said == "not enough memory; use a larger machine, a smaller file or smaller settings"


@pytest.mark.parametrize("streams", [">&-", ">&- 2>&-"])
def test_closed_streams(streams: str) -> None:
    command = (
        f"exec '{sys.executable}' -c 'from ghostpoi.cli import main; main()' verify '{release().folder}' {streams}"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_without_all_characters() -> None:
    done = ghostpoi("verify", release().folder, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\u2026 matches the manifest" in done.stdout


@pytest.mark.parametrize("module", ["typer", "ghostpoi.cli.app", "polars"])
def test_interrupted_while_importing(module: str) -> None:
    """Ctrl-C before `main` exists, and in a command."""
    code = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from ghostpoi.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "inspect", str(city())], capture_output=True, text=True, cwd=ROOT
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "ghostpoi: interrupted\n")


def test_a_refused_parquet_file_does_not_abort(tmp_path: Path) -> None:
    """Threads of pyarrow that outlived the interpreter ended 20 of 30 such runs with exit code 134."""
    table = pl.DataFrame({"user": ["a"] * 900, "time": list(range(900))}).to_arrow()
    points = pa.array([bytes(21)] * 900, pa.binary())
    pq.write_table(table.append_column("geometry", points), tmp_path / "geo.parquet")
    command = [sys.executable, "-m", "ghostpoi", "inspect", str(tmp_path / "geo.parquet")]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("inspect", "loop"), ("protect", "loop", "-o", "r"), ("protect", "city", "-o", "loop"),
        ("protect", "city", "-o", "r", "--private", "loop"), ("protect", "city", "-o", "r", "--series", "loop"),
        ("verify", "loop"), ("report", "release", "-o", "loop"), ("export", "release", "--to", "libcity", "-o", "loop"),
        ("choose", "loop"), ("audit", "loop", "release"),
    ],
)  # fmt: skip
def test_a_link_to_itself_is_named(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    places = {"loop": tmp_path / "loop", "city": city(), "release": release().folder, "r": tmp_path / "r"}
    said = sentence(called(*[places.get(word, word) for word in words]))
    assert said == f"{tmp_path / 'loop'} is a link that leads back to itself; remove it, or give another path"
    assert [path.name for path in tmp_path.iterdir()] == ["loop"]


PLUGIN = """
from dataclasses import dataclass
from ghostpoi.draw.methods.base import Method

@dataclass(frozen=True)
class Broken(Method):
    label, summary, number = "broken", "raises", 1

    def choose(self, position, uniform):
        raise ValueError("venue 4 of Ann")
"""
METADATA = "Metadata-Version: 2.1\nName: broken\nVersion: 1\n"


def test_a_plug_in_that_raises_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(PLUGIN)
    about = tmp_path / "broken-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(METADATA)
    (about / "entry_points.txt").write_text("[ghostpoi.methods]\nbroken = broken:Broken\n")
    (tmp_path / "logs").mkdir()
    env = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}", "TMPDIR": str(tmp_path / "logs")}
    words = ["protect", str(city()), "-o", str(tmp_path / "r"), "--set", "filters.min_poi_checkins=5", "--method"]
    for method, code in (("broken", 2), ("random", 0)):  # a failed run is in nobody's way
        command = [sys.executable, "-m", "ghostpoi", *words, method]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env)
        assert done.returncode == code, done.stderr
        if code:
            said = re.fullmatch(
                r"ghostpoi: the plug-in 'broken' failed \(ValueError in broken.py, line 10\); report it to its "
                r"authors with (\S+), after you have removed clean data from it\n", done.stderr,
            )  # fmt: skip
            assert said, done.stderr
            log = Path(said[1])
            assert "venue 4 of Ann" in log.read_text()
            assert stat.S_IMODE(log.stat().st_mode) == 0o600
            assert not [path for path in tmp_path.iterdir() if path.name.startswith("r")]


def test_an_error_of_ours_is_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*arguments: object) -> None:
        raise IndexError("clean venue 7")

    monkeypatch.setattr(commands, "step", fail)
    monkeypatch.setattr(sys, "argv", ["ghostpoi", "verify", "x"])
    with pytest.raises(SystemExit) as left:
        main()
    said = capsys.readouterr().err
    assert left.value.code == 2
    assert said.startswith("ghostpoi: ghostpoi itself failed (IndexError in test_exit_codes.py, line ")
    assert len(said.splitlines()) == 1
    assert "clean venue" not in said
