"""Linkage between the releases of several months, against a slow assignment by what the months show."""

from itertools import pairwise
from typing import Any, cast

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from ghostpoi.audits.measures import persons as measure
from ghostpoi.audits.persons import held_out
from ghostpoi.audits.several import Known, between, linkage

PEOPLE, MONTHS, VENUES = 60, 3, 24
HOUR = 3600
Row = tuple[int, int, int, int]  # person, user id, place, part of the day


def months(rotates: bool) -> list[Known]:
    """Everybody has usual venues; a release shows another venue of the crowd, of which there are six."""
    draw, usual = np.random.default_rng(4), np.random.default_rng(5).integers(1, VENUES + 1, (PEOPLE, 3))
    crowd, out = np.append(0, np.arange(VENUES) // 4 * 4 + 1), []
    for number in range(MONTHS):
        who = np.repeat(np.arange(PEOPLE - 2 * (number == 0)), 12)  # two come later
        clean = np.where(draw.random(len(who)) < 0.8, usual[who, draw.integers(0, 3, len(who))], 1 + who % VENUES)
        time = draw.integers(0, 30 * 24, len(who)) * HOUR
        unit = who * 3 + draw.integers(0, 3, len(who)) if rotates else draw.permutation(PEOPLE)[who]
        released = crowd[clean] + draw.integers(0, 4, len(who))
        out.append(
            Known(1000 * number + unit, who, time // 7200 * 7200, time, released, clean, crowd, cast(Any, None), False,
                  rotates)
        )  # fmt: skip
    return out


def rows(month: Known, clean: bool) -> list[Row]:
    """All check-ins, as they are or as they are shown."""
    shown = (month.person, month.person, month.clean, month.clean_time)
    columns = shown if clean else (month.person, month.user, month.crowd[month.released], month.time)
    return [(p, u, v, t // (4 * HOUR) % 6) for p, u, v, t in zip(*(one.tolist() for one in columns), strict=True)]


def assigned(before: list[Row], after: list[Row], people: list[int], one_each: bool) -> dict[int, int]:
    """Return the likeliest person of each user id of the later release."""
    ids = sorted({row[1] for row in after})
    scores, size = np.zeros((len(ids), len(people))), np.array([sum(row[1] == one for row in after) for one in ids])
    for end in (3, 4):  # the place; the place and the part of the day
        every = [row[2:end] for row in before if row[0] in people]
        kinds = {row[2:end] for row in before + after}
        for column, name in enumerate(people):
            own = [row[2:end] for row in before if row[0] == name]
            for line, one in enumerate(ids):
                for value in (row[2:end] for row in after if row[1] == one):
                    usual = (every.count(value) + 0.5) / (len(every) + 0.5 * len(kinds))
                    scores[line, column] += np.log((own.count(value) / usual + 10) / (len(own) + 10))
    scores += np.log([sum(row[0] == name for row in before) for name in people])
    found = scores.argmax(axis=1)
    if one_each:
        lines, columns = linear_sum_assignment(scores / np.sqrt(size)[:, None], maximize=True)
        found[lines] = columns
    return {one: people[column] for one, column in zip(ids, found.tolist(), strict=True)}


@pytest.mark.parametrize("rotates", [False, True])
@pytest.mark.parametrize("side", ["release", "clean"])
def test_ids_of_each_month_go_to_the_people_of_the_month_before(rotates: bool, side: str) -> None:
    known = months(rotates)
    held, expected = held_out(PEOPLE), np.zeros((PEOPLE, 2))
    for before, after in pairwise(rows(month, side == "clean") for month in known):
        people = [one for one in range(PEOPLE) if not held[one] and any(row[0] == one for row in before)]
        found = assigned(before, after, people, side == "clean" or not rotates)
        for one, owner in {row[1]: row[0] for row in after}.items():
            if owner in people:
                expected[owner] += [found[one] == owner, 1]
    parts = [between(*both, side, held) for both in pairwise(known)]
    assert measure.linkage("ids", parts, PEOPLE)[0]["ids"].tolist() == expected.tolist()
    assert 0.2 < expected[:, 0].sum() / expected[:, 1].sum() < 1
    figures = linkage(known, PEOPLE)["ids"]
    assert figures["release"]["mean"] < figures["clean"]["mean"]
    assert figures["control"]["mean"] < 0.2
