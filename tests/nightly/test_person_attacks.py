"""Measures of persons against the privacy attacks of scikit-mobility, where both exist."""

import csv
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from real_tools import load

from ghostpoi.audits.measures.persons import RESOLUTIONS, Matcher, Visits, singled_out

PEOPLE, CHECKINS = 14, 7
EVER = 1 << 40  # seconds
SCRIPT = """
import sys
import pandas, skmob
from skmob.privacy import attacks
table = skmob.TrajDataFrame(pandas.read_csv("visits.csv"), datetime="datetime", user_id="uid")
known = int(sys.argv[1])
timed = sys.argv[2] == "day"
attack = attacks.LocationTimeAttack(known, time_precision="Day") if timed else attacks.UniqueLocationAttack(known)
risk = attack.assess_risk(table).set_index("uid")["risk"]
print(*(risk[one] for one in sorted(risk.index)))
"""


@pytest.mark.parametrize("known", [1, 2])
@pytest.mark.parametrize("what", ["day", "place"])  # by the hour, it compares months: date_time_precision("Hour")
def test_who_can_be_singled_out_has_a_risk_of_one(known: int, what: str, tmp_path: Path) -> None:
    draw = np.random.default_rng(11)
    person = np.repeat(np.arange(PEOPLE), CHECKINS)
    venue = draw.integers(0, 12, len(person))
    time = 1_600_000_000 // 86_400 * 86_400 + draw.integers(0, 3, len(person)) * 86_400
    time += draw.integers(9, 12, len(person)) * 3600 + draw.integers(0, 3600, len(person))
    with (tmp_path / "visits.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["uid", "lat", "lng", "datetime"])
        for who, where, when in zip(person, venue, time, strict=True):
            out.writerow([who, 40 + where / 100, -74, f"{datetime.fromtimestamp(int(when), UTC):%Y-%m-%d %H:%M:%S}"])
    risk = [float(word) for word in load("skmob", SCRIPT, str(known), what, folder=tmp_path)]

    visits = Visits(person, person, time, venue, venue, venue)
    matcher = Matcher(visits, RESOLUTIONS["day"] if what == "day" else EVER, (0,))
    found = []
    for who in range(PEOPLE):
        drawn = np.array(list(combinations(np.flatnonzero(person == who).tolist(), known)))
        found.append(bool(singled_out(matcher, visits, drawn)[:, -1].any()))
    assert found == [one == 1.0 for one in risk]
