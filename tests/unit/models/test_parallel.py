"""Work in threads: every piece runs once, and nothing keeps running after an error."""

import threading
import time
from collections.abc import Iterator

import pytest
import torch

from ghostpoi.models.devices import MAX_THREADS, Piece, run_in_threads


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("cores", "pieces"), [(1, 5), (2, 5), (2, 1), (2, 0), (9, 30)])
def test_every_piece_runs_once_and_is_reported_in_this_thread(cores: int, pieces: int) -> None:
    torch.set_num_threads(cores)
    ran: list[tuple[int, int]] = []  # (piece, its threads), at each of three steps
    reported: list[int] = []

    def piece(number: int) -> Piece:
        def steps() -> Iterator[None]:
            for _ in range(3):
                ran.append((number, torch.get_num_threads()))
                yield

        return steps

    def done(number: int) -> None:
        assert threading.current_thread() is threading.main_thread()
        reported.append(number)

    run_in_threads([piece(n) for n in range(pieces)], done)
    assert sorted(reported) == list(range(pieces))
    workers = max(1, min(cores, MAX_THREADS, pieces))
    each = -(-cores // workers)
    assert sorted(ran) == [(n, each) for n in range(pieces) for _ in range(3)]
    assert torch.get_num_threads() == cores
    later: list[int] = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert later == [cores]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_stops_running_and_waiting_pieces(error: type[BaseException]) -> None:
    torch.set_num_threads(2)
    begun: list[int] = []

    def endless(number: int) -> Piece:
        def steps() -> Iterator[None]:
            begun.append(number)
            while True:
                time.sleep(0.01)
                yield

        return steps

    def brief() -> Iterator[None]:
        while not begun:
            time.sleep(0.01)
        yield

    def done(number: int) -> None:
        raise error("broken")  # Ctrl-C arrives in the waiting thread

    with pytest.raises(error):
        run_in_threads([brief, *(endless(n) for n in range(1, 9))], done)
    assert 1 <= len(begun) <= 2
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("cores", [1, 2])
def test_the_error_of_a_piece_is_raised(cores: int) -> None:
    torch.set_num_threads(cores)

    def broken() -> Iterator[None]:
        yield
        raise ValueError("broken")

    reported: list[int] = []
    with pytest.raises(ValueError, match="broken"):
        run_in_threads([lambda: iter(()), broken], reported.append)
    assert reported in ([0], [])
