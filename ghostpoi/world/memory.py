"""How much memory tasks need, and how many of them may run at once. What runs when changes no result."""

from collections.abc import Sequence

from ghostpoi.errors import InputError
from ghostpoi.formats.compression import expanded_size
from ghostpoi.formats.source import Source, shown
from ghostpoi.options import option
from ghostpoi.world.engine import Engine, OneProcess
from ghostpoi.world.job import Region
from ghostpoi.world.pieces import PIECE_ROWS, Piece, count_rows, is_parquet

PROCESS = 400 * 10**6  # bytes that a process needs before it reads a row
PER_ROW = 800  # bytes for each row that a task holds; `python -m benchmarks scale` measures the sum
PER_BYTE = 6  # bytes for each byte of text


def fit_pieces(engine: Engine, memory: int | None, workers: int, dataset: Source, pieces: Sequence[Piece]) -> None:
    """Let as many workers read as fit; refuse what must be read whole and does not fit.

    That is text that cannot be cut, or a row group of Parquet.
    """
    if memory is None:
        return
    most = PROCESS + PER_ROW * PIECE_ROWS
    for piece in (piece for piece in pieces if not piece.span):
        if is_parquet(piece.path):
            rows = count_rows(dataset, piece, {})
            most = max(most, need := PROCESS + PER_ROW * rows)
            if need > memory and rows > PIECE_ROWS:  # `fit` counts smaller ones
                raise InputError(
                    f"{piece.path} has a row group that needs about {shown(need)}; write it with smaller row groups, "
                    f"or allow that with {option('memory', shown(need))}"
                )
            continue
        most = max(most, need := PROCESS + PER_BYTE * expanded_size(dataset.at(piece.path)))
        if need > memory:
            raise InputError(
                f"{piece.path} must be read whole and needs about {shown(need)}, because it is compressed, no table "
                "of text, not UTF-8, or has blank lines, control characters or stray quotes; convert it, divide it "
                f"into several files, or allow that with {option('memory', shown(need))}"
            )
    _keep(engine, (memory - _beside(engine)) // most, workers)


def fit(engine: Engine, memory: int | None, workers: int, regions: Sequence[Region]) -> None:
    """Let as many workers go on as the largest task allows; refuse a region that does not fit at all.

    With Dask, this process is beside the workers; without, it is the worker.
    """
    if memory is None:
        return
    largest = max(regions, key=lambda region: region.rows)
    beside = _beside(engine)
    need = PROCESS + PER_ROW * max(largest.rows, PIECE_ROWS)
    can = (memory - beside) // need
    if can < 1:
        cut = (
            f", or cut it with {option('set', f'regions.most_rows={largest.rows // 2}')}"
            if largest.rows > PIECE_ROWS
            else ""
        )
        raise InputError(
            f"region {largest.number + 1} ({largest.label}; {largest.rows:,} rows) needs about "
            f"{shown(need + beside)}; allow that with {option('memory', shown(need + beside))}{cut}"
        )
    _keep(engine, can, workers)


def _beside(engine: Engine) -> int:
    """The memory of the main process, unless it does the work itself."""
    return 0 if isinstance(engine, OneProcess) else PROCESS


def _keep(engine: Engine, can: int, workers: int) -> None:
    if can < workers:
        engine.keep_workers(max(1, can))
