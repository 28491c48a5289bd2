"""Part the venues of all pieces into regions, and tell each piece where its venues are."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl

from ghostpoi.data import regions
from ghostpoi.data.checkins import Ints, joined_groups
from ghostpoi.errors import InputError
from ghostpoi.settings import RegionSettings
from ghostpoi.world.job import Job, Region, is_done, leaving
from ghostpoi.world.survey import not_of_the_venue, read_survey

FOLDER, LIST, GROUPS = "regions", "regions.json", "groups.json"
AT_ONCE = 4_000_000  # venues of pieces that are joined at once: bounds the memory


def find_regions(job: Job) -> tuple[Region, ...]:
    """Return all regions, in the order of their keys."""
    place = job.folder / FOLDER
    if not is_done(place):
        with leaving(place) as folder:
            _find(job, folder)
    return tuple(
        Region(**one | {"pieces": tuple(one["pieces"])}) for one in json.loads((place / LIST).read_text("utf-8"))
    )


def region_of_rows(job: Job, number: int) -> Ints:
    """Return the region of each row of a piece, (N,). A row that lacks a value goes with the first that does not."""
    found = read_survey(job, number)
    if found is None:
        return np.empty(0, np.int32)
    venue, of_venue = found.venue, np.load(job.folder / FOLDER / f"{number:06}.npy")
    of_venue[0] = of_venue[venue[venue > 0][:1]].sum()
    route: Ints = of_venue[venue]
    return route


def _find(job: Job, folder: Path) -> None:
    venues = _all_venues(job)
    if not len(venues):
        raise InputError(f"{job.pieces.path} has no check-ins; give files with at least one row of data")
    lat, lon, visits = (venues[name].to_numpy() for name in ("lat", "lon", "visits"))
    rank = np.arange(len(venues))  # they are in the order of their ids
    if job.region_column:
        number = regions.numbered(venues["region"].rank("dense").to_numpy().astype(np.int32), rank)
    else:
        number = regions.numbered(regions.by_gap(lat, lon, job.settings.gap_km), rank)
    _check_size(job, int(number.max()) + 1, len(venues))
    cut = regions.cut(lat, lon, visits, number, rank, job.settings.most_venues, job.settings.most_rows)
    number = regions.numbered(cut, rank)
    placed = venues.select("id", number=pl.Series(number))
    pieces: dict[int, list[int]] = {}
    for piece in range(len(job.pieces.pieces)):
        found = read_survey(job, piece)
        if found is not None:
            of_venue = found.venues.select("id").join(placed, on="id", how="left", maintain_order="left")["number"]
            np.save(folder / f"{piece:06}.npy", np.append(0, of_venue.to_numpy()).astype(np.int32))
            for region in of_venue.unique().to_list():
                pieces.setdefault(region, []).append(piece)
    each = pl.DataFrame({"number": number, "lat": lat, "lon": lon, "visits": visits, "id": venues["id"]})
    named = each.with_columns(name=venues["region"]).group_by("number").agg(
        pl.col("id").min(), pl.col("lat").median(), pl.col("lon").median(), pl.col("visits").sum(), pl.len(),
        pl.col("name").first(),
    ).sort("number")  # fmt: skip
    listed = [
        Region(
            row["number"], row["id"], row["name"] or f"near {row['lat']:.2f}, {row['lon']:.2f}", row["len"],
            row["visits"], tuple(pieces[row["number"]]),
        )
        for row in named.iter_rows(named=True)
    ]  # fmt: skip
    _write_groups(job, folder)
    (folder / LIST).write_text(json.dumps([asdict(region) for region in listed]), "utf-8")


def groups_of(job: Job) -> dict[str, str]:
    """Return the group of each category of the dataset, if a column states it. A region may hold other rows of one."""
    place = job.folder / FOLDER / GROUPS
    found: dict[str, str] = json.loads(place.read_text("utf-8")) if place.exists() else {}
    return found


def _write_groups(job: Job, folder: Path) -> None:
    each = (found.groups for n in range(len(job.pieces.pieces)) if (found := read_survey(job, n)) is not None)
    (folder / GROUPS).write_text(json.dumps(joined_groups(each, str(job.pieces.path))), "utf-8")


def _check_size(job: Job, count: int, venues: int) -> None:
    """Refuse regions that the publisher made so small that most venues have no other to become."""
    if count == 1 or 2 * count <= venues:
        return
    column, gap = job.region_column, job.settings.gap_km
    if column or gap < RegionSettings().gap_km:
        asked = f"--map region={column}" if column else f"--set regions.gap_km={gap:g}"
        raise InputError(
            f"{asked}: {count:,} regions for {venues:,} venues would leave most rows genuine, because substitutes come "
            "from the same region; make regions larger, say cities, or leave the option out"
        )


def _all_venues(job: Job) -> pl.DataFrame:
    """Join the venues of all pieces, in the order of their ids. The earliest row tells where a venue is."""
    whole: list[pl.DataFrame] = []
    waiting, kind = 0, None
    for number, piece in enumerate(job.pieces.pieces):
        found = read_survey(job, number)
        if found is None:
            continue
        kind = kind or found.kind
        if kind != found.kind:
            raise InputError(
                f"{piece.path} has another format or other columns than the parts before it; give a folder of files of "
                "one kind"
            )
        whole.append(found.venues.with_columns(piece=pl.lit(number, pl.Int32)))
        waiting += len(whole[-1])
        if waiting > AT_ONCE:
            whole, waiting = [_joined(job, whole)], 0
    return _joined(job, whole) if whole else pl.DataFrame()


def _joined(job: Job, frames: list[pl.DataFrame]) -> pl.DataFrame:
    """Join venues with the same id: their visits add up, the earliest piece of the earliest row tells the rest."""
    ordered = pl.concat(frames).sort("id", "first", "piece")
    if job.region_column and (several := ordered.filter(pl.col("region").n_unique().over("id") > 1)).height:
        raise InputError(not_of_the_venue(job.region_column, several["id"][0]))
    return ordered.group_by("id", maintain_order=True).agg(
        pl.col("lat", "lon", "first").first(), pl.col("visits").sum(), pl.col("region", "piece").first()
    )
