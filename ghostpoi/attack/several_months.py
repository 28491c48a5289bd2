"""A19: releases of several months, made from different rows of the same people."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ghostpoi.attack.adversaries.base import Described
from ghostpoi.data.checkins import Floats, Longs
from ghostpoi.publish.public_channel import Channel


@dataclass(frozen=True)
class Month:
    """What a recipient holds of one release. Users, habits and venues have the same numbers in all releases."""

    habit: Longs  # (N,) visits of a user to the same venue have the same number
    released: Longs  # (N,)
    channel: Channel  # of this release
    shows_popularity: bool  # on purpose, in its draws


@dataclass(frozen=True)
class Left:
    """The venues that can stand behind all visits of a habit, habit by habit."""

    habit: Longs  # (T,) ascending
    venue: Longs  # (T,)
    popularity: Floats  # (T,)

    def size(self, habits: int) -> Longs:
        """Return how many venues are left for each habit, (habits,)."""
        return np.bincount(self.habit, minlength=habits)

    def right(self, clean: Longs) -> Floats:
        """Return the chance that the most popular of the venues left is the clean one of each habit, (habits,)."""
        best = np.zeros(len(clean))
        np.maximum.at(best, self.habit, self.popularity)
        guessed = self.popularity == best[self.habit]
        guesses = np.bincount(self.habit, guessed, len(clean))
        found = np.bincount(self.habit, guessed & (self.venue == clean[self.habit]), len(clean))
        return np.divide(found, guesses, out=np.zeros(len(clean)), where=guesses > 0)


class SeveralMonths(Described):
    """A19 knows which visits of a user go to the same venue, say by their hours, but not to which.

    The venue is in every set that one of these visits was drawn from. If each release builds its sets anew, few venues
    are in all of them.
    """

    number = 19
    title = "several months"
    holds = "the public rule, several releases, and which visits of a user go to the same venue; no leak"
    does = "intersects the sets that these visits were drawn from and takes the most popular venue left"

    def intersect(self, months: Sequence[Month], popularity: Floats) -> Left:
        """Return what is left for each habit; `popularity` (P+1,) is what releases show of it."""
        rows = len(popularity)
        habit = np.concatenate([month.habit for month in months])
        symbol = np.concatenate([month.released + n * rows for n, month in enumerate(months)])
        channel = joined_channel(months, rows).covering(symbol)
        owner, drawn = np.divmod(np.unique(habit * channel.symbols + symbol), channel.symbols)
        at, entry = channel.behind(drawn)
        option, times = np.unique(owner[at] * rows + channel.clean[entry], return_counts=True)
        of, venue = np.divmod(option, rows)
        fits = times == np.bincount(owner)[of]  # all different draws of the habit
        return Left(of[fits], venue[fits], popularity[venue[fits]])


def shown_popularity(months: Sequence[Month], rows: int) -> Floats:
    """Return how popular each venue looks in the releases, (P+1,); all look alike if the draws do not show it."""
    if not any(month.shows_popularity for month in months):
        return np.ones(rows)
    return 1 + np.bincount(np.concatenate([month.released for month in months]), minlength=rows).astype(np.float64)


def joined_channel(months: Sequence[Month], rows: int) -> Channel:
    """Return the channel of all releases: venue q of release n has the symbol n * rows + q."""
    return Channel.of(
        np.concatenate([month.channel.clean for month in months]),
        np.concatenate([month.channel.released + n * rows for n, month in enumerate(months)]),
        np.concatenate([month.channel.probability for month in months]), len(months) * rows,
    )  # fmt: skip
