"""Commands that are killed at random moments: no release looks complete that is not, and the next run mends all.

GHOSTPOI_KILLS sets how often; `make fuzz` uses 100. Moments are drawn with a fixed seed, as shares of the time that the
undisturbed command takes.
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

KILLS = int(os.environ.get("GHOSTPOI_KILLS", "9"))
LATE = 0.15  # every other kill falls into this last share of the time, in which files get their names
# One process imports everything, then forks a child per command: the moments fall into the work, not into imports.
SERVER = """
import json, os, signal, sys, time
import ghostpoi.cli, ghostpoi.cli.terminal_output, ghostpoi.evaluate.audit, ghostpoi.progress
import ghostpoi.publish.release, ghostpoi.publish.verify, ghostpoi.report.page, torch
torch.optim.AdamW([torch.nn.Parameter(torch.ones(1))], fused=True)  # imports much, and so does the first command
try:
    ghostpoi.cli.app(["protect", "x", "-o", "x", "--no-candidate", "x"], standalone_mode=False)
except ghostpoi.InputError:
    pass
for line in sys.stdin:
    words, moment = json.loads(line)
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        sys.argv = ["ghostpoi", *words]
        ghostpoi.cli.main()
    if moment is not None:
        time.sleep(moment)
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([code, time.monotonic() - began]), flush=True)
"""
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}
PROTECT = ["--method", "crowd", "--seed", str(SEED), *SETS]
AUDIT = ["--adversaries", "none", "--seeds", "1", "--no-naturalness", "--device", "cpu"] + [
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


def ask(server: subprocess.Popen[str], words: list[str], moment: float | None = None) -> tuple[int, float]:
    """Run a command in a child, perhaps killed at a moment; return its exit code and its seconds."""
    assert server.stdin
    assert server.stdout
    server.stdin.write(json.dumps([words, moment]) + "\n")
    server.stdin.flush()
    code, seconds = json.loads(server.stdout.readline())
    return code, seconds


def fresh(words: list[str], moment: float | None = None) -> tuple[int, float]:
    """The same in a fresh process, imports included."""
    command, began = [sys.executable, "-m", "ghostpoi", *words], time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT, env=ENVIRONMENT
    ) as run:
        if moment is not None:
            time.sleep(moment)
            run.kill()
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
def seconds(what: str, server: subprocess.Popen[str] | None) -> float:
    """The time of an undisturbed command."""
    folder = scene(what, scratch() / f"timed-{what}-{server is None}")
    code, taken = ask(server, words_of(what, folder)) if server else fresh(words_of(what, folder))
    assert code == 0
    return taken


def draws() -> list[tuple[int, str, float, bool]]:
    """Number, command, share of the time, and whether in a fresh process."""
    draw, out = random.Random(13), []
    for number in range(KILLS):
        share = draw.random()
        late = number // 4 % 2 == 1
        out.append((number, ("protect", "replace", "audit", "report")[number % 4],
                    1 - LATE * share if late else share, number % 12 == 8))  # fmt: skip
    return out


@pytest.mark.parametrize(("number", "what", "share", "alone"), draws())
def test_a_kill_at_any_moment(
    number: int, what: str, share: float, alone: bool, server: subprocess.Popen[str], tmp_path: Path
) -> None:
    folder = scene(what, tmp_path / "here")
    words = words_of(what, folder)
    moment = share * seconds(what, None if alone else server)
    code, _ = fresh(words, moment) if alone else ask(server, words, moment)
    assert code in (0, -signal.SIGKILL)  # it may have finished in time
    looks_complete_only_if_it_is(folder / "release")
    again(what, words, resume=number % 8 < 4)
    assert content(folder / "release") == whole(what)
    looks_complete_only_if_it_is(folder / "release")
    assert sorted(path.name for path in folder.iterdir()) == ["release", "release.private"]
    assert "unfinished" not in {path.name for path in (folder / "release.private").iterdir()}
    assert not list(folder.rglob(".*"))


def looks_complete_only_if_it_is(folder: Path) -> None:
    """A release that is there passes all checks and is signed."""
    if folder.exists():
        done = called("verify", folder, "--against", city(), "--json")
        checks: list[dict[str, Any]] = json.loads(done.stdout)["checks"]
        assert [check for check in checks if not check["passed"]] == []
        assert checks[0]["detail"].startswith("signed by key ")


def again(what: str, words: list[str], resume: bool) -> None:
    """Run the command again. A refusal must name the way on, and that way must work."""
    if what == "protect" and resume:
        words = [*words, "--resume"]
    if what == "replace":
        words = [*words[:-1], "--resume"] if resume else words
    done = called(*words)
    if done.returncode == 2:
        said = sentence(done)
        assert "--force" in said
        done = called(*[word for word in words if word != "--resume"], "--force")
    assert done.returncode == 0, done.stderr


def test_the_scenes_are_what_they_should_be() -> None:
    assert set(whole("protect")) == {"checkins.txt", "manifest.json"}
    assert whole("replace") == whole("protect")
    assert older().data.read_bytes() != whole("protect")["checkins.txt"]
    assert "audit" in json.loads(whole("audit")["manifest.json"])
    assert set(whole("report")) == {"card.md", "checkins.txt", "croissant.json", "manifest.json", "report.html"}
