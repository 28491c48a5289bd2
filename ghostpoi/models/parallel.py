"""Run independent pieces of work in threads, each on CPU cores of its own.

With small tensors, one thread per piece wastes less time than many threads per matrix product: the threads never wait
for each other. torch releases the interpreter's lock inside its operations.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Event

import torch

MAX_THREADS = 4  # more would wait for the interpreter's lock
Piece = Callable[[], Iterator[object]]  # yields after each step, where it can be stopped


def run_in_threads(pieces: Sequence[Piece], done: Callable[[int], None]) -> None:
    """Run all pieces, started in order. Call `done` with the number of each finished one, in the calling thread."""
    cores, stop = torch.get_num_threads(), Event()
    workers = min(cores, MAX_THREADS, len(pieces))
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
    finally:  # after an error or Ctrl-C, too: stop what still runs
        stop.set()
        try:
            pool.shutdown(cancel_futures=True)
        finally:
            torch.set_num_threads(cores)  # the last call decides for all later threads


def _run(piece: Piece, stop: Event) -> None:
    for _ in piece():
        if stop.is_set():
            return
