"""Results on disk: `results/<study>-<protocol>.jsonl`, one line per cell, settings and stages by hash.

A cell that several studies ask for is stored once, in the file of the study that measured it first.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ghostpoi.errors import InputError
from ghostpoi.files import replacing

SETTINGS = "settings.json"  # hash -> all settings of a method, section by section
STAGES = "stages.json"  # hash -> the versions of the stages that cells went through
WORK = ".work"  # unfinished work
IDENTITY = ("kind", "data", "method", "adversary", "leak", "victim", "settings")
MAIN = "main"  # the study whose cells others share
DIGITS = 6  # decimals of every number; one test step of NYC is .00008

Cell = dict[str, Any]


def short_hash(found: Mapping[str, Any]) -> str:
    """Return a short hash of the settings of a method or of the stages of a cell; empty if there are none."""
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:12] if found else ""


class Store:
    """All cells of one protocol in a folder of results."""

    def __init__(self, results: Path, protocol: str) -> None:
        self.results, self.protocol = results, protocol

    def path(self, study: str) -> Path:
        """Return the file of a study's cells."""
        return self.results / f"{study}-{self.protocol}.jsonl"

    def cells(self, study: str | None = None) -> list[Cell]:
        """Read the cells of all studies, `study` first, then the main matrix. Each names its study."""
        first = [self.path(name) for name in (study, MAIN) if name]
        rest = sorted(self.results.glob(f"*-{self.protocol}.jsonl"))
        return [cell for path in dict.fromkeys([*first, *rest]) for cell in _read(path)]

    def add(self, study: str, cells: Sequence[Cell], settings: Mapping[str, Mapping[str, Any]]) -> None:
        """Write cells to the study's file, replacing those of the same identity, and the settings they name."""
        if not cells:
            return
        self.results.mkdir(parents=True, exist_ok=True)
        _remember(self.results / SETTINGS, settings)
        elsewhere = {identity(cell): cell for cell in self.cells(study)[::-1]}  # another study may have other seeds
        kept = {identity(cell): cell for cell in _read(self.path(study))}
        for cell in map(_rounded, cells):
            kept[identity(cell)] = extended(elsewhere.get(identity(cell)), cell)
        replace_cells(self.path(study), kept.values())


def replace_cells(path: Path, cells: Iterable[Cell]) -> None:
    """Write the file of a study again. The file's name says which study the cells are of."""
    stored = [{key: value for key, value in cell.items() if key != "study"} for cell in cells]
    stages = {short_hash(cell["stages"]): cell["stages"] for cell in stored if "stages" in cell}
    _remember(path.with_name(STAGES), stages)
    named = (cell | {"stages": short_hash(cell["stages"])} if "stages" in cell else cell for cell in stored)
    _write(path, "".join(json.dumps(cell, ensure_ascii=False, separators=(",", ":")) + "\n" for cell in named))


def identity(cell: Cell) -> tuple[str, ...]:
    """Return what makes two cells the same measurement."""
    return tuple(json.dumps(cell.get(key)) for key in IDENTITY)


def extended(old: Cell | None, new: Cell) -> Cell:
    """Return the new cell with the old one's seeds before its own, if data and stages are the same."""
    same = old is not None and all(old.get(key) == new.get(key) for key in ("content", "stages"))
    if old is None or not same or old["measures"].keys() != new["measures"].keys():
        return new
    kept = [i for i, seed in enumerate(old["seeds"]) if seed not in new["seeds"]]
    seeds = [*(old["seeds"][i] for i in kept), *new["seeds"]]
    both = {"hardware": " and ".join(dict.fromkeys([old["hardware"], new["hardware"]]))} if kept else {}
    return new | both | {"seeds": seeds, "measures": _joined(some_seeds(old["measures"], kept), new["measures"])}


def some_seeds(measures: Any, places: Sequence[int]) -> Any:
    """Return measures, nested dicts of one value per seed, of the seeds at some places. A floor has no seeds."""
    if isinstance(measures, Mapping):
        return {name: some_seeds(value, places) for name, value in measures.items()}
    return [measures[i] for i in places] if isinstance(measures, list) else measures


def _joined(old: Any, new: Any) -> Any:
    if isinstance(new, Mapping):
        return {name: _joined(old[name], value) for name, value in new.items()}
    return [*old, *new] if isinstance(new, list) else new


def _rounded(cell: Cell) -> Any:
    """The cell as it is stored."""
    known = {key: value for key, value in cell.items() if value is not None}
    return json.loads(json.dumps(known), parse_float=lambda number: round(float(number), DIGITS))


def _read(path: Path) -> list[Cell]:
    if not path.exists():
        return []
    cells, stages = list[Cell](), {"": {}} | _known(path.with_name(STAGES))
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        try:
            cell = json.loads(line)
            cell["kind"], cell["data"], cell["method"], cell["seeds"], cell["measures"]
            if isinstance(cell.get("stages"), str):
                cell["stages"] = stages[cell["stages"]]
        except (ValueError, KeyError, TypeError) as e:
            raise InputError(
                f"{path}, line {number} is not a cell ({e}); delete the line and run the study again"
            ) from None
        cells.append({"study": path.stem.rpartition("-")[0]} | cell)
    return cells


def _known(path: Path) -> dict[str, Any]:
    """What hashes stand for."""
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def _remember(path: Path, found: Mapping[str, Mapping[str, Any]]) -> None:
    """Write down what hashes stand for. Runs of several studies may do so at the same time."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        known = _known(path)
        if new := {key: value for key, value in found.items() if key and key not in known}:
            _write(path, json.dumps(dict(sorted((known | new).items())), indent=1) + "\n")
    finally:
        os.close(folder)


def _write(path: Path, text: str) -> None:
    with replacing(path) as out:
        out.write(text.encode())


@contextmanager
def only_run(results: Path, name: str) -> Iterator[None]:
    """Refuse a second run of the same study at the same time; a killed run holds no lock."""
    folder = results / WORK
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another run of {name} is writing to {results}; wait until it ends or choose another --results"
            ) from None
        yield
