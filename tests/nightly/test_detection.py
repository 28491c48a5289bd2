"""A12: exact AUCs by hand, counts that leave a session's own forms out, and two releases with known answers."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.attack.evidence import leak
from ghostpoi.audits.measures.detection import auc, detect, elsewhere, features
from ghostpoi.data.checkins import Ints
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.randomness import Seed

CPU = torch.device("cpu")
SEED = Seed(5)
QUARTERS, VENUES = 8, 12
scores = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=12)


def vocabulary(seed: int = 0) -> Vocabulary:
    """Quarters some 10 km apart, each with venues within a few hundred metres."""
    g = np.random.default_rng(seed)
    n = QUARTERS * VENUES
    quarter = np.repeat(np.arange(QUARTERS), VENUES)
    lat = 40 + quarter * 0.1 + g.normal(0, 0.002, n)
    lon = -74 + g.normal(0, 0.002, n)
    category = np.tile(np.arange(VENUES, dtype=np.int32) // 3, QUARTERS)
    return Vocabulary(
        np.append(np.nan, lat),
        np.append(np.nan, lon),
        np.append(np.int32(-1), category),
        np.arange(-1, n, dtype=np.int32),
    )


def city(sessions: int, seed: int = 1) -> Sessions:
    """Each user walks between a few venues of one quarter, a check-in every ten minutes."""
    g = np.random.default_rng(seed)
    users, length = np.sort(g.integers(0, 40, sessions)).astype(np.int32), g.integers(3, 9, sessions)
    poi = np.concatenate(
        [u % QUARTERS * VENUES + g.choice(VENUES, n, p=np.arange(VENUES, 0, -1) / 78) + 1
         for u, n in zip(users, length, strict=True)]
    ).astype(np.int32)  # fmt: skip
    n = np.arange(len(poi))
    return Sessions(users, np.append(0, np.cumsum(length)), poi, n * 600, n)


def uniform_venues(clean: Sessions) -> Ints:
    return np.random.default_rng(2).integers(1, QUARTERS * VENUES + 1, clean.positions).astype(np.int32)


class TestAuc:
    @pytest.mark.parametrize(
        ("positive", "negative", "wanted"),
        [
            ([2, 3], [0, 1], 1),
            ([0, 1], [2, 3], 0),
            ([1, 1], [1, 1, 1], 0.5),
            ([1, 3], [2, 3], (0 + 0 + 1 + 0.5) / 4),
            ([0.1, 0.4, 0.8], [0.4, 0.2], (0 + 0 + 0.5 + 1 + 1 + 1) / 6),
            ([], [1.0], 0.5),
            ([1.0], [], 0.5),
        ],
    )
    def test_by_hand(self, positive: list[float], negative: list[float], wanted: float) -> None:
        assert auc(np.array(positive), np.array(negative)) == wanted

    @given(scores, scores)
    def test_every_pair_counts_once(self, positive: list[float], negative: list[float]) -> None:
        pairs = [1.0 if p > n else 0.5 if p == n else 0.0 for p in positive for n in negative]
        found = auc(np.array(positive), np.array(negative))
        assert found == pytest.approx(sum(pairs) / len(pairs), abs=1e-12)
        assert found + auc(np.array(negative), np.array(positive)) == pytest.approx(1, abs=1e-12)


@st.composite
def keyed(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    n = draw(st.integers(0, 12))
    small = st.lists(st.integers(0, 3), min_size=n, max_size=n)
    return draw(small), draw(small)


class TestElsewhere:
    def test_by_hand(self) -> None:
        key, session = np.array([7, 7, 9, 7]), np.array([0, 0, 0, 1])
        asked, asker = np.array([7, 7, 7, 9, 9, 8]), np.array([0, 1, 2, 0, 2, 0])
        assert elsewhere(key, session, asked, asker).tolist() == [1, 2, 3, 0, 1, 0]

    @given(keyed(), keyed())
    def test_as_counted_slowly(self, there: tuple[list[int], list[int]], here: tuple[list[int], list[int]]) -> None:
        known = list(zip(*there, strict=True))
        slow = [sum(k == key and s != session for k, s in known) for key, session in zip(*here, strict=True)]
        assert elsewhere(*(np.array(a, np.int64) for a in (*there, *here))).tolist() == slow


class TestDetect:
    def test_uniformly_random_venues_give_themselves_away(self) -> None:
        clean = city(400)
        found = detect(clean, uniform_venues(clean), leak(clean, 0.25, SEED), vocabulary(), SEED, CPU)
        assert found["auc"] > 0.97
        assert found["auc_positions"] > 0.85
        assert found["asked"] == 300

    def test_a_clean_release_cannot_be_told(self) -> None:
        clean = city(800)
        found = detect(clean, clean.poi, leak(clean, 0.25, SEED), vocabulary(), SEED, CPU)
        assert found["auc"] == pytest.approx(0.5, abs=0.08)  # 300 against 300: a standard deviation is .024
        assert found["auc_positions"] == pytest.approx(0.5, abs=0.06)

    def test_a_subtle_release_is_told_in_part(self) -> None:
        """A neighbour in the same quarter: no impossible speed, but habits and popularity change."""
        clean = city(800)
        shift = (clean.poi - 1) % VENUES
        moved = (clean.poi - shift + (shift + np.random.default_rng(0).integers(1, 4, len(shift))) % VENUES).astype(
            np.int32
        )
        found = detect(clean, moved, leak(clean, 0.25, SEED), vocabulary(), SEED, CPU)
        assert 0.6 < found["auc"] < 1

    def test_same_seed_same_figures(self) -> None:
        clean = city(60)
        leaked = leak(clean, 0.3, SEED)
        one, two = (detect(clean, uniform_venues(clean), leaked, vocabulary(), SEED, CPU) for _ in range(2))
        assert one == two

    def test_global_randomness_is_left_alone(self) -> None:
        clean = city(30)
        torch.manual_seed(1)
        detect(clean, clean.poi, leak(clean, 0.3, SEED), vocabulary(), SEED, CPU)
        drawn = torch.rand(3)
        torch.manual_seed(1)
        assert torch.equal(drawn, torch.rand(3))

    @pytest.mark.parametrize("ratio", [0.0, 1.0])
    def test_nothing_to_learn_or_to_ask(self, ratio: float) -> None:
        clean = city(20)
        found = detect(clean, uniform_venues(clean), leak(clean, ratio, SEED), vocabulary(), SEED, CPU)
        assert found == {"auc": 0.5, "auc_positions": 0.5, "asked": 0.0}

    def test_a_release_of_another_size_is_refused(self) -> None:
        clean = city(20)
        with pytest.raises(ValueError, match="one POI per clean position"):
            detect(clean, clean.poi[1:], leak(clean, 0.5, SEED), vocabulary(), SEED, CPU)


class TestFeatures:
    def test_what_did_not_leak_is_never_read(self) -> None:
        """Features of a form are the same whatever the clean POIs of sessions that did not leak are."""
        clean = city(50)
        leaked = leak(clean, 0.3, SEED)
        released = uniform_venues(clean)
        other = np.where(np.repeat(leaked, clean.length), clean.poi, 1).astype(np.int32)
        for form in (released, clean.poi):
            one, two = (features(form, s, released, leaked, vocabulary()) for s in (clean, replace(clean, poi=other)))
            assert (one == two).all()

    def test_a_session_does_not_find_itself(self) -> None:
        """Alone with its own release, a session sees nothing of it."""
        clean = city(1)
        found = features(clean.poi, clean, clean.poi, np.array([True]), vocabulary())
        counts = [7, 9, 11, 12, 13, 14, 15]  # columns of counts: of venues, steps, categories and habits
        assert not found[:, counts].any()
        assert np.isfinite(found).all()
