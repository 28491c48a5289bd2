"""Plausibility of a whole release, measured over the same rows and steps as `protect` measures it."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ghostpoi.data.displacement import displacement, without_category
from ghostpoi.evaluate.row_matching import TablePair, joint_venues
from ghostpoi.publish.whole_table import fast_steps
from ghostpoi.settings import SpeedSettings


def row_plausibility(pair: TablePair, speed: SpeedSettings) -> Mapping[str, float | None]:
    """Compare all rows. Withheld rows count as not substituted.

    Speed violations are the share of all steps of users that are faster than the limit, inside sessions or not. Of the
    release, they are counted as anyone can count them: a pseudonym is a user.
    """
    _, after, venues = joint_venues(pair)
    clean, released = pair.clean.venue, pair.clean.venue.copy()
    released[pair.clean_row] = after
    found = displacement(venues, clean, released)
    shown = pair.released if pair.pseudonym is None else replace(pair.released, user=pair.pseudonym.astype(np.int32))
    for name, table in (("clean", pair.clean), ("released", shown)):
        counted = fast_steps(table, speed.limit_kmh, speed.min_gap_s)
        found[f"speed_violations_{name}"] = counted["steps_over_limit"] / max(1, counted["steps"])
    return found if pair.clean.category_field else without_category(found)
