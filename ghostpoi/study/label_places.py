"""Where the labels of crowded points stand in a figure."""

from collections.abc import Sequence

import numpy as np

from ghostpoi.data.checkins import Floats

REACHES = (9.0, 15.0, 22.0)  # from a point to the middle of its label, in the unit of the points
DIRECTIONS = np.deg2rad(np.arange(22.5, 360, 22.5))


def places(points: Floats, low: Floats, high: Floats, size: Sequence[float] = (11.0, 9.0)) -> Floats:
    """Return the middle of a label beside each of the points, (N, 2), inside a box.

    Labels are placed one after the other, each where it covers the fewest points and labels, as near as possible.
    """
    directions = np.column_stack([np.cos(DIRECTIONS), np.sin(DIRECTIONS)])
    around = np.concatenate([reach * directions for reach in REACHES])
    room, margin = np.asarray(size), np.asarray(size) / 2
    chosen = np.empty((0, 2))
    for point in points:
        at = point + around
        outside = ((at < low + margin) | (at > high - margin)).any(1)
        labels = (np.abs(at[:, None] - chosen) < room).all(2).sum(1)
        covered = (np.abs(at[:, None] - points) < 0.8 * room).all(2).sum(1)
        cost = 10.0 * outside + 4.0 * labels + 2.0 * covered + np.repeat(np.arange(len(REACHES)), len(directions))
        chosen = np.vstack([chosen, at[cost.argmin()]])
    return chosen
