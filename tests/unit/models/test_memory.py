"""Freed memory returns to the operating system if the C library can do that."""

import ctypes
import importlib
import os
from pathlib import Path

import pytest
import torch

from ghostpoi.models import devices


@pytest.mark.skipif(devices._malloc_trim is None, reason="the C library has no malloc_trim")
def test_holes_in_the_heap_are_returned() -> None:
    blocks = [torch.ones(1 << 13) for _ in range(4000)]  # 32 KiB each, 128 MiB in all
    kept = blocks[::100]
    full = resident()
    del blocks
    devices.trim_heap()
    assert resident() < full - (90 << 20)
    assert len(kept) == 40


def test_the_call_is_made_only_if_the_library_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    for trim, expected in ((calls.append, [0]), (None, [0])):
        monkeypatch.setattr(devices, "_malloc_trim", trim)
        devices.trim_heap()
        assert calls == expected


def test_a_system_without_that_library_can_import_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: None) -> None:
        raise OSError("no such library")

    with monkeypatch.context() as patch:
        patch.setattr(ctypes, "CDLL", absent)
        assert importlib.reload(devices)._malloc_trim is None
    importlib.reload(devices)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
