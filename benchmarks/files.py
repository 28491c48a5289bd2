"""Reading a large table compared with polars alone, `protect` next to busy processes, and its estimated time."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.measured import Cost, ghostpoi, measured
from ghostpoi.data.synthetic_files import write_city
from ghostpoi.errors import InputError

ROWS_PER_USER = 106  # check-ins of a synthetic user in DAYS days
DAYS = 180
BUSY = "while True: pass"
METHODS = ("crowd", "ghost")  # whose times are estimated
FACTOR = 2.0  # by which an estimate may be wrong


def prepare(rows: int, pois: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Time each step in a process of its own, which also isolates its peak memory.

    `ratio` is the time of ghostpoi over the time of polars alone on the same file.
    """
    if rows < 1 or pois < 1:
        raise InputError("--rows and --pois must be at least 1")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "city.txt"
        say(f"making a synthetic table of about {rows:,} rows")
        users = max(1, rows // ROWS_PER_USER)
        made = in_a_process(write_city, path, users, max(2, users * 5 // 4), DAYS, 0)
        size = path.stat().st_size
        say("polars alone: read and sort")
        _, polars_s, polars_peak = in_a_process(polars_alone, path)
        say("ghostpoi: read, filter, segment")
        sessions, ghostpoi_s, ghostpoi_peak = in_a_process(read_and_segment, path)
        say(f"candidate sets of {pois:,} POIs")
        _, candidates_s, candidates_peak = in_a_process(find_candidates, pois)
    return {
        "rows": made, "file_bytes": size, "sessions": sessions, "polars_seconds": polars_s,
        "ghostpoi_seconds": ghostpoi_s, "ratio": ghostpoi_s / polars_s, "polars_peak_bytes": polars_peak,
        "ghostpoi_peak_bytes": ghostpoi_peak, "peak_over_file_size": ghostpoi_peak / size,
        "candidate_pois": pois, "candidate_seconds": candidates_s, "candidate_peak_bytes": candidates_peak,
    }  # fmt: skip


def in_a_process(work: Callable[..., Any], *args: Any) -> Any:
    """Run `work` in a process of its own. It inherits the parent's peak memory, so the parent must stay small."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *args).result()


def _peak() -> int:
    """Return the peak memory so far. The increase during a step excludes the interpreter and libraries."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def polars_alone(path: Path) -> tuple[int, float, int]:
    """Do the least that any tool built on polars must do; return rows, seconds and bytes."""
    import polars as pl

    from ghostpoi.formats.delimited import TSMC_COLUMNS

    before, begin = _peak(), time.perf_counter()
    frame = pl.read_csv(
        path, has_header=False, new_columns=list(TSMC_COLUMNS), separator="\t", quote_char=None, encoding="utf8-lossy"
    )
    frame = frame.sort("user", "utc_time")
    return frame.height, time.perf_counter() - begin, _peak() - before


def read_and_segment(path: Path) -> tuple[int, float, int]:
    """Do the first steps of `inspect` and `protect`; return sessions, seconds and bytes."""
    from ghostpoi import formats
    from ghostpoi.data import sessions
    from ghostpoi.settings import FilterSettings

    before, begin = _peak(), time.perf_counter()
    table = formats.read(path).table
    data = sessions.build(table, FilterSettings())
    return len(data.all), time.perf_counter() - begin, _peak() - before


def find_candidates(pois: int) -> tuple[int, float, int]:
    """Find the candidate sets of a city of this size; return the candidates, seconds and bytes."""
    import numpy as np

    from ghostpoi.data import candidates
    from ghostpoi.data.synthetic import make_city
    from ghostpoi.settings import CandidateSettings

    city = make_city(1, pois, 1, 0)
    lat, lon = (np.concatenate([[np.nan], a]) for a in (city.poi_lat, city.poi_lon))
    category = np.concatenate([[-1], city.poi_category]).astype(np.int32)
    begin = time.perf_counter()
    found = candidates.find(lat, lon, category, CandidateSettings())
    return int(found.size.sum()), time.perf_counter() - begin, _peak()


def busy(users: int, others: int, method: str, say: Callable[[str], None]) -> dict[str, Any]:
    """Protect a synthetic city alone, then next to `others` busy processes. `ratio` is the second time over the first.

    `cpu_ratio` compares CPU time: waiting in vain would raise it.
    """
    with tempfile.TemporaryDirectory() as name:
        city = Path(name) / "city.txt"
        write_city(city, users, 3 * users, 80, 0)
        say("protecting alone")
        alone = _protect(city, method)
        say(f"protecting next to {others} busy processes")
        with ExitStack() as stack:
            for _ in range(others):
                stack.enter_context(_busy_process())
            beside = _protect(city, method)
    return {
        "ratio": beside.seconds / alone.seconds,
        "cpu_ratio": beside.cpu_seconds / alone.cpu_seconds,
        "alone": alone._asdict(),
        "beside": beside._asdict(),
        "busy_processes": others,
        "cores": os.cpu_count(),
    }


@contextmanager
def _busy_process() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _protect(city: Path, method: str) -> Cost:
    with tempfile.TemporaryDirectory() as name:
        return measured(ghostpoi("protect", city, "-o", Path(name) / "release", "--method", method))


def estimate(users: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Estimate and protect a synthetic city with each method. `ratio` is that of the estimate that is furthest off.

    It is the larger of the two times over the smaller.
    """
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        city = Path(name) / "city.txt"
        write_city(city, users, 3 * users, 80, 0)
        for method in METHODS:
            words = ("protect", city, "-o", Path(name) / method, "--method", method)
            say(f"estimating and protecting with {method}")
            expected, taken = _expected(*words), measured(ghostpoi(*words)).seconds
            found[method] = {"expected": expected, "seconds": taken, "expected_over_taken": expected / taken}
    shares = [one["expected_over_taken"] for one in found.values()]
    ratio = max(max(share, 1 / share) for share in shares)
    return {"ratio": ratio, "within_factor": ratio <= FACTOR, "factor": FACTOR, "users": users, **found}


def _expected(*words: object) -> float:
    done = subprocess.run(ghostpoi(*words, "--dry-run", "--json"), capture_output=True, text=True)
    if done.returncode:
        raise InputError(f"protect --dry-run ended with code {done.returncode}: {done.stderr.strip()}")
    return float(json.loads(done.stdout)["seconds"])
