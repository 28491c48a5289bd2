"""Pieces of work side by side: all of them, once, and nothing left behind when one fails."""

import threading
import time
from collections.abc import Iterator

import pytest
import torch

from ghostpoi.models.parallel import MOST, Piece, side_by_side


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("cores", "pieces"), [(1, 5), (2, 5), (2, 1), (2, 0), (9, 30)])
def test_all_are_done_once_and_told_of_here(cores: int, pieces: int) -> None:
    torch.set_num_threads(cores)
    ran: list[tuple[int, int]] = []  # (piece, its threads), at each of three steps
    told: list[int] = []

    def piece(number: int) -> Piece:
        def steps() -> Iterator[None]:
            for _ in range(3):
                ran.append((number, torch.get_num_threads()))
                yield

        return steps

    def done(number: int) -> None:
        assert threading.current_thread() is threading.main_thread()
        told.append(number)

    side_by_side([piece(n) for n in range(pieces)], done)
    assert sorted(told) == list(range(pieces))
    workers = max(1, min(cores, MOST, pieces))
    each = -(-cores // workers)
    assert sorted(ran) == [(n, each) for n in range(pieces) for _ in range(3)]
    assert torch.get_num_threads() == cores
    later: list[int] = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert later == [cores]


@pytest.mark.parametrize("fault", [ValueError, KeyboardInterrupt])
def test_a_fault_stops_those_that_run_and_those_that_wait(fault: type[BaseException]) -> None:
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
        raise fault("broken")  # where Ctrl-C arrives: in the thread that waits

    with pytest.raises(fault):
        side_by_side([brief, *(endless(n) for n in range(1, 9))], done)
    assert 1 <= len(begun) <= 2
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("cores", [1, 2])
def test_the_fault_of_a_piece_is_raised(cores: int) -> None:
    torch.set_num_threads(cores)

    def broken() -> Iterator[None]:
        yield
        raise ValueError("broken")

    told: list[int] = []
    with pytest.raises(ValueError, match="broken"):
        side_by_side([lambda: iter(()), broken], told.append)
    assert told in ([0], [])
