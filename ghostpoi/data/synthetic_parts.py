"""Write a synthetic world as a folder of parts, one city in memory at a time.

The rows are those of one long table, city by city and by time within a city. The parts are consecutive slices of it.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import polars as pl

from ghostpoi.data.synthetic_file import typed_frame, with_text_times
from ghostpoi.data.synthetic_world import World
from ghostpoi.errors import InputError
from ghostpoi.files import new_folder
from ghostpoi.options import option
from ghostpoi.progress import Report, no_report

WRITE: dict[str, Callable[[pl.DataFrame, Path], None]] = {
    "parquet": lambda frame, path: frame.write_parquet(path),
    "csv": lambda frame, path: with_text_times(frame).write_csv(path, quote_style="necessary"),
}
ROWS_PER_PART = 500_000
MAX_PARTS = 100_000  # names sort as numbers
FILES = (".txt", ".csv", ".tsv", ".parquet", ".gz", ".xz", ".zst")  # endings of -o without --cities


def write_world(
    folder: Path, world: World, rows_per_part: int = ROWS_PER_PART, format: str = "parquet", report: Report = no_report
) -> int:
    """Make a world, write it to a new folder and return the number of check-ins."""
    if format not in WRITE:
        raise InputError(f"{option('format', format)}: use {' or '.join(WRITE)}")
    if rows_per_part < 1:
        raise InputError(f"{option('rows_per_part')} must be at least 1, not {rows_per_part}")
    if folder.suffix.lower() in FILES:
        raise InputError(
            f"{option('output', folder)}: {option('cities')} writes a folder of parts; leave out {folder.suffix}"
        )
    rows = 0
    with new_folder(folder) as unfinished:
        for number, part in enumerate(cut(city_frames(world, report), rows_per_part)):
            if number == MAX_PARTS:
                raise InputError(f"the world has more than {MAX_PARTS:,} parts; raise {option('rows_per_part')}")
            WRITE[format](part, unfinished / f"part-{number:05d}.{format}")
            rows += part.height
        if rows == 0:
            raise InputError(
                f"the world has no check-ins; raise {option('cities')}, {option('users')} or {option('days')}"
            )
    return rows


def city_frames(world: World, report: Report = no_report) -> Iterator[pl.DataFrame]:
    """Make the tables of the cities one after another: the columns of TSMC2014, and the city."""
    for number in range(world.cities):
        frame = typed_frame(world.city(number), f"venue {world.seed} {number}")
        yield frame.with_columns(city=pl.lit(f"city-{number:03d}"))
        del frame  # before the next city is made
        report("making cities", 1)


def cut(frames: Iterable[pl.DataFrame], rows: int) -> Iterator[pl.DataFrame]:
    """Cut the table that the frames make up into parts of `rows` rows. It holds one part and one frame."""
    held: list[pl.DataFrame] = []
    missing = rows
    for frame in frames:
        begin = 0
        while frame.height - begin >= missing:
            yield pl.concat([*held, frame.slice(begin, missing)], rechunk=True)
            begin += missing
            held, missing = [], rows
        if begin < frame.height:
            held.append(frame.slice(begin))
            missing -= held[-1].height
        del frame
    if held:
        yield pl.concat(held, rechunk=True)
