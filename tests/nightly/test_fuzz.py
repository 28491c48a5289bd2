"""Mutated inputs: no traceback, no other exit code than 0, 1 or 2, no other field changed, bounded memory.

20,000 inputs, some in other surroundings; GHOSTPOI_FUZZ sets another number and GHOSTPOI_FUZZ_SEED another seed. To
repeat a failed case:
`PYTHONPATH=tests/support python -m fuzz SEED CASE CASE+1 EMPTY_FOLDER`, which leaves its input in the folder.
"""

import os
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import ROOT
from test_environments import SURROUNDINGS

CASES, SEED = int(os.environ.get("GHOSTPOI_FUZZ", 20_000)), os.environ.get("GHOSTPOI_FUZZ_SEED", "1")
CHUNK = 300  # cases of one process
FOUND = f"{ROOT}:{ROOT / 'tests' / 'support'}"  # where Python looks for the package and for `fuzz`
OUTCOMES = {
    *(f"{kind} {outcome}" for kind in ("text", "parquet") for outcome in ("released", "refused")),
    *(f"manifest {outcome}" for outcome in ("passed", "failed", "refused")),
}


def run_chunk(first: int, folder: Path) -> list[str]:
    """Run the cases from `first` on; return their results. A process that a case ends is started again after it."""
    results: list[str] = []
    at, last = first, min(first + CHUNK, CASES)
    around = [{}, *SURROUNDINGS.values()][first // CHUNK % (len(SURROUNDINGS) + 1)]
    env = os.environ | {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1", "PYTHONPATH": FOUND} | around
    while at < last:
        place = folder / str(at)
        place.mkdir()
        command = [sys.executable, "-m", "fuzz", SEED, str(at), str(last), str(place)]
        done = subprocess.run(command, capture_output=True, text=True, env=env)
        parts = re.split(r"^(\d+)\n", done.stdout, flags=re.MULTILINE)[1:]
        results += [text.rstrip() for text in parts[1::2] if text]
        if done.returncode == 0:
            break
        assert parts, f"the process did not start: {done.stderr}"
        results.append(f"case {parts[-2]}: it ended the process with {done.returncode}: {done.stderr[-2000:]}")
        at = int(parts[-2]) + 1
    return results


def test_mutated_inputs(tmp_path: Path) -> None:
    with ThreadPoolExecutor(min(os.cpu_count() or 1, -(-CASES // CHUNK))) as pool:
        results = [r for chunk in pool.map(lambda at: run_chunk(at, tmp_path), range(0, CASES, CHUNK)) for r in chunk]
    failed = [result for result in results if result not in OUTCOMES]
    assert not failed, "\n\n".join(failed[:20])
    counts = Counter(results)
    assert counts.total() == CASES
    assert counts.keys() | {"manifest passed"} == OUTCOMES, counts  # otherwise the mutations test less than they should


@pytest.mark.parametrize(("seed", "case"), [("1", 2992), ("1", 3917), ("1", 5149), ("2", 1849)])
def test_a_case_that_once_failed(seed: str, case: int, tmp_path: Path) -> None:
    """A number in place of the dropped columns; Parquet metadata on which pyarrow ended the process."""
    env = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": FOUND}
    command = [sys.executable, "-m", "fuzz", seed, str(case), str(case + 1), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[1] in OUTCOMES, done.stdout
