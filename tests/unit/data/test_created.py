"""Which ids say when a venue was created, and which rows that names."""

import uuid

import numpy as np
import pytest

from ghostpoi.data.checkins import Checkins
from ghostpoi.data.created import SOON_S, are_new, creation_times, made_on_creation

MADE = np.array([1_200_000_000, 1_333_476_009, 1_333_500_000])
END = 1_333_600_000
OTHER = [f"{n * 2654435761 % 2**32:08x}" for n in range(1, 90)]  # 32 bits, well spread


def uuid_of(seconds: int, version: int) -> str:
    if version == 7:
        return f"{seconds * 1000:012x}".join(["", "7abc8123456789abcdef"])
    ticks = (seconds + 12_219_292_800) * 10**7
    return str(uuid.UUID(fields=(ticks & 0xFFFFFFFF, ticks >> 32 & 0xFFFF, ticks >> 48 | 1 << 12, 0x80, 1, 7)))


@pytest.mark.parametrize(
    "ids",
    [
        [f"{one:08x}f964a520531fe3aa" for one in MADE], [f"{one:08X}F964A520531FE3AA" for one in MADE],
        [str(uuid.UUID(uuid_of(int(one), 7))) for one in MADE], [uuid_of(int(one), 1) for one in MADE],
        [str(one) for one in MADE], [f"{one}000" for one in MADE], [f"{one}.0" for one in MADE],
    ],
)  # fmt: skip
def test_ids_that_hold_a_time(ids: list[str]) -> None:
    assert np.floor(creation_times(ids, END)).tolist() == MADE.tolist()


@pytest.mark.parametrize(
    "ids",
    [
        [], ["bar", "cafe"], [str(n) for n in range(1, 90)], [f"{one}f964a520531fe3aa" for one in OTHER],
        [str(uuid.UUID(one * 4, version=4)) for one in OTHER], [str(one + END) for one in MADE],
    ],
)  # fmt: skip
def test_other_ids(ids: list[str]) -> None:
    assert np.isnan(creation_times(ids, END)).all()


def table(after: list[int]) -> Checkins:
    """Three rows at three venues, some seconds after their creation."""
    venue, zero = np.arange(1, 4, dtype=np.int32), np.zeros(3)
    return Checkins(
        venue - 1, venue, 0 * venue, zero, zero, MADE + after, np.array(["a", "b", "c"], object),
        np.array(["", *(f"{one:08x}f964a520531fe3aa" for one in MADE)], object), np.array(["c"], object),
    )  # fmt: skip


def test_rows_made_on_creation() -> None:
    assert made_on_creation(table([0, SOON_S, SOON_S + 1])).tolist() == [True, True, False]
    assert made_on_creation(table([-1, 5, 90_000])).tolist() == [False, True, False]


def test_venues_created_in_the_period() -> None:
    visited = table([133_400_000, 1, 2])  # the period starts before the second venue, after the first
    assert are_new(visited.venue_ids[1:].tolist(), visited).tolist() == [False, True, True]
