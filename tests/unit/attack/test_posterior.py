"""A21: against dictionaries, its invariants, and small crowds whose secrets follow from habits, hours and totals."""

from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
import pytest
from attack_evidence import CPU, SEED, candidates_of, evidence_of, situations
from builders import flat_sessions, sessions_of
from hypothesis import given
from hypothesis import strategies as st

from ghostpoi.attack.adversaries import ADVERSARIES, posterior
from ghostpoi.attack.adversaries.habits import learn_from_pairs
from ghostpoi.attack.adversaries.posterior import ABOUT, InformedPosterior, Knowledge, Posterior, blocks
from ghostpoi.attack.counting import top
from ghostpoi.attack.evidence import Evidence, Outside, Rule
from ghostpoi.attack.victims.judge import ranks
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Floats
from ghostpoi.data.places import SLOTS, slot_of
from ghostpoi.data.sessions import Vocabulary
from ghostpoi.draw.channel import Channel, channel_of, uniform

HOUR = 3600
CROWD = candidates_of([1, 2, 3], [1, 2, 3], [1, 2, 3])


def slow_shares(evidence: Evidence, known: Knowledge, model: Posterior) -> list[dict[int, float]]:
    """The posterior of every visit, one by one, with dictionaries."""
    channel = {(int(p), int(q)): float(k) for p, q, k in zip(known.channel.clean, known.channel.released,
                                                             known.channel.probability, strict=True)}  # fmt: skip
    user, slot, leaked = evidence.user.tolist(), slot_of(evidence.released.time), evidence.positions
    behind = [sorted(p for p, q in channel if q == released) for released in evidence.symbol]
    prior, like, target = [], [], Counter[int]()
    for i, options in enumerate(behind):
        total = sum(known.popularity[p] for p in options)
        prior.append({p: known.popularity[p] / total for p in options})
        emitted = {p: channel[p, int(evidence.symbol[i])] for p in options}
        both = {p: emitted[p] * prior[i][p] for p in options}
        for p in options:
            target[p] += both[p] / sum(both.values())
        like.append({p: emitted[p] * (1 if known.hours is None else known.hours[slot[i], p]) for p in options})
    share = [{int(evidence.clean[i]): 1.0} if leaked[i] else prior[i] for i in range(len(user))]
    weight: dict[int, float] = defaultdict(lambda: 1.0)
    for _ in range(model.rounds):
        habits = defaultdict[tuple[int, int], float](float)
        for i, chances in enumerate(share):
            for p, chance in chances.items():
                habits[user[i], p] += chance
        new = []
        for i, chances in enumerate(share):
            if leaked[i]:
                new.append(chances)
                continue
            score = {
                p: weight[p] * like[i][p] * (habits[user[i], p] - chances[p] + model.habit * prior[i][p])
                for p in behind[i]
            }
            new.append({p: s / sum(score.values()) for p, s in score.items()})
        share = new
        totals = Counter[int]()
        for chances in share:
            for p, chance in chances.items():
                totals[p] += chance
        for p in {p for options in behind for p in options} | set(totals):
            weight[p] *= ((target[p] + ABOUT) / (totals[p] + ABOUT)) ** model.step
    return share


@given(situations(), st.integers(0, 1000), st.booleans(), st.sampled_from([1, 8]))
def test_shares_agree_with_dictionaries(
    situation: tuple[Evidence, Channel], seed: int, with_hours: bool, options: int
) -> None:
    evidence, channel = situation
    noise = np.random.default_rng(seed)
    released = replace(evidence.released, time=np.sort(noise.integers(0, 2 * 86_400, evidence.released.positions)))
    evidence = replace(evidence, released=released)
    hours = noise.uniform(0.5, 2, (SLOTS, evidence.rows)) if with_hours else None
    # As in Posterior.knowledge, the leaked pairs are in the channel, so that blocks say nothing about each other.
    channel = learn_from_pairs(channel, *map(np.int64, evidence.pairs()), 30, exact=True).covering(evidence.symbol)
    known = Knowledge(channel, noise.uniform(1, 5, evidence.rows), hours)
    model = Posterior(rounds=6)
    wanted = slow_shares(evidence, known, model)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(posterior, "OPTIONS", options)  # several blocks
        found = list(blocks(evidence, known))
    assert (
        sorted(np.concatenate([np.zeros(0, int), *(b.position for b in found)]))
        == np.flatnonzero(~evidence.positions).tolist()
    )
    for block in found:
        share = model.shares(block)
        assert np.bincount(block.owner, share) == pytest.approx(np.ones(len(block.count)))
        for position, group in zip(block.position, block.group, strict=True):
            mine = block.owner == group
            assert dict(zip(block.venue[mine].tolist(), share[mine], strict=True)) == pytest.approx(wanted[position])


def test_released_venues_of_one_crowd_say_the_same() -> None:
    sets = candidates_of([1, 2], [1, 2], [3, 4], [4])
    known = Knowledge(uniform(sets), np.ones(5), None)
    crowd, part = known.crowds(), known.parts()
    assert crowd[1] == crowd[2]
    assert len({*crowd[[1, 3, 4]].tolist()}) == 3  # 3 may stand behind 3 and 4, and 4 behind 4 alone
    assert part[1] == part[2] != part[3] == part[4]


def by_popularity(weight: list[float], slots: Floats | None = None) -> Rule:
    """A crowd of three whose members are drawn by published weights."""
    sets = replace(CROWD, weight=np.where(CROWD.poi > 0, np.array([0, *weight])[CROWD.poi], 0.0), slot_weight=slots)
    return Rule(sets, channel_of(sets), True, popularity_power=1.0)


def test_totals_are_met() -> None:
    noise = np.random.default_rng(3)
    released = flat_sessions(noise.integers(1, 4, 600), [6] * 100, np.arange(100) % 20)
    evidence = Evidence(released, np.zeros(100, bool), np.zeros(600, np.int32), 4, by_popularity([5, 3, 2]))
    (block,) = blocks(evidence, Posterior().knowledge(evidence))
    assert block.target == pytest.approx(np.array([300, 180, 120]))
    assert block.total(Posterior(rounds=200).shares(block)) == pytest.approx(block.target, abs=1)


def test_a_leaked_habit_decides_the_other_visits_to_its_crowd() -> None:
    evidence = evidence_of(CROWD, [0, 0, 1], [[1, 3], [2, 3], [1, 2]], leaked=[[2, 2]])
    soft = Posterior().soft(evidence)
    assert soft.poi[:4, 0].tolist() == [2, 2, 2, 2]
    assert soft.share[:2].tolist() == [[1, 0, 0, 0]] * 2
    assert (soft.share[2:4, 0] > 0.6).all()
    assert (soft.share.sum(axis=1) == pytest.approx(1)) is True


def test_hours_name_the_venue() -> None:
    slots = np.ones((SLOTS, 4))
    slots[0, 2], slots[1, 3] = 30, 30
    released = flat_sessions(np.array([1, 1, 3, 3]), [2, 2], [0, 1], np.array([0, 4, 8, 5]) * HOUR)
    evidence = Evidence(released, np.zeros(2, bool), np.zeros(4, np.int32), 4, by_popularity([1, 1, 1], slots))
    assert Posterior().soft(evidence).poi[[0, 1, 3], 0].tolist() == [2, 3, 3]


def test_outside_knowledge_replaces_what_is_published() -> None:
    evidence = Evidence(sessions_of([1, 2]), np.zeros(1, bool), np.zeros(2, np.int32), 4, by_popularity([9, 1, 1]))
    slots = np.ones((SLOTS, 4))
    informed = InformedPosterior()
    assert informed.knowledge(evidence).popularity.tolist() == [0, 9, 1, 1]
    knows = informed.knowledge(replace(evidence, outside=Outside(np.array([0, 0, 7.0, 2]), slots)))
    assert knows.popularity.tolist() == [0, 0, 7, 2]
    assert knows.hours is slots
    assert Posterior().knowledge(replace(evidence, outside=Outside(np.ones(4)))).popularity[1] == 9


def test_true_statistics_by_hand() -> None:
    vocabulary = flat_vocabulary()
    outside = Outside.true(sessions_of([1, 1, 2]), vocabulary)
    assert outside.popularity is not None
    assert outside.hours is not None
    assert outside.popularity.tolist() == [0, 2, 1, 0]
    assert outside.hours[:, 1:].mean(axis=0) == pytest.approx(np.ones(3))
    assert not outside.hours[:, 0].any()


def flat_vocabulary() -> Vocabulary:
    return Vocabulary(np.zeros(4), np.zeros(4), np.array([-1, 0, 0, 1]), np.arange(4, dtype=np.int32))


def test_without_published_weights_the_release_and_the_leak_say_how_popular_venues_are() -> None:
    evidence = evidence_of(CROWD, [0, 1], [[1, 3, 1], [2, 3, 3]], leaked=[[2, 2, 3]])
    popular = Posterior().knowledge(evidence).popularity
    assert popular[2] > popular[3] > popular[1] > 0


def test_the_likeliest_of_each_group_in_order() -> None:
    evidence = evidence_of(CROWD, [0, 1], [[1], [2]])
    (block,) = blocks(evidence, Knowledge(uniform(CROWD), np.ones(4), None))
    groups = block.owner, block.first
    poi, share = top(block.venue, np.array([0.2, 0.5, 0.3, 0.4, 0.2, 0.4]), *groups, 2)
    assert (poi.tolist(), share.tolist()) == ([[2, 3], [1, 3]], [[0.5, 0.3], [0.4, 0.4]])
    assert top(block.venue, np.full(6, 1 / 3), *groups, 4)[0].tolist() == [[1, 2, 3, 0]] * 2


@pytest.mark.parametrize("leaks", [False, True])
def test_it_predicts_from_the_habits_it_finds(leaks: bool) -> None:
    slots = np.ones((SLOTS, 5))
    for part, venue in enumerate((1, 4, 2, 3)):  # the part of the day separates members of both crowds
        slots[part::6, venue] = 9
    sets = candidates_of([1, 2], [1, 2], [3, 4], [3, 4])
    sets = replace(sets, weight=np.where(sets.poi > 0, 1.0, 0.0), slot_weight=slots)
    rule = Rule(sets, channel_of(sets), True, popularity_power=1.0)
    clean = np.tile([1, 4, 2, 3], 30)
    time = (np.arange(120) % 4 + np.arange(120) // 4 * 6) * 4 * HOUR
    noise = np.random.default_rng(1).integers(0, 2, 120)
    test, released = (
        flat_sessions(poi, [4] * 30, np.arange(30) % 3, time) for poi in (clean, np.where(clean < 3, 1, 3) + noise)
    )
    evidence = Evidence.of(released, clean.astype(np.int32), np.arange(30) < 3 * leaks, 5, rule)
    made = Posterior().predict(evidence, test, SEED, CPU)
    assert made.restored is not None
    assert (made.restored == clean).all()
    assert (ranks(made.scorer, test, 5, CPU) == 1).all()


def test_a21_reads_no_more_than_the_crowds() -> None:
    one, other = (evidence_of(CROWD, [0, 1], shown) for shown in ([[1, 1, 2], [3, 1]], [[3, 2, 1], [1, 1]]))
    soft = [ADVERSARIES["posterior"].soft(evidence) for evidence in (one, other)]  # type: ignore[attr-defined]
    assert (soft[0].poi == soft[1].poi).all()
    assert soft[0].share == pytest.approx(soft[1].share)


def test_a_release_that_draws_from_nothing_stays() -> None:
    lonely = Candidates(np.zeros((3, 1), np.int32), np.zeros(3))
    evidence = Evidence(sessions_of([1, 2]), np.zeros(1, bool), np.zeros(2, np.int32), 3,
                        Rule(lonely, channel_of(lonely), True))  # fmt: skip
    assert Posterior().soft(evidence).poi[:, 0].tolist() == [1, 2]
