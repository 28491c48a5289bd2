"""The rows of a release leave their regions: in the order of the dataset or, with other ids or times, in another.

Regions are protected under the user ids and times of the file, in its order. Then the ids, times and places of all rows
are drawn as in memory, which takes about 200 bytes per row; the rows themselves move block by block.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ghostpoi.data.checkins import Checkins, Longs, concatenated
from ghostpoi.draw.whole_table import fast_steps
from ghostpoi.errors import InputError
from ghostpoi.files import make_private_folder, replacing, save_arrays
from ghostpoi.formats import Rows, Source
from ghostpoi.formats.rows import Dialect
from ghostpoi.formats.source import shown as as_size
from ghostpoi.formats.written_times import with_times
from ghostpoi.options import option
from ghostpoi.regions.divide import ROWS, TAIL, file_of, regions_in, surveys_of
from ghostpoi.regions.job import FRAGMENTS, RELEASED, Job
from ghostpoi.regions.packs import head_of, in_order, pack_by, read_groups
from ghostpoi.regions.pieces import PIECE_ROWS, Pieces, read_piece
from ghostpoi.release import identity

MOVED = "moved"  # blocks of rows on their way
MEMORY = 200  # bytes for each row of which the id and the time are changed


def table_of(source: Source, pieces: Pieces, mapping: dict[str, str], memory: int | None = None) -> Checkins:
    """Return the users, places and times of all rows of a dataset; refuse more rows than fit."""
    tables, rows = list[Checkins](), 0
    for piece in pieces.pieces:
        if file := read_piece(source, piece, mapping):
            tables.append(file.table)
            rows += len(file.table)
        if memory is not None and (need := MEMORY * rows) > memory:
            raise InputError(
                f"{pieces.path}: other user ids and times are drawn over all rows, which needs {as_size(need)}; "
                f"allow more with {option('memory')}, or keep both with {option('pseudonyms', 'keep')} and "
                f"{option('times', 'keep')}"
            )
    return concatenated(tables, str(pieces.path))


def origins(job: Job) -> tuple[Longs, Longs]:
    """Return the row of the table that each released row comes from, (M,), in the order of the file, and its region."""
    before, rows, regions = 0, list[Longs](), list[Longs]()
    for piece, survey in surveys_of(job).items():
        present = np.sort(pl.read_parquet(survey.folder / ROWS, columns=["row"])["row"].to_numpy())
        found = [(g.places, r) for r in regions_in(job, piece) for g in read_groups(job.result(RELEASED, r), [piece])]
        place = np.concatenate([np.empty(0, np.int32), *(places for places, _ in found)])
        region = np.repeat([r for _, r in found], [len(places) for places, _ in found]).astype(np.int64)
        order = np.argsort(place)
        rows.append(before + np.searchsorted(present, place[order]))
        regions.append(region[order])
        before += survey.rows
    return np.concatenate(rows), np.concatenate(regions)


def released_rows(job: Job, piece: int) -> Rows | None:
    """Return the released rows of a piece in the order of the dataset, if any. Each region has read its own back."""
    folders = (job.result(RELEASED, region) for region in regions_in(job, piece))
    groups = [group for folder in folders for group in read_groups(folder, [piece])]
    places = np.concatenate([group.places for group in groups]) if groups else np.empty(0)
    if len(np.unique(places)) < len(places):
        raise ValueError("two regions hold the same row")
    return in_order(groups, job.pieces.names[job.pieces.pieces[piece].part]) if groups else None


def tail_of(job: Job, part: int) -> bytes:
    """Return what ends the last line of a part, if it is text."""
    tail = job.result(FRAGMENTS, job.pieces.of_part(part)[-1].number) / TAIL
    return tail.read_bytes() if tail.exists() else b""


def new_names(pieces: Pieces) -> tuple[str, ...]:
    """Return the names of the parts of a release whose rows stand in another order."""
    ending = min(Path(name).suffix for name in pieces.names)
    return tuple(f"part-{n:05}{ending}" for n in range(len(pieces.names))) if pieces.several else pieces.names


def sizes_of(rows: int, parts: int) -> list[int]:
    """Return how many rows each part of a release has if they stand in another order."""
    return np.bincount(np.arange(rows) * parts // max(1, rows), minlength=parts).tolist()


def write_changed(job: Job, clean: Checkins, out: Path, private: Path) -> dict[str, Any]:
    """Write the rows of a release to a folder, with new ids, times and places.

    Write what undoes that to a private file; return what the manifest says about it.
    """
    settings, user, count, work = job.request.settings, job.fields["user"], len(job.pieces.names), job.folder / MOVED
    shown, region = origins(job)
    released = ((p, rows) for p in job.pieces.pieces if (rows := released_rows(job, p.number)) is not None)
    _, some = first = next(released)
    file = file_of(job, some, str(job.pieces.path))
    new = identity.draw(clean, shown, settings, job.seed, some.largest_number(user) if settings.hides_users else None)
    place = np.empty(len(clean), np.int64)
    place[new.row] = np.arange(len(new.row))
    place, ids = place[shown], new.released_ids
    ends = np.cumsum([0, *sizes_of(len(shown), count)])
    blocks = np.concatenate([np.arange(a, b, PIECE_ROWS) for a, b in pairwise(ends)])
    make_private_folder(work)
    tails, tables, folders, at = [b""], list[Checkins](), list[Path](), 0
    for piece, rows in chain([first], released):
        tables.append(file_of(job, rows, str(job.pieces.path)).table)
        tails.append(tail_of(job, piece.part))
        folders.append(work / f"{piece.number:06}")
        make_private_folder(folders[-1])
        here, at = place[at : at + len(rows)], at + len(rows)
        order = np.argsort(here)
        block = np.searchsorted(blocks, here[order], "right") - 1
        pack_by(folders[-1], block, (here[order] - blocks[block]).astype(np.int32), rows.take(order))

    def changed(number: int, name: str) -> Rows:
        rows = in_order([group for folder in folders for group in read_groups(folder, [number])], name)
        here = slice(blocks[number], blocks[number] + len(rows))
        rows = rows.replace_ids(user, ids[here]) if settings.hides_users else rows
        return with_times(file, rows, new.time[here]) if settings.identity.times != "keep" else rows

    for name, (begin, end) in zip(new_names(job.pieces), pairwise(ends), strict=True):
        own = np.flatnonzero((blocks >= begin) & (blocks < end)).tolist()
        write_part(out / name, (changed(number, name) for number in own), head_of(folders[0]), max(tails))
    with replacing(private, mode=0o600) as stored:
        save_arrays(stored, {"shown": new.row, **identity.map_arrays(clean, new)})
    # A step is counted where both its ends are in one region, as verify counts it.
    unit = np.unique(np.stack([region, new.number[shown]]), axis=1, return_inverse=True)[1].reshape(-1)
    table = concatenated(tables, str(job.pieces.path))
    shows = replace(table, user=unit.astype(np.int32), time=new.time[place])
    speed = fast_steps(shows, settings.speed.limit_kmh, settings.speed.min_gap_s)
    return {"identity": new.public, "speed": speed}


def write_part(path: Path, rows: Iterator[Rows], head: Any, tail: bytes) -> None:
    """Write rows as one file: a table, or text, which begins and ends as `head` and `tail` say if it has no rows."""
    with replacing(path) as out:
        if not isinstance(head, Dialect):
            from ghostpoi.formats.parquet import ParquetRows, write_tables  # pyarrow is slow to import

            first = next(rows, None)
            found = (some.segment() for some in chain([first], rows) if isinstance(some, ParquetRows))
            write_tables(found, first.schema if isinstance(first, ParquetRows) else head, out)
            return
        end = None
        for some in rows:
            if ended := some.with_line_end().dialect:
                some.framed(ended.start if end is None else end, b"").write(out)
                end = ended.tail
        out.write(head.start if end is None else tail)
