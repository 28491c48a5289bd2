"""All victims under one contract; stacked architectures against plain references; nobody looks ahead."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from builders import flat_sessions
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

from ghostpoi.attack.victims import VICTIMS, base, judge, stacked
from ghostpoi.attack.victims.base import WRONG, Exam, Job, Result
from ghostpoi.attack.victims.counts import Chain, Markov
from ghostpoi.attack.victims.neural import GAP_S, HOURS, KM, KNOTS, GraphModel, GRUModel, points
from ghostpoi.attack.victims.stacked import (
    TIME,
    TOKEN,
    USER,
    PackedRows,
    StackedModel,
    StackedVictim,
    inputs_of,
    look_up,
    pack,
)
from ghostpoi.data.geo import haversine_km
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.errors import InputError
from ghostpoi.models.training_windows import next_place, next_poi
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Training

POIS, ROWS, USERS = 12, 13, 4
SEED = Seed(5)
CPU = torch.device("cpu")
MODEL = ModelSettings(16, 2, 2, 24, 10, 0.0)
TRAINING = Training(batch_sessions=32, learning_rate=0.01, epochs=15, patience=4)
NEURAL = ("gru", "stan", "graph", "user")


def city(seed: int = 0) -> Vocabulary:
    rng = np.random.default_rng(seed)
    lat, lon = (np.append(np.nan, centre + rng.normal(0, 0.05, POIS)) for centre in (40.7, -74.0))
    return Vocabulary(lat, lon, np.arange(-1, POIS, dtype=np.int32), np.arange(-1, POIS, dtype=np.int32))


CITY = city()


def timed_sessions(poi: np.ndarray, lengths: list[int], seed: int = 0) -> Sessions:
    """These POIs, at any time of some weeks, of users in turn."""
    time = np.cumsum(np.random.default_rng(seed).integers(60, 9000, sum(lengths)))
    return flat_sessions(poi, lengths, np.arange(len(lengths)) % USERS, time)


FOLLOWER = np.stack([np.random.default_rng(p).permutation(POIS)[:3] for p in range(POIS)])  # (P, 3)


def chain(sessions: int, seed: int, length: int = 8) -> Sessions:
    """The next POI is a fixed one of three with probability .6, .3, .1: nobody can be right more often than .6."""
    rng = np.random.default_rng(seed)
    path = [rng.integers(0, POIS, sessions)]
    for _ in range(length - 1):
        path.append(FOLLOWER[path[-1], rng.choice(3, sessions, p=[0.6, 0.3, 0.1])])
    return timed_sessions(np.stack(path, 1).ravel() + 1, [length] * sessions, seed)


def noise(lengths: list[int], seed: int) -> Sessions:
    return timed_sessions(np.random.default_rng(seed).integers(1, ROWS, sum(lengths)), lengths, seed)


LENGTHS = [3, 12, 5, 2, 7, 4, 25, 1, 3, 9] * 3
VALIDATION, TEST = noise([5, 14, 3] * 4, 7), noise([6, 2, 22] * 4, 8)
EXAM = Exam(VALIDATION, TEST, ROWS, CPU, vocabulary=CITY)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Callable[[Training], None]:
    """Small models, trained as told."""

    def shrink(training: Training) -> None:
        monkeypatch.setattr(base, "victim_settings", lambda protocol: (MODEL, training))

    shrink(TRAINING)
    return shrink


def train(name: str, jobs: list[Job], validation: Sessions = VALIDATION, test: Sessions = TEST) -> list[Result]:
    return VICTIMS[name].train(jobs, Exam(validation, test, ROWS, CPU, vocabulary=CITY), "strong")


@pytest.mark.parametrize("name", VICTIMS)
def test_a_markov_chain_is_learned_to_its_known_optimum(name: str, small: Callable[[Training], None]) -> None:
    test = chain(300, 3)
    (found,) = train(name, [Job("chain", chain(400, 1), SEED)], chain(100, 2), test)
    pairs = next_poi(test, 10)
    optimum = (FOLLOWER[pairs.token - 1, 0] == pairs.target - 1).mean()  # of those who know the chain, on this sample
    assert (found.ranks == 1).mean() == pytest.approx(optimum, abs=0.025)
    assert found.validation == pytest.approx(0.6, abs=0.05)


@pytest.mark.parametrize("name", VICTIMS)
def test_same_seed_same_result(name: str, small: Callable[[Training], None]) -> None:
    small(replace(TRAINING, epochs=2))
    jobs = [Job(str(seed), noise(LENGTHS, seed), SEED) for seed in range(2)]
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first = train(name, jobs)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(1)
    for a, b in zip(first, train(name, jobs), strict=True):
        assert (a.name, a.validation, a.epochs) == (b.name, b.validation, b.epochs)
        assert np.array_equal(a.ranks, b.ranks)
    other = train(name, [replace(jobs[0], seed=Seed(6))])
    assert np.array_equal(first[0].ranks, other[0].ranks) == (
        name in ("markov", "counting")
    )  # counts owe nothing to chance
    assert not np.array_equal(first[0].ranks, first[1].ranks)


@pytest.mark.parametrize("name", VICTIMS)
def test_pois_and_users_that_a_victim_does_not_know(name: str, small: Callable[[Training], None]) -> None:
    small(replace(TRAINING, epochs=2))
    poi = TEST.poi.copy()
    poi[[1, 7]] = [0, ROWS + 3]  # the second POI of the first session, and the last of the second
    strange = replace(TEST, poi=poi, user=TEST.user + 100)
    unknown = replace(VALIDATION, poi=np.zeros_like(VALIDATION.poi))
    job = Job("some", noise(LENGTHS, 0), SEED)
    (found,) = train(name, [job], unknown, strange)
    assert found.validation == 0.0
    assert np.flatnonzero(found.ranks == WRONG).tolist() == [0, 5]
    assert len(found.ranks) == (TEST.length - 1).sum()
    others = found.ranks[found.ranks != WRONG]
    assert (others >= 1).all()
    assert (others < ROWS).all()
    with pytest.raises(ValueError, match="some: a POI"):
        VICTIMS[name].train([job], replace(EXAM, rows=ROWS - 2, vocabulary=_without(CITY, 2)), "strong")


def _without(vocabulary: Vocabulary, last: int) -> Vocabulary:
    lat, lon, category, source = (
        a[:-last] for a in (vocabulary.lat, vocabulary.lon, vocabulary.category, vocabulary.venue)
    )
    return Vocabulary(lat, lon, category, source)


@pytest.mark.parametrize("name", VICTIMS)
def test_nothing_to_learn_from_is_no_failure(name: str, small: Callable[[Training], None]) -> None:
    small(replace(TRAINING, epochs=1))
    jobs = [Job(str(lengths), noise(lengths, 0), SEED) for lengths in ([], [1, 1], [2], [0, 3, 0])]
    heard: list[float] = []
    found = VICTIMS[name].train(jobs, replace(EXAM, progress=lambda label, n: heard.append(n)), "strong")
    assert [r.name for r in found] == [job.name for job in jobs]
    assert sum(heard) == pytest.approx(len(jobs))
    empty = train(name, jobs[:2], noise([], 0), noise([1], 0))
    assert [(len(r.ranks), r.validation) for r in empty] == [(0, 0.0)] * 2
    assert train(name, []) == []


@pytest.mark.parametrize("name", VICTIMS)
def test_what_is_said_about_a_victim(name: str) -> None:
    assert VICTIMS[name].label == VICTIMS[name].label.strip() != ""
    assert VICTIMS[name].summary.endswith(".")
    assert "\n" not in VICTIMS[name].summary
    assert " at 0x" not in repr(VICTIMS[name])


@pytest.mark.parametrize("name", VICTIMS)
def test_protocols(name: str) -> None:
    with pytest.raises(InputError, match="no protocol 'weak'"):
        VICTIMS[name].train([], EXAM, "weak")
    for protocol in ("strong", "paper"):
        job = Job("one", noise([3, 4], 0), SEED)
        (found,) = VICTIMS[name].train([job], EXAM, protocol)
        assert found.epochs >= 1


@pytest.mark.parametrize("name", NEURAL)
def test_a_stack_equals_victims_alone(
    name: str, small: Callable[[Training], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With dropout, while others stop: up to the rounding of sums that are done in another order."""
    monkeypatch.setattr(stacked, "COMPACT_BELOW", 1.1)
    monkeypatch.setattr(stacked, "EVALUATION_TOKENS", (120, 120))
    small(replace(TRAINING, epochs=8, patience=1, batch_sessions=16))
    jobs = [Job(str(seed), noise(LENGTHS, seed), SEED) for seed in range(2)] + [
        Job("chain", chain(len(LENGTHS), 0), SEED)
    ]
    jobs[2] = replace(jobs[2], train=replace(jobs[0].train, poi=np.resize(jobs[2].train.poi, sum(LENGTHS))))
    alone = [train(name, [job], jobs[2].train)[0] for job in jobs]
    company = train(name, jobs, jobs[2].train)
    assert len({r.epochs for r in alone}) > 1
    for a, b in zip(alone, company, strict=True):
        assert (a.name, a.epochs, a.validation) == (b.name, b.epochs, pytest.approx(b.validation))
        assert (a.ranks == b.ranks).mean() > 0.98


def test_the_user_victim_knows_who_asks(small: Callable[[Training], None]) -> None:
    """Everybody is on the way home from somewhere, each to a home of their own."""
    small(replace(TRAINING, epochs=30, patience=10))

    def ways(seed: int) -> Sessions:
        start = np.random.default_rng(seed).integers(USERS + 1, ROWS, 240)
        return timed_sessions(np.stack([start, np.arange(240) % USERS + 1], 1).ravel(), [2] * 240)

    jobs = [Job("ways", ways(0), SEED)]
    accuracy = {name: (train(name, jobs, ways(1), ways(2))[0].ranks == 1).mean() for name in ("user", "transformer")}
    assert accuracy["user"] > 0.95
    assert accuracy["transformer"] < 0.4


def test_the_stan_victim_knows_the_hour_and_the_pace(small: Callable[[Training], None]) -> None:
    """Mornings go one way, evenings the other; or who came fast goes on, and who came slowly turns back."""
    small(replace(TRAINING, epochs=25, patience=25))

    def walks(seed: int, by_hour: bool) -> Sessions:
        rng = np.random.default_rng(seed)
        first, second = rng.integers(1, ROWS, (2, 300))
        late = rng.random(300) < 0.5
        day, hour, gap = rng.integers(0, 50, 300) * 86400, np.where(late & by_hour, 20, 8) * 3600, 600
        gap = np.where(late & (not by_hour), 6 * 3600, gap)
        if by_hour:
            poi = np.stack([first, second, np.where(late, second % POIS + 1, (second - 2) % POIS + 1)], 1)
        else:
            poi = np.stack([first, second, np.where(late, first, second)], 1)
        made = timed_sessions(poi.ravel(), [3] * 300)
        return replace(made, time=(day[:, None] + np.stack([hour, hour + gap, hour + gap + 600], 1)).ravel())

    for by_hour in (True, False):
        test = walks(2, by_hour)
        jobs = [Job("walks", walks(0, by_hour), SEED)]
        for name in ("stan", "transformer"):
            (found,) = train(name, jobs, walks(1, by_hour), test)
            right = (found.ranks[1::2] == 1).mean()  # of the steps that can be known
            assert right > 0.8 if name == "stan" else right < 0.65


def test_stan_wants_coordinates() -> None:
    for vocabulary in (None, _without(CITY, 1)):
        with pytest.raises(ValueError, match="give it the vocabulary"):
            VICTIMS["stan"].train(some_jobs(), replace(EXAM, vocabulary=vocabulary), "strong")


# Stacks against plain references


def shaken(stack: StackedModel) -> StackedModel:
    """With weights that differ from victim to victim, those that start from nothing too."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for w in stack.weights.values():
            w += 0.3 * torch.randn(w.shape, generator=generator)
    return stack


def some_jobs(victims: int = 2) -> list[Job]:
    return [Job(str(m), noise(LENGTHS, m), SEED) for m in range(victims)]


def build(name: str) -> StackedModel:
    victim = VICTIMS[name]
    assert isinstance(victim, StackedVictim)
    return shaken(victim.model_type(some_jobs(), EXAM, MODEL, "float32"))


def batch() -> tuple[torch.Tensor, PackedRows]:
    """One batch of windows out of order, of two victims."""
    trained_on = [job.train for job in some_jobs()]
    pairs = next_place(trained_on[0], MODEL.max_positions)
    (rows,) = pack(pairs, [np.random.default_rng(0).permutation(len(pairs.length))], CPU)
    return inputs_of(trained_on, pairs, CPU)[:, :, rows.index], rows


def windows_of(rows: PackedRows) -> list[torch.Tensor]:
    """The tokens of every window of a batch, in order."""
    starts = torch.nonzero(rows.position == 0).flatten().tolist()
    return [torch.arange(a, b) for a, b in zip(starts, [*starts[1:], len(rows.position)], strict=True)]


def test_gru_is_torchs_gru() -> None:
    inputs, rows = batch()
    stack = build("gru")
    assert isinstance(stack, GRUModel)
    hidden = stack.recur(look_up(stack.weights["embedding"], inputs[TOKEN]), rows)
    pull = torch.randn(hidden.shape, generator=torch.Generator().manual_seed(0))
    (hidden * pull).sum().backward()
    for m in range(2):
        plain = torch.nn.GRU(MODEL.dim, MODEL.dim)
        with torch.no_grad():
            for name, w in plain.named_parameters():
                w.copy_(stack.weights["gru." + name][m])
        table = stack.weights["embedding"][m].detach().requires_grad_()
        parts = windows_of(rows)
        packed = pack_sequence([table[inputs[TOKEN, m, part]] for part in parts], enforce_sorted=False)
        padded, length = pad_packed_sequence(plain(packed)[0])
        expected = torch.cat([padded[: int(n), w] for w, n in enumerate(length)])
        assert torch.allclose(hidden[m], expected, atol=1e-5)
        (expected * pull[m]).sum().backward()
        gradients = {"gru." + name: w.grad for name, w in plain.named_parameters()} | {"embedding": table.grad}
        for name, g in gradients.items():
            whole = stack.weights[name].grad
            assert whole is not None
            assert g is not None
            assert torch.allclose(whole[m], g, atol=1e-4), name


def test_stans_attention_is_that_of_a_slow_loop() -> None:
    inputs, rows = batch()
    stack = build("stan")
    masks = stack.masks(inputs, rows)
    d, heads = MODEL.dim, MODEL.heads
    generator = torch.Generator().manual_seed(1)
    qkv = torch.randn(2, len(rows.position), 3 * d, generator=generator)
    for layer, mask in enumerate(masks):
        found = rows.attend(qkv, heads, mask)
        for m in range(2):
            table = stack.weights["relation"][m].view(MODEL.layers, heads, 2, KNOTS)[layer].detach().numpy()
            for part in windows_of(rows):
                token, time = (inputs[side, m, part].numpy() for side in (TOKEN, TIME))
                for i in range(len(part)):
                    expected = []
                    for h in range(heads):
                        q, k, v = (x.view(-1, heads, d // heads)[:, h] for x in qkv[m, part].chunk(3, 1))
                        logits = []
                        for j in range(i + 1):
                            a, b = token[i], token[j]
                            km = haversine_km(CITY.lat[a], CITY.lon[a], CITY.lat[b], CITY.lon[b])
                            gap = float(time[i] - time[j])
                            bias = sum(
                                np.interp(np.log2(1 + x), np.arange(KNOTS), table[h, side])
                                for side, x in enumerate((gap / GAP_S, km / KM))
                            )
                            logits.append(float(q[i] @ k[j]) / (d // heads) ** 0.5 + bias)
                        expected.append(torch.softmax(torch.tensor(logits), 0).float() @ v[: i + 1])
                    assert torch.allclose(found[m, part[i]], torch.cat(expected), atol=2e-3)


def test_stan_reads_the_hour_of_the_week() -> None:
    inputs, rows = batch()
    stack = build("stan")
    hour = inputs[TIME] // 3600 % HOURS
    extra = stack.embed(inputs, rows) - StackedModel.embed(stack, inputs, rows)
    assert torch.allclose(extra[1], stack.weights["hour"][1][hour[1]], atol=1e-6)
    assert points(CITY).isfinite().all()


def test_graph_convolution_is_that_of_a_dense_matrix() -> None:
    stack = build("graph")
    assert isinstance(stack, GraphModel)
    table = stack.table()
    pull = torch.randn(table.shape, generator=torch.Generator().manual_seed(0))
    names = [name for name in stack.weights if name.startswith(("spread", "embedding"))]
    found = torch.autograd.grad((table * pull).sum(), [stack.weights[name] for name in names])
    for m, job in enumerate(some_jobs()):
        pairs = next_poi(job.train, 100)
        counts = np.eye(ROWS)
        for a, b in zip(pairs.token, pairs.target, strict=True):
            counts[a, b] += 1
            counts[b, a] += 1
        size = counts.sum(1)
        dense = torch.from_numpy(counts / np.sqrt(size[:, None] * size)).float()
        w = {name: stack.weights[name][m].detach().requires_grad_() for name in names}
        near = w["embedding"]
        for i in range(2):
            near = dense @ (near @ w[f"spread.{i}.weight"].t() + w[f"spread.{i}.bias"])
            near = torch.nn.functional.gelu(near) if i == 0 else near
        plain = w["embedding"] + near
        assert torch.allclose(table[m], plain, atol=1e-5)
        expected = torch.autograd.grad((plain * pull[m]).sum(), list(w.values()))
        assert all(torch.allclose(a[m], b, atol=1e-4) for a, b in zip(found, expected, strict=True))
    taken = stack.take(torch.tensor([1]))
    assert torch.allclose(taken.table()[0], table[1])


def test_inputs_hold_what_is_known_before_the_target() -> None:
    some = noise([3, 1, 0, 12, 2], 0)
    places, pairs = next_place(some, 5), next_poi(some, 5)
    assert np.array_equal(places.length, pairs.length)
    assert np.array_equal(some.poi[places.target], pairs.target)
    found = inputs_of([some], places, CPU)[:, 0].numpy()
    inputs = [i for a, b in zip(some.start[:-1], some.start[1:], strict=True) for i in range(a, b - 1)]
    assert np.array_equal(found[TOKEN], pairs.token)
    assert np.array_equal(found[TOKEN], some.poi[inputs])
    assert np.array_equal(found[TIME], some.time[inputs])
    assert np.array_equal(found[USER], some.user[some.session_of()[inputs]])


# Nobody looks ahead

STACKS = {name: build(name) for name in ("transformer", *NEURAL)}


def ranks_of(stack: StackedModel, sessions: Sessions) -> np.ndarray:
    return stacked.Examination(sessions, stack).ranks(stack).numpy()


@pytest.mark.parametrize("name", STACKS)
@given(data=st.data())
def test_what_comes_later_changes_no_earlier_rank(name: str, data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=6))
    before = noise(lengths, data.draw(st.integers(0, 99)))
    which = data.draw(st.integers(0, len(lengths) - 1))
    first, last = int(before.start[which]), int(before.start[which + 1])
    known = data.draw(st.integers(first, last - 1))  # the last position of this session that is known
    poi, time = before.poi.copy(), before.time.copy()
    # The next POI itself stays, as the one that is asked for; when it comes, and all after it, is another matter.
    poi[known + 2 : last] = data.draw(st.integers(1, POIS))
    time[known + 1 : last] += data.draw(st.integers(0, 10**6))
    after = replace(before, poi=poi, time=time)
    asked = np.repeat(np.arange(len(lengths)), np.maximum(np.array(lengths) - 1, 0))
    at = np.concatenate([np.arange(n - 1) for n in lengths]) + before.start[asked]
    same = (asked != which) | (at <= known)
    a, b = (ranks_of(STACKS[name], s) for s in (before, after))
    assert np.array_equal(a[:, same], b[:, same])
    counts, base = Markov().counts(noise(LENGTHS, 0), ROWS)
    a, b = (judge.ranks(Chain(counts, base), s, ROWS, CPU) for s in (before, after))
    assert np.array_equal(a[same], b[same])
