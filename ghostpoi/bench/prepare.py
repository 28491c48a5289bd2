"""Reading, filtering, segmenting and candidate search on a large synthetic table, beside polars alone."""

import resource
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from ghostpoi.errors import InputError

ROWS_PER_USER = 106  # what the synthetic city gives in DAYS days
DAYS = 180


def run(rows: int, pois: int, say: Callable[[str], None]) -> dict[str, Any]:
    """Measure each step in a process of its own, so that its peak memory is its own."""
    if rows < 1 or pois < 1:
        raise InputError("--rows and --pois must be at least 1")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "city.txt"
        users = max(1, rows // ROWS_PER_USER)
        say(f"making a synthetic table of about {rows:,} rows")
        made = _alone(make_table, path, users)
        size = path.stat().st_size
        say("polars alone: read and sort")
        _, polars_s, polars_peak = _alone(polars_alone, path)
        say("ghostpoi: read, filter, segment")
        counts, ours_s, ours_peak = _alone(read_and_segment, path)
        say(f"candidates of {pois:,} POIs")
        _, candidates_s, candidates_peak = _alone(find_candidates, pois)
    return {
        "rows": made[0],
        "file_bytes": size,
        "sessions": counts,
        "polars_seconds": polars_s,
        "ghostpoi_seconds": ours_s,
        "ratio": ours_s / polars_s,
        "polars_peak_bytes": polars_peak,
        "peak_bytes": ours_peak,
        "peak_over_file_size": ours_peak / size,
        "candidate_pois": pois,
        "candidate_seconds": candidates_s,
        "candidate_peak_bytes": candidates_peak,
    }


def _alone(work: Callable[..., Any], *args: Any) -> Any:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *args).result()


def _peak() -> int:
    """The most memory so far; what a step adds to it is what the step needed, without the interpreter and libraries."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def make_table(path: Path, users: int) -> tuple[int]:
    from ghostpoi.data.synthetic_file import write_city

    return (write_city(path, users, max(2, users * 5 // 4), DAYS, 0),)


def polars_alone(path: Path) -> tuple[int, float, int]:
    """The least that any tool built on polars must do."""
    import polars as pl

    from ghostpoi.data.formats.tsmc2014 import COLUMNS

    before, begin = _peak(), time.perf_counter()
    frame = pl.read_csv(
        path, has_header=False, new_columns=list(COLUMNS), separator="\t", quote_char=None, encoding="utf8-lossy"
    )
    frame = frame.sort("user", "utc_time")
    return frame.height, time.perf_counter() - begin, _peak() - before


def read_and_segment(path: Path) -> tuple[int, float, int]:
    """What `inspect` and `protect` do first."""
    from ghostpoi.data import formats, sessions
    from ghostpoi.settings import FilterSettings

    before, begin = _peak(), time.perf_counter()
    table, _ = formats.read(path)
    data = sessions.build(table, FilterSettings())
    return len(data.all), time.perf_counter() - begin, _peak() - before


def find_candidates(pois: int) -> tuple[int, float, int]:
    """C0 of every venue of a large city."""
    import numpy as np

    from ghostpoi.data import candidates
    from ghostpoi.data.synthetic import make_city

    city = make_city(1, pois, 1, 0)
    lat, lon = (np.concatenate([[np.nan], a]) for a in (city.poi_lat, city.poi_lon))
    category = np.concatenate([[-1], city.poi_category]).astype(np.int32)
    from ghostpoi.settings import CandidateSettings

    begin = time.perf_counter()
    found = candidates.find(lat, lon, category, CandidateSettings())
    return int(found.size.sum()), time.perf_counter() - begin, _peak()
