"""Twelve months of a synthetic city, and the same rows cut in other ways, for the tests of series."""

import csv
import json
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from small_city import SEED, Release, called, scratch

from ghostpoi.data.synthetic_files import write_city

USERS, POIS, DAYS, CITY = 80, 240, 360, 906
MONTHS = 12
Row = dict[str, str]


@cache
def rows() -> list[Row]:
    """All check-ins of the year, by time."""
    path = scratch() / "year.csv"
    write_city(path, USERS, POIS, DAYS, CITY)
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def day(row: Row) -> float:
    """The days since the first check-in of the year."""
    first, this = (datetime.strptime(r["utc_time"], "%a %b %d %H:%M:%S %z %Y") for r in (rows()[0], row))
    return (this - first).total_seconds() / 86_400


def written(path: Path, chosen: list[Row]) -> Path:
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, list(rows()[0]), lineterminator="\n")
        out.writeheader()
        out.writerows(chosen)
    return path


@cache
def days(begin: float, end: float) -> Path:
    """A file of the check-ins of these days."""
    return written(scratch() / f"days-{begin:g}-{end:g}.csv", [row for row in rows() if begin <= day(row) < end])


def month(number: int) -> Path:
    return days(30 * number, 30 * (number + 1))


def release_in(series: Path, file: Path, folder: Path, *more: object) -> Release:
    """A release that joins a series."""
    seed = [] if (series / "series.json").exists() else ["--seed", SEED]
    done = called("protect", file, "-o", folder, "--series", series, *seed, *more)
    assert done.returncode == 0, done.stderr
    return Release(folder, file, done)


def released_rows(release: Release) -> list[Row]:
    with release.data.open(newline="") as file:
        return list(csv.DictReader(file))


def clean_rows(file: Path) -> list[Row]:
    with file.open(newline="") as f:
        return list(csv.DictReader(f))


@cache
def year(kind: str, *more: str) -> Path:
    """All twelve months, released in a series or each alone; returns the series folder or the folder of releases."""
    folder = scratch() / "-".join([kind, *more]).replace("/", "").replace("=", "")
    folder.mkdir()
    for number in range(MONTHS):
        target = folder / f"month-{number:02}"
        if kind == "series":
            release_in(folder / "series", month(number), target, *more)
        else:
            own = ("--seed", SEED + number)  # each month is drawn on its own
            assert called("protect", month(number), "-o", target, *own, *more).returncode == 0
    return folder / "series" if kind == "series" else folder


def content(folder: Path, skip: Callable[[Path], bool] = lambda path: False) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in files(folder) if not skip(path)}


def files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


AUDIT = (
    "--victim", "markov", "--adversaries", "none", "--seeds", 1, "--no-naturalness", "--no-store", "--json",
    "--set", "filters.min_poi_checkins=3", "--set", "filters.min_user_checkins=3", "--set", "filters.train_share=0.5",
    "--set", "filters.val_share=0.25", "--set", "filters.session_gap_s=40000", "--set", "filters.min_session_length=2",
)  # fmt: skip


def audited(kind: str, *more: str) -> dict[str, Any]:
    """What audit --series says about the year."""
    folder = year(kind, *more)
    last = (folder if kind == "alone" else folder.parent) / "month-11"
    done = called("audit", month(MONTHS - 1), last, "--series", folder, *AUDIT)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["series"]
    return found
