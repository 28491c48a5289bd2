"""Commands that are killed at random moments: no release looks complete that is not, and the next run mends all.

GHOSTPOI_KILLS sets how often: 1,000 times without, by SIGKILL, Ctrl-C and SIGTERM. Moments are drawn with a fixed
seed: shares of the time that the undisturbed command takes, or of the number of times that it touches files.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from sample_releases import copied
from small_city import SEED, SETS, Release, called, city, release, scratch, sentence

KILLS = int(os.environ.get("GHOSTPOI_KILLS", "1000"))
# One process imports everything, then forks a child per command: the moments fall into the work, not into imports. A
# child is killed after some seconds, or just before it does something to a file in its folder.
SERVER = """
import json, os, signal, sys, time
import ghostpoi.cli, ghostpoi.cli.output, ghostpoi.audits.audit, ghostpoi.progress
import ghostpoi.release.make, ghostpoi.release.verify, ghostpoi.reports.page
import rich.console, rich.table, torch
from ghostpoi import attack, formats, draw
for registry in (attack.adversaries.ADVERSARIES, formats.FORMATS, draw.methods.METHODS):
    list(registry.values())
torch.optim.AdamW([torch.nn.Parameter(torch.ones(1))], fused=True)  # imports much, and so does the first command
try:
    ghostpoi.cli.app(["protect", "x", "-o", "x", "--no-candidate", "x"], standalone_mode=False)
except ghostpoi.InputError:
    pass

touched = 0

def watch(folder, last, sign):
    def hook(event, arguments):
        global touched
        if event == "open" or event.startswith("os."):
            names = [os.fsdecode(a) for a in arguments if isinstance(a, (str, bytes, os.PathLike))]
            here = any(folder in name for name in names)
            touched += here
            if here and touched == last:
                os.kill(os.getpid(), sign)
    sys.addaudithook(hook)

for line in sys.stdin:
    words, folder, moment, last, sign = json.loads(line)
    began = time.monotonic()
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        sys.argv = ["ghostpoi", *words]
        watch(folder, last, sign)
        try:
            ghostpoi.cli.main()
        finally:
            os.write(theirs, str(touched).encode())
    os.close(theirs)
    if moment is not None:
        time.sleep(moment)
        os.kill(child, sign)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([code, time.monotonic() - began, int(os.read(ours, 20) or 0)]), flush=True)
    os.close(ours)
"""
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}
PROTECT = ["--method", "crowd", "--seed", str(SEED), *SETS]
AUDIT = ["--victim", "transformer", "--adversaries", "none", "--seeds", "1", "--no-naturalness", "--device", "cpu"] + [
    word
    for text in (
        "victim.dim=16",
        "victim.heads=2",
        "victim.feed_forward=16",
        "training.epochs=1",
        "filters.train_share=0.6",
        "filters.val_share=0.2",
    )
    for word in ("--set", text)
]


@pytest.fixture(scope="module")
def server() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=ENVIRONMENT
    ) as process:
        yield process
        assert process.stdin
        process.stdin.close()


def ask(
    server: subprocess.Popen[str], words: list[str], folder: Path, moment: float | None = None, last: int = 0,
    sign: int = signal.SIGKILL,
) -> tuple[int, float, int]:  # fmt: skip
    """Run a command in a child that may be killed; return its exit code, its seconds and how often it touched files."""
    assert server.stdin
    assert server.stdout
    server.stdin.write(json.dumps([words, str(folder), moment, last, sign]) + "\n")
    server.stdin.flush()
    code, seconds, touched = json.loads(server.stdout.readline())
    return code, seconds, touched


def fresh(words: list[str], moment: float | None = None, sign: int = signal.SIGKILL) -> tuple[int, float]:
    """The same in a fresh process, imports included."""
    command, began = [sys.executable, "-m", "ghostpoi", *words], time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT, env=ENVIRONMENT
    ) as run:
        if moment is not None:
            time.sleep(moment)
            run.send_signal(sign)
        return run.wait(), time.monotonic() - began


@cache
def older() -> Release:
    """An older release in the place, to be replaced."""
    return release("random")


def words_of(what: str, folder: Path) -> list[str]:
    target = str(folder / "release")
    return {
        "protect": ["protect", str(city()), "-o", target, *PROTECT],
        "replace": ["protect", str(city()), "-o", target, *PROTECT, "--force"],
        "audit": ["audit", str(city()), target, *AUDIT],
        "report": ["report", target],
    }[what]


def scene(what: str, folder: Path) -> Path:
    """What is there before the command."""
    folder.mkdir()
    if what != "protect":
        copied(older() if what == "replace" else release("crowd"), folder)
    return folder


def content(folder: Path) -> dict[str, bytes]:
    """The files of a release but for the signature, which each key makes differently."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name != "manifest.sig"}


@cache
def whole(what: str) -> dict[str, bytes]:
    """The release after an undisturbed command."""
    folder = scene(what, scratch() / f"whole-{what}")
    assert called(*words_of(what, folder)).returncode == 0
    return content(folder / "release")


@cache
def undisturbed(what: str, server: subprocess.Popen[str] | None) -> tuple[float, int]:
    """The seconds of an undisturbed command, and how often it touches files in its folder."""
    folder = scene(what, scratch() / f"timed-{what}-{server is None}")
    words = words_of(what, folder)
    code, taken, touched = ask(server, words, folder) if server else (*fresh(words), 0)
    assert code == 0
    return taken, touched


SIGNS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)


def draws() -> list[tuple[int, str, float, str, signal.Signals]]:
    """Number, command, share of the command that is done, how the moment is told, and the signal.

    Ctrl-C in the first tenths of a second, before ghostpoi runs, is Python's own matter.
    """
    draw = random.Random(13)
    hows = ["files", "time", "files", "fresh"]
    whats = ("protect", "replace", "audit", "report")
    drawn = [(number, whats[number % 4], draw.random(), hows[number // 4 % 4]) for number in range(KILLS)]
    return [(*one, SIGNS[0 if one[3] == "fresh" else one[0] % 3]) for one in drawn]


@pytest.mark.parametrize(("number", "what", "share", "how", "sign"), draws())
def test_a_kill_at_any_moment(
    number: int, what: str, share: float, how: str, sign: signal.Signals, server: subprocess.Popen[str], tmp_path: Path
) -> None:
    folder = scene(what, tmp_path / "here")
    words = words_of(what, folder)
    seconds, touched = undisturbed(what, None if how == "fresh" else server)
    if how == "files":
        code, _, _ = ask(server, words, folder, last=1 + int(share * touched), sign=sign)
    elif how == "time":
        code, _, _ = ask(server, words, folder, moment=share * seconds, sign=sign)
    else:
        code, _ = fresh(words, share * seconds, sign)
    assert code in (0, -sign) or (code == 130 and sign != signal.SIGKILL)  # it may have finished in time
    looks_complete_only_if_it_is(folder / "release")
    again(what, words, resume=number % 8 < 4)
    assert content(folder / "release") == whole(what)
    assert verified(folder / "release") == []
    assert sorted(path.name for path in folder.iterdir()) == ["release", "release.private"]
    assert "unfinished" not in {path.name for path in (folder / "release.private").iterdir()}
    assert not list(folder.rglob(".*"))


def verified(folder: Path) -> list[str]:
    """Check that a release is signed; return what else fails."""
    checks: list[dict[str, Any]] = json.loads(called("verify", folder, "--against", city(), "--json").stdout)["checks"]
    assert checks[0]["detail"].startswith("signed by key ")
    return [f"{check['check']}: {check['detail']}" for check in checks if not check["passed"]]


def looks_complete_only_if_it_is(folder: Path) -> None:
    """A release that is there passes all checks. At worst it holds a page under its temporary name, which is named."""
    if folder.exists():
        left = [path.name for path in folder.glob(".*")]
        assert len(left) <= 1
        assert [text.split(";")[0] for text in verified(folder)] == [f"nothing private: found {name}" for name in left]


def again(what: str, words: list[str], resume: bool) -> None:
    """Run the command again. A refusal must name the way on, and that way must work."""
    plain = [word for word in words if word != "--force"]
    published = (Path(plain[plain.index("-o") + 1]) / "manifest.json").exists() if "-o" in plain else False
    done = called(*[*plain, "--resume"] if resume and "-o" in plain else words)
    if done.returncode == 2:
        assert what == "protect" or resume
        way = "--force" if published else "--resume"
        assert published or not resume  # nothing is there that could not be resumed
        assert way in sentence(done)
        done = called(*plain, way)
    assert done.returncode == 0, done.stderr


def test_the_scenes_are_what_they_should_be() -> None:
    assert set(whole("protect")) == {"checkins.txt", "manifest.json"}
    assert whole("replace") == whole("protect")
    assert older().data.read_bytes() != whole("protect")["checkins.txt"]
    assert "audit" in json.loads(whole("audit")["manifest.json"])
    assert set(whole("report")) == {"card.md", "checkins.txt", "croissant.json", "manifest.json", "report.html"}
