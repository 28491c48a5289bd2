"""A mixture of counts that knows users and hours: the next venue from what everybody, and what this user, did before.

It learns from hard sessions, as a victim does, or from soft ones, where each visit is spread over several venues, as an
adversary restores them. Its parts are counts of next venues given the user and the present venue, the user, the user
and the part of the day, and the present venue; staying; and popularity, which decides ties. Clean validation sessions
choose the weights. It is a scorer: what predicts the next venue of clean sessions, a victim's model or an adversary's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import scipy  # its parts are loaded when they are used

from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.data.sessions import Sessions

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Sparse:
    """Scores of n steps that share a base and exceed it at few venues. Ranks of these cost no dense array."""

    base: Floats  # (P+1,)
    more: "scipy.sparse.csr_array"  # (n, P+1), at least 0

    def __len__(self) -> int:
        return int(self.more.shape[0])

    def __getitem__(self, which: Longs | slice) -> "Sparse":
        return Sparse(self.base, self.more[which])

    def dense(self) -> Floats:
        """Return the scores of all venues, (n, P+1)."""
        return self.more.toarray() + self.base


Scores: TypeAlias = "Floats | torch.Tensor | Sparse"  # of some steps, each proportional to a probability, (n, P+1)


class Scorer(Protocol):
    """Predicts the venue after every step."""

    def probabilities(self, sessions: Sessions) -> Iterator[Scores]:
        """Yield the scores of the steps inside sessions, in order and in batches; column 0 is 0.

        A venue that the vocabulary lacks is 0 in `sessions`.
        """
        ...


BACK_OFF = 0.1  # weight of a venue two steps later or one step earlier
SLOT_S, SLOTS = 4 * 3600, 6  # parts of the day
DOUBT = {"habit": 1.0, "user": 1.0, "hour": 2.0, "step": 2.0}  # visits to nowhere that each context also counts
POPULAR = 1e-3  # weight of popularity
TRIED: tuple[float, ...] = (0.0, 0.05, 0.1, 0.2, 0.35, 0.6, 1.0, 1.6)  # weights of the other parts
START: tuple[float, ...] = (1.0, 0.35, 0.35, 0.6, 0.2)  # of habit, user, hour, step, staying: where the search begins
BEST = 8  # columns of each part that choosing weights looks at; all of them give the same accuracy to .0003
BATCH = 1 << 13  # steps whose scores are held at once


@dataclass(frozen=True)
class SoftSessions:
    """Sessions whose visits are spread over several venues. The POIs of `sessions` themselves are not read."""

    sessions: Sessions
    poi: Ints  # (N, K), 0 where fewer than K venues are possible
    share: Floats  # (N, K) of each venue in the visit
    weight: Floats  # (N,) how many visits each counts as; the same in all of a session

    @staticmethod
    def hard(sessions: Sessions, weight: Floats | None = None) -> "SoftSessions":
        """Spread nothing."""
        ones = np.ones(sessions.positions)
        return SoftSessions(sessions, sessions.poi[:, None], ones[:, None], ones if weight is None else weight)


@dataclass(frozen=True)
class Table:
    """Shares of next venues per context."""

    context: Longs  # (R,) ascending
    share: "scipy.sparse.csr_array"  # (R + 1, P+1); the last row, of all other contexts, is empty

    @staticmethod
    def of(context: Longs, poi: Ints, weight: Floats, rows: int, doubt: float) -> "Table":
        """Sum the weights of each pair, and divide each context by its sum and `doubt`."""
        known, place = np.unique(context, return_inverse=True)
        at = place.astype(np.int32), poi.astype(np.int32)  # scipy keeps the type of numbers
        count = scipy.sparse.coo_array((weight, at), (len(known) + 1, rows)).tocsr()
        count.sum_duplicates()
        total = np.asarray(count.sum(axis=1)) + doubt
        count.data /= np.repeat(total, np.diff(count.indptr))
        return Table(known, count)

    def rows_of(self, context: Longs) -> Longs:
        """Return the row of each context."""
        at = np.minimum(np.searchsorted(self.context, context), max(0, len(self.context) - 1))
        hit = self.context[at] == context if len(self.context) else np.zeros(len(context), bool)
        return np.where(hit, at, len(self.context))

    @cached_property
    def best(self) -> Longs:
        """The BEST likeliest venues of each row, (R + 1, BEST), padded with 0."""
        first = self.share.indptr[:-1]
        row = np.repeat(np.arange(len(first)), np.diff(self.share.indptr))
        return top(self.share.indices, self.share.data, row, first, BEST)[0]

    def at(self, row: Longs, poi: Longs) -> Floats:
        """Return the share of each POI (n, C) in its row (n,)."""
        if not self.share.nnz:
            return np.zeros(poi.shape)
        wide = self.share.shape[1]
        asked = row[:, None] * wide + poi
        at = np.minimum(np.searchsorted(self.pairs, asked), len(self.pairs) - 1)
        return np.where(self.pairs[at] == asked, self.share.data[at], 0.0)

    @cached_property
    def pairs(self) -> Longs:
        """The row and the venue of each share as one number, ascending."""
        row = np.repeat(np.arange(len(self.context) + 1), np.diff(self.share.indptr))
        return row * self.share.shape[1] + self.share.indices


def ranked(share: Floats, owner: Longs, first: Longs) -> tuple[Longs, Longs]:
    """Order options by owner (ascending) and share, the largest first; return the order and the place of each.

    The options of an owner start at `first`. Ties keep their order.
    """
    order = np.lexsort((-share, owner))
    return order, np.arange(len(order)) - first[owner[order]]


def top(poi: Longs, share: Floats, owner: Longs, first: Longs, kept: int) -> tuple[Longs, Floats]:
    """Return the POIs of each owner's options with the largest shares, and these, (owners, kept), padded with 0."""
    order, place = ranked(share, owner, first)
    some = order[place < kept]
    at = owner[some], place[place < kept]
    found = np.zeros((len(first), kept), poi.dtype), np.zeros((len(first), kept))
    found[0][at], found[1][at] = poi[some], share[some]
    return found


@dataclass(frozen=True)
class Steps:
    """The contexts of the steps of sessions."""

    user: Longs  # (n,)
    poi: Longs  # (n,) the present venue, 0 if it is unknown
    slot: Longs  # (n,)

    @staticmethod
    def of(sessions: Sessions, rows: int) -> tuple["Steps", Longs]:
        """Return the steps inside sessions in order, and the venue that each leads to, (n,)."""
        session, at = sessions.session_of(), sessions.steps()
        poi = sessions.poi.astype(np.int64)
        here = np.where((poi[at] >= 1) & (poi[at] < rows), poi[at], 0)
        return Steps(sessions.user[session[at]].astype(np.int64), here, slots(sessions.time[at])), poi[at + 1]

    def __len__(self) -> int:
        return len(self.user)

    def take(self, which: slice) -> "Steps":
        return Steps(self.user[which], self.poi[which], self.slot[which])

    def contexts(self, rows: int) -> tuple[Longs, ...]:
        """Return the context of each step in each table."""
        return self.user * rows + self.poi, self.user, self.user * SLOTS + self.slot, self.poi


def slots(time: Longs) -> Longs:
    """Return the part of the day of each time."""
    return time // SLOT_S % SLOTS


@dataclass(frozen=True)
class CountingModel:
    """The parts of the mixture and their weights."""

    tables: tuple[Table, ...]  # by user and venue, by user, by user and part of the day, by venue
    popular: Floats  # (P+1,) share of all visits
    weights: tuple[float, ...]  # of the tables and of staying

    @staticmethod
    def fit(soft: SoftSessions, validation: Sessions, rows: int) -> "CountingModel":
        """Count the visits, and choose the weights that predict the validation sessions best."""
        model = CountingModel(tables_of(soft, rows), popularity_of(soft, rows), START)
        return replace(model, weights=chosen(Comparison.of(model, validation)))

    @property
    def rows(self) -> int:
        return len(self.popular)

    def probabilities(self, sessions: Sessions) -> Iterator[Sparse]:
        """Yield the probabilities of the venues after each step, some steps at a time."""
        steps, _ = Steps.of(sessions, self.rows)
        for begin in range(0, len(steps), BATCH):
            yield self.scores(steps.take(slice(begin, begin + BATCH)))

    def scores(self, steps: Steps) -> Sparse:
        """Return scores that sum to at most the sum of the weights, (n, P+1)."""
        *some, stay = self.weights
        here = np.flatnonzero(steps.poi)
        stays = np.full(len(here), stay), (here, steps.poi[here])
        more = scipy.sparse.coo_array(stays, (len(steps), self.rows)).tocsr()
        for table, weight, context in zip(self.tables, some, steps.contexts(self.rows), strict=True):
            if weight:
                more = more + weight * table.share[table.rows_of(context)]
        return Sparse(POPULAR * self.popular, scipy.sparse.csr_array(more))


def tables_of(soft: SoftSessions, rows: int) -> tuple[Table, ...]:
    """Count soft sessions in each context."""
    s = soft.sessions
    user = s.user[s.session_of()].astype(np.int64)
    at, column = np.nonzero(soft.poi)
    poi, weight = soft.poi[at, column], soft.share[at, column] * soft.weight[at]
    hours = Table.of(user[at] * SLOTS + slots(s.time[at]), poi, weight, rows, DOUBT["hour"])
    users = Table.of(user[at], poi, weight, rows, DOUBT["user"])
    before, after, by, count = (np.concatenate(part) for part in zip(*_pairs(soft, user), strict=True))
    habits = Table.of(by * np.int64(rows) + before, after, count, rows, DOUBT["habit"])
    return habits, users, hours, Table.of(before.astype(np.int64), after, count, rows, DOUBT["step"])


def _pairs(soft: SoftSessions, user: Longs) -> Iterator[tuple[Ints, Ints, Ints, Floats]]:
    """Yield pairs of visits: venue before, venue after, user, weight; one or two steps apart, and one step back."""
    for lag, forth, back in ((1, 1.0, BACK_OFF), (2, BACK_OFF, 0.0)):
        at = soft.sessions.steps(lag)
        for j, k in product(range(soft.poi.shape[1]), repeat=2):
            real = at[(soft.poi[at, j] > 0) & (soft.poi[at + lag, k] > 0)]
            one, two, by = soft.poi[real, j], soft.poi[real + lag, k], user[real].astype(np.int32)
            weight = soft.share[real, j] * soft.share[real + lag, k] * soft.weight[real]
            yield one, two, by, forth * weight
            if back:
                yield two, one, by, back * weight


def popularity_of(soft: SoftSessions, rows: int) -> Floats:
    """Return the share of all visits that each venue gets, (P+1,); no venue but 0 gets none."""
    count = np.bincount(soft.poi.ravel(), (soft.share * soft.weight[:, None]).ravel(), rows) + 1.0
    count[0] = 0
    return count / count.sum()


@dataclass(frozen=True)
class Comparison:
    """What each part gives to the next venue of validation steps, and to the venues that may come before it."""

    own: Floats  # (n, parts)
    others: Floats  # (n, C, parts)

    @staticmethod
    def of(model: CountingModel, sessions: Sessions) -> "Comparison":
        """Compare with the best venues of each part, with staying, and with the most popular venue."""
        steps, target = Steps.of(sessions, model.rows)
        row = [t.rows_of(context) for t, context in zip(model.tables, steps.contexts(model.rows), strict=True)]
        favourite = np.full((len(steps), 1), int(model.popular.argmax()))
        rival = np.concatenate([*(t.best[r] for t, r in zip(model.tables, row, strict=True)), favourite,
                                steps.poi[:, None]], axis=1)  # fmt: skip

        def parts(poi: Longs) -> Floats:
            shares = [t.at(r, poi) for t, r in zip(model.tables, row, strict=True)]
            stays = (poi == steps.poi[:, None]).astype(float)
            return np.stack([*shares, stays, POPULAR * model.popular[poi]], axis=-1)

        known = (target >= 1) & (target < model.rows)
        own, others = parts(np.where(known, target, 0)[:, None])[:, 0], parts(rival)
        own[~known] = 0
        others[(rival == target[:, None]) | (rival == 0)] = 0
        return Comparison(own, others)

    def accuracy(self, weights: Sequence[float]) -> float:
        """Return the share of steps whose next venue has the best score."""
        each = np.append(weights, 1.0)
        hits: Floats = self.own @ each > (self.others @ each).max(axis=1)
        return float(hits.mean()) if len(hits) else 0.0


def chosen(comparison: Comparison) -> tuple[float, ...]:
    """Search the weights with the best accuracy, one at a time, until none gains; the first of equals."""
    best, weights = comparison.accuracy(START), list(START)
    gained = True
    while gained:
        gained = False
        for part, weight in ((part, weight) for part in range(len(START)) for weight in TRIED):
            tried = [*weights[:part], weight, *weights[part + 1 :]]
            accuracy = comparison.accuracy(tried)
            if accuracy > best:
                best, weights, gained = accuracy, tried, True
    return tuple(weights)
