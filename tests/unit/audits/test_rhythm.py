"""What other times cost, counted by hand, and which are the safest that keep the wish."""

import numpy as np
import pytest

from ghostpoi.audits.rhythm import BINS, KINDS, Rhythm, compared, safest, tried
from ghostpoi.data.checkins import Checkins
from ghostpoi.draw.publication import publication
from ghostpoi.options import in_shell
from ghostpoi.settings import override

MONDAY, MINUTE, HOUR, DAY = 1_333_324_800, 60, 3600, 86_400  # 2012-04-02
SETTINGS = override(publication("crowd"), ["method.size=2", "identity.pseudonyms=session"])


def table() -> Checkins:
    """Eight people, each at four venues of the equator, 50 minutes apart, once in every week of ten."""
    people, weeks, visits = 8, 10, 4
    user, week, visit = (axis.ravel() for axis in np.mgrid[:people, :weeks, :visits])
    time = MONDAY + week * 7 * DAY + user % 5 * DAY + 9 * HOUR + visit * 50 * MINUTE + user
    venue = (user + visit) % 6
    ids = [np.array([f"{kind}{n}" for n in range(count)], object) for kind, count in (("u", people), ("v", 6))]
    return Checkins(
        user.astype(np.int32), venue.astype(np.int32) + 1, np.zeros(len(user), np.int32), np.zeros(len(user)),
        venue / 1000, time, ids[0], np.append("", ids[1]).astype(object), np.array(["c"], object),
    )  # fmt: skip


def figures(kind: str) -> dict[str, float]:
    return tried(table(), override(SETTINGS, [f"identity.times={kind}"])).figures


def test_costs_are_common_parts() -> None:
    assert {figures("keep")[name] for name in BINS} == {1.0}
    # 09:00, 09:50, 10:40 and 11:30 of every day stay in their hours; each gap of 50 minutes becomes 0, 1 and 1 hours
    hour = figures("hour")
    assert (hour["hours"], hour["weekdays"], hour["gaps"]) == (1.0, 1.0, pytest.approx(1 / 3, abs=1e-4))
    part = figures("part-of-day")  # from 4 and 10 o'clock: two visits in each, no clean ones at 4, one of four at 10
    assert (part["hours"], part["weekdays"]) == (0.25, 1.0)
    assert part["gaps"] == pytest.approx(2 / 3, abs=1e-4)  # 0, 6 and 0 hours
    moved = figures("shift")
    assert [moved[name] for name in BINS] == [hour[name] for name in BINS]


def test_times_single_out_as_finely_as_they_are_shown() -> None:
    assert figures("keep")["singled_out"] == 1.0  # everybody has a second of her own
    assert figures("minute")["singled_out"] == figures("hour")["singled_out"]  # others share the minutes
    shared = [0, 1, 2, 5, 6, 7]  # people who share a weekday with another; 3 and 4 are alone
    assert figures("minute")["singled_out"] == pytest.approx(1 - len(shared) / 8, abs=0.02)
    assert figures("shift")["singled_out"] == pytest.approx(1 - len(shared) / 8, abs=0.02)


def test_regions_add_up_and_the_safest_that_keeps_the_wish_is_chosen() -> None:
    found = {kind: [tried(table(), override(SETTINGS, [f"identity.times={kind}"]))] * 2 for kind in KINDS}
    rows = compared({**found, "shift": [found["shift"][0], "it covers one week"]}, 0.3)
    by_kind = {row["times"]: row for row in rows}
    assert [row["times"] for row in rows] == list(KINDS)
    assert by_kind["hour"] == {"times": "hour", "refused": "", "missed": []} | found["hour"][0].figures
    assert by_kind["shift"]["refused"] == "it covers one week"
    assert [in_shell(one) for one in by_kind["part-of-day"]["missed"]] == ["--min-rhythm 0.3"]
    assert safest(rows)["times"] in ("minute", "hour")
    found |= {"minute": found["hour"]}  # whose gaps change
    assert safest(compared(found, 1.0))["times"] == "keep"
    both = found["hour"][0] + found["hour"][1]
    assert isinstance(both, Rhythm)
    assert (both.by_time == 2 * found["hour"][0].by_time).all()
