"""A11 and A19: several releases of the same rows, and releases of several months of the same people."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ghostpoi.attack.adversaries.base import Described, Device, Evidence, Measures, Seed
from ghostpoi.attack.adversaries.deconvolution import popularity_hint, sum_by
from ghostpoi.attack.adversaries.habits import HabitsLeak
from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.draw.channel import Channel


@dataclass(frozen=True)
class MultiRelease(HabitsLeak):
    """A11 extends A8 to several releases: a publisher who draws again gives several draws per visit.

    Only a venue that could have been released as all of them stands behind them. With one release, A11 is A8.
    """

    number = 11
    title = "several releases"
    holds = "what A8 holds, for several releases of the same rows"
    does = "multiplies the evidence of all releases"
    many_releases = True

    def restore(self, evidence: Evidence, seed: Seed, device: Device) -> Ints:
        each = evidence.per_release()
        channels = [self.channel(e).covering(e.released.poi) for e in each]
        symbols, symbol = np.unique(np.stack([e.released.poi for e in each], 1), axis=0, return_inverse=True)
        hint = np.mean([popularity_hint(e) for e in each], axis=0)
        visits, _, share = self.explain(evidence, joint_channel(channels, symbols.astype(np.int64)), symbol, hint=hint)
        return evidence.fill(visits.argmax(share))

    def restore_and_measure(self, evidence: Evidence, seed: Seed, device: Device) -> tuple[Ints, Measures]:
        return self.restore(evidence, seed, device), {"releases": 1 + len(evidence.further)}


def joint_channel(channels: list[Channel], symbols: Longs) -> Channel:
    """Return the channel to joint symbols (S, K), the POIs of K releases; the first decides if no POI fits all."""
    owner, entry = channels[0].behind(symbols[:, 0])
    clean, chance = channels[0].clean[entry], channels[0].probability[entry]
    product: Floats = chance.copy()
    for k, channel in enumerate(channels[1:], 1):
        at = channel.find(clean, symbols[owner, k])
        product *= np.where(at >= 0, channel.probability[at], 0.0)
    possible = sum_by(owner, product, len(symbols)) > 0
    product = np.where(possible[owner], product, chance)
    real = product > 0
    return Channel.of(clean[real], owner[real], product[real], len(symbols))


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

    The venue is in every set that one of these visits was drawn from. If each release builds new sets, few venues
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
    """Return how popular each venue looks in the releases, (P+1,); all look the same if the draws do not show it."""
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
