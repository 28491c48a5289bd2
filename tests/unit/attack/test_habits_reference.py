"""A7, A8 and A15 are what their definition gives, with dictionaries and the weights that the studies use."""

from collections import Counter, defaultdict
from dataclasses import replace
from math import lgamma, log

import numpy as np
import pytest
from attack_evidence import CPU, SEED, candidates_of, evidence_of, favouring

from ghostpoi.attack.adversaries import ADVERSARIES, habits
from ghostpoi.attack.adversaries.deconvolution import INDEPENDENT, Visits, popularity_hint
from ghostpoi.attack.adversaries.habits import (
    CONCENTRATIONS,
    HabitsLeak,
    concentration,
    distinguishes,
    fit_attraction,
    learn_from_pairs,
)
from ghostpoi.attack.evidence import Evidence
from ghostpoi.data.checkins import Floats, Longs
from ghostpoi.draw.channel import Channel, uniform

VENUES, USERS = 14, 4
Rows = dict[tuple[int, int], float]


def world(number: int, exact: bool = True, leaked: int = 12, users: int = USERS) -> Evidence:
    """Two crowds, venues that draw from their neighbours, and one that never changes; users with a few habits."""
    draw = np.random.default_rng(number)
    near = [[1 + (p + step) % 13 for step in (1, 2, 4)] for p in range(8, 13)]
    sets = candidates_of(*[[1, 2, 3, 4]] * 4, *[[5, 6, 7]] * 3, [9], *near, [])
    home = draw.integers(1, VENUES + 1, (users, 3))
    who = np.arange(30) % users
    clean = [np.where(draw.random(4) < 0.7, home[u, draw.integers(0, 3, 4)], draw.integers(1, 15, 4)) for u in who]
    own = [np.flatnonzero(row) for row in sets.poi]
    shown = [[int(draw.choice(sets.poi[p][own[p]])) if len(own[p]) else int(p) for p in one] for one in clean]
    evidence = evidence_of(sets, who.tolist(), shown, [one.tolist() for one in clean[:leaked]], exact)
    lat, lon = 40 + draw.random((2, VENUES + 1)) / 20
    return replace(evidence, rule=replace(evidence.rule, lat=lat, lon=lon))


def entries(channel: Channel) -> Rows:
    return {
        (int(p), int(q)): float(k) for p, q, k in zip(channel.clean, channel.released, channel.probability, strict=True)
    }


def pairs_of(evidence: Evidence) -> tuple[Longs, Longs, Longs]:
    at = evidence.positions
    return evidence.user[at], evidence.symbol[at], evidence.clean[at].astype(np.int64)


def slow_concentration(channel: Channel, user: Longs, released: Longs, clean: Longs) -> float:
    """Polya's urn: the k under which the leaked draws of each user and venue are likeliest."""
    chance, urns = entries(channel), defaultdict[tuple[int, int], Counter[int]](Counter)
    for u, q, p in zip(user.tolist(), released.tolist(), clean.tolist(), strict=True):
        if 0 < chance.get((p, q), 0.0) < 1 - 1e-9:
            urns[u, p][q] += 1
    if all(urn.total() < 2 for urn in urns.values()):
        return INDEPENDENT

    def likelihood(k: float) -> float:
        total = 0.0
        for (_, p), urn in urns.items():
            total += lgamma(k) - lgamma(k + urn.total())
            total += sum(lgamma(k * chance[p, q] + n) - lgamma(k * chance[p, q]) for q, n in urn.items())
        return total

    tried = [10.0 ** (power / 4) for power in range(-8, 13)]
    best = max(tried, key=likelihood)
    return INDEPENDENT if best == tried[-1] else best


def test_the_concentration_is_the_likeliest_of_those_tried() -> None:
    draw, found = np.random.default_rng(1), set()
    channel = uniform(candidates_of([1, 2, 3], [2, 3], [1], [1, 4, 2, 3]))
    for number in range(80):
        count, repeats = int(draw.integers(1, 60)), draw.random() ** 0.5
        user, clean = draw.integers(0, 3, count), draw.integers(1, 5, count)
        fixed = draw.integers(1, 5, (3, 5))[user, clean]
        released = np.where(draw.random(count) < repeats, fixed, draw.integers(1, 5, count))
        expected = slow_concentration(channel, user, released, clean)
        assert concentration(channel, user, released, clean) == pytest.approx(expected), number
        found.add(expected)
    assert INDEPENDENT in found
    assert len(found) > 4
    assert pytest.approx([10.0 ** (power / 4) for power in range(-8, 13)]) == CONCENTRATIONS
    none = np.zeros(0, np.int64)
    assert concentration(channel, none, none, none) == INDEPENDENT


def slow_nearness(evidence: Evidence, visits: Visits, share: Floats) -> Floats:
    """How close each option is to where its user went, but for itself, (T,)."""
    lat, lon = evidence.rule.lat, evidence.rule.lon
    if lat is None or lon is None:
        return np.ones(len(share))
    up, along = np.radians(lat), np.radians(lon)
    point = 6371.0088 * np.stack([np.cos(up) * np.cos(along), np.cos(up) * np.sin(along), np.sin(up)], axis=1)
    user, group = evidence.user[~evidence.positions], np.repeat(np.arange(len(visits.count)), sizes(visits))
    of_group = dict(zip(visits.group.tolist(), user.tolist(), strict=True))
    went: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for u, _, p in zip(*pairs_of(evidence), strict=True):
        went[int(u)][int(p)] += 1
    for g, p, part in zip(group.tolist(), visits.clean.tolist(), share.tolist(), strict=True):
        went[of_group[g]][p] += part * float(visits.count[g]) ** 0.5
    found = []
    for g, p in zip(group.tolist(), visits.clean.tolist(), strict=True):
        to = {o: n for o, n in went[of_group[g]].items() if n >= 0.2}
        near = [n / (float(np.linalg.norm(point[p] - point[o])) + 0.25) for o, n in to.items() if o != p]
        found.append(sum(near) / sum(to.values()) if to else 0.0)
    return np.maximum(found, 1e-300) ** 4


def sizes(visits: Visits) -> Longs:
    """The number of options of each group, (G,)."""
    return np.diff(visits.first, append=len(visits.clean))


def slow_attraction(
    channel: Channel, visits: Floats, released: Floats, attraction: Floats, strength: float
) -> tuple[Rows, list[float]]:
    chance: Rows = entries(channel)
    total: dict[int, float] = defaultdict(float)
    for (p, q), k in chance.items():
        total[p] += k * attraction[q]
    behind: dict[int, float] = defaultdict(float)
    for (p, q), k in chance.items():
        behind[q] += k * visits[p] / total[p] if total[p] > 0 else 0.0
    new = [(released[q] + strength) / (behind[q] + strength) for q in range(len(released))]
    weight = {(p, q): k * new[q] for (p, q), k in chance.items()}
    sums: dict[int, float] = defaultdict(float)
    for (p, _), w in weight.items():
        sums[p] += w
    return {(p, q): w / sums[p] for (p, q), w in weight.items()}, new


def test_an_attraction_moves_the_channel_towards_what_was_released() -> None:
    draw, channel = np.random.default_rng(3), world(3).rule.channel
    visits, released = draw.integers(0, 50, VENUES + 1).astype(float), draw.integers(0, 50, VENUES + 1).astype(float)
    attraction = draw.random(VENUES + 1)
    attraction[8] = 0.0
    found, new = fit_attraction(channel, visits, released, attraction, 7.0)
    expected, wanted = slow_attraction(channel, visits, released, attraction, 7.0)
    assert new == pytest.approx(wanted)
    assert entries(found) == pytest.approx(expected)


def slow_learned(channel: Channel, released: Longs, clean: Longs, strength: float, exact: bool) -> Rows:
    chance, pairs = entries(channel), list(zip(clean.tolist(), released.tolist(), strict=True))
    if not pairs:
        return chance
    trust = (sum(pair in chance for pair in pairs) + 0.5) / (len(pairs) + 1)
    new = [pair for pair in pairs if not exact or pair not in chance]
    number = Counter(p for p, _ in new)
    out: Rows = defaultdict(
        float, {(p, q): trust * strength * k / (strength + number[p]) for (p, q), k in chance.items()}
    )
    for p, q in new:
        out[p, q] += 1 / (strength + number[p])
    return dict(out)


@pytest.mark.parametrize("exact", [True, False])
def test_leaked_pairs_correct_a_channel(exact: bool) -> None:
    draw, channel = np.random.default_rng(4), world(4).rule.channel
    clean, released = draw.integers(1, VENUES + 1, (2, 60))
    for count in (60, 1, 0):
        found = learn_from_pairs(channel, released[:count], clean[:count], 9.0, exact)
        assert entries(found) == pytest.approx(slow_learned(channel, released[:count], clean[:count], 9.0, exact))
        assert found.symbols == channel.symbols


def slow_explain(evidence: Evidence, channel: Channel, quick: bool = False) -> tuple[Visits, Floats]:
    """The steps of the attack with its numbers: 30 visits of prior, roots of repeats, three rounds of regions."""
    visits = Visits.of(evidence, channel, evidence.symbol)
    base = 30.0 * visits.popularity(40, 30.0 * popularity_hint(evidence))[visits.clean]
    share = prior = visits.posterior(base, 0.5, 20)
    if quick:
        return visits, share
    prior, rule = base, evidence.rule
    for _ in range(3):
        near = slow_nearness(evidence, visits, share)
        prior = base * near * base.sum() / (base * near).sum()
        share = visits.posterior(prior, 0.5, 20)
    independent = rule.popularity_power > 0
    repeats = INDEPENDENT if independent else slow_concentration(channel, *pairs_of(evidence))
    return visits, visits.posterior(prior, 0.5, 80, repeats)


def slow_channel(evidence: Evidence) -> Channel:
    """Six rounds of guessing what attracts draws, five steps each."""
    _, released, clean = pairs_of(evidence)
    rule, guess, attraction = evidence.rule, evidence.rule.channel, np.ones(evidence.rule.channel.symbols)
    counts = np.bincount(evidence.symbol, minlength=len(attraction)).astype(float)
    for _ in range(0 if rule.exact else 6):
        visits, share = slow_explain(evidence, learn_from_pairs(guess, released, clean, 30.0, rule.exact), quick=True)
        expected = visits.expected(share)
        for _ in range(5):
            guess, attraction = fit_attraction(rule.channel, expected, counts, attraction, 10.0)
    return learn_from_pairs(guess, released, clean, 30.0, rule.exact)


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("favours", [True, False])
@pytest.mark.parametrize("places", [True, False])
def test_habits_are_explained_as_defined(exact: bool, favours: bool, places: bool) -> None:
    evidence = world(5, exact)
    evidence = evidence if places else replace(evidence, rule=replace(evidence.rule, lat=None, lon=None))
    evidence = favouring(evidence) if favours else evidence
    attack = HabitsLeak()
    channel = slow_channel(evidence)
    assert entries(attack.channel(evidence)) == pytest.approx(entries(channel))
    visits, share = slow_explain(evidence, channel)
    _, popularity, found = attack.explain(evidence, channel, evidence.symbol)
    assert found == pytest.approx(share, rel=1e-4, abs=1e-9)
    assert popularity == pytest.approx(visits.popularity(40, 30.0 * popularity_hint(evidence)))
    assert attack.restore(evidence, SEED, CPU).tolist() == evidence.fill(visits.argmax(share)).tolist()
    assert ADVERSARIES["habits"].restore(evidence, SEED, CPU).tolist() == evidence.fill(visits.argmax(share)).tolist()


def test_what_attacks_say_of_themselves() -> None:
    leak, alone, session = (ADVERSARIES[name] for name in ("habits+leak", "habits", "session-habits"))
    assert [(one.number, one.uses_leak, one.needs_seed) for one in (leak, alone, session)] == [
        (8, True, True), (7, False, False), (15, False, False),
    ]  # fmt: skip
    assert alone.effort == leak.effort < session.effort  # A15 runs A7 twice


def test_venues_are_told_apart_if_their_draws_differ() -> None:
    draw = np.random.default_rng(6)
    for number in range(60):
        sets = [sorted(draw.choice(8, draw.integers(1, 3), replace=False) + 1) for _ in range(4)]
        channel = uniform(candidates_of(*[sets[i] for i in draw.integers(0, 4, 8)]))
        rows = {p: {q: k for (of, q), k in entries(channel).items() if of == p} for p in range(1, 9)}
        behind = [[rows[p] for p in rows if q in rows[p]] for q in range(9)]
        expected = [any(one != each[0] for one in each) for each in behind]
        assert distinguishes(channel).tolist() == expected, number
    empty = np.zeros(0, np.int64)
    assert not distinguishes(Channel.of(empty, empty, np.zeros(0), 5)).any()


@pytest.mark.parametrize(("number", "at_once"), [(0, 7), (1, 60), (2, 1000)])
def test_users_and_sessions_are_combined_by_what_tells_more(
    number: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(habits, "POSITIONS", at_once)  # of 120
    evidence = world(number, leaked=0)
    count = len(evidence.released)
    alone = replace(
        evidence, released=replace(evidence.released, user=np.arange(count, dtype=np.int32)), pseudonym=None
    )
    channel = evidence.rule.channel
    rows = {p: {q: k for (of, q), k in entries(channel).items() if of == p} for p in range(1, VENUES + 1)}
    score: list[dict[int, float]] = [defaultdict(float) for _ in evidence.symbol]
    for known, by_user in ((evidence, True), (alone, False)):
        visits, _, share = HabitsLeak().explain(known, channel, known.symbol)
        for position, group in enumerate(visits.group.tolist()):
            behind = [row for row in rows.values() if evidence.symbol[position] in row]
            differ = any(row != behind[0] for row in behind)
            for option in range(visits.first[group], visits.first[group] + sizes(visits)[group]):
                score[position][int(visits.clean[option])] += (1.0 if differ == by_user else 0.5) * log(share[option])
    expected = [max(sorted(each), key=lambda p, each=each: round(each[p], 9)) for each in score]  # type: ignore[misc]
    assert ADVERSARIES["session-habits"].restore(evidence, SEED, CPU).tolist() == expected
