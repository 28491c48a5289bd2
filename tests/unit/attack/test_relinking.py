"""A17: pseudonyms are linked to known users, by venue, hour and time, and nobody's true user reaches an adversary."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from anonymous_city import drawn, restored_by
from builders import flat_sessions

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.adversaries.base import purify
from ghostpoi.attack.adversaries.relinking import Relink, Relinker
from ghostpoi.attack.evidence import Evidence, Rule, leak
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.data.sessions import Sessions
from ghostpoi.draw.channel import uniform
from ghostpoi.randomness import Seed

TWICE = np.concatenate([np.arange(6) * 8 + 2, np.arange(6) * 8 + 5])  # two of eight sessions of each of six users
CPU, SEED = torch.device("cpu"), Seed(907)
DAY, CROWD, HOMES = 86_400, 3, 6
POIS = CROWD * HOMES


def crowds(far: bool = True) -> Rule:
    """Crowds of three venues, 11 km apart or all at one place; the rule draws any of the three."""
    poi = np.zeros((POIS + 1, CROWD), np.int32)
    poi[1:] = 1 + CROWD * (np.arange(POIS) // CROWD)[:, None] + np.arange(CROWD)
    sets, lat = Candidates(poi, np.ones(POIS + 1)), np.append(np.nan, 40 + far * 0.1 * (np.arange(POIS) // CROWD))
    return Rule(sets, uniform(sets), True, lat, np.append(np.nan, np.full(POIS, -74.0)))


def homes(users: int = HOMES, sessions: int = 8, same_day: bool = False) -> Sessions:
    """Users who check in four times every third day, each in a crowd of his own, at a venue that he likes best."""
    g = np.random.default_rng(3)
    who = np.repeat(np.arange(users), sessions)
    day = np.tile(np.arange(sessions), users) * 3 + (0 if same_day else who % 3)
    like = np.where(g.random((len(who), 4)) < 0.7, 0, g.integers(0, CROWD, (len(who), 4)))
    time = (day[:, None] * DAY + np.arange(4) * 3600).ravel()
    return flat_sessions((1 + CROWD * (who % HOMES)[:, None] + like).ravel(), [4] * len(who), who, time)


def evidence_of(clean: Sessions, leaked: Longs, rule: Rule, pseudonym: Longs | None = None) -> Evidence:
    flags = np.isin(np.arange(len(clean)), leaked)
    number = np.arange(len(clean)) if pseudonym is None else pseudonym
    return Evidence.of(
        drawn(clean, rule.candidates), clean.poi, flags, POIS + 1, rule, pseudonym=number.astype(np.int64)
    )


class TestEvidence:
    CLEAN = homes(users=2, sessions=3)
    RULE = crowds()

    def test_only_the_leak_tells_users(self) -> None:
        evidence = evidence_of(self.CLEAN, np.array([4]), self.RULE)
        assert evidence.released.user[4] == 1
        others = np.delete(evidence.released.user, 4)
        assert len(set(others)) == 5
        assert others.min() > self.CLEAN.user.max()
        assert not evidence.released.row.any()

    def test_a_leaked_session_tells_the_user_of_its_whole_pseudonym(self) -> None:
        week = np.array([0, 0, 1, 2, 2, 3])
        evidence = evidence_of(self.CLEAN, np.array([3]), self.RULE, week)
        assert evidence.released.user[3:5].tolist() == [1, 1]
        assert len(set(evidence.released.user)) == 4
        alone = evidence.without_leak()
        assert evidence.pseudonym is not None
        assert alone.released.user.tolist() == evidence.pseudonym.tolist()

    def test_numbers_of_pseudonyms_follow_time_not_users(self) -> None:
        clean = homes(users=2, sessions=2)  # sessions begin on days 0, 3 and 1, 4
        pseudonym = evidence_of(clean, np.array([0]), self.RULE).pseudonym
        assert pseudonym is not None
        assert (np.argsort(pseudonym) == [0, 2, 1, 3]).all()

    @pytest.mark.parametrize("what", ["user", "row", "number"])
    def test_hidden_users_are_refused(self, what: str) -> None:
        evidence = evidence_of(self.CLEAN, np.array([4]), self.RULE)
        released, pseudonym = evidence.released, evidence.pseudonym
        assert pseudonym is not None
        change: dict[str, dict[str, object]] = {
            "user": {"released": replace(released, user=self.CLEAN.user)},
            "row": {"released": replace(released, row=self.CLEAN.row)},
            "number": {"pseudonym": np.where(np.arange(6) == 4, 1, pseudonym)},  # that of a true user
        }
        with pytest.raises(ValueError, match="must be hidden unless its pseudonym leaked"):
            replace(evidence, **change[what])  # type: ignore[arg-type]


class TestLinks:
    def test_users_with_places_of_their_own_are_found(self) -> None:
        clean, rule = homes(), crowds()
        evidence = evidence_of(clean, TWICE, rule)
        assert (Relinker().users(evidence) == clean.user).all()
        _, measures = purify(Relink(), evidence, SEED, CPU)
        assert measures == {"linked": 1.0}

    def test_places_nobody_is_known_for_are_linked_to_nobody(self) -> None:
        clean, rule = homes(), crowds()
        evidence = evidence_of(clean, np.array([1, 2, 8, 9]), rule)  # two sessions each of users 0 and 1
        found = Relinker().users(evidence)
        assert (found[clean.user < 2] == clean.user[clean.user < 2]).all()
        assert not np.isin(found[clean.user >= 2], [0, 1]).any()

    def test_two_sessions_at_one_time_are_not_of_one_user(self) -> None:
        # Users 0 and 6 live in one crowd and check in on the same days. Only user 0 leaked.
        clean, rule = homes(users=HOMES + 1, same_day=True), crowds()
        evidence = evidence_of(clean, TWICE, rule)
        found = Relinker().users(evidence)
        stranger, own = found[clean.user == HOMES], found[clean.user == 0]
        assert not (stranger[[2, 5]] == 0).any()  # on the days of the leaked sessions
        assert not ((stranger == 0) & (own == 0)).any()

    def test_all_sessions_of_a_pseudonym_go_together(self) -> None:
        clean, rule = homes(), crowds()
        week = clean.user * 4 + np.tile(np.arange(8) // 2, HOMES)
        found = Relinker().users(evidence_of(clean, np.arange(HOMES) * 8, rule, week))
        assert (found == clean.user).all()

    def test_relinking_restores_more(self) -> None:
        clean, rule = homes(), crowds(far=False)
        evidence = evidence_of(clean, TWICE, rule)
        at = ~evidence.positions
        with_links, without = (
            (restored_by(ADVERSARIES[name], evidence) == clean.poi)[at].mean() for name in ("relink", "hidden-markov")
        )
        assert with_links > without

    @pytest.mark.parametrize(("name", "then"), [("relink", "hidden-markov"), ("relink-distilled", "distilled")])
    def test_without_pseudonyms_it_is_what_it_extends(self, name: str, then: str) -> None:
        clean, rule = homes(), crowds()
        known = Evidence.of(drawn(clean, rule.candidates), clean.poi, leak(clean, 0.2, SEED), POIS + 1, rule)
        assert (restored_by(ADVERSARIES[name], known) == restored_by(ADVERSARIES[then], known)).all()

    def test_half_of_the_leak_links_without_the_other_half(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clean, rule, seen = homes(), crowds(), list[int]()
        evidence, real = evidence_of(clean, TWICE, rule), Relinker.users

        def users(self: Relinker, given: Evidence) -> Ints:
            assert given.pseudonym is not None
            seen.append(int(np.isin(given.released.user, clean.user).sum()))
            return real(self, given)

        monkeypatch.setattr(Relinker, "users", users)
        restored_by(ADVERSARIES["relink-distilled"], evidence)
        assert seen == [6, 12]  # sessions whose user is known: half of the leaked ones, then all
