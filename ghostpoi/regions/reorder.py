"""Rows of a dataset in another order: that of a release with pseudonyms or other times, and back to that of the file.

Regions are protected under the user ids and times of the file, in its order. Then the ids, times and places of all rows
are drawn as in memory, which takes about 200 bytes per row; the rows themselves move block by block.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ghostpoi.data.checkins import Checkins, Longs, concatenated
from ghostpoi.draw.whole_table import fast_steps
from ghostpoi.errors import InputError
from ghostpoi.files import make_folder, make_private_folder, replacing, save_arrays
from ghostpoi.formats import Rows, Source
from ghostpoi.formats.rows import Dialect
from ghostpoi.formats.source import shown as as_size
from ghostpoi.formats.written_times import with_times
from ghostpoi.options import option
from ghostpoi.regions.divide import ROWS, regions_in, surveys_of
from ghostpoi.regions.job import RELEASED, Job
from ghostpoi.regions.packs import head_of, in_order, pack_by, read_groups
from ghostpoi.regions.pieces import PIECE_ROWS, Pieces, find_pieces, raw_rows, read_piece
from ghostpoi.release import identity

MOVED = "moved"  # blocks of rows on their way
MEMORY = 200  # bytes for each row of which the id and the time are changed
Change = Callable[[Rows, slice], Rows]


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


def write_changed(job: Job, clean: Checkins, ordered: Path, out: Path, private: Path) -> dict[str, Any]:
    """Give the rows of a release, which lie in the order of the file, new ids, times and places.

    Write them to a folder, and what undoes that to a private file; return what the manifest says about it.
    """
    settings, fields, pieces = job.request.settings, job.fields, job.pieces
    source = job.source.at(ordered if pieces.several else ordered / pieces.names[0])
    written = find_pieces(source)
    file = next(found for piece in written.pieces if (found := read_piece(source, piece, fields)))
    table, (shown, region) = table_of(source, written, fields), origins(job)
    most = file.rows.largest_number(fields["user"]) if settings.hides_users else None
    new = identity.draw(clean, shown, settings, job.seed, most)
    place = np.empty(len(clean), np.int64)
    place[new.row] = np.arange(len(new.row))
    place, ids = place[shown], new.released_ids
    count, ending = len(pieces.names), min(Path(name).suffix for name in pieces.names)
    names = tuple(f"part-{n:05}{ending}" for n in range(count)) if pieces.several else pieces.names
    sizes = np.bincount(np.arange(len(place)) * count // max(1, len(place)), minlength=count).tolist()

    def change(rows: Rows, at: slice) -> Rows:
        rows = rows.replace_ids(fields["user"], ids[at]) if settings.hides_users else rows
        return with_times(file, rows, new.time[at]) if settings.identity.times != "keep" else rows

    parts = {out / name: size for name, size in zip(names, sizes, strict=True)}
    move(source, written, fields, place, parts, job.folder / MOVED, change)
    with replacing(private, mode=0o600) as stored:
        save_arrays(stored, {"shown": new.row, **identity.map_arrays(clean, new)})
    # A step is counted where both its ends are in one region, as verify counts it.
    unit = np.unique(np.stack([region, new.number[shown]]), axis=1, return_inverse=True)[1].reshape(-1)
    shows = replace(table, user=unit.astype(np.int32), time=new.time[place])
    speed = fast_steps(shows, settings.speed.limit_kmh, settings.speed.min_gap_s)
    return {"identity": new.public, "speed": speed}


def move(
    source: Source, pieces: Pieces, mapping: dict[str, str], place: Longs, parts: Mapping[Path, int], work: Path,
    change: Change = lambda rows, at: rows,
) -> None:  # fmt: skip
    """Write the rows of a dataset, each at its place over all parts, (M,), which have so many rows each."""
    ends = np.cumsum([0, *parts.values()])
    blocks = np.concatenate([np.arange(a, b, PIECE_ROWS) for a, b in pairwise(ends)])
    make_private_folder(work)
    tails, folders, at = dict[int, bytes](), list[Path](), 0
    for piece in pieces.pieces:
        rows = raw_rows(source, piece, mapping)
        if rows is None or not len(rows):
            continue
        folders.append(work / f"{piece.number:06}")
        make_private_folder(folders[-1])
        tails[piece.part] = rows.dialect.tail if rows.dialect else b""
        here, at = place[at : at + len(rows)], at + len(rows)
        order = np.argsort(here)
        block = np.searchsorted(blocks, here[order], "right") - 1
        pack_by(folders[-1], block, (here[order] - blocks[block]).astype(np.int32), rows.take(order))
    for path, (begin, end) in zip(parts, pairwise(ends), strict=True):
        own = np.flatnonzero((blocks >= begin) & (blocks < end)).tolist()
        make_folder(path.parent)
        write_part(path, _gathered(folders, own, blocks, path.name, change), head_of(folders[0]), max(tails.values()))


def _gathered(folders: Sequence[Path], numbers: list[int], blocks: Longs, name: str, change: Change) -> Iterator[Rows]:
    """Yield the rows of blocks, each in its order."""
    for number in numbers:
        rows = in_order([group for folder in folders for group in read_groups(folder, [number])], name)
        yield change(rows, slice(blocks[number], blocks[number] + len(rows)))


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
