"""What an adversary knows about a release: the public rule, which the manifest and the code state, and the leak."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Bools, Floats, Ints, Longs
from ghostpoi.data.places import of_sessions
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.draw.channel import Channel, uniform
from ghostpoi.draw.crowds import category_hours, slot_weights
from ghostpoi.draw.methods import AnyMethod
from ghostpoi.errors import InputError
from ghostpoi.randomness import Seed

EVIDENCE_VERSION = 1  # raised whenever the same input gives other leaks or evidence


@dataclass(frozen=True)
class Rule:
    """How the publisher substitutes, as far as it is public."""

    candidates: Candidates
    channel: Channel
    exact: bool  # False: the channel is a first guess that an adversary may refine
    lat: Floats | None = None  # (P+1,) coordinates of the venues, as the release shows them
    lon: Floats | None = None
    popularity_power: float = 0.0  # see AnyMethod.popularity_power


@dataclass(frozen=True)
class KeptColumn:
    """A column that the release shows as the clean file has it, at the positions of the training sessions."""

    name: str
    code: Longs  # (N,) the number of each value
    named: Ints  # (N,) the POI that the value names: its id, or the POI nearest to a position; 0 if it names none
    value: Floats  # (N,) the value as a number, NaN if it is none


@dataclass(frozen=True)
class Outside:
    """What an adversary knows about the city from elsewhere. None: nothing."""

    popularity: Floats | None = None  # (P+1,) visits to each venue, of any scale
    hours: Floats | None = None  # (SLOTS, P+1) how much likelier than on average each venue is in each slot of the week

    @staticmethod
    def true(sessions: Sessions, vocabulary: Vocabulary) -> "Outside":
        """Return what clean sessions say: the worst case of any knowledge of this kind."""
        places = of_sessions(sessions, vocabulary)
        return Outside(places.visits.astype(float), slot_weights(places.category, category_hours(places)))


@dataclass(frozen=True)
class Evidence:
    """Everything an adversary knows. The constructor refuses clean POIs and users of sessions that did not leak.

    Under pseudonyms, `released.user` is who a session seems to belong to: the true user if a session of its pseudonym
    leaked, otherwise the pseudonym, as a user of its own.
    """

    released: Sessions  # the released training sessions
    leaked: Bools  # (S,) sessions whose clean POIs the adversary holds
    clean: Ints  # (N,) clean POIs at leaked positions, 0 elsewhere
    rows: int  # P+1
    rule: Rule
    further: tuple[Ints, ...] = ()  # (N,) each: the POIs of further releases of the same sessions, by the same rule
    kept: tuple[KeptColumn, ...] = ()
    pseudonym: Longs | None = None  # (S,) no number of a true user; None: the release keeps the user ids
    outside: Outside | None = None

    def __post_init__(self) -> None:
        if self.leaked.shape != (len(self.released),) or self.clean.shape != self.released.poi.shape:
            raise ValueError("leaked needs one value per session, clean one per position of the release")
        if any(poi.shape != self.clean.shape for poi in self.further):
            raise ValueError("further releases must hold the same rows as the first")
        if any(column.code.shape != self.clean.shape for column in self.kept):
            raise ValueError("kept columns need one value per position of the release")
        if not all(in_vocabulary(poi, self.rows).all() for poi in (self.released.poi, *self.further)):
            raise ValueError("a released POI lies outside 1..P")
        if (in_vocabulary(self.clean, self.rows) != self.positions).any() or self.clean[~self.positions].any():
            raise ValueError("clean must lie in 1..P where a session leaked and be 0 elsewhere")
        if self.pseudonym is not None:
            known = np.isin(self.pseudonym, self.pseudonym[self.leaked])
            user, hidden = self.released.user, self.released.user[~known] != self.pseudonym[~known]
            if hidden.any() or np.isin(user[known], self.pseudonym).any() or self.released.row.any():
                raise ValueError("the user and the rows of a session must be hidden unless its pseudonym leaked")

    @staticmethod
    def of(
        released: Sessions, clean: Ints, leaked: Bools, rows: int, rule: Rule,
        further: tuple[Ints, ...] = (), kept: tuple[KeptColumn, ...] = (), pseudonym: Longs | None = None,
        outside: Outside | None = None,
    ) -> "Evidence":  # fmt: skip
        """Build evidence from the true user of every session and the clean POI of every position.

        It keeps only what the leak reveals. `pseudonym` (S,) may be any numbers.
        """
        known = np.where(np.repeat(leaked, released.length), clean, 0).astype(np.int32)
        if pseudonym is not None:
            pseudonym = _apart(pseudonym, released)
            user = apparent_users(released.user, pseudonym, leaked)
            released = replace(released, user=user, row=np.zeros_like(released.row))  # rows follow the users
        return Evidence(released, leaked, known, rows, rule, further, kept, pseudonym, outside)

    @property
    def positions(self) -> Bools:
        """The positions of leaked sessions, (N,)."""
        return np.repeat(self.leaked, self.released.length)

    @property
    def user(self) -> Longs:
        """The user of every position, (N,)."""
        return np.repeat(self.released.user, self.released.length).astype(np.int64)

    @property
    def symbol(self) -> Longs:
        """The released POI of every position as a symbol of a channel, (N,)."""
        return self.released.poi.astype(np.int64)

    def pairs(self) -> tuple[Ints, Ints]:
        """Return the leaked pairs: released and clean POIs."""
        return self.released.poi[self.positions], self.clean[self.positions]

    def without_leak(self) -> "Evidence":
        """Return the same evidence with nothing leaked."""
        return self.with_leak(np.zeros_like(self.leaked))

    def with_leak(self, leaked: Bools) -> "Evidence":
        """Return the same evidence with only these of the leaked sessions leaked, (S,)."""
        clean = np.where(np.repeat(leaked, self.released.length), self.clean, 0).astype(np.int32)
        released = self.released
        if self.pseudonym is not None:
            released = replace(released, user=apparent_users(released.user, self.pseudonym, leaked))
        return replace(self, released=released, leaked=leaked, clean=clean)

    def with_half_of_leak(self) -> "Evidence":
        """Return the evidence of an adversary who holds every other leaked session only."""
        half = self.leaked.copy()
        half[np.flatnonzero(half)[1::2]] = False
        return self.with_leak(half)

    def with_users(self, user: Ints) -> "Evidence":
        """Return the same evidence as it would be if these were the users, (S,): a guess of the adversary."""
        return replace(self, released=replace(self.released, user=user), pseudonym=None)

    def per_release(self) -> list["Evidence"]:
        """Return the evidence of each release alone."""
        each = [replace(self.released, poi=poi) for poi in (self.released.poi, *self.further)]
        return [replace(self, released=released, further=()) for released in each]

    def fill(self, restored: Ints) -> Ints:
        """Combine the leaked clean POIs with POIs restored at all other positions, (N,)."""
        out = self.clean.copy()
        out[~self.positions] = restored
        return out


def apparent_users(user: Ints, pseudonym: Longs, leaked: Bools) -> Ints:
    """Return who each session seems to belong to, (S,): the user whom the leak reveals, otherwise the pseudonym."""
    return np.where(np.isin(pseudonym, pseudonym[leaked]), user, pseudonym).astype(np.int32)


def _apart(pseudonym: Longs, sessions: Sessions) -> Longs:
    """Number pseudonyms above all users and by time, since a number must reveal nothing about the user."""
    begin = np.append(sessions.time, 0)[sessions.start[:-1]]  # (S,)
    _, first, place = np.unique(
        pseudonym[order := np.argsort(begin, kind="stable")], return_index=True, return_inverse=True
    )
    number = np.empty(len(order), np.int64)
    number[order] = np.argsort(np.argsort(first))[place]
    return number + int(sessions.user.max(initial=-1)) + 1


def rule_of(method: AnyMethod | None, candidates: Candidates, vocabulary: Vocabulary | None = None) -> Rule:
    """Return the rule of a method over its candidate sets, without the speed mask; None: guess a uniform draw."""
    lat, lon = (vocabulary.lat, vocabulary.lon) if vocabulary else (None, None)
    if method is None:
        return Rule(candidates, uniform(candidates), False, lat, lon)
    channel = method.channel(candidates, lat, lon)
    if candidates.everywhere and lat is not None and lon is not None:
        channel = channel.released_as(candidates.shown_for(lat, lon))
    return Rule(candidates, channel, method.exact_channel, lat, lon, method.popularity_power)


LeakBy = Literal["session", "person"]  # what leaks: single sessions, or all sessions of some people


def leak(sessions: Sessions, ratio: float, seed: Seed, by: LeakBy = "session") -> Bools:
    """Draw the sessions that leak, (S,): a share `ratio`, rounded, and at least one session unless it is 0.

    By person, all sessions of a share of the people leak, as if another source with times knew these people. One order
    of the sessions, or of the people, serves every ratio, so a larger leak under a seed contains the smaller one.
    """
    if not 0 <= ratio <= 1:
        raise InputError(f"the leak ratio must be from 0 to 1, not {ratio:g}; the paper's is 0.05")
    people = np.unique(sessions.user) if by == "person" else None
    total = len(sessions) if people is None else len(people)
    order = (seed.generator("leak") if people is None else seed.generator("leak", "person")).permutation(total)
    count = max(int(ratio * total + 0.5), 1) if ratio else 0
    if people is not None:
        return np.isin(sessions.user, people[order[:count]])
    return np.argsort(order) < count  # whether the place of each session in the order is among the first


def in_vocabulary(poi: Ints, rows: int) -> Bools:
    """Whether each POI lies in 1..P."""
    return (poi >= 1) & (poi < rows)
