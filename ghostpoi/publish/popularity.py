"""How popular venues are, as far as a release may show it: weights with which the venues of a crowd are drawn.

A venue with few visits counts as having `min_visits`, so that the visits of one person to a rare venue do not show. The
hours come from the category, not from the venue: the hours of one venue can be those of one person, and so can those of
a category with few visits, which has the hours of all categories.
"""

from dataclasses import replace

import numpy as np

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Floats
from ghostpoi.data.places import SLOTS, Places

FEW = 5  # a category with fewer visits has no hours of its own
SMOOTHING = 50.0  # visits that the hours of all categories together count as in those of one category


def weighted(sets: Candidates, places: Places, min_visits: int, by_hour: bool) -> Candidates:
    """Return the same sets with popular venues weighing more, in every slot of the week by the hours of categories."""
    visits = np.maximum(places.visits, min_visits).astype(float)
    weight = np.where(sets.poi > 0, visits[sets.poi], 0.0)
    hours = category_hours(places)[places.category[1:]] * SLOTS if by_hour else None  # (P, SLOTS), mean 1
    slots = None if hours is None else np.concatenate([np.zeros((SLOTS, 1)), hours.T], axis=1)
    return replace(sets, weight=weight, slot_weight=slots)


def category_hours(places: Places) -> Floats:
    """Return the share of a category's visits in each slot of the week, smoothed, (categories, SLOTS)."""
    counts = places.category_visits.astype(float)
    everywhere = (counts.sum(axis=0) + 1) / (counts.sum() + SLOTS)
    counts[counts.sum(axis=1) < FEW] = 0
    smoothed: Floats = (counts + SMOOTHING * everywhere) / (counts.sum(axis=1, keepdims=True) + SMOOTHING)
    return smoothed
