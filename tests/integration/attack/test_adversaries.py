"""Adversaries: hand-computed tables, a slow reference, maps that must fall, and one contract for all of them."""

import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
import torch
from anonymous_city import CPU, LIGHT, QUICK, SEED, SMALL, choices, city, drawn, restored_by
from attack_evidence import unchanged
from builders import sessions_of
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.attack.adversaries import ADVERSARIES, bridge_models
from ghostpoi.attack.adversaries.base import Adversary, leak_mixed, purify
from ghostpoi.attack.adversaries.bridges import Bridge
from ghostpoi.attack.adversaries.lookups import Bigram, Frequency, PerUser, leaked_table
from ghostpoi.attack.adversaries.several_releases import SeveralMonths
from ghostpoi.attack.evidence import Evidence, Rule, leak
from ghostpoi.audits.measures.detection import DETECTOR
from ghostpoi.data.checkins import Ints
from ghostpoi.data.sessions import Sessions
from ghostpoi.draw.channel import uniform
from ghostpoi.errors import InputError
from ghostpoi.randomness import Seed


def answers(bridge: Bridge, evidence: Evidence) -> list[Ints]:
    """What A2 restores after each pass."""
    return bridge_models.answers(evidence, bridge, SEED, CPU)


def mapped(clean: Sessions, map_: Ints) -> Sessions:
    return replace(clean, poi=map_[clean.poi])


def swaps(pois: int) -> Ints:
    """A map that is its own inverse: 1 and 2 change places, 3 and 4, ..."""
    map_ = np.arange(pois + 1, dtype=np.int32)
    map_[1:] = np.arange(pois).reshape(-1, 2)[:, ::-1].ravel() + 1
    return map_


def turn(pois: int) -> Ints:
    """A map whose inverse is not itself, nor its own repetition: 1 to 2, 2 to 3, ..., the last to 1."""
    return np.concatenate([[0], np.roll(np.arange(1, pois + 1), -1)]).astype(np.int32)


def rest_right(clean: Sessions, evidence: Evidence, restored: Ints) -> float:
    at = ~evidence.positions
    return float((restored[at] == clean.poi[at]).mean())


# The release of four sessions, of which the first three leaked.
RELEASED = sessions_of([1, 2, 1], [1, 2], [2, 1, 2], [2, 1, 3, 2, 1, 2])
CLEAN = np.array([4, 5, 4, 3, 6, 5, 3, 6, 1, 1, 1, 1, 1, 1], np.int32)
LEAKED = np.array([True, True, True, False])
HAND = Evidence.of(RELEASED, CLEAN, LEAKED, 7, unchanged(7))


class TestFrequency:
    def test_table_by_hand(self) -> None:
        # Behind 1: 4 4 3 3; behind 2: 5 6 5 6. Both tie, so the smaller POI comes first.
        table = leaked_table(HAND, HAND.symbol)
        assert table.context.tolist() == [1, 2]
        assert table.best[:, :3].tolist() == [[3, 4, 0], [5, 6, 0], [0, 0, 0]]
        assert table.at(np.array([0, 1]), np.array([[3, 4], [3, 6]])).tolist() == [[0.5, 0.5], [0, 0.5]]

    def test_restored_by_hand(self) -> None:
        assert Frequency().restore(HAND, SEED, CPU)[-6:].tolist() == [5, 3, 3, 5, 3, 5]  # 3 never leaked and stays

    def test_the_more_frequent_wins_over_the_smaller(self) -> None:
        released = sessions_of([1, 1, 1], [1, 2, 2])
        clean = np.array([5, 2, 5, 1, 1, 1], np.int32)
        evidence = Evidence.of(released, clean, np.array([True, False]), 6, unchanged(6))
        assert Frequency().restore(evidence, SEED, CPU)[3:].tolist() == [5, 2, 2]

    def test_entropy_by_hand(self) -> None:
        assert purify(Frequency(), HAND, SEED, CPU)[1] == {"table_entropy_bits": pytest.approx(1.0)}
        # Behind 1: 4 three times, 5 once (0.8113 bits); behind 2: always 3 (0 bits), weights 4 and 2.
        released = sessions_of([1, 1, 1, 1, 2, 2])
        evidence = Evidence.of(released, np.array([4, 4, 5, 4, 3, 3], np.int32), np.array([True]), 6, unchanged(6))
        h = -(0.75 * np.log2(0.75) + 0.25 * np.log2(0.25))
        assert purify(Frequency(), evidence, SEED, CPU)[1] == {"table_entropy_bits": pytest.approx(h * 4 / 6)}
        assert purify(Frequency(), evidence.without_leak(), SEED, CPU)[1] == {"table_entropy_bits": 0}

    @pytest.mark.parametrize("map_", [swaps(20), turn(20)])
    def test_a_permuted_release_falls(self, map_: Ints) -> None:
        clean = city(200, 20)
        released = mapped(clean, map_)
        evidence = Evidence.of(released, clean.poi, leak(clean, 0.5, SEED), 21, unchanged(21))
        assert len(np.unique(evidence.pairs()[0])) == 20  # enough leak: every POI
        restored, measures = purify(Frequency(), evidence, SEED, CPU)
        assert (restored == clean.poi).all()
        assert measures == {"table_entropy_bits": 0}


class TestBigram:
    def test_restored_by_hand(self) -> None:
        # (released, before): start,1: 4 3 -> 3; 2 after 1: 5 6 1 -> 1; 1 after 2: 4 6 -> 4; start,2: 5 -> 5.
        # The last session is 2 1 3 2 1 2: start,2 -> 5; 1 after 2 -> 4; 3 never leaked -> 3; 2 after 3 never
        # leaked -> A3's answer; 1 after 2 -> 4; 2 after 1 -> 1.
        clean = CLEAN.copy()
        clean[:8] = [4, 5, 4, 3, 6, 5, 6, 1]
        evidence = Evidence.of(RELEASED, clean, LEAKED, 7, unchanged(7))
        # A3's table behind 2: 5 (twice), 6, 1 -> 5.
        assert Frequency().restore(evidence, SEED, CPU)[-3] == 5
        assert Bigram().restore(evidence, SEED, CPU)[-6:].tolist() == [5, 4, 3, 5, 4, 1]

    def test_a_session_does_not_see_the_one_before_it(self) -> None:
        released = sessions_of([1, 2], [2, 3], [2, 2])
        clean = np.array([1, 5, 6, 3, 0, 0], np.int32)
        evidence = Evidence.of(released, clean, np.array([True, True, False]), 7, unchanged(7))
        assert Bigram().restore(evidence, SEED, CPU)[4] == 6  # the start's answer, not that of 2 after 1

    def test_a_map_that_needs_the_context_falls_to_it_alone(self) -> None:
        clean = city(300, 10)
        previous = np.roll(clean.poi, 1)
        previous[clean.start[:-1]] = 0
        # Odd or even place of the previous released POI decides the shift: unigram tables see a mixture.
        poi = clean.poi.copy()
        for at in range(clean.positions):
            before = poi[at - 1] if at not in clean.start else 0
            poi[at] = (clean.poi[at] - 1 + (3 if before % 2 else 6)) % 10 + 1
        evidence = Evidence.of(replace(clean, poi=poi), clean.poi, leak(clean, 0.8, SEED), 11, unchanged(11))
        assert rest_right(clean, evidence, restored_by(Bigram(), evidence)) > 0.98
        assert rest_right(clean, evidence, restored_by(Frequency(), evidence)) < 0.9


class TestPerUser:
    def test_restored_by_hand(self) -> None:
        # User 0 leaked 1 as 4 twice, user 1 leaked 1 as 5 three times and 2 as 6; 3 never leaked.
        clean = [[4, 4], [5, 5, 5, 6], [9] * 3, [9] * 3, [9] * 3]
        released = replace(
            sessions_of([1, 1], [1, 1, 1, 2], [1, 2, 3], [1, 2, 3], [1, 2, 3]),
            user=np.array([0, 1, 0, 1, 2], np.int32),
        )
        poi = np.array([p for s in clean for p in s], np.int32)
        evidence = Evidence.of(released, poi, np.array([True, True, False, False, False]), 10, unchanged(10))
        # What user 0 never leaked, and all that user 2 released, is what stood behind it most often with anybody.
        assert PerUser().restore(evidence, SEED, CPU)[6:].tolist() == [4, 6, 3, 5, 6, 3, 5, 6, 3]


def slowly(evidence: Evidence, bigram: bool) -> list[int]:
    """A3 and A4 with dictionaries."""
    tables: list[dict[object, Counter[int]]] = [defaultdict(Counter), defaultdict(Counter)]
    start, poi = evidence.released.start.tolist(), evidence.released.poi.tolist()
    keys: list[tuple[object, object]] = []
    for s in range(len(evidence.released)):
        for at in range(start[s], start[s + 1]):
            keys.append((poi[at], (poi[at], poi[at - 1] if at > start[s] else "start")))
            if evidence.leaked[s]:
                for table, key in zip(tables, keys[-1], strict=True):
                    table[key][int(evidence.clean[at])] += 1
    out = []
    for p, (one, two) in zip(poi, keys, strict=True):
        counts = tables[1].get(two) if bigram and two in tables[1] else tables[0].get(one, Counter({p: 1}))
        assert counts
        out.append(min(counts, key=lambda c: (-counts[c], c)))
    return out


@st.composite
def evidences(draw: st.DrawFn) -> Evidence:
    rows = draw(st.integers(2, 6))
    poi = st.integers(1, rows - 1)
    released = sessions_of(*draw(st.lists(st.lists(poi, max_size=5), max_size=6)))
    n = released.positions
    clean = np.array(draw(st.lists(poi, min_size=n, max_size=n)), np.int32)
    leaked = np.array(draw(st.lists(st.booleans(), min_size=len(released), max_size=len(released))), bool)
    return Evidence.of(released, clean, leaked, rows, unchanged(rows))


class TestTablesAgainstDictionaries:
    @given(evidences())
    def test_same(self, evidence: Evidence) -> None:
        assert Frequency().restore(evidence, SEED, CPU).tolist() == slowly(evidence, bigram=False)
        assert Bigram().restore(evidence, SEED, CPU).tolist() == slowly(evidence, bigram=True)


class TestBridge:
    def test_a_map_that_is_its_own_inverse_falls(self) -> None:
        clean = city(300, 20)
        evidence = Evidence.of(mapped(clean, swaps(20)), clean.poi, leak(clean, 0.5, SEED), 21, unchanged(21))
        restored, measures = purify(QUICK, evidence, SEED, CPU)
        assert rest_right(clean, evidence, restored) > 0.95
        (identity,) = measures.values()
        assert isinstance(identity, list)
        assert len(identity) == 1 + QUICK.passes
        assert identity[1] < 0.05

    def test_passes_repeat_the_inverse(self) -> None:
        """Why three passes can be worse than one: on a fixed map each pass turns back once more."""
        clean = city(300, 20)
        evidence = Evidence.of(mapped(clean, turn(20)), clean.poi, leak(clean, 0.5, SEED), 21, unchanged(21))
        found = answers(QUICK, evidence)
        assert rest_right(clean, evidence, found[1]) > 0.95
        assert rest_right(clean, evidence, found[3]) < 0.05

    def test_a_clean_release_teaches_the_identity(self) -> None:
        clean = city(300, 20)
        evidence = Evidence.of(clean, clean.poi, leak(clean, 0.5, SEED), 21, unchanged(21))
        identity = QUICK.restore_and_measure(evidence, SEED, CPU)[1]["denoiser_identity"]
        assert min(identity) > 0.98  # type: ignore[arg-type]

    def test_unchanged_by_hand(self, monkeypatch: pytest.MonkeyPatch) -> None:
        after = RELEASED.poi.copy()
        after[[0, 8, 9]] = 6  # position 0 leaked and does not count: 2 of 6 changed
        monkeypatch.setattr(bridge_models, "answers", lambda *known: [RELEASED.poi, after])
        restored, measures = QUICK.restore_and_measure(HAND, SEED, CPU)
        assert restored is after
        assert measures["denoiser_identity"] == pytest.approx([1, 4 / 6])

    def test_sessions_longer_than_the_model_sees(self) -> None:
        clean = city(100, 6)
        short = replace(QUICK, model=replace(SMALL, max_positions=4))
        evidence = Evidence.of(mapped(clean, swaps(6)), clean.poi, leak(clean, 0.5, SEED), 7, unchanged(7))
        assert rest_right(clean, evidence, restored_by(short, evidence)) > 0.9

    def test_global_randomness_is_left_alone(self) -> None:
        clean = city(20, 6)
        evidence = Evidence.of(clean, clean.poi, leak(clean, 0.5, SEED), 7, unchanged(7))
        torch.manual_seed(1)
        LIGHT["bridge"].restore(evidence, SEED, CPU)
        drawn = torch.rand(3)
        torch.manual_seed(1)
        assert torch.equal(drawn, torch.rand(3))


class TestLeak:
    @given(st.integers(1, 40), st.floats(0, 1), st.floats(0, 1), st.integers(0, 5))
    def test_size_and_nesting(self, n: int, a: float, b: float, seed: int) -> None:
        sessions = sessions_of(*[[1]] * n)
        small, large = (leak(sessions, r, Seed(seed)) for r in sorted((a, b)))
        assert large[small].all()
        for r, leaked in zip(sorted((a, b)), (small, large), strict=True):
            assert leaked.sum() == (max(1, int(r * n + 0.5)) if r else 0)

    def test_counts(self) -> None:
        sessions = sessions_of(*[[1]] * 50)
        assert [int(leak(sessions, r, SEED).sum()) for r in (0, 1e-9, 0.05, 0.07, 1)] == [0, 1, 3, 4, 50]
        assert leak(sessions_of(), 0.5, SEED).shape == (0,)

    def test_the_seed_decides(self) -> None:
        sessions = sessions_of(*[[1]] * 50)
        assert (leak(sessions, 0.5, SEED) == leak(sessions, 0.5, Seed(7))).all()
        assert (leak(sessions, 0.5, SEED) != leak(sessions, 0.5, Seed(8))).any()

    @pytest.mark.parametrize("ratio", [-0.1, 1.01, float("nan")])
    def test_a_bad_ratio_is_refused(self, ratio: float) -> None:
        with pytest.raises(InputError, match="leak ratio must be from 0 to 1"):
            leak(sessions_of([1]), ratio, SEED)


class TestEvidence:
    def test_clean_values_of_other_sessions_do_not_enter(self) -> None:
        other = CLEAN.copy()
        other[~HAND.positions] = 5
        assert (Evidence.of(RELEASED, other, LEAKED, 7, unchanged(7)).clean == HAND.clean).all()
        assert not HAND.clean[~HAND.positions].any()

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            ({"clean": CLEAN}, "0 elsewhere"),
            ({"clean": np.zeros_like(CLEAN)}, "where a session leaked"),
            ({"clean": -CLEAN}, "where a session leaked"),
            ({"clean": CLEAN[:-1]}, "one per position"),
            ({"leaked": LEAKED[:-1]}, "one value per session"),
            ({"rows": 3}, "outside 1..P"),
            ({"released": replace(RELEASED, poi=RELEASED.poi - 1)}, "outside 1..P"),
            ({"further": (RELEASED.poi, RELEASED.poi - 1)}, "outside 1..P"),
            ({"further": (RELEASED.poi, RELEASED.poi[1:])}, "the same rows"),
        ],
    )
    def test_bad_evidence_is_refused(self, change: dict[str, object], says: str) -> None:
        with pytest.raises(ValueError, match=says):
            replace(HAND, **change)  # type: ignore[arg-type]

    def test_per_release(self) -> None:
        other = RELEASED.poi % 3 + 1
        first, second = replace(HAND, further=(other,)).per_release()
        assert (first.released.poi == RELEASED.poi).all()
        assert (second.released.poi == other).all()
        assert (second.clean == HAND.clean).all()
        assert not first.further + second.further

    def test_leak_mixed(self) -> None:
        assert leak_mixed(HAND).tolist() == CLEAN[:8].tolist() + RELEASED.poi[8:].tolist()


class Rogue(Adversary):
    """Returns what it likes."""

    def __init__(self, answer: Ints) -> None:
        self.answer = answer

    def restore(self, evidence: Evidence, seed: Seed, device: torch.device) -> Ints:
        return self.answer


class TestPurify:
    @pytest.mark.parametrize("answer", [np.zeros(14, np.int32), np.full(14, 7, np.int32), np.ones(13, np.int32)])
    def test_a_wrong_answer_is_refused(self, answer: Ints) -> None:
        with pytest.raises(ValueError, match="the adversary returned"):
            restored_by(Rogue(answer), HAND)

    def test_leaked_sessions_come_out_clean_whatever_the_adversary_says(self) -> None:
        assert restored_by(Rogue(np.full(14, 2, np.int32)), HAND).tolist() == CLEAN[:8].tolist() + [2] * 6


@pytest.mark.parametrize("rule", ["exact", "guess"])
@pytest.mark.parametrize("name", ADVERSARIES)
class TestContract:
    """What holds for every adversary, a new one included, whether the channel is exact or a guess."""

    def evidence(self, ratio: float, rule: str) -> tuple[Sessions, Evidence]:
        clean = city(40, 12)
        leaked = leak(clean, ratio, SEED)
        sets = choices(12)
        known = Rule(sets, uniform(sets), exact=rule == "exact")
        return clean, Evidence.of(drawn(clean, sets), clean.poi, leaked, 13, known)

    @pytest.mark.parametrize("ratio", [0, 0.3])
    def test_shape_range_and_leaked_sessions(self, name: str, rule: str, ratio: float) -> None:
        clean, evidence = self.evidence(ratio, rule)
        restored = restored_by(LIGHT[name], evidence)
        assert restored.shape == clean.poi.shape
        assert restored.dtype == np.int32
        assert restored.min() >= 1
        assert restored.max() <= 12
        if LIGHT[name].uses_leak:
            at = evidence.positions
            assert (restored[at] == clean.poi[at]).all()

    def test_same_seed_same_result_and_nothing_changed_in_place(self, name: str, rule: str) -> None:
        _, evidence = self.evidence(0.3, rule)
        before = evidence.released.poi.copy()
        a, b = (restored_by(LIGHT[name], evidence) for _ in range(2))
        assert (a == b).all()
        assert (evidence.released.poi == before).all()

    def test_who_uses_no_leak_is_not_moved_by_one(self, name: str, rule: str) -> None:
        _, evidence = self.evidence(0.3, rule)
        if not LIGHT[name].uses_leak:
            alone = restored_by(LIGHT[name], evidence.without_leak())
            assert (restored_by(LIGHT[name], evidence) == alone).all()

    def test_with_everything_leaked_all_is_clean(self, name: str, rule: str) -> None:
        clean, evidence = self.evidence(1, rule)
        if LIGHT[name].uses_leak:
            assert (restored_by(LIGHT[name], evidence) == clean.poi).all()

    def test_an_empty_release_is_no_trouble(self, name: str, rule: str) -> None:
        _, some = self.evidence(0, rule)
        nothing = sessions_of()
        evidence = Evidence(nothing, np.zeros(0, bool), np.zeros(0, np.int32), 13, some.rule)
        assert restored_by(LIGHT[name], evidence).shape == (0,)

    def test_the_repr_names_every_setting(self, name: str, rule: str) -> None:
        assert repr(ADVERSARIES[name]) == repr(replace(ADVERSARIES[name]))  # type: ignore[type-var]
        assert " at 0x" not in repr(ADVERSARIES[name])


@pytest.mark.parametrize("name", ADVERSARIES)
def test_what_is_said_about_an_adversary(name: str) -> None:
    adversary = ADVERSARIES[name]
    for text in (adversary.title, adversary.holds, adversary.does):
        assert text == text.strip()
        assert "\n" not in text
        assert text
        assert not text.endswith(".")
    assert adversary.label == f"A{adversary.number} {adversary.title}"
    assert len(adversary.title) <= 27  # it stands beside a bar in a chart
    assert (type(adversary).__doc__ or "").startswith(f"A{adversary.number} ")


def test_numbers_and_titles_are_unique() -> None:
    attackers = [*ADVERSARIES.values(), DETECTOR, SeveralMonths]
    numbers = [attacker.number for attacker in attackers]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    assert numbers[:-2] == sorted(numbers[:-2])
    assert len({attacker.title for attacker in attackers}) == len(numbers)


def test_adversaries_import_without_torch() -> None:
    code = "import sys; from ghostpoi.attack import adversaries; list(adversaries.ADVERSARIES.values()); "
    code += "sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
