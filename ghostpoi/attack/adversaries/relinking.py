"""A17 and A18: sessions under fresh pseudonyms, assigned to users with leaked sessions.

A user returns to venues, at the same hours, and stays in a region. So does a stranger within one session: what a
session repeats of itself is no evidence for anyone. Two pseudonyms of one user are never as close in time as check-ins
of one session may be.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy  # its parts are loaded when they are used

from ghostpoi.attack.adversaries.base import Device, Measures, Seed
from ghostpoi.attack.adversaries.deconvolution import TINY, estimate_popularity, popularity_hint, sum_by
from ghostpoi.attack.adversaries.distillation import Distilled
from ghostpoi.attack.adversaries.habits import HabitsLeak
from ghostpoi.attack.adversaries.hidden_markov import HiddenMarkov, States, remembered
from ghostpoi.attack.evidence import Evidence
from ghostpoi.data.checkins import Bools, Floats, Ints, Longs
from ghostpoi.data.geo import EARTH_RADIUS_KM, unit_sphere
from ghostpoi.data.sessions import spans
from ghostpoi.settings import key_of

HOURS = 24
LAST = 16  # positions before each one that it may repeat
MOST = 64  # positions of a linked pseudonym that describe its user
LANDMARKS = 1000  # popular venues by which densities are normalised
PAIRS = 1 << 20  # of positions, held at once
PLACES = 1 << 12  # whose densities are computed at once
UNLIKELY = 1e-3  # odds against nobody below which a link is forgotten


@dataclass(frozen=True)
class Links:
    """Possible links of pseudonyms to users, ordered by user."""

    unit: Longs  # (L,)
    user: Longs  # (L,)
    odds: Floats  # (L,) log odds against nobody
    chance: Floats  # (L,)

    def likeliest(self, units: int) -> tuple[Longs, Floats]:
        """Return the likeliest user of each pseudonym, (units,), and its probability; -1 and 0 if there is none."""
        order = np.argsort(self.chance, kind="stable")
        user, chance = np.full(units, -1), np.zeros(units)
        user[self.unit[order]], chance[self.unit[order]] = self.user[order], self.chance[order]
        return user, chance


@dataclass(frozen=True)
class Relinker:
    """Infers who released what. Its settings were chosen by linked sessions on NYC, with seeds that no study uses."""

    repeats: float = 0.8  # share of visits that repeat one that is known, if many are
    few: float = 1.0  # known visits at which half of that share is reached
    near: float = 0.13  # share of visits near one that is known
    near_km: float = 0.3  # where the density of such visits is a quarter of its maximum
    own: float = 0.5  # share of visits that repeat, or are near to, one of the same session
    hours: float = 1.0  # standard deviation of the hour of day of visits to one venue
    any_hour: float = 0.1  # weight of visits at other hours
    caution: float = 0.9  # power of the likelihood of a session: its visits depend on each other
    least: float = 0.5  # probability of a link that is believed
    rounds: int = 1  # in which believed links describe their users

    def users(self, evidence: Evidence) -> Ints:
        """Return the user of every session, (S,): as the evidence has it, or as found for pseudonyms without a leak."""
        pseudonym = evidence.pseudonym
        if pseudonym is None or not evidence.positions.any():
            return evidence.released.user
        return remembered(_users, (self, key_of(evidence)), lambda: self.found(evidence, pseudonym))

    def found(self, evidence: Evidence, pseudonym: Longs) -> Ints:
        """Find what `users` returns."""
        user, scene = evidence.released.user, Scene.of(self, evidence, pseudonym)
        linked, chance = np.full(scene.units, -1), np.zeros(scene.units)
        for _ in range(self.rounds + 1):
            links = scene.exclusive(scene.links(linked, np.where(chance > self.least, chance, 0.0)))
            linked, chance = links.likeliest(scene.units)
        found = np.where(chance > self.least, linked, -1)[scene.unit_of_session]
        return np.where((found >= 0) & (user == pseudonym), scene.known[found], user).astype(np.int32)


_users: dict[tuple[Relinker, str], Ints] = {}  # what was found last: each victim asks again who made a session


@dataclass(frozen=True)
class Scene:
    """All positions by pseudonym and time, and what their released venues reveal about each other."""

    model: Relinker
    known: Longs  # (U,) the users with leaked sessions, ascending
    unit_of_session: Longs  # (S,) pseudonyms numbered from 0
    user: Longs  # (units,) the known user of each pseudonym, an index into `known`; -1: to be found
    start: Longs  # (units+1,)
    hour: Longs  # (N,)
    symbol: Longs  # (N,) the released POI
    reference: Longs  # (N,) what the position reveals about its user: a clean POI, or P+1 + the released POI
    lift: "scipy.sparse.csr_array"  # (P+1+Q, Q) how much likelier a reference makes the same user release a POI later
    place: Floats  # (P+1+Q, 3) on the unit sphere
    density: Floats  # (P+1+Q,) mean closeness of all visits
    begin: Longs  # (units,) UTC seconds
    end: Longs
    gap: int  # the longest between check-ins of one session

    @staticmethod
    def of(model: Relinker, evidence: Evidence, pseudonym: Longs) -> "Scene":
        """Prepare the evidence."""
        released = evidence.released
        unit_of_session = np.unique(pseudonym, return_inverse=True)[1].astype(np.int64)
        unit = np.repeat(unit_of_session, released.length)
        order = np.lexsort((released.time, unit))
        start = np.searchsorted(unit[order], np.arange(int(unit_of_session.max(initial=-1)) + 2))
        known = np.unique(evidence.user[evidence.positions])
        at = np.minimum(np.searchsorted(known, released.user), len(known) - 1)
        user = np.full(len(start) - 1, -1)
        user[unit_of_session] = np.where(known[at] == released.user, at, -1)
        time, q, rows = released.time[order], evidence.symbol[order], evidence.rows
        reference = np.where(evidence.positions, evidence.clean, rows + evidence.symbol)[order].astype(np.int64)
        begin, end = np.zeros(len(user), np.int64), np.zeros(len(user), np.int64)
        begin[unit[order[::-1]]], end[unit[order]] = time[::-1], time  # the last assignment wins
        inside = np.diff(released.session_of()) == 0
        return Scene(
            model, known, unit_of_session, user, start, time // 3600 % HOURS, q, reference,
            *_geography(evidence, model.near_km), begin, end, int(np.diff(released.time)[inside].max(initial=0)),
        )  # fmt: skip

    @property
    def units(self) -> int:
        return len(self.user)

    @cached_property
    def unit(self) -> Longs:
        """The pseudonym of every position, (N,)."""
        return np.repeat(np.arange(self.units), np.diff(self.start))

    @cached_property
    def hour_weight(self) -> Floats:
        """How much a visit at one hour says about another hour, (HOURS, HOURS)."""
        apart = np.abs(np.arange(HOURS)[:, None] - np.arange(HOURS))
        apart = np.minimum(apart, HOURS - apart)
        return np.exp(-0.5 * (apart / self.model.hours) ** 2) + self.model.any_hour

    def closeness(self, one: Floats, other: Floats) -> Floats:
        """Return the density of visits at a chord (...,) between points of the unit sphere."""
        return density_at((one * other).sum(-1), self.model.near_km)

    def lifts(self, one: Longs, other: Longs) -> tuple[Floats, Floats]:
        """Return how much likelier the release of `one` makes those of `other`: by repetition and by closeness."""
        rows = len(self.place) - self.lift.shape[1]
        lift = np.asarray(self.lift[rows + one, other]).ravel()
        return lift, self.closeness(self.place[rows + one], self.place[rows + other]) / self.density[rows + one]

    @cached_property
    def itself(self) -> tuple[Floats, Floats]:
        """How often a stranger would release each position, relative to anybody, and the share that he repeats."""
        m, n = self.model, len(self.symbol)
        place = np.arange(n) - self.start[self.unit]
        repeat, near = np.zeros(n), np.zeros(n)
        for lag in range(1, min(LAST, int(place.max(initial=0))) + 1):
            i = np.flatnonzero(place >= lag)
            for total, found in zip((repeat, near), self.lifts(self.symbol[i - lag], self.symbol[i]), strict=True):
                total[i] += found
        count = np.minimum(place, LAST)
        own = m.own * count / (count + 1)
        mixed = (m.repeats * repeat + m.near * near) / (m.repeats + m.near) / np.maximum(count, 1)
        return own * mixed, own

    @cached_property
    def within(self) -> tuple[Floats, Floats, Floats]:
        """What the positions of a pseudonym say about each of them: repetition, hours, closeness, (N,) each."""
        size = np.minimum(np.diff(self.start), MOST)[self.unit]
        repeat, hours, near = (np.zeros(len(size)) for _ in range(3))
        cut = np.flatnonzero(np.diff(np.cumsum(size) // PAIRS)) + 1
        for block in (slice(a, b) for a, b in pairwise([0, *cut.tolist(), len(size)])):
            i = np.repeat(np.arange(block.start, block.stop), size[block])
            j = spans(self.start[self.unit[block]], size[block])
            weight = self.hour_weight[self.hour[i], self.hour[j]]
            lift, close = self.lifts(self.symbol[j], self.symbol[i])
            for total, value in ((repeat, weight * lift), (hours, weight), (near, close)):
                total[block] = sum_by(i - block.start, value, block.stop - block.start)
        return repeat, hours, near

    def links(self, linked: Longs, weight: Floats) -> Links:
        """Return all links that are not far less likely than nobody, given links (units,) believed with a weight."""
        m, total = self.model, np.bincount(self.user[self.user >= 0], minlength=len(self.known))
        nobody = ((total == 1).sum() + 1) / (total.sum() + 2)  # Good-Turing: the share of sessions of unknown users
        prior = np.log((1 - nobody) * total / total.sum()) - np.log(nobody)
        member = np.where(self.user >= 0, self.user, np.where(weight > 0, linked, -1))  # (units,)
        trust = np.where(self.user >= 0, 1.0, weight)
        stranger, own = self.itself
        free = self.user < 0
        parts = []
        for u in range(len(self.known)):
            repeat, near, known = self.profile(np.flatnonzero(member == u), trust, (member == u) & free)
            share = m.repeats * known / (known + m.few)
            chance = 1 + share * (repeat - 1) + m.near * (near - 1)
            lift = np.log(((1 - own) * chance + stranger) / (1 - own + stranger))
            odds = prior[u] + m.caution * sum_by(self.unit, lift, self.units)
            overlaps = self.clash(np.arange(self.units), np.flatnonzero(self.user == u)).any(axis=1)
            possible = free & (odds > np.log(UNLIKELY)) & ~overlaps
            unit = np.flatnonzero(possible)
            parts.append((unit, np.full(len(unit), u), odds[unit]))
        unit, user, odds = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Links(unit, user, odds, np.zeros(len(unit)))

    def profile(self, members: Longs, trust: Floats, without: Bools) -> tuple[Floats, Floats, Floats]:
        """Return how much likelier a user's pseudonyms make each position, by repetition and by closeness, (N,) each.

        The third array is the number of visits that this rests on. A pseudonym of `without` says nothing about itself.
        """
        size = np.diff(self.start)[members]
        size = np.where(self.user[members] >= 0, size, np.minimum(size, MOST))
        at = spans(self.start[members], size)
        weight = trust[self.unit[at]]
        reference, which = np.unique(self.reference[at], return_inverse=True)
        key = which * HOURS + self.hour[at]
        by_hour = sum_by(key, weight, len(reference) * HOURS).reshape(-1, HOURS) @ self.hour_weight  # (R, HOURS)
        table = by_hour.T @ self.lift[reference]  # (HOURS, Q)
        count = sum_by(which, weight)
        places = self.place[len(self.place) - self.lift.shape[1] :]
        near = (count / self.density[reference]) @ density_at(self.place[reference] @ places.T, self.model.near_km)
        repeat, hours = table[self.hour, self.symbol], by_hour.sum(0)[self.hour]
        close, known = near[self.symbol], np.full(len(self.symbol), count.sum())
        own = np.flatnonzero(without[self.unit])
        if len(own):
            w = trust[self.unit[own]]
            for total, part in zip((repeat, hours, close), self.within, strict=True):
                total[own] -= w * part[own]
            known[own] -= w * np.minimum(np.diff(self.start), MOST)[self.unit[own]]
        return np.maximum(repeat / hours, 0), np.maximum(close / known, 0), known

    def clash(self, one: Longs, other: Longs) -> Bools:
        """Return whether two pseudonyms are too close in time to be of the same user, (one, other)."""
        before = self.end[one][:, None] + self.gap < self.begin[other]
        return ~(before | (self.end[other] + self.gap < self.begin[one][:, None]))

    def exclusive(self, links: Links) -> Links:
        """Return the links with their probability: one user per pseudonym, and no two of a user at one time."""
        odds = np.exp(np.minimum(links.odds, 500))
        chance = odds / (1 + sum_by(links.unit, odds, self.units)[links.unit])
        odds = chance / np.maximum(1 - chance, 1e-9)  # against nobody and all other users
        bounds = np.searchsorted(links.user, np.arange(len(self.known) + 1))
        for a, b in pairwise(bounds.tolist()):
            some = a + np.flatnonzero(chance[a:b] > 0.02)
            clash = self.clash(links.unit[some], links.unit[some])  # each with itself, too
            chance[some] = odds[some] / (1 + clash @ odds[some])
        return replace(links, chance=chance)


def _geography(evidence: Evidence, near_km: float) -> "tuple[scipy.sparse.csr_array, Floats, Floats]":
    """Return `lift`, `place` and `density` of a scene."""
    habits, rule, rows = HabitsLeak(), evidence.rule, evidence.rows
    channel = habits.channel(evidence).covering(evidence.symbol)
    released = np.bincount(evidence.symbol, minlength=channel.symbols).astype(float)
    leaked = np.bincount(evidence.clean[evidence.positions], minlength=rows).astype(float)
    hint = habits.hint_weight * popularity_hint(evidence)
    popularity = estimate_popularity(channel, released, leaked + hint, habits.iterations // 2)
    shape = (rows, channel.symbols)
    chance = scipy.sparse.csr_array((channel.probability, (channel.clean, channel.released)), shape)
    usual = np.maximum(popularity @ chance, TINY)  # (Q,)
    diagonal = scipy.sparse.diags_array
    direct = (chance @ diagonal(1 / usual)).tocsr()  # (P+1, Q)
    behind = (diagonal(1 / usual) @ (diagonal(popularity) @ chance).T).tocsr()  # (Q, P+1)
    lift = scipy.sparse.vstack([direct, behind @ direct]).tocsr()
    if rule.lat is None or rule.lon is None:
        flat = np.zeros(rows + channel.symbols)
        return lift, np.stack([flat + 1, flat, flat], 1), flat + near_km**-2.0
    point = np.zeros((rows, 3))
    point[1:] = unit_sphere(rule.lat[1:], rule.lon[1:])
    centre = behind @ point
    centre /= np.maximum(np.linalg.norm(centre, axis=1, keepdims=True), TINY)
    place = np.concatenate([point, centre])
    some = np.argsort(-popularity, kind="stable")[:LANDMARKS]
    share = popularity[some] / popularity[some].sum()
    parts = (place[at : at + PLACES] @ point[some].T for at in range(0, len(place), PLACES))
    return lift, place, np.concatenate([density_at(part, near_km) @ share for part in parts])


def density_at(cosine: Floats, near_km: float) -> Floats:
    """Return the density of visits between points of the unit sphere, by the cosine between them, which is lost."""
    cosine = np.clip(cosine, -1, 1, out=cosine)  # a new array for each step would take twice as long
    cosine *= -2
    cosine += 2
    km = np.sqrt(cosine, out=cosine)
    km *= EARTH_RADIUS_KM
    km += near_km
    return np.power(km, -2.0, out=km)


@dataclass(frozen=True)
class Relink(HiddenMarkov):
    """A17 links sessions to users with leaked sessions by venues or crowds and hours. Without a leak, A17 is A9."""

    number = 17
    title = "relinking"
    holds = "what A9 holds"
    does = "assigns sessions under fresh pseudonyms to users with leaked sessions, then runs A9"
    needs_pseudonyms = True

    relinker: Relinker = Relinker()

    def infer(self, evidence: Evidence) -> tuple[States, Floats]:
        return super().infer(evidence.with_users(self.users(evidence)))

    def restore_and_measure(self, evidence: Evidence, seed: Seed, device: Device) -> tuple[Ints, Measures]:
        """Add the share of sessions that were linked, of those whose pseudonym did not leak."""
        user = self.users(evidence)
        hidden = evidence.released.user == evidence.pseudonym
        linked = float((user != evidence.released.user)[hidden].mean()) if np.any(hidden) else 0.0
        return self.restore(evidence.with_users(user), seed, device), {"linked": linked}

    def users(self, evidence: Evidence) -> Ints:
        return self.relinker.users(evidence)


@dataclass(frozen=True)
class RelinkDistilled(Distilled):
    """A18 is A16 with the users that A17 finds, also while half of the leak decides how much to trust them."""

    number = 18
    title = "relinking, distilled"
    holds = "what A9 holds"
    does = "links sessions as A17 does, then runs A16"
    needs_pseudonyms = True

    steps: HiddenMarkov = Relink()

    def users(self, evidence: Evidence) -> Ints:
        return self.steps.users(evidence)
