"""Plausibility of a whole release, measured over the same rows and steps as `protect` measures it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ghostpoi.data.displacement import Moves, moves, without_category
from ghostpoi.evaluate.row_matching import TablePair, joint_venues
from ghostpoi.publish.whole_table import fast_steps
from ghostpoi.settings import SpeedSettings


@dataclass(frozen=True)
class RowCounts:
    """What is counted over all rows of a release or of a region."""

    moved: Moves
    steps: dict[str, tuple[int, int]]  # of the clean and the released table: all, and those over the speed limit
    has_category: bool

    @property
    def measures(self) -> Mapping[str, float | None]:
        """Speed violations are the share of all steps of users that are faster than the limit, in sessions or not."""
        found = self.moved.measures
        for name, (steps, fast) in self.steps.items():
            found[f"speed_violations_{name}"] = fast / max(1, steps)
        return found if self.has_category else without_category(found)


def count_rows(pair: TablePair, speed: SpeedSettings) -> RowCounts:
    """Compare all rows. Withheld rows count as not substituted.

    The steps of the release are counted as anyone can count them: a pseudonym is a user.
    """
    _, after, venues = joint_venues(pair)
    clean, released = pair.clean.venue, pair.clean.venue.copy()
    released[pair.clean_row] = after
    shown = pair.released if pair.pseudonym is None else replace(pair.released, user=pair.pseudonym.astype(np.int32))
    steps = {}
    for name, table in (("clean", pair.clean), ("released", shown)):
        counted = fast_steps(table, speed.limit_kmh, speed.min_gap_s)
        steps[name] = int(counted["steps"]), int(counted["steps_over_limit"])
    return RowCounts(moves(venues, clean, released), steps, bool(pair.clean.category_field))


def added(each: Sequence[RowCounts]) -> RowCounts:
    """Add up what was counted in several regions."""
    moved = [one.moved for one in each]
    steps = {
        name: (sum(one.steps[name][0] for one in each), sum(one.steps[name][1] for one in each))
        for name in each[0].steps
    }
    km = np.concatenate([one.km for one in moved])
    joint = Moves(sum(one.rows for one in moved), km, sum(one.same_category for one in moved))
    return RowCounts(joint, steps, each[0].has_category)
