"""What a row passes through in `protect`: files and functions of the package, in memory and region by region."""

import io
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import ghostpoi as package
from benchmarks.files import in_a_process
from ghostpoi import formats
from ghostpoi.cli.app import app
from ghostpoi.data.synthetic_files import write_city

PACKAGE = str(Path(package.__file__).parent)
ENGINES = {"memory": (), "local": ("--engine", "local")}


def trace(users: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Protect a synthetic CSV file in this process, without an engine and with the local one.

    `ratio` is the number of functions with the local engine over that without. Bodies of modules and classes, which run
    once at the import, do not count.
    """
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        city = Path(name) / "city.csv"
        write_city(city, users, 3 * users, 60, 0)
        for engine, words in ENGINES.items():
            say(f"protecting with the engine: {engine}")
            command = ["protect", str(city), "-o", str(Path(name) / engine), *words]
            found[engine] = in_a_process(traced, command)  # a second run in this one would find its caches filled
    return {"ratio": found["local"]["functions"] / found["memory"]["functions"], "users": users, **found}


def traced(command: list[str]) -> dict[str, int]:
    """Run a command of ghostpoi in this process; return the files and functions it passes, and how often it reads."""
    with counted() as calls, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        app(command, standalone_mode=False)
    files = {code.co_filename for code in calls}
    return {"files": len(files), "functions": len(calls), "reads": calls[formats.read.__code__]}


@contextmanager
def counted() -> Iterator[Counter[CodeType]]:
    """Count the calls of the package's functions inside the block, in all threads."""
    calls = Counter[CodeType]()

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_flags & CO_OPTIMIZED and code.co_filename.startswith(PACKAGE):
            calls[code] += 1

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
