"""Faults of the system end with one sentence and exit code 2; exit code 1 only means that a check says no."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT, ghostpoi
from small_city import called, city, release, sentence

from ghostpoi.cli import commands

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
        "import os, ghostpoi.cli, ghostpoi.release.verify, rich.table\n"  # nobody may not read these
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
