"""What the studio's pages ask for, done in a process of its own: `python -m ghostpoi.studio.child FOLDER`.

The folder is private. It holds request.json, and gets progress.json while the work runs and answer.json at the end. The
process ends when the studio does: its standard input then closes.
"""

import fcntl
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

from ghostpoi.api.door import Door, through
from ghostpoi.errors import InputError
from ghostpoi.files import replacing
from ghostpoi.options import in_studio
from ghostpoi.progress import bar
from ghostpoi.studio.work import read, store

REQUEST, ANSWER, STEPS, LOCK = "request.json", "answer.json", "steps.json", "lock"
Request = Mapping[str, Any]
Work = Callable[[Path, Request, Door], dict[str, Any]]


def run(folder: Path) -> None:
    """Do what the request asks for, and write the answer: what was found, or why it cannot be done."""
    request, said = read(folder / REQUEST), list[str]()
    door = Door(lambda text: said.append(in_studio(text)), bar, in_studio, lambda *_: "")
    config = folder / "settings.toml"
    with replacing(config, mode=0o600) as out:
        out.write(request["settings"].encode())
    request["config"] = str(config)
    try:
        answer = {"ok": True, **KINDS[request["kind"]](folder, request, door)}
    except InputError as e:
        error = in_studio(e.text).replace(f"{Path(request['file']).parent}/", "")
        answer = {"ok": False, "error": error}
    except MemoryError:
        answer = {"ok": False, "error": "not enough memory; use a larger machine or a smaller file"}
    except Exception as e:
        traceback.print_exc()
        answer = {"ok": False, "error": f"this did not work ({type(e).__name__}); {folder / 'log.txt'} says more"}
    store(folder / ANSWER, answer | {"said": said})


def look(folder: Path, request: Request, door: Door) -> dict[str, Any]:
    """Read a file, and say what becomes of its columns."""
    from ghostpoi.studio.look import look

    return look(folder, request, door)


FEW = (
    "the release was made and passes its checks, but it has too few visits per person to be attacked, so nobody knows "
    "what it gives away; do not publish it, and choose another recipient or other user ids, or a file of a longer time"
)
QUICK = {"victim": "markov", "seeds": 1, "naturalness": False}


def trial(folder: Path, request: Request, door: Door) -> dict[str, Any]:
    """Try settings on the sample, attacked by the adversaries that `choose` tries first: what they protect and keep."""
    from ghostpoi.audits.choose import FAST
    from ghostpoi.formats import Source
    from ghostpoi.reports.audit_view import AuditView
    from ghostpoi.reports.charts.city import city
    from ghostpoi.reports.decision import answers
    from ghostpoi.reports.page_data import read_page_data

    out, private = folder / "release", folder / "release.private"
    shared = {"source": request["sample"], "private": private, "map": request["map"], "config": request["config"]}
    shared |= request["reading"]
    released = through(door, "protect", shared | request["changes"] | {"output": out, "force": True})
    attacked = {"release": out, "cache": folder / "cache", "adversaries": FAST}
    drawn = city(read_page_data([Source.of(out)], private))
    clean, shown = dict[str, Any](), list[dict[str, Any]]()
    with suppress(InputError):  # too few visits to train on and to test
        audit = AuditView.of(through(door, "audit", shared | QUICK | attacked).found)
        floor = max(audit.controls[name].acc1["mean"] for name in audit.without_release.values())
        people = {row.label: row.clean["mean"] for row in audit.persons if row.clean}
        clean, shown = {"next": audit.clean.acc1["mean"], "without": floor, "people": people}, _shown(answers(audit))
    return {
        "answers": shown,
        "clean": clean,  # what the file gives away as it is
        "moved": released.displacement,
        "city": drawn and {
            "panels": [(panel.title, str(panel.drawing), panel.key) for panel in drawn.panels],
            "height": drawn.height, "corners": drawn.corners,
        },
    }  # fmt: skip


def _shown(answers: Iterable[Any]) -> list[dict[str, Any]]:
    return [asdict(one) | {"big": one.big, "top": one.top, "bar": one.bar} for one in answers]


def release(
    folder: Path, request: Request, door: Door, afresh: Callable[[], None] = lambda: None
) -> dict[str, Any]:  # fmt: skip
    """Protect, check, attack and describe: each step once, and again only from where an interruption left it.

    `afresh` is called between steps that need much memory.
    """
    done = read(folder / STEPS)

    def step(name: str, call: str = "", **keywords: Any) -> Any:
        if name in done:
            return None
        store(folder / STEPS, done | {"now": name})
        (folder / "progress.json").unlink(missing_ok=True)
        found = through(door, call or name, keywords)
        done[name] = True
        store(folder / STEPS, done)
        return found

    file, out, private, reading = request["file"], request["release"], request["private"], request["reading"]
    config = {"map": request["map"], "config": request["config"]}
    if (Path(out) / "manifest.json").exists() and "protect" not in done and done.get("now") == "protect":
        done["protect"] = True  # it was killed after the release was published
    resume: dict[str, Any] = {"resume": True} if done.get("now") == "protect" else {"force": True}  # the form has asked
    made = step("protect", source=file, output=out, private=private, **config, **request["changes"],
                **reading, **resume)  # fmt: skip
    if made is not None:
        afresh()
    checked = step("verify", release=out, against=file, private=private, **config, **reading)
    if checked is not None:
        done["checks"] = [{"check": c.name, "passed": c.passed, "detail": door.text(c.detail)} for c in checked.checks]
        if not checked:
            del done["verify"]
            store(folder / STEPS, done)
            raise InputError("the release does not pass its own checks; do not publish it, and protect the file again")
        store(folder / STEPS, done)
        afresh()
    try:
        found = step("audit", source=file, release=out, private=private, **config, **reading,
                     **request["audit"])  # fmt: skip
    except InputError as e:
        raise (InputError(FEW) if "sessions" in e.text else e) from None
    if found is not None:
        done["decision"] = _decided(out)
        store(folder / STEPS, done)
        afresh()
    about = request["about"]
    step("report", release=out, **about)
    step("compared", "report", release=out, private=private, with_clean=True, **about)
    with suppress(InputError):  # too few people for its figures
        step("dpia", "report", release=out, dpia=True, **about)
    return {"made": {"release": out, "private": private}}


def _decided(out: str) -> dict[str, Any]:
    from ghostpoi.reports.decision import decision
    from ghostpoi.reports.release_view import open_release

    found = decision(open_release(Path(out)))
    return {"headline": found.headline, "tone": found.tone, "action": found.action, "answers": _shown(found.answers)}


def _afresh() -> None:
    """Go on in a new process with the same id, which does not hold the memory of the steps before."""
    os.execv(sys.executable, sys.orig_argv)


KINDS: dict[str, Work] = {"look": look, "trial": trial, "release": partial(release, afresh=_afresh)}


def _end_with_studio() -> None:
    """Stop as after Ctrl-C when nobody is there to read the answer, at the latest after a while."""
    with suppress(OSError):
        while os.read(0, 1):  # not sys.stdin, whose lock would be in the way of a normal end
            pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(20)  # the main thread cleans up meanwhile
    os._exit(1)


def main() -> None:
    """Wait until no other process works in the folder, then work."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = Path(sys.argv[1])
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    Thread(target=_end_with_studio, daemon=True).start()
    with suppress(KeyboardInterrupt):
        fcntl.flock(handle, fcntl.LOCK_EX)
        run(folder)


if __name__ == "__main__":
    main()
