"""The time that `protect --dry-run` expects against the time that `protect` takes."""

import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ghostpoi.bench.measured import ghostpoi, measured
from ghostpoi.data.synthetic_file import write_city
from ghostpoi.errors import InputError

METHODS = ("crowd", "ghost")
FACTOR = 2.0  # by which an estimate may be wrong


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
