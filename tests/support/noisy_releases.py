"""Releases of a Foursquare file whose venues are noise in part, and whether more noise ever gets a worse word.

The rows of a smaller share of noise are among those of a larger one.
"""

import json
import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import small_city
from small_city import SEED, called, scratch

from ghostpoi.audits.verdicts import LEAKS, MUCH, SEVERITY

FIELDS = slice(1, 6)  # of a TSMC2014 line: venue id, category id and name, latitude, longitude
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the rows at a uniformly random venue of the whole city
QUICK = ("--adversaries", "frequency,bigram,habits,habits+leak,distilled", "--seeds", 2, "--no-naturalness")


def noisy(clean: Path, released: Path, share: float, seed: int = 0) -> Path:
    """Write the file with this share of the rows at a uniformly random venue of the whole file."""
    lines = [line.split("\t") for line in clean.read_text("latin-1").splitlines()]
    venues = list({line[1]: line[FIELDS] for line in lines}.values())
    draws, where = random.Random(seed), random.Random(seed + 1)
    for line in lines:
        venue, place = draws.choice(venues), where.random()
        if place < share:
            line[FIELDS] = venue
    released.write_text("".join("\t".join(line) + "\n" for line in lines), "latin-1")
    return released


def weak_crowd(clean: Path) -> Path:
    """Return a release in which about 31% of the rows are unchanged."""
    made = small_city.protect(
        clean, scratch() / f"{clean.stem}-weak", "--method", "crowd", "--seed", SEED, "--set", "method.size=4",
        "--set", "method.reach_km=1",
    )  # fmt: skip
    return made.folder


def audited(clean: Path, release: Path, *words: str) -> dict[str, Any]:
    """Audit a release with a few fast adversaries."""
    cache = scratch() / "monotone-cache"
    done = called("audit", clean, release, *QUICK, "--cache", cache, "--device", "cpu", "--json", *words)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def badness(found: dict[str, Any]) -> list[int]:
    """How bad the words are, by what adversaries hold and over both."""
    return [SEVERITY[word] for word in (*(found["gives_away"][leak]["verdict"] for leak in LEAKS), found["verdict"])]


def words_are_monotone(clean: Path, shares: Sequence[float], *words: str) -> None:
    """Check the words of these shares of noise, from none to all, of a weak crowd and of the clean file itself."""
    releases = [noisy(clean, scratch() / f"{clean.stem}-{share:g}.txt", share) for share in shares]
    each = [audited(clean, release, *words) for release in (*releases, weak_crowd(clean))]
    bad = [badness(found) for found in each]
    *parts, crowd = bad
    for less, more in pairwise(parts):
        assert all(a >= b for a, b in zip(less, more, strict=True)), bad
    assert parts[-1] == [0, 0, 0]
    assert all(a >= b for a, b in zip(crowd, parts[-1], strict=True))
    assert each[0]["gives_away"]["no_leak"]["verdict"] == MUCH
    for found in each:
        for leak in LEAKS:
            alone = found["controls"][found["gives_away"][leak]["control"]]
            assert found["worst_case"][leak]["acc@1"] >= alone["acc@1"]["mean"]
