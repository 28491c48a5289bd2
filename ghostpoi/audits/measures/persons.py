"""What a release says about single people: singling out, linkage, and inference of homes and of sensitive visits.

The outsider knows the public rule and a few check-ins of a person, or nothing but the release. All measures return a
tally, (P, 2): how often it succeeded for each person, and of how many attempts. The same functions serve as controls:
of people who are not in the release (`known`, with numbers that no row shows), a match is a false one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # its parts are loaded when they are used

from ghostpoi.data.checkins import Bools, Floats, Longs, by_user_and_time

HOUR_S = 3600
RESOLUTIONS = {"second": 1, "minute": 60, "hour": HOUR_S, "part": 6 * HOUR_S, "day": 24 * HOUR_S}
MOST_KNOWN = 5  # check-ins that the outsider knows
PAIRS_AT_ONCE = 1 << 20  # bounds the memory
MOST_PAIRS = 1 << 27  # bounds the time: where many fit a moment, fewer draws are made
SCORES_AT_ONCE = 1 << 24
PRIOR_VISITS = 10.0  # weight of everybody's visits in those of one person
SLOT_S, SLOTS = 4 * HOUR_S, 6  # parts of the day in which people have habits
NIGHT_H = 8  # the hours of a city with the fewest check-ins
RECALL = (0.1, 0.25, 0.5, 0.75)  # shares of all groups that are assigned rightly
FLAGGED = 0.5  # of the people who make sensitive visits


@dataclass(frozen=True)
class Visits:
    """Check-ins as a release, or the clean file, shows them; arrays are (N,)."""

    person: Longs  # who it really is
    unit: Longs  # who it seems to be: the person, or one of her pseudonyms
    time: Longs
    cell: Longs  # where it is, as far as an outsider can compare places
    token: Longs  # the place as evidence of habits: the crowd, or the venue
    venue: Longs  # that is shown

    def __len__(self) -> int:
        return len(self.person)

    def take(self, rows: Bools | Longs) -> "Visits":
        return Visits(*(column[rows] for column in vars(self).values()))


@dataclass(frozen=True)
class Matcher:
    """Finds who made a check-in of which the moment is known, to `seconds`, and perhaps the place."""

    shown: Visits
    seconds: int
    around: tuple[int, ...] = ()  # what is added to a known cell for each cell that fits; none: the place is unknown

    def _codes(self, visits: Visits, offset: int) -> Longs:
        """Number moments and cells; -1 where no cell can fit."""
        if not self.around:
            return visits.time // self.seconds
        cell, cells = visits.cell + offset, int(self.shown.cell.max(initial=0)) + 1
        return np.where((cell >= 0) & (cell < cells), visits.time // self.seconds * cells + cell, -1)

    @cached_property
    def _index(self) -> tuple[Longs, Longs, Longs]:
        """Return the distinct codes, and the pairs of a code and a unit, sorted, with the unit of each."""
        codes, number = np.unique(self._codes(self.shown, 0), return_inverse=True)
        pairs = distinct(number * self._units + self.shown.unit)
        return codes, pairs, pairs % self._units

    @cached_property
    def _units(self) -> int:
        return int(self.shown.unit.max(initial=0)) + 1

    @cached_property
    def person_of(self) -> Longs:
        """The person behind each unit."""
        found = np.zeros(self._units, np.int64)
        found[self.shown.unit] = self.shown.person
        return found

    @cached_property
    def _one_unit_each(self) -> bool:
        units = distinct(self.shown.unit)
        return len(units) == len(distinct(self.person_of[units]))

    def people(self, owner: Longs, unit: Longs) -> tuple[Longs, Longs]:
        """Return the distinct people behind the units of each owner: pairs of an owner and a person."""
        size = int(self.person_of.max(initial=0)) + 1
        each = owner * size + self.person_of[unit]
        return np.divmod(each if self._one_unit_each else distinct(each), size)

    @cached_property
    def moments(self) -> int:
        """How many distinct ones there are, at least 1."""
        return max(1, len(np.unique(self.shown.time // self.seconds)))

    def _numbers(self, known: Visits) -> list[Longs]:
        """The place of each known check-in among the distinct codes, one array per cell around; -1: nobody is there."""
        codes, found = self._index[0], []
        for offset in self.around or (0,):
            wanted = self._codes(known, offset)
            at = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
            found.append(np.where((codes[at] == wanted) & (wanted != -1), at, -1))
        return found

    def candidates(self, known: Visits) -> tuple[Longs, Longs]:
        """Return who fits each known check-in: its index and a unit, in pairs."""
        _, pairs, unit = self._index
        found = []
        for number in self._numbers(known):
            some = np.flatnonzero(number >= 0)
            first = np.searchsorted(pairs, number[some] * self._units)
            count = np.searchsorted(pairs, (number[some] + 1) * self._units) - first
            at = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(count.sum())
            found.append(np.repeat(some, count) * self._units + unit[at])
        return np.divmod(found[0] if len(found) == 1 else distinct(np.concatenate(found)), self._units)

    def fit(self, known: Visits, unit: Longs) -> Bools:
        """Mark the known check-ins, (N,), that one of these units, (N,), may have made."""
        pairs, found = self._index[1], np.zeros(len(unit), bool)
        for number in self._numbers(known):
            wanted = number * self._units + unit
            at = np.minimum(np.searchsorted(pairs, wanted), len(pairs) - 1)
            found |= (number >= 0) & (pairs[at] == wanted)
        return found


def singled_out(matcher: Matcher, known: Visits, drawn: Longs) -> Bools:
    """Return whether the first k of the known check-ins single out a person, for every draw and k, (D, K).

    `drawn` (D, K) are indices into `known`. Check-ins under one pseudonym count together, others each alone: it is
    enough that one group fits the pseudonyms of one person only. A person who is shown must be that person.
    """
    size = max(1, PAIRS_AT_ONCE // (len(matcher.shown) // matcher.moments + 1))
    parts = [_singled_out(matcher, known, drawn[at : at + size]) for at in range(0, len(drawn), size)]
    return np.concatenate(parts) if parts else np.zeros(drawn.shape, bool)


def _singled_out(matcher: Matcher, known: Visits, drawn: Longs) -> Bools:
    draws, most = drawn.shape
    group = (known.unit[drawn][:, :, None] == known.unit[drawn][:, None, :]).argmax(axis=2)  # (D, K) its first member
    members = np.isin(known.person[drawn[:, 0]], matcher.shown.person)
    owner, unit = np.empty(0, np.int64), np.empty(0, np.int64)  # who fits the groups so far; a group is (draw, first)
    out = np.zeros(drawn.shape, bool)
    for k in range(most):
        point = known.take(drawn[:, k])
        own = np.arange(draws) * most + group[:, k]
        again = own[owner // most] == owner  # candidates of a group that gets a further check-in
        stay = ~again
        stay[again] = matcher.fit(point.take(owner[again] // most), unit[again])
        begins = np.flatnonzero(group[:, k] == k)
        which, new = matcher.candidates(point.take(begins))
        owner, unit = np.append(owner[stay], own[begins[which]]), np.append(unit[stay], new)
        of, person = matcher.people(owner, unit)
        count, who = np.bincount(of, minlength=draws * most), np.zeros(draws * most, np.int64)
        who[of] = person
        single = np.flatnonzero(count == 1)
        draw = single // most
        right = ~members[draw] | (who[single] == known.person[drawn[draw, 0]])
        out[draw[right], k] = True
    return out


def distinct(values: Longs) -> Longs:
    """Return the distinct values, sorted; `np.unique` hashes, which is slower here."""
    values = np.sort(values)
    return values[np.append(True, values[1:] != values[:-1])] if len(values) else values


def unicity(matcher: Matcher, known: Visits, drawn: Longs, people: int) -> list[Floats]:
    """Return the tally of people who are singled out by k of their check-ins, for every k."""
    each = drawn.shape[1] * len(matcher.shown) // matcher.moments  # who fits the moments of a draw, about
    drawn = drawn[:: max(1, len(drawn) * each // MOST_PAIRS)]
    found, who = singled_out(matcher, known, drawn), known.person[drawn[:, 0]]
    return [tally(who, found[:, k], people) for k in range(drawn.shape[1])]


def gaps(visits: Visits, shown: Bools, seconds: int, most: int, people: int) -> list[Floats]:
    """Return the tally of runs of k gaps between check-ins that only one person has who is shown, for every k.

    `shown` (N,) marks the check-ins of the release. For others, a run that one person has is a false match.
    """
    order = by_user_and_time(visits.unit.astype(np.int32), visits.time)
    unit, time, person = visits.unit[order], visits.time[order], visits.person[order]
    gap, code, out = np.append(np.diff(time) // seconds, 0), np.zeros(len(order), np.int64), list[Floats]()
    gap = np.unique(gap, return_inverse=True)[1]
    span = int(gap.max(initial=0)) + 2
    whole = np.ones(len(order), bool)
    for k in range(min(most, len(order) - 1)):
        ahead = np.append(gap[k:], np.full(k, -1))
        whole &= np.append(unit[k + 1 :] == unit[: -k - 1], np.zeros(k + 1, bool))
        code = np.unique(np.where(whole, code * span + ahead + 1, -1), return_inverse=True)[1]
        inside = whole & shown[order]
        by_person = distinct(code[inside] * people + person[inside])
        holders = np.bincount(by_person // people, minlength=int(code.max()) + 1)
        single = holders[code] == 1  # of a person who is shown, that is she
        out.append(tally(person[whole], single[whole], people))
    return out


def tally(person: Longs, success: Bools, people: int) -> Floats:
    """Count successes and attempts by person, (P, 2)."""
    counts = np.bincount(person, success, people), np.bincount(person, minlength=people)
    return np.stack(counts, axis=1).astype(float)


def twins(matcher: Matcher, known: Visits, drawn: Longs) -> Longs:
    """Return the person who fits most of the check-ins of each draw, (D,); -1 where nobody fits any."""
    which, unit = matcher.candidates(known.take(drawn.ravel()))
    found, often = _most_often(which // drawn.shape[1], matcher.person_of[unit], len(drawn))
    return np.where(often > 0, found, -1)


def _most_often(of: Longs, value: Longs, count: int) -> tuple[Longs, Longs]:
    """Return the value that comes most often with each number below `count`, 0 for none, and how often."""
    size = int(value.max(initial=0)) + 1
    each, times = np.unique(of * size + value, return_counts=True)
    order, found, often = np.argsort(times, kind="stable"), np.zeros(count, np.int64), np.zeros(count, np.int64)
    at = each[order] // size
    found[at], often[at] = each[order] % size, times[order]  # the last assignment, the most frequent, wins
    return found, often


@dataclass(frozen=True)
class Parts:
    """Earlier check-ins, of which an outsider knows the people, and groups of later ones, of which she does not.

    A group is a session, or what stands under one id in the next release of the same people.
    """

    visits: Visits
    group: Longs  # (N,) of each later check-in
    later: Bools  # (N,)
    tested: Longs  # (G,) groups
    strangers: Bools  # (P,) people whose earlier check-ins nobody knows: the control
    one_each: bool = False  # whether no two groups are of one person


def later(person: Longs, session: Longs, time: Longs, quarters: int = 2) -> Bools:
    """Mark the check-ins after the first quarters of each person's sessions."""
    begin = np.full(int(session.max()) + 1, np.iinfo(np.int64).max)
    who = np.zeros_like(begin)
    np.minimum.at(begin, session, time)
    who[session] = person
    order, total = np.lexsort((begin, who)), np.bincount(who)
    place = np.empty_like(begin)
    place[order] = np.arange(len(begin)) - np.repeat(np.cumsum(total) - total, total)
    return (4 * place >= quarters * total[who])[session]


def linkage(name: str, parts: Sequence[Parts], people: int) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return the tallies of groups that are assigned to the right person, under a name, and those of the control.

    An outsider knows how often each person was where, and in which part of the day (naive Bayes). All groups are
    assigned, in the control to the most active person. `precision_at_10`: those of which she is surest, until 10% of
    all groups are assigned rightly; its control are the groups of strangers that are assigned as surely.
    """
    each = zip(*(_assigned(one, people) for one in parts), strict=True)
    person, found, sure, most, stranger = (np.concatenate(one) for one in each)
    right, hers, surest = (one[~stranger] for one in (found == person, person, sure))
    release, control = {name: tally(hers, right, people)}, {name: tally(hers, most[~stranger] == hers, people)}
    order = np.argsort(-surest, kind="stable")
    hits = np.cumsum(right[order])
    for recall in RECALL:
        if not len(hits) or hits[-1] < recall * len(right):
            break
        least, at = surest[order][np.searchsorted(hits, recall * len(right))], f"precision_at_{100 * recall:.0f}"
        release[at] = tally(hers[surest >= least], right[surest >= least], people)
        control[at] = tally(person[stranger], sure[stranger] >= least, people)
    return release, control


def _assigned(parts: Parts, people: int) -> tuple[Longs, Longs, Floats, Longs, Bools]:
    """Return of each tested group the person, the likeliest one, by how much (log) she is likelier than the next.

    Then the most active person, and whether the group is a stranger's. Where no two groups are of one person, each
    goes to another person, as fits all of them best.
    """
    visits, tests = parts.visits, len(parts.tested)
    row = np.full(int(parts.group.max(initial=0)) + 1, -1)
    row[parts.tested] = np.arange(tests)
    known = np.flatnonzero(~parts.later & ~parts.strangers[visits.person])
    tested = np.flatnonzero(parts.later & (row[parts.group] >= 0))
    at, truth = row[parts.group[tested]], np.zeros(tests, np.int64)
    truth[at] = visits.person[tested]
    total = np.bincount(visits.person[known], minlength=people)
    person, column, evidence = np.flatnonzero(total), np.cumsum(total > 0) - 1, []
    for token in (visits.token, visits.token * SLOTS + visits.time // SLOT_S % SLOTS):
        names, code = np.unique(token, return_inverse=True)
        usual, ends = np.bincount(code[known], minlength=len(names)) + 0.5, (code[known], column[visits.person[known]])
        lift = scipy.sparse.csr_array((np.ones(len(known)), ends), (len(names), len(person))).tocoo()
        lift.data = np.log1p(lift.data / (PRIOR_VISITS * (usual / usual.sum())[lift.coords[0]]))
        where = scipy.sparse.csr_array((np.ones(len(tested)), (at, code[tested])), (tests, len(names)))
        evidence.append((where, lift.tocsr()))
    size = np.bincount(at, minlength=tests)
    found, sure = np.zeros(tests, np.int64), np.zeros(tests)
    block = max(1, SCORES_AT_ONCE // max(1, len(person)))
    for first in range(0, tests, block):
        some = slice(first, first + block)
        score = sum((where[some] @ lift).toarray() for where, lift in evidence)
        score = score + np.log(total[person]) - 2 * size[some, None] * np.log1p(total[person] / PRIOR_VISITS)
        best, sure[some] = _best(score, size if parts.one_each and tests <= block else None)
        found[some] = person[best]
    return truth, found, sure, np.full(tests, total.argmax()), parts.strangers[truth]


def _best(score: Floats, size: Longs | None) -> tuple[Longs, Floats]:
    """Return the best column of each row, and by how much it is better than the next.

    With the `size` of the rows, each gets another column; rows for which none is left are the least sure.
    """
    best, alone = score.argmax(axis=1), np.zeros(len(score), bool)
    if size is not None:
        rows, columns = scipy.optimize.linear_sum_assignment(score / np.sqrt(size[:, None]), maximize=True)
        best[rows], alone[:] = columns, True
        alone[rows] = False
    at = np.arange(len(best)), best
    top, score[at] = score[at], -np.inf
    return best, np.where(alone, -np.inf, top - score.max(axis=1, initial=-np.inf))


def night(time: Longs) -> Bools:
    """Mark the check-ins, (N,), in the hours with the fewest: files rarely state the time zone."""
    hour = time // HOUR_S % 24
    counts = np.bincount(hour, minlength=24)
    sums = [np.take(counts, range(first, first + NIGHT_H), mode="wrap").sum() for first in range(24)]
    return (hour - int(np.argmin(sums))) % 24 < NIGHT_H


def most_frequent(visits: Visits, eligible: Bools, people: int) -> tuple[Longs, Longs]:
    """Return the eligible venue that each person visits most, (P,), 0 for none, and how often."""
    rows = eligible[visits.venue]
    return _most_often(visits.person[rows], visits.venue[rows], people)


def by_counts(visits: Visits, eligible: Bools, cell_of: Longs, people: int) -> Longs:
    """Return the eligible venue whose shown visits fit best the visits of a person to its crowd, (P,), 0 for none.

    A venue of m visits that all are hers adds m to what the person would do in the crowd by chance. A venue that is
    never shown, such as a hidden home, has the number that fits best: an outsider knows from a map that it is there.
    """
    shown = np.bincount(visits.venue, minlength=len(eligible))
    venues = np.flatnonzero(eligible)
    total = np.bincount(visits.cell, minlength=int(cell_of.max(initial=0)) + 1)
    cells = np.int64(len(total))
    pair, n = np.unique(visits.person * cells + visits.cell, return_counts=True)
    order = venues[np.argsort(cell_of[venues], kind="stable")]
    first, last = (np.searchsorted(cell_of[order], pair % cells, side) for side in ("left", "right"))
    count = last - first
    venue = order[np.repeat(first - (np.cumsum(count) - count), count) + np.arange(count.sum())]
    person, n = np.repeat(pair // cells, count), np.repeat(n, count)
    share = np.bincount(visits.person, minlength=people) / max(1, len(visits))
    m = shown[venue].astype(float)
    chance = np.maximum(total[cell_of[venue]] - m, 1) * share[person]
    m = np.where(m > 0, m, np.maximum(n - chance, 0))
    score = n * np.log1p(m / chance) - m
    best, found = np.argsort(score, kind="stable"), np.zeros(people, np.int64)
    found[person[best]] = venue[best]
    return found


def likelihood(visits: Visits, kind: Bools, people: int) -> Floats:
    """Return how surely each person has visited a kind of venue, (P,), a log; `kind` is by venue.

    A check-in counts with the share of that kind in the check-ins with the same token.
    """
    token = np.unique(visits.token, return_inverse=True)[1]
    share = np.bincount(token, kind[visits.venue]) / np.maximum(np.bincount(token), 1)
    return np.bincount(visits.person, -np.log(np.maximum(1 - share[token], 1e-9)), people).astype(float)


def flagged(sure: Floats, truth: Bools, among: Bools) -> float:
    """Return the score from which on people are flagged, so that half of those who make such visits are."""
    order = np.argsort(-sure[among], kind="stable")
    hits = np.cumsum(truth[among][order])
    return float(sure[among][order][np.searchsorted(hits, FLAGGED * hits[-1])])


def interval(counts: Floats, step: float) -> dict[str, float | int] | None:
    """Return the share of successes with a 95% interval, rounded, and its spread over people; None without attempts.

    Attempts on one person resemble each other, so the interval is that of a ratio over people.
    """
    tried = counts[counts[:, 1] > 0]
    if not len(tried):
        return None
    mean, n = float(tried[:, 0].sum() / tried[:, 1].sum()), len(tried)
    error = np.sqrt(((tried[:, 0] - mean * tried[:, 1]) ** 2).sum() * n / max(1, n - 1)) / tried[:, 1].sum()
    half, each = float(2 * error + 3 / n), np.sort(tried[:, 0] / tried[:, 1])
    ends = np.floor(max(0.0, mean - half) / step) * step, np.ceil(min(1.0, mean + half) / step) * step
    shares = {"mean": mean, "low": ends[0], "high": min(1.0, ends[1])}
    if tried[:, 1].max() > 1:  # else each person is found or not
        quantiles = np.quantile(each, [0.5, 0.95, 1], method="inverted_cdf")
        shares |= dict(zip(("median", "p95", "most"), map(float, quantiles), strict=True))
    found: dict[str, float | int] = {name: round(round(x / step) * step, 6) for name, x in shares.items()}
    return found | {"people": n}


def draws(person: Longs, most_people: int, each: int, known: int, generator: np.random.Generator) -> Longs:
    """Draw known check-ins of people who have enough, (D, K): `each` draws of at most `most_people` people."""
    order = np.argsort(person, kind="stable")
    count = np.bincount(person)
    first = np.cumsum(count) - count
    enough = np.flatnonzero(count >= known)
    chosen: Sequence[int] = np.sort(generator.permutation(enough)[:most_people]).tolist()
    found = [first[one] + np.argsort(generator.random((each, count[one])), axis=1)[:, :known] for one in chosen]
    return order[np.concatenate(found)] if found else np.empty((0, known), np.int64)
