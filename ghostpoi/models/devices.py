"""Where and how models run: device, precision of matrix products, random generators, memory, threads."""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from threading import Event

import torch

from ghostpoi.errors import InputError
from ghostpoi.options import option
from ghostpoi.settings import Precision

_malloc_trim: Callable[[int], int] | None = None
with suppress(OSError, TypeError):  # Windows has no library of that name
    _malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it


def device(name: str) -> torch.device:
    """Return the device called `auto`, `cpu` or `cuda`; `auto` prefers a CUDA card."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda"):
        raise InputError(f"{option('device', name)}: unknown device; use auto, cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise InputError(
            f"{option('device', 'cuda')}: torch finds no CUDA card here; use {option('device', 'cpu')} or auto"
        )
    return torch.device(name)


def precise(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Run matrix products in this precision."""
    return torch.autocast(device.type, torch.bfloat16) if precision == "bfloat16" else nullcontext()


def product_dtype(device: torch.device) -> torch.dtype:
    """Return the type in which matrix products run here."""
    return torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else torch.float32


@contextmanager
def seeded(device: torch.device, seed: int) -> Iterator[None]:
    """Seed torch's global generators, and restore their state afterwards."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def trim_heap() -> None:
    """Return free memory to the operating system if the C library can.

    Batches of many shapes leave holes in its heap. Without this, training on NYC grows by 70 MB an epoch.
    """
    if _malloc_trim is not None:
        _malloc_trim(0)


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
