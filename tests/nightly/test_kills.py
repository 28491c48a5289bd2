"""Commands that are killed at random moments: no release looks complete that is not, and the next run mends all.

1,000 kills by SIGKILL, Ctrl-C and SIGTERM; GHOSTPOI_KILLS sets another number, of which `test_series_kills` does a
sixteenth. Moments are drawn with a fixed seed: shares of the time that the undisturbed command takes, or of the number
of times that it touches files. Some commands run as an ordinary user, in another time zone or locale, under python -O,
with the clock set back, or with a second run of the same command next to them. Of Dask, a worker or the scheduler may
be killed in place of the command.
"""

import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest
from conftest import ROOT
from sample_releases import copied
from small_city import SEED, SETS, Release, called, city, release, scratch, sentence
from small_world import SEED as WORLD_SEED
from small_world import parts, rows
from test_environments import SURROUNDINGS

KILLS = int(os.environ.get("GHOSTPOI_KILLS", "1000"))
# One process imports everything, then forks a child per command: the moments fall into the work, not into imports. A
# child is killed after some seconds, or just before it does something to a file in its folder.
SERVER = """
import json, os, signal, sys, time
import ghostpoi.cli, ghostpoi.cli.output, ghostpoi.audits.audit, ghostpoi.progress, ghostpoi.exports.write
import ghostpoi.regions.protect, ghostpoi.release.make, ghostpoi.release.verify, ghostpoi.reports.page
import rich.console, rich.table, torch
from ghostpoi import attack, formats, draw
for registry in (attack.adversaries.ADVERSARIES, formats.FORMATS, draw.methods.METHODS):
    list(registry.values())
b" ".decode("utf-8-sig")  # an ordinary user may not read Python's own modules
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

def surround(how):
    if how == "an ordinary user" and os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    if how == "the clock set back":
        now = time.time
        time.time = lambda: now() - 4e8
    if how == "another zone":
        os.environ["TZ"] = "Pacific/Kiritimati"
        time.tzset()

def run(words, folder, last, sign, how, log):
    child = os.fork()
    if child:
        return child
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    sys.argv = ["ghostpoi", *words]
    surround(how)
    watch(folder, last, sign)
    try:
        ghostpoi.cli.main()
    finally:
        os.write(theirs, str(touched).encode())

for line in sys.stdin:
    words, folder, moment, last, sign, how, log = json.loads(line)
    began = time.monotonic()
    ours, theirs = os.pipe()
    child = run(words, folder, last, sign, how, log)
    if how == "two at once":
        theirs, mute = os.open(os.devnull, os.O_WRONLY), theirs
        other = run(words, folder, 0, sign, how, log)
        os.close(theirs)
        theirs = mute
    os.close(theirs)
    if moment is not None:
        time.sleep(moment)
        os.kill(child, sign)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    second = os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]) if how == "two at once" else 0
    print(json.dumps([code, time.monotonic() - began, int(os.read(ours, 20) or 0), second]), flush=True)
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
    sign: int = signal.SIGKILL, how: str = "",
) -> tuple[int, float, int]:  # fmt: skip
    """Run a command in a child that may be killed; return its exit code, its seconds and how often it touched files."""
    assert server.stdin
    assert server.stdout
    log = folder.with_name(f"{folder.name}.log")
    server.stdin.write(json.dumps([words, str(folder), moment, last, sign, how, str(log)]) + "\n")
    server.stdin.flush()
    code, seconds, touched, second = json.loads(server.stdout.readline())
    no_traceback(log)
    assert second in (0, 2)
    return code, seconds, touched


def no_traceback(log: Path) -> None:
    """Whatever happens, nobody sees a traceback."""
    text = log.read_text(errors="replace")
    assert "Traceback" not in text, text
    assert "Exception ignored" not in text, text


def fresh(
    words: list[str], folder: Path, moment: float | None = None, sign: int = signal.SIGKILL, how: str = "",
    whom: Callable[[psutil.Process], psutil.Process | None] = lambda run: run,
) -> tuple[int, float]:  # fmt: skip
    """The same in a fresh process, imports included. `whom` finds the process to kill: by default, the command."""
    command, began = [sys.executable, "-m", "ghostpoi", *words], time.monotonic()
    log = folder.with_name(f"{folder.name}.log")
    env = ENVIRONMENT | SURROUNDINGS.get(how, {})
    with log.open("a") as said, subprocess.Popen(command, stdout=said, stderr=said, cwd=ROOT, env=env) as run:
        if moment is not None:
            if "dask" in words:  # Ctrl-C while Python itself starts is Python's own matter
                while run.poll() is None and not psutil.Process(run.pid).children():
                    time.sleep(0.02)
            time.sleep(moment)
            with suppress(psutil.NoSuchProcess):
                if run.poll() is None and (found := whom(psutil.Process(run.pid))):
                    found.send_signal(sign)
        code = run.wait()
    no_traceback(log)
    return code, time.monotonic() - began


FORKED = ("an ordinary user", "the clock set back", "another zone", "two at once")
READABLE = all(folder.stat().st_mode & stat.S_IXOTH for folder in Path(os.__file__).parents)  # Python's own modules
SIGNS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
WHATS = ("protect", "replace", "audit", "report", "export", "folder", "regions") * 2 + ("dask",)
STARTS = ("protect", "folder", "regions", "dask")  # a command that finds nothing, and whose run may be resumed


@dataclass(frozen=True)
class Kill:
    """One kill: which command, how much of it is done, how the moment is told, by which signal, and what is unusual."""

    number: int
    what: str
    share: float
    moment: str
    sign: signal.Signals
    how: str
    whom: str

    def __str__(self) -> str:
        words = (self.number, self.what, self.moment, self.sign.name, self.how, self.whom)
        return "-".join(str(word).replace(" ", "_") for word in words if word)


def draws() -> list[Kill]:
    """Draw all kills.

    Ctrl-C in the first tenths of a second, before ghostpoi runs, is Python's own matter.
    """
    draw, found = random.Random(13), list[Kill]()
    for number in range(max(1, KILLS * 15 // 16)):
        what, moment = WHATS[number % 15], ("files", "time", "files", "fresh")[number // 15 % 4]
        moment = "fresh" if what == "dask" else moment
        how = draw.choice((*(SURROUNDINGS if moment == "fresh" else FORKED), "", ""))
        if how == FORKED[0] and not (READABLE or what in (*STARTS, "replace")):
            how = ""  # such a user could not import what is not imported yet
        whom = ("", "worker", "scheduler")[number // 15 % 3] if what == "dask" else ""
        sign = SIGNS[0] if moment == "fresh" and what != "dask" else SIGNS[number // 2 % 3]
        found.append(Kill(number, what, draw.random(), moment, sign, how, whom))
    return found


@cache
def older() -> Release:
    """An older release in the place, to be replaced."""
    return release("random")


@cache
def world() -> Path:
    """A folder of check-ins in several cities, divided by time."""
    return parts(scratch() / "world", 5, rows().sort("utc_time"))


def clean(what: str) -> Path:
    return world() if what in ("folder", "regions", "dask") else city()


def words_of(what: str, folder: Path) -> list[str]:
    target = str(folder / "release")
    several = ["protect", str(world()), "-o", target, *WORLD_SEED]
    return {
        "protect": ["protect", str(city()), "-o", target, *PROTECT],
        "replace": ["protect", str(city()), "-o", target, *PROTECT, "--force"],
        "audit": ["audit", str(city()), target, *AUDIT],
        "report": ["report", target],
        "export": ["export", target, "--to", "recbole", "-o", str(folder / "exported")],
        "folder": several,
        "regions": [*several, "--engine", "local"],
        "dask": [*several, "--engine", "dask", "--workers", "2"],
    }[what]


def scene(what: str, folder: Path) -> Path:
    """What is there before the command."""
    folder.mkdir()
    if what not in STARTS:
        copied(older() if what == "replace" else release("crowd"), folder)
    return folder


def content(what: str, folder: Path) -> dict[str, bytes]:
    """The files that a command writes but for the signature, which each key makes differently."""
    place = folder / ("exported" if what == "export" else "release")
    files = sorted(path for path in place.rglob("*") if path.is_file() and path.name != "manifest.sig")
    return {str(path.relative_to(place)): path.read_bytes() for path in files}


@cache
def whole(what: str) -> dict[str, bytes]:
    """What is there after an undisturbed command."""
    folder = scene(what, scratch() / f"whole-{what}")
    assert called(*words_of(what, folder)).returncode == 0
    return content(what, folder)


@cache
def undisturbed(what: str, server: subprocess.Popen[str] | None) -> tuple[float, int]:
    """The seconds of an undisturbed command, and how often it touches files in its folder."""
    folder = scene(what, scratch() / f"timed-{what}-{server is None}")
    words = words_of(what, folder)
    code, taken, touched = ask(server, words, folder) if server else (*fresh(words, folder), 0)
    assert code == 0
    return taken, touched


def a_worker(run: psutil.Process) -> psutil.Process | None:
    """A worker of the cluster that a command has started, once there is one."""
    found = [child for child in run.children(recursive=True) if "spawn_main" in " ".join(child.cmdline())]
    return found[0] if found else None


@contextmanager
def a_cluster(folder: Path) -> Iterator[tuple[str, psutil.Process]]:
    """A scheduler with a worker, both in processes of their own."""
    place = folder.with_name("scheduler.json")
    with ExitStack() as stack:
        started = list[subprocess.Popen[bytes]]()
        for kind, more in (("scheduler", ["--port", "0"]), ("worker", ["--nthreads", "1", "--no-nanny"])):
            command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--scheduler-file", str(place)]
            log = stack.enter_context(folder.with_name(f"{kind}.log").open("wb"))
            started.append(
                subprocess.Popen([*command, *more, "--no-dashboard"], cwd=folder.parent, stdout=log, stderr=log)
            )
            stack.callback(started[-1].wait)
            stack.callback(started[-1].kill)
            while not place.exists():
                time.sleep(0.05)
        yield json.loads(place.read_text())["address"], psutil.Process(started[0].pid)


def killed(kill: Kill, words: list[str], folder: Path, server: subprocess.Popen[str]) -> int:
    """Run a command, and kill it or one of its helpers; return its exit code."""
    seconds, touched = undisturbed(kill.what, None if kill.moment == "fresh" else server)
    if kill.moment == "files":
        return ask(server, words, folder, None, 1 + int(kill.share * touched), kill.sign, kill.how)[0]
    if kill.moment == "time":
        return ask(server, words, folder, kill.share * seconds, 0, kill.sign, kill.how)[0]
    if kill.whom != "scheduler":
        whom = a_worker if kill.whom else lambda run: run
        return fresh(words, folder, kill.share * seconds, kill.sign, kill.how, whom)[0]
    with a_cluster(folder) as (address, scheduler):
        remote = [*words[:-2], "--scheduler", address]
        return fresh(remote, folder, kill.share * seconds, kill.sign, kill.how, lambda run: scheduler)[0]


@pytest.mark.parametrize("kill", draws(), ids=str)
def test_a_kill_at_any_moment(kill: Kill, server: subprocess.Popen[str]) -> None:
    scratch().chmod(0o755)  # for an ordinary user
    folder = scratch() / f"kill-{kill.number}" / "here"
    folder.parent.mkdir()
    words = words_of(kill.what, scene(kill.what, folder))
    if kill.how == "an ordinary user" and os.geteuid() == 0:
        for path in (folder.parent, folder, *folder.rglob("*")):
            os.chown(path, 65534, 65534)
    code = killed(kill, words, folder, server)
    mine = () if kill.whom else (-kill.sign, 130) if kill.sign != signal.SIGKILL else (-kill.sign,)
    refused = (2,) if kill.whom or kill.how == "two at once" else ()
    said = folder.with_name("here.log").read_text(errors="replace")
    assert code in (0, *mine, *refused), said  # it may have finished in time
    looks_complete_only_if_it_is(kill.what, folder)
    again(kill.what, words_of("regions", folder) if kill.what == "dask" else words, resume=kill.number % 8 < 4)
    assert content(kill.what, folder) == whole("regions" if kill.what == "dask" else kill.what)
    assert verified(kill.what, folder / "release") == []
    there = ["exported"] * (kill.what == "export") + ["release", "release.private"]
    assert sorted(path.name for path in folder.iterdir()) == there
    assert "unfinished" not in {path.name for path in (folder / "release.private").iterdir()}
    assert not list(folder.rglob(".*"))
    shutil.rmtree(folder.parent)


def verified(what: str, folder: Path) -> list[str]:
    """Check that a release is signed; return what else fails."""
    done = called("verify", folder, "--against", clean(what), "--json")
    checks: list[dict[str, Any]] = json.loads(done.stdout)["checks"]
    assert checks[0]["detail"].startswith("signed by key ")
    asked = ["kept columns"] * (what == "folder")  # one that predicts venues is kept on request
    failed = [check for check in checks if not check["passed"] and check["check"] not in asked]
    return [f"{check['check']}: {check['detail']}" for check in failed]


def looks_complete_only_if_it_is(what: str, folder: Path) -> None:
    """A release that is there passes all checks. At worst it holds a page under its temporary name, which is named."""
    release = folder / "release"
    if release.exists():
        left = [path.name for path in release.glob(".*")]
        assert len(left) <= 1
        found = [text.split(";")[0] for text in verified(what, release)]
        assert found == [f"nothing private: found {name}" for name in left]
    if (folder / "exported").exists():
        assert content(what, folder) == whole(what)


def again(what: str, words: list[str], resume: bool) -> None:
    """Run the command again. A refusal must name the way on, and that way must work."""
    plain = [word for word in words if word != "--force"]
    target = Path(plain[plain.index("-o") + 1]) if "-o" in plain else None
    if what == "export" and target and target.exists():
        return
    published = target is not None and (target / "manifest.json").exists()
    resume = resume and what in (*STARTS, "replace")
    done = called(*[*plain, "--resume"] if resume else words)
    if done.returncode == 2:
        assert what in STARTS or resume
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
    assert len(whole("folder")) == len(whole("regions")) == 6
    assert whole("export")
