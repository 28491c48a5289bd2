"""The small city as points scattered round its venues."""

import random
from functools import cache
from pathlib import Path

from small_city import Release, protect, scratch
from written_as import Visit, written

WORDS = ["--cluster-points", "150m", "--missing", "drop"]


HEAD = "uid,datetime,lat,lng\n"


@cache
def raw() -> Path:
    """As scikit-mobility has it, with points scattered around the venues."""
    draw = random.Random(4)

    def line(v: Visit) -> str:
        near = (f"{x + draw.gauss(0, 1e-4):.6f}" for x in (v.lat, v.lon))
        return f"{v.user},{v.time:%Y-%m-%d %H:%M:%S},{','.join(near)}"

    return written("raw.csv", line, HEAD)


@cache
def released() -> Release:
    return protect(raw(), scratch() / "raw-release", *WORDS)
