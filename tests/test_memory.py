"""Freed memory goes back to the operating system, where the C library can do that."""

import os
from pathlib import Path

import pytest
import torch

from ghostpoi.models import memory


@pytest.mark.skipif(memory._malloc_trim is None, reason="the C library has no malloc_trim")
def test_holes_are_given_back() -> None:
    blocks = [torch.ones(1 << 13) for _ in range(4000)]  # 32 KiB each, 128 MiB together
    kept = blocks[::100]
    full = resident()
    del blocks
    memory.give_back()
    assert resident() < full - (90 << 20)
    assert len(kept) == 40


def test_without_the_call_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_malloc_trim", None)
    memory.give_back()


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
