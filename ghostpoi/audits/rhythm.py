"""What other times take away from outsiders, and what they cost: visits by hour and by weekday, and gaps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from ghostpoi.audits.measures import persons as measure
from ghostpoi.audits.measures.persons import HOUR_S, Matcher, Visits
from ghostpoi.audits.persons import DRAWS, MOST_PEOPLE, Division
from ghostpoi.data.checkins import Checkins, Floats, Longs, by_user_and_time
from ghostpoi.data.pseudonyms import DAY_S, WEEK_S
from ghostpoi.draw.publication import Publication
from ghostpoi.draw.whole_table import prepare
from ghostpoi.options import option
from ghostpoi.randomness import Seed
from ghostpoi.release import identity
from ghostpoi.release.identity import numbers

KNOWN = 4  # check-ins of a person
GAPS = 24 + 30  # by the hour within a day, then by the day; longer ones count as the longest
BINS = {"hours": 24, "weekdays": 7, "gaps": GAPS}
KINDS = ("keep", *identity.RESOLUTION_S)


@dataclass(frozen=True)
class Rhythm:
    """What was counted of some times, in a table or in a region of it."""

    counts: dict[str, Longs]  # (2, bins) in the clean file and in the release
    by_time: Floats  # (2,) how many draws of known times single out a person, and of how many draws
    by_place: Floats  # the same for the part of the day and the place

    def __add__(self, other: "Rhythm") -> "Rhythm":
        both = {name: self.counts[name] + other.counts[name] for name in BINS}
        return Rhythm(both, self.by_time + other.by_time, self.by_place + other.by_place)

    @property
    def figures(self) -> dict[str, float]:
        """Shares that single out, and the common part of each count."""
        kept = {name: 2 * both.min(axis=0).sum() / max(1, both.sum()) for name, both in self.counts.items()}
        out = {"singled_out": self.by_time, "singled_out_with_place": self.by_place}
        shares = {name: found[0] / max(1.0, found[1]) for name, found in out.items()}
        return {name: round(float(share), 4) for name, share in (shares | kept).items()}


def tried(table: Checkins, settings: Publication) -> Rhythm:
    """Measure a release of a table with the times of these settings. Places are the crowds of the default method."""
    unit, person = numbers(table, settings), table.user.astype(np.int64)
    time = identity.drawn_times(table, settings, Seed(0))[0]
    before, after = (_counts(unit, one) for one in (table.time, time))
    moved = time % WEEK_S if settings.identity.times == "shift" else time
    cell = Division.crowds(prepare(table, settings, whole_file=False), table.venues).cell[table.venue]
    shown = Visits(person, unit, moved, cell, cell, table.venue.astype(np.int64))
    drawn = measure.draws(person, MOST_PEOPLE, DRAWS, KNOWN, Seed(0).generator("choose", "known"))
    exact, part = (
        measure.unicity(Matcher(shown, seconds, around), shown, drawn, len(table.user_ids))[-1].sum(axis=0)
        for seconds, around in ((1, ()), (measure.RESOLUTIONS["part"], (0,)))
    )
    return Rhythm({name: np.stack([before[name], after[name]]) for name in BINS}, exact, part)


def _counts(unit: Longs, time: Longs) -> dict[str, Longs]:
    """Count visits by hour and by weekday, and gaps between the visits of one user id."""
    order = by_user_and_time(unit.astype(np.int32), time)
    gap = np.diff(time[order])[np.diff(unit[order]) == 0]
    place = np.where(gap < DAY_S, gap // HOUR_S, np.minimum(23 + gap // DAY_S, GAPS - 1))
    each = {"hours": time // HOUR_S % 24, "weekdays": time // DAY_S % 7, "gaps": place}
    return {name: np.bincount(values, minlength=BINS[name]) for name, values in each.items()}


def compared(found: Mapping[str, Sequence[Rhythm | str]], least: float) -> list[dict[str, Any]]:
    """Return what was measured of all kinds of times, joined over regions; a text says why one is refused."""
    rows = []
    for kind, each in found.items():
        refused = next((one for one in each if isinstance(one, str)), "")
        row: dict[str, Any] = {"times": kind, "refused": refused, "missed": []}
        if not refused:
            row |= reduce(Rhythm.__add__, (one for one in each if isinstance(one, Rhythm))).figures
            row["missed"] = [option("min_rhythm", f"{least:g}")] if min(row[name] for name in BINS) < least else []
        rows.append(row)
    return rows


def safest(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the times that single out the fewest people among those that keep the wish; else the first."""
    possible = [row for row in rows if not (row["refused"] or row["missed"])]
    return min(possible, key=lambda row: (row["singled_out"], row["singled_out_with_place"]), default=rows[0])
