"""Independent pieces of work on a CPU side by side, each on cores of its own.

Where tensors are small, threads that each follow their own piece waste less than threads that share every product: they
never wait for one another. torch lets go of the interpreter's lock inside its operations.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

import torch

MOST = 4  # beyond, they would wait for the interpreter's lock


def side_by_side(pieces: Sequence[Callable[[], None]], done: Callable[[int], None]) -> None:
    """Run all, beginning in their order. `done` gets the number of each, here, as soon as it is done."""
    cores = torch.get_num_threads()
    workers = min(cores, MOST, len(pieces))
    if workers < 2:
        for number, piece in enumerate(pieces):
            piece()
            done(number)
        return
    pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(cores // workers,))
    try:
        number_of = {pool.submit(piece): number for number, piece in enumerate(pieces)}
        for future in as_completed(number_of):
            future.result()
            done(number_of[future])
    finally:  # also when interrupted: what has not begun is not wanted any more
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(cores)  # the last call decides for all threads to come
