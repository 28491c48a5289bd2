"""Compare pairs of rows at one venue with pairs at two: which steps does a column make between them?

A row is followed by the next one at its venue, of another user. The control is one of the next rows in time after
that one, at another venue. Half of the pairs teach which steps are likelier at one venue; the test counts such steps in
the other half. This finds numbers that each venue counts: from any start, round and round, or with visits outside the
file. It also finds sums of a number of the venue and a clock that anybody can read, such as the row number or the
minute, and numbers of which a few bits are the venue's. Dependence does not show these: each venue has all values
equally often.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from ghostpoi.columns.dependence import FEWEST, bins, value_codes
from ghostpoi.columns.related import RELATIONS, Finding, RelatedVenues, beyond_chance, parts_of_date
from ghostpoi.columns.traces import numbers
from ghostpoi.data.checkins import Floats, Longs

LEAST = 0.15  # largest allowed share of pairs, beyond chance, whose step is likelier at one venue
EXACT = 256  # numbers, up to which each step counts by itself
SYNERGY = 2.0  # how much more often two columns agree together at a venue than either alone makes likely
NEAR = 4  # rows: how far in time the control is; always the next one would alternate where parts of a file do
MOST, FEW = 50_000, 10_000  # pairs; of two columns
OWN, COUNTS = f"predicts {RELATIONS['own']}", "counts the check-ins of each venue"


@dataclass(frozen=True)
class VenuePairs:
    """Pairs of rows of a table. `shown` (V+1,) is what a substitute has in common with the clean venue."""

    related: RelatedVenues
    shown: Longs | None = None

    @cached_property
    def _groups(self) -> dict[str, Longs]:
        """Triples of rows, (3, n), by what a column follows from: a row, its pair, and the control."""
        table = self.related.table
        venue, user, hour = table.venue.astype(np.int64), table.user.astype(np.int64), table.time // 3600 % 24
        above, below = np.append(0, venue[:-1]), np.append(venue[1:], 0)
        return {
            OWN: self._triples(venue, venue),
            "follows from the clean venue and the hour": self._triples(venue * 24 + hour, venue, hour),
            "follows from the clean venue and the user": self._triples(
                user << 32 | venue, venue, user * 24 + hour, of_user=True
            ),
            "follows from the venue of the row above": self._triples(above, above),
            "follows from the venue of the row below": self._triples(below, below),
        }

    def _triples(self, group: Longs, venue: Longs, shared: Longs | int = 0, of_user: bool = False) -> Longs:
        """Return triples, (3, n). The control has a number `shared` with the pair.

        `of_user`: all three are of one user. The control is then between the pair in time, so that what changes slowly
        agrees with it rather than with the pair.
        """
        table, by_time = self.related.table, self.related.by_time
        kind = shared + (np.zeros(len(table), np.int64) if self.shown is None else self.shown[table.venue] << 40)
        inside, alike = (by_time[np.argsort(key[by_time], kind="stable")] for key in (group, kind))
        one, two, rng = inside[:-1], inside[1:], np.random.default_rng(0)
        near = np.argsort(alike)[two] + rng.integers(1, NEAR + 1, len(two)) * (-1 if of_user else 1)
        three = alike[np.clip(near, 0, len(alike) - 1)]
        fits = (group[one] == group[two]) & (venue[three] != venue[two]) & (kind[three] == kind[two])
        user, time = table.user, table.time
        others = (user[one] != user[two]) & (user[one] != user[three])
        fits &= time[one] < time[three] if of_user else others
        return np.stack([one, two, three])[:, rng.permutation(np.flatnonzero(fits))[:MOST]]

    @cached_property
    def _clocks(self) -> list[tuple[str, Longs]]:
        """What could have been added to a number of the venue, (N,) each."""
        time, both = self.related.table.time, "follows from the clean venue and "
        rows = {"the row number": np.arange(len(time)), "the number of the user's row": self.related.place_of_row}
        times = [*parts_of_date(time)[:9], time // 60 % 1440, *(time // unit for unit in (1, 60, 3600, 86_400))]
        return [*((both + what, clock) for what, clock in rows.items()), *((f"{both}the time", one) for one in times)]

    def finding(self, column: pl.Series) -> Finding | None:
        """Return what the steps of a column reveal first, or None."""
        code = value_codes(column)
        agree = ((what, (code[rows[1:]] != code[rows[:1]]).astype(np.int64)) for what, rows in self._groups.items())
        found = (Finding(min(map(_likelier, steps)), what) for what, *steps in chain(agree, self._steps(column)))
        return next((one for one in found if one.share > LEAST), None)

    def _steps(self, column: pl.Series) -> Iterator[tuple[Any, ...]]:
        """Yield what a column of numbers could follow from, and its steps to the pair and to the control, (2, n).

        With a clock, the control has its own time in one form of the steps and that of the pair in the other: the
        column may follow the clock, or neither the clock nor the venue.
        """
        if column.dtype in (pl.String, pl.Categorical, pl.Enum):
            column = column.cast(pl.String).str.extract(r"(\d{1,15})\D*$")
        value, triples = numbers(column), self._groups[OWN]
        triples = triples[:, np.isfinite(value[triples]).all(axis=0)]
        if triples.shape[1] < FEWEST:
            return
        step, size = value[triples[1:]] - value[triples[:1]], np.nanmax(value) - np.nanmin(value) + 1
        exact = size <= EXACT and (step % 1 == 0).all()

        def numbered(step: Floats) -> Longs:
            return (step % size).astype(np.int64) if exact else bins((step % size).ravel()).reshape(2, -1)

        yield COUNTS, numbered(step)
        for what, clock in self._clocks:
            passed = clock[triples[1:]] - clock[triples[:1]]
            for sign in (1, -1) if passed.any() else ():
                yield what, *(numbered(step - sign * each) for each in (passed, passed[:1]))

    def together(self, one: Longs, two: Longs) -> float:
        """Return how much more often two codes agree at a venue if they hardly do so one by one, else 0."""
        rows = self._groups[OWN][:, :FEW]
        agree = [codes[rows[1:]] == codes[rows[:1]] for codes in (one, two)]
        both = agree[0] & agree[1]
        lift, *alone = ((each[0].sum() + 1) / (each[1].sum() + 1) for each in (both, *agree))
        return beyond_chance(*both) if lift > SYNERGY * alone[0] * alone[1] else 0.0


def _likelier(steps: Longs) -> float:
    """Return how many more pairs than controls make a step that is likelier for pairs, given the steps of both."""
    if steps.shape[1] < FEWEST:
        return 0.0
    learn, most = np.random.default_rng(0).random(steps.shape[1]) < 0.5, int(steps.max()) + 1
    pair, control = (np.bincount(each[learn], minlength=most) for each in steps)
    return beyond_chance(*(pair > control)[steps[:, ~learn]])
