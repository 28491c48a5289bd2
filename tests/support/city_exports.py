"""Exports of the small city, each made once, and what is in them."""

import csv
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import geopandas
import pyarrow.parquet as pq
import small_city
from small_city import called, scratch

# Short gaps cut the small city into enough sessions for a validation part.
SPLIT = ("--set", "filters.session_gap_s=20000", "--set", "filters.min_session_length=2")


PARTS = ("train", "valid", "test", "clean")


Step = tuple[str, list[str], str, int]  # user, venues so far, next venue, its time


def release(method: str = "random", *more: str) -> small_city.Release:
    return small_city.release(method, "txt", *SPLIT, *more)


@cache
def exported(made: small_city.Release, private: bool, name: str = "city", to: str = "recbole") -> Path:
    """An export, made once; all have the same name."""
    folder = scratch() / f"export-{len(list(scratch().iterdir()))}"
    folder.mkdir()
    done = called("export", made.folder, "--to", to, "-o", folder / name, *(["--private", made.private] * private))
    assert (done.returncode, done.stdout) == (0, f"{folder / name}\n"), done.stderr
    clean = f"{folder / name} holds clean data, so it is private: never publish it\n"
    assert done.stderr == (clean if private else "")
    return folder / name


def rows(path: Path) -> list[list[str]]:
    """The fields of a file, without its header."""
    return [line.split("\t") for line in path.read_text("utf-8").splitlines()[1:]]


def steps(folder: Path, part: str) -> list[Step]:
    found = rows(folder / f"city.{part}.inter")
    return sorted((user, before.split(" "), target, int(time)) for user, before, target, time in found)


Visit = tuple[str, str, int]  # user, venue, UTC seconds


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def records(folder: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a Parquet file, of GeoJSON, or of a layer, city.gpkg:checkins."""
    if name.endswith(".parquet"):
        return pq.read_table(folder / name).to_pylist()
    file, _, layer = name.partition(":")
    frame = geopandas.read_file(folder / file, layer=layer or None)
    assert frame.crs == 4326
    places = frame.assign(latitude=frame.geometry.y, longitude=frame.geometry.x).drop(columns="geometry")
    return places.to_dict("records")


RECORDS = ("hf", "geojson", "gpkg")  # exports that `records` reads


def visits(to: str, folder: Path, name: str) -> list[Visit]:
    """The rows of a file, in its order, with the ids of the release and not the tool's numbers."""
    path = folder / name
    if to in RECORDS:
        return [(row["user_id"], row["venue_id"], int(row["time"].timestamp())) for row in records(folder, name)]
    if to == "skmob":
        return [(row["uid"], row["location_id"], seconds(row["datetime"])) for row in table(path)]
    if to == "libcity":
        user = {row["usr_id"]: row["user_id"] for row in table(folder / "city.usr")}
        venue = {row["geo_id"]: row["venue_id"] for row in table(folder / "city.geo")}
        return [(user[row["entity_id"]], venue[row["location"]], seconds(row["time"])) for row in table(path)]
    user = {row["number"]: row["user"] for row in table(folder / "city.users.csv")}
    venue = {row["number"]: row["venue"] for row in table(folder / "city.venues.csv")}
    if to == "getnext":
        return [(user[row["user_id"]], venue[row["POI_id"]], seconds(row["UTC_time"])) for row in table(path)]
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    return [(user[who], venue[where], seconds(time)) for who, time, _, _, where in lines]
