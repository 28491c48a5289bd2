"""Mutants: small faults put into core stages, one at a time. The tests of the stage must notice most of them.

Each stage gets its share of 150 mutants, drawn with a fixed seed. The failure names every mutant that lived. It is
equivalent, or needs a test. The environment sets

- GHOSTPOI_MUTANTS: another number,
- GHOSTPOI_MUTANTS_SEED: another seed,
- GHOSTPOI_MUTANTS_STAGES: fewer stages, as parts of their names: "draw/ data/candidates",
- GHOSTPOI_MUTANTS_WORKERS: how many run at once.
"""

import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from conftest import ROOT

MUTANTS = int(os.environ.get("GHOSTPOI_MUTANTS", "150"))
CHOSEN = os.environ.get("GHOSTPOI_MUTANTS_STAGES", "/").split()
SEED = int(os.environ.get("GHOSTPOI_MUTANTS_SEED", "1"))
LEAST = 0.85  # share that must be noticed
WORKERS = int(os.environ.get("GHOSTPOI_MUTANTS_WORKERS", "2"))
PATIENCE = 5.0  # times what the tests take without a mutant: longer is a loop without end
UNIT, INTEGRATION = Path("tests/unit"), Path("tests/integration")
RECORDED = f"{INTEGRATION}/study/test_stages.py::test_an_output_changes_with_the_version[{{}}]"
STAGES: dict[str, tuple[Path, ...]] = {
    "draw/scoring.py": (
        INTEGRATION / "draw/test_position.py",
        UNIT / "draw/test_unlearnable_baselines.py",
        INTEGRATION / "draw/test_methods.py",
    ),
    "draw/crowds.py": (
        *(UNIT / f"draw/test_{part}_reference.py" for part in ("crowd", "halves")),
        *(INTEGRATION / f"draw/test_{part}.py" for part in ("crowds", "crowd_kinds")),
    ),
    "data/sessions.py": tuple(UNIT / f"data/test_{part}.py" for part in ("sessions", "region_crossings")),
    "data/candidates.py": (
        *(UNIT / f"data/test_{part}.py" for part in ("candidates", "learned_candidates", "hidden")),
        Path(RECORDED.format("candidates")),
    ),
    "audits/verdicts.py": tuple(
        UNIT / f"audits/test_{part}.py" for part in ("verdicts", "conclusions", "limits", "given_away")
    ),
    "audits/measures/accuracy.py": (UNIT / "audits/test_measures.py", Path(RECORDED.format("accuracy"))),
    "columns/dependence.py": tuple(
        UNIT / f"columns/test_{part}.py" for part in ("dependence_reference", "dependence", "columns")
    ),
    "columns/order.py": tuple(UNIT / f"columns/test_{part}.py" for part in ("order_reference", "row_order")),
    "columns/pairs.py": tuple(UNIT / f"columns/test_{part}.py" for part in ("pairs_reference", "venue_pairs")),
    "release/manifest.py": (
        *(UNIT / f"release/test_manifest_{part}.py" for part in ("rules", "shape")),
        INTEGRATION / "release/test_seal.py",
    ),
    "release/verify.py": (
        *(UNIT / f"release/test_{part}.py" for part in ("verified_identity", "stated_manifest")),
        *(INTEGRATION / f"release/test_verify{part}.py" for part in ("_refuses", "", "_recomputes")),
    ),
    "attack/adversaries/habits.py": tuple(
        UNIT / f"attack/test_{part}.py" for part in ("habits_reference", "session_habits", "deconvolution")
    ),
    "data/pseudonyms.py": (UNIT / "data/test_pseudonym_spans.py", INTEGRATION / "release/test_times.py"),
    "release/identity.py": (
        UNIT / "release/test_verified_identity.py",
        UNIT / "columns/test_pseudonym_ids.py",
        *(INTEGRATION / f"release/test_{part}.py" for part in ("pseudonyms", "times")),
    ),
}
LEFT_OUT = shutil.ignore_patterns(".*", "site", "results", "docs", "__pycache__", "demo*", "*.egg-info")

COMPARES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A fault in one line of a stage."""

    stage: str
    line: int
    before: str
    after: str
    make: Callable[[], str]

    @property
    def source(self) -> str:
        """The stage with the fault."""
        return self.make()

    def __str__(self) -> str:
        return f"{self.stage}:{self.line}: {self.before}  ->  {self.after}"


def changed(node: ast.AST) -> ast.AST | None:
    """Return a node with a fault; None if there is none for it."""
    new = copy.deepcopy(node)
    if isinstance(new, ast.Compare) and type(new.ops[0]) in COMPARES:
        new.ops[0] = COMPARES[type(new.ops[0])]()
    elif isinstance(new, ast.BoolOp):
        new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
    elif isinstance(new, ast.BinOp) and type(new.op) in OPERATORS:
        new.op = OPERATORS[type(new.op)]()
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not):
        return new.operand
    elif isinstance(new, ast.Constant) and type(new.value) in (int, float, bool):
        new.value = not new.value if isinstance(new.value, bool) else new.value + 1
    elif isinstance(new, ast.IfExp):
        new.body, new.orelse = new.orelse, new.body
    else:
        return None
    return new


def expressions(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of code that runs: no annotations, texts or types."""
    for name, value in ast.iter_fields(tree):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in ("annotation", "returns", "decorator_list", "msg"):
                yield child
                if not isinstance(child, ast.JoinedStr):
                    yield from expressions(child)


def mutants_of(stage: str) -> list[Mutant]:
    """Return all mutants of a stage, in the order of its lines."""
    text = (ROOT / "ghostpoi" / stage).read_text("utf-8")
    tree, found = ast.parse(text), []
    for node in expressions(tree):
        if isinstance(node, ast.expr) and (new := changed(node)) is not None:
            make = partial(with_fault, tree, node, new)
            found.append(Mutant(stage, node.lineno, ast.unparse(node), ast.unparse(new), make))
    return found


def with_fault(tree: ast.AST, old: ast.AST, new: ast.AST) -> str:
    """Return the text of a tree in which a node is replaced."""
    return ast.unparse(_Put(old, new).visit(copy.deepcopy(tree, {id(old): old})))


class _Put(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else super().visit(node)  # type: ignore[no-any-return]


def sample() -> list[Mutant]:
    """Draw the mutants: the same number of every stage, but for one; return those of the chosen stages."""
    draw = random.Random(SEED)
    share, more = divmod(MUTANTS, len(STAGES))
    found = []
    for number, stage in enumerate(STAGES):
        every = mutants_of(stage)
        found += draw.sample(every, min(len(every), share + (number < more)))
    return [one for one in found if any(part in one.stage for part in CHOSEN)]


# A process that imports much, but not ghostpoi nor what pytest must see first, then forks a child per run of tests. An
# alarm ends a child that takes too long.
SERVER = """
import json, os, signal, sys
import numpy, polars, pyarrow.parquet, pytest, scipy.sparse, torch
for line in sys.stdin:
    words, limit = json.loads(line)
    child = os.fork()
    if child == 0:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        signal.alarm(limit)
        os._exit(pytest.main(words))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Place:
    """A copy of the project, and the process that runs tests in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(shutil.copytree(ROOT, folder, ignore=LEFT_OUT))
        env = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "GHOSTPOI_DATA": str(folder), "OMP_NUM_THREADS": "1"}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.server = subprocess.Popen([sys.executable, "-c", SERVER], cwd=folder, env=env, **pipes)

    def run(self, stage: str, limit: float = 0) -> bool:
        """Return whether the tests of a stage pass within so many seconds; 0: however long they take."""
        words = ["-x", "--no-header", *map(str, STAGES[stage])]
        assert self.server.stdin
        assert self.server.stdout
        self.server.stdin.write(json.dumps([words, int(limit)]) + "\n")
        self.server.stdin.flush()
        return int(self.server.stdout.readline()) == 0

    def passes_with(self, mutant: Mutant, limit: float) -> bool:
        """Return whether the tests of its stage do not notice a mutant."""
        path = self.folder / "ghostpoi" / mutant.stage
        before = path.read_text("utf-8")
        path.write_text(mutant.source, "utf-8")
        try:
            lives = self.run(mutant.stage, limit)
        finally:
            path.write_text(before, "utf-8")
        print("lived" if lives else "killed", mutant, flush=True)  # seen with -s
        return lives


@pytest.fixture
def places(tmp_path: Path) -> "Iterator[SimpleQueue[Place]]":
    """Copies of the project, one per worker."""
    made, free = [Place(tmp_path / str(number)) for number in range(WORKERS)], SimpleQueue[Place]()
    for place in made:
        free.put(place)
    yield free
    for place in made:
        place.server.communicate()


def test_the_tests_of_a_stage_notice_its_faults(places: "SimpleQueue[Place]") -> None:
    limits: dict[str, float] = {}

    def lives(mutant: Mutant) -> bool:
        place, stage = places.get(), mutant.stage
        try:
            if stage not in limits:
                began = time.monotonic()
                assert place.run(stage), f"{stage}: its tests fail by themselves"
                limits[stage] = 60 + PATIENCE * (time.monotonic() - began)
            return place.passes_with(mutant, limits[stage])
        finally:
            places.put(place)

    mutants = sample()
    with ThreadPoolExecutor(WORKERS) as pool:
        lived = [str(one) for one, lived in zip(mutants, pool.map(lives, mutants), strict=True) if lived]
    assert len(lived) <= (1 - LEAST) * len(mutants), "\n".join([f"{len(lived)} of {len(mutants)} lived", *lived])


def test_every_stage_has_mutants_that_parse() -> None:
    for stage in STAGES:
        every = mutants_of(stage)
        assert len(every) >= MUTANTS // len(STAGES)
        for one in every:
            assert ast.parse(one.source)
            assert one.before != one.after
