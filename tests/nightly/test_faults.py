"""Faults around a run: killed processes, full disks, closed folders, damaged files.

Each case runs the command line in its own process. A later --resume gives the same bytes as an undisturbed run.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT
from small_city import SEED, SETS, called, city, release, scratch, sentence

# One process imports everything, then forks one child per case: the same as a fresh process, without the seconds that
# the imports take. Nothing has run in it that a fork would break.
DRIVER = """
import importlib, json, os, resource, signal, sys
import ghostpoi.cli, ghostpoi.release.make, ghostpoi.release.verify
import ghostpoi.progress, rich.table, torch
torch.optim.AdamW([torch.nn.Parameter(torch.ones(1))], fused=True)  # imports much, and so does the first command
try:
    ghostpoi.cli.app(["protect", "x", "-o", "x", "--no-candidate", "x"], standalone_mode=False)
except ghostpoi.InputError:
    pass

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def prepare(case):
    if "call" in case:  # die at the count-th call, before or after its work
        *owner, name = case["call"]
        target = importlib.import_module(owner[0])
        for part in owner[1:]:
            target = getattr(target, part)
        real, calls = getattr(target, name), 0
        def dies(*arguments, **more):
            nonlocal calls
            calls += 1
            if calls == case["count"] and not case["after"]:
                die()
            result = real(*arguments, **more)
            if calls == case["count"]:
                die()
            return result
        setattr(target, name, dies)
    if "replace" in case:  # die just before the count-th time that something gets this name
        real_replace, seen = os.replace, 0
        def replace(source, target):
            nonlocal seen
            seen += os.path.basename(target) == case["replace"]
            if seen == case["count"] and os.path.basename(target) == case["replace"]:
                die()
            real_replace(source, target)
        os.replace = replace
    if "limit" in case:
        resource.setrlimit(resource.RLIMIT_FSIZE, (case["limit"], case["limit"]))
    if case.get("nobody") and os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

results = []
for case in json.load(sys.stdin):
    child = os.fork()
    if child == 0:
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(case["log"] + "." + name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        prepare(case)
        sys.argv = ["ghostpoi", *case["arguments"]]
        ghostpoi.cli.main()
    results.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(json.dumps(results))
"""

KILL: dict[str, dict[str, Any]] = {
    "before the trajectory LM": {"call": ["ghostpoi.models.trajectory_lm", "train"], "count": 1, "after": False},
    "before the LM is kept": {"call": ["ghostpoi.models.trajectory_lm", "train"], "count": 1, "after": True},
    "in warm-up": {"call": ["ghostpoi.draw.model_walk", "_refit"], "count": 1, "after": False},
    "after warm-up": {"call": ["ghostpoi.draw.model_walk", "_refit"], "count": 1, "after": True},
    "while storing a checkpoint": {"replace": "checkpoint.safetensors", "count": 1},
    "during the first round": {
        "call": ["ghostpoi.draw.methods.ghost", "Ghost", "choose"],
        "count": 5,
        "after": True,
    },
    "between rounds": {"call": ["ghostpoi.draw.publication", "Checkpoint", "store"], "count": 2, "after": True},
    "while storing the second": {"replace": "checkpoint.safetensors", "count": 2},
    "after the last round": {"call": ["ghostpoi.draw.table", "draw"], "count": 1, "after": False},
    "while writing pairs": {"replace": "pairs.npz", "count": 1},
    "while writing data": {"replace": "checkins.txt", "count": 1},
    "while writing the manifest": {"replace": "manifest.json", "count": 1},
    "before the release has its name": {"replace": "release", "count": 1},
    "just after it": {"replace": "pairs.npz", "count": 2},
    "before the note is final": {"replace": "run.json", "count": 2},
}
EARLY: dict[str, dict[str, Any]] = {  # before there is anything to resume, or after all is done
    f"{when}, then {then}": fault
    for then in ("again", "resume")
    for when, fault in {
        "before the note": {"replace": "run.json", "count": 1},
        "no room for the note": {"limit": 1_000},
    }.items()
}
OTHER: dict[str, dict[str, Any]] = {
    "between rounds, then damage": KILL["between rounds"],
    "no room for a checkpoint": {"limit": 6_000},
    "no room for the data": {"limit": 90_000},
    "a folder that is closed": {"nobody": True},
    "another's private folder": {"nobody": True, "private": "theirs"},
    "a folder inside a closed one": {"nobody": True, "out": "theirs/inside/release"},
}
CASES = KILL | EARLY | OTHER
ARGUMENTS = ["--method", "ghost", "--seed", str(SEED), *SETS]  # the method with the most steps to interrupt


def folder(case: str) -> Path:
    return scratch() / "faults" / case.replace(" ", "_")


@cache
def codes() -> dict[str, int]:
    """Run all cases once; return their exit codes."""
    scratch().chmod(0o755)  # for nobody
    asked = []
    file = city()
    for name, case in CASES.items():
        folder(name).mkdir(parents=True)
        arguments = ["protect", str(file), "-o", str(folder(name) / case.get("out", "release")), *ARGUMENTS]
        if case.get("nobody"):
            (folder(name) / "theirs" / "inside").mkdir(parents=True)
            (folder(name) / "theirs").chmod(0o700)
        if "private" in case:
            folder(name).chmod(0o777)
            arguments += ["--private", str(folder(name) / case["private"])]
        elif case.get("nobody"):
            folder(name).chmod(0o555)
        asked.append(case | {"arguments": arguments, "log": str(log(name))})
    done = subprocess.run(
        [sys.executable, "-c", DRIVER], input=json.dumps(asked), capture_output=True, text=True, timeout=600, cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"}, check=True,
    )  # fmt: skip
    return dict(zip(CASES, json.loads(done.stdout), strict=True))


def log(case: str) -> Path:
    return scratch() / "faults" / f"{case.replace(' ', '_')}.log"


def said(case: str) -> str:
    return Path(f"{log(case)}.err").read_text()


def resumed(case: str, *more: object) -> subprocess.CompletedProcess[str]:
    return called("protect", city(), "-o", folder(case) / "release", *ARGUMENTS, "--resume", *more)


def as_undisturbed(case: str) -> None:
    """Check for the bytes of an undisturbed run, and no trace of the fault."""
    whole, here = release("ghost"), folder(case)
    assert sorted(p.name for p in here.iterdir()) == ["release", "release.private"]
    for name in ("checkins.txt", "manifest.json"):
        assert (here / "release" / name).read_bytes() == (whole.folder / name).read_bytes()
    assert sorted(p.name for p in (here / "release").iterdir()) == ["checkins.txt", "manifest.json", "manifest.sig"]
    private = here / "release.private"
    assert sorted(p.name for p in private.iterdir()) == ["pairs.npz", "run.json", "signing.key", "trajectory_lm"]
    assert (private / "pairs.npz").read_bytes() == (whole.private / "pairs.npz").read_bytes()
    assert not list(private.rglob(".*"))
    for path in (private, *private.rglob("*")):
        assert path.stat().st_mode & 0o77 == 0


@pytest.mark.parametrize("case", KILL)
def test_a_killed_run_goes_on_to_the_same_bytes(case: str) -> None:
    assert codes()[case] == -signal.SIGKILL
    assert said(case) == ""
    out = folder(case) / "release"
    if out.exists():  # then it is complete
        assert called("verify", out, "--against", city()).returncode == 0
    without = called("protect", city(), "-o", out, *ARGUMENTS)
    assert "--resume" in sentence(without) or "exists already" in sentence(without)
    done = resumed(case)
    assert (done.returncode, done.stderr) == (0, "")
    as_undisturbed(case)


@pytest.mark.parametrize("case", EARLY)
def test_a_run_that_stopped_before_its_note_begins_again(case: str) -> None:
    assert codes()[case] == (2 if "room" in case else -signal.SIGKILL)
    assert not (folder(case) / "release").exists()
    assert (folder(case) / "release.private" / "unfinished").is_dir()
    if "resume" in case:
        done = resumed(case)
        said = f"nothing to resume in {folder(case) / 'release.private'}; starting from the beginning\n"
    else:
        done, said = called("protect", city(), "-o", folder(case) / "release", *ARGUMENTS), ""
    assert (done.returncode, done.stderr) == (0, said)
    as_undisturbed(case)


@pytest.mark.parametrize("case", ["no room for a checkpoint", "no room for the data"])
def test_a_full_disk(case: str) -> None:
    assert codes()[case] == 2
    last = said(case).splitlines()[-1]
    out = folder(case) / "release"
    assert last == (
        f"ghostpoi: {out} or {out}.private could not be written (file too large); free some space or choose other "
        "folders, then continue with --resume"
    )
    assert len(said(case).splitlines()) == (2 if case == "no room for a checkpoint" else 1)  # the LM could not be kept
    assert [p.name for p in folder(case).iterdir()] == ["release.private"]
    assert not list(folder(case).rglob("*.partial"))
    assert resumed(case).returncode == 0
    as_undisturbed(case)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become a user who may not")
@pytest.mark.parametrize("case", [case for case in OTHER if OTHER[case].get("nobody")])
def test_a_folder_that_this_user_may_not_write_to(case: str) -> None:
    assert codes()[case] == 2
    why = r"is not writable|could not be written \(permission.+\)|is not readable"
    assert re.fullmatch(rf"ghostpoi: .+ ({why}); .+\n", said(case))
    assert sorted(p.name for p in folder(case).rglob("*")) == ["inside", "theirs"]


def test_damaged_files_are_noticed_said_and_made_again() -> None:
    here = folder("between rounds, then damage")
    assert codes()["between rounds, then damage"] == -signal.SIGKILL
    private = here / "release.private"
    (cached,) = (private / "trajectory_lm").iterdir()
    checkpoint = private / "unfinished" / "checkpoint.safetensors"
    for path in (cached, checkpoint):
        data = bytearray(path.read_bytes())
        data[-3] ^= 0x40
        path.write_bytes(data)
    done = called("protect", city(), "-o", here / "release", *ARGUMENTS, "--resume")
    assert done.returncode == 0
    first, second = done.stderr.splitlines()
    assert first.startswith(f"the cached trajectory LM {cached} cannot be used (")
    assert first.endswith("training it again")
    damage = "is damaged (its checksum is wrong); starting again from the first round"
    assert second == f"the checkpoint {checkpoint} {damage}"
    as_undisturbed("between rounds, then damage")


def test_a_run_killed_from_outside(tmp_path: Path) -> None:
    """A full run, killed when its first checkpoint appears."""
    slow = [*ARGUMENTS, "--set", "rounds.outer=60"]
    command = [sys.executable, "-c", "from ghostpoi.cli import main; main()", "protect", str(city())]
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen([*command, "-o", str(tmp_path / "r"), *slow], cwd=ROOT, env=env) as run:
        deadline = time.monotonic() + 600
        while not (tmp_path / "r.private" / "unfinished" / "checkpoint.safetensors").exists():
            assert time.monotonic() < deadline
            assert run.poll() is None
            time.sleep(0.01)
        run.kill()
    assert run.returncode == -signal.SIGKILL
    assert sorted(p.name for p in tmp_path.iterdir()) == [".r.lock", ".r.private.lock", "r.private"]
    assert "the settings differ" in sentence(called("protect", city(), "-o", tmp_path / "r", *ARGUMENTS, "--resume"))
    assert [p.name for p in tmp_path.iterdir()] == ["r.private"]
