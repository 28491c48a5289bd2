"""Independent pieces of work on a CPU side by side, each on cores of its own.

Where tensors are small, threads that each follow their own piece waste less than threads that share every product: they
never wait for one another. torch lets go of the interpreter's lock inside its operations.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Event

import torch

MOST = 4  # beyond, they would wait for the interpreter's lock
Piece = Callable[[], Iterator[object]]  # its steps: between two of them it can be stopped


def side_by_side(pieces: Sequence[Piece], done: Callable[[int], None]) -> None:
    """Run all, beginning in their order. `done` gets the number of each, here, as soon as it is done."""
    cores, stop = torch.get_num_threads(), Event()
    workers = min(cores, MOST, len(pieces))
    if workers < 2:
        for number, piece in enumerate(pieces):
            _run(piece, stop)
            done(number)
        return
    pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(-(-cores // workers),))
    try:
        number_of = {pool.submit(_run, piece, stop): number for number, piece in enumerate(pieces)}
        for future in as_completed(number_of):
            future.result()
            done(number_of[future])
    finally:  # also after a fault or Ctrl-C: then nobody wants the rest
        stop.set()
        try:
            pool.shutdown(cancel_futures=True)
        finally:
            torch.set_num_threads(cores)  # the last call decides for all threads to come


def _run(piece: Piece, stop: Event) -> None:
    for _ in piece():
        if stop.is_set():
            return
