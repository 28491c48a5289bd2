"""Pieces of work side by side: all of them, once, and nothing left behind when one fails."""

import threading
from collections.abc import Iterator

import pytest
import torch

from ghostpoi.threads import MOST, side_by_side


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("cores", "pieces"), [(1, 5), (2, 5), (2, 1), (2, 0), (9, 30)])
def test_all_are_done_once_and_told_of_here(cores: int, pieces: int) -> None:
    torch.set_num_threads(cores)
    ran: list[tuple[int, int]] = []  # (piece, its threads)
    told: list[int] = []

    def done(number: int) -> None:
        assert threading.current_thread() is threading.main_thread()
        told.append(number)

    def piece(number: int) -> None:
        ran.append((number, torch.get_num_threads()))

    side_by_side([lambda n=n: piece(n) for n in range(pieces)], done)  # type: ignore[misc]
    assert sorted(told) == list(range(pieces))
    workers = max(1, min(cores, MOST, pieces))
    assert sorted(ran) == [(n, cores if workers == 1 else cores // workers) for n in range(pieces)]
    assert torch.get_num_threads() == cores
    later: list[int] = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert later == [cores]


@pytest.mark.parametrize("cores", [1, 2])
def test_the_first_fault_stops_the_rest(cores: int) -> None:
    torch.set_num_threads(cores)
    ran: list[int] = []
    go_on = threading.Event()

    def piece(number: int) -> None:
        if number == 0:
            raise ValueError("broken")
        go_on.wait(0.2)
        ran.append(number)

    with pytest.raises(ValueError, match="broken"):
        side_by_side([lambda n=n: piece(n) for n in range(50)], lambda number: None)  # type: ignore[misc]
    assert len(ran) < 10
    assert torch.get_num_threads() == cores
