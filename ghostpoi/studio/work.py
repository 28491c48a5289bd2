"""The child process that works for the studio: at most one at a time, so that a large file does not fill the memory."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ghostpoi.files import make_private_folder, replacing
from ghostpoi.progress import TO_FILE

LOOK, TRIAL, RELEASE = "look", "trial", "release"  # kinds of work
GRACE_S = 10  # for a child to clean up


@dataclass(frozen=True)
class State:
    """How far a piece of work is."""

    name: str  # none, running, interrupted, failed or done
    answer: dict[str, Any] = field(default_factory=dict)
    share: float = 0.0
    label: str = ""
    left: str = ""
    steps: dict[str, Any] = field(default_factory=dict)

    @property
    def running(self) -> bool:
        return self.name == "running"


class Worker:
    """Starts child processes and reads how far they are."""

    def __init__(self) -> None:
        self.child: subprocess.Popen[bytes] | None = None
        self.folder: Path | None = None
        self.ending: list[subprocess.Popen[bytes]] = []

    @property
    def busy(self) -> str:
        """The kind of work that is going on; "" if there is none."""
        return self.folder.name if self.folder and self.child and self.child.poll() is None else ""

    def start(self, folder: Path, request: dict[str, Any] | None = None) -> None:
        """Begin a piece of work or, without a request, go on with the last one: its steps are not done again."""
        self.stop()
        make_private_folder(folder)
        if request is not None:
            (folder / "steps.json").unlink(missing_ok=True)
            store(folder / "request.json", request)
        for name in ("answer.json", "progress.json"):
            (folder / name).unlink(missing_ok=True)
        environment = os.environ | {TO_FILE: str(folder / "progress.json")}
        log = os.open(folder / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self.child = subprocess.Popen(
            [sys.executable, "-m", "ghostpoi.studio.child", str(folder)], stdin=subprocess.PIPE, stdout=log, stderr=log,
            env=environment, start_new_session=True,
        )  # fmt: skip
        os.close(log)
        self.folder = folder

    def stop(self) -> None:
        """End the child: a release as Ctrl-C would, so that it can go on later; other work leaves nothing behind."""
        if self.child is None:
            return
        if self.child.stdin:
            self.child.stdin.close()  # it ends by itself, should it miss the signal
        if self.child.poll() is None:
            (self.child.terminate if self.busy == RELEASE else self.child.kill)()
            self.ending.append(self.child)
        self.child = None
        self.ending = [one for one in self.ending if one.poll() is None]

    def end(self) -> None:
        """End all children, and wait until they have."""
        self.stop()
        for child in self.ending:
            try:
                child.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def state(self, folder: Path, request: dict[str, Any] | None = None) -> State:
        """Read how far the work on a request is, or on the last one."""
        asked = read(folder / "request.json")
        if not asked or (request is not None and asked != request):
            return State("none")
        steps, answer = read(folder / "steps.json"), read(folder / "answer.json")
        if answer:
            return State("done" if answer.get("ok") else "failed", answer, 1.0, steps=steps)
        if self.busy and self.folder == folder:
            now = read(folder / "progress.json")
            left = now.get("left", "") if re.search("[1-9]", now.get("left", "")) else ""  # known, and not over
            return State("running", {}, float(now.get("share", 0)), now.get("label", ""), left, steps)
        return State("interrupted", steps=steps)


def store(path: Path, value: Any) -> None:
    """Write JSON that only its owner may read."""
    with replacing(path, mode=0o600) as out:
        out.write(json.dumps(value).encode())


def read(path: Path) -> dict[str, Any]:
    """Return what was stored; nothing if there is nothing that can be read."""
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found
