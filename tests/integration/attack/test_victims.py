"""Victims: trained as a stack as alone, stopped one by one, grouped right, and as good as a toy city allows."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from builders import flat_sessions

from ghostpoi.attack.victims import VICTIMS, stacked
from ghostpoi.attack.victims.base import STAGE, WRONG, Exam, Job, Result, victim_settings
from ghostpoi.attack.victims.neural import Transformer
from ghostpoi.attack.victims.stacked import StackedModel, groups, pack
from ghostpoi.data.sessions import Sessions
from ghostpoi.errors import InputError
from ghostpoi.models import fit
from ghostpoi.models.training_windows import next_poi
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.randomness import Seed
from ghostpoi.settings import ModelSettings, Training

ROWS = 19
SEED = Seed(5)
CPU = torch.device("cpu")
MODEL = ModelSettings(16, 2, 2, 24, 10, 0.0)
TRAINING = Training(batch_sessions=8, learning_rate=0.01, epochs=12, patience=2)


def walk(lengths: list[int], seed: int, noise: float = 0.3) -> Sessions:
    """Mostly one POI further each step, over ROWS - 1 POIs."""
    rng = np.random.default_rng(seed)
    n = sum(lengths)
    return flat_sessions(np.cumsum(np.where(rng.random(n) < noise, rng.integers(1, 9, n), 1)) % (ROWS - 1) + 1, lengths)


LENGTHS = [3, 12, 5, 2, 7, 4, 25, 1, 3, 9] * 4
TRAIN = [walk(LENGTHS, m, noise) for m, noise in enumerate((0.1, 0.8, 0.4))]
VALIDATION, TEST = walk([5, 14, 3] * 8, 7), walk([6, 2, 22] * 4, 8)
EXAM = Exam(VALIDATION, TEST, ROWS, CPU)
JOBS = [Job(f"victim {m}", train, SEED) for m, train in enumerate(TRAIN)]


def plain(model: ModelSettings, seed: Seed = SEED) -> CausalTransformer:
    """The Transformer that a victim starts from."""
    return CausalTransformer(ROWS, model, seed.torch_seed(*STAGE, "weights"))


def alone(job: Job, model: ModelSettings, training: Training) -> tuple[dict[str, torch.Tensor], float, int]:
    """What the training of other models makes of a job: weights of the best epoch, its validation, epochs run."""
    one, best, kept, at, ran = plain(model, job.seed), -1.0, dict[str, torch.Tensor](), 0, 0
    pairs, validation = (next_poi(s, model.max_positions) for s in (job.train, VALIDATION))
    steps = fit.adamw(one, training)
    for ran, _ in enumerate(fit.epochs(one, steps, pairs, training, job.seed, STAGE, range(training.epochs)), 1):
        now = float((fit.likeliest(one, validation, "float32") == validation.target).mean())
        if now > best:
            best, at, kept = now, ran, {name: weight.clone() for name, weight in one.state_dict().items()}
        if ran - at >= training.patience:
            break
    return kept, best, ran


def in_a_stack(
    jobs: list[Job], model: ModelSettings, training: Training, diverges: int | None = None
) -> stacked.Trained:
    """What `stacked.train` makes of jobs: weights, validation, epochs run."""
    start = StackedModel(jobs, EXAM, model, training.precision)
    if diverges is not None:
        with torch.no_grad():
            start.weights["position"][diverges] = torch.nan
    return stacked.train(start, jobs, EXAM, training)


def train(jobs: list[Job], training: Training, model: ModelSettings = MODEL, exam: Exam = EXAM) -> list[Result]:
    return Transformer(model, training).train(jobs, exam, "strong")


def near(found: StackedModel, m: int, weights: dict[str, torch.Tensor]) -> None:
    """Victim m has these weights. The bias of attention's keys changes no output; Adam makes steps of its rounding."""
    d = MODEL.dim
    for name, w in weights.items():
        a, b = (x.detach().clone() for x in (found.weights[name][m], w))
        if name.endswith("qkv.bias"):
            a[d : 2 * d] = b[d : 2 * d] = 0
        assert torch.allclose(a, b, atol=1e-3), name


def same(one: list[Result], other: list[Result]) -> None:
    for a, b in zip(one, other, strict=True):
        assert (a.name, a.validation, a.epochs) == (b.name, pytest.approx(b.validation), b.epochs)
        assert np.array_equal(a.ranks, b.ranks)


# Victims share the dropout that each would draw alone.
@pytest.mark.parametrize(("dropout", "tied", "compact"), [(0.0, True, 1.1), (0.2, False, 1.1), (0.2, True, 0.0)])
def test_a_stack_equals_victims_alone(
    dropout: float, tied: bool, compact: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacked, "COMPACT_BELOW", compact)
    monkeypatch.setattr(stacked, "LOGITS", 3 * 32 * 7)  # several tiles, the last one smaller
    monkeypatch.setattr(stacked, "EVALUATION_TOKENS", (120, 120))
    model = replace(MODEL, dropout=dropout, tied=tied)
    stack, validation, epochs = in_a_stack(JOBS, model, TRAINING)
    assert len(set(epochs)) > 1  # so that some stop while others go on
    for m, job in enumerate(JOBS):
        weights, best, ran = alone(job, model, TRAINING)
        assert (epochs[m], validation[m]) == (ran, pytest.approx(best))
        assert weights.keys() == stack.weights.keys()
        near(stack, m, weights)


def test_one_victim_alone_is_a_stack_too() -> None:
    weights, best, ran = alone(JOBS[0], MODEL, TRAINING)
    stack, validation, epochs = in_a_stack(JOBS[:1], MODEL, TRAINING)
    assert (epochs, validation) == ([ran], [pytest.approx(best)])
    near(stack, 0, weights)


def test_bfloat16_learns_about_as_well() -> None:
    chosen = replace(TRAINING, epochs=6, patience=0)
    found = [in_a_stack(JOBS, MODEL, replace(chosen, precision=p))[1] for p in ("float32", "bfloat16")]
    assert found[0] == pytest.approx(found[1], abs=0.06)


def test_every_victim_is_clipped_by_its_own_norm() -> None:
    generator = torch.Generator().manual_seed(0)
    gradients = [torch.randn(3, *shape, generator=generator) for shape in ((4, 5), (7,))]
    size = torch.tensor([0.01, 1.0, 100.0])
    for g in gradients:
        g *= size.view(-1, *[1] * (g.dim() - 1))
    expected = [[g[m].clone() for g in gradients] for m in range(3)]
    for one in expected:
        for g in one:
            g.requires_grad_().grad = g.detach().clone()
        torch.nn.utils.clip_grad_norm_(one, 1.0)
    stacked.clip(gradients, 1.0)
    for m, one in enumerate(expected):
        assert all(torch.allclose(g[m], e.grad) for g, e in zip(gradients, one, strict=True) if e.grad is not None)
    assert torch.equal(gradients[0][0], expected[0][0])  # small ones stay as they are


def test_a_victim_that_diverges_leaves_the_others_as_they_are() -> None:
    chosen = replace(TRAINING, epochs=3)
    expected, before, _ = in_a_stack(JOBS, MODEL, chosen)
    found, validation, _ = in_a_stack(JOBS, MODEL, chosen, diverges=1)
    assert validation == [before[0], 0.0, before[2]]
    for name, w in expected.weights.items():
        assert torch.equal(w[[0, 2]], found.weights[name][[0, 2]])


def test_losses_and_gradients_are_those_of_cross_entropy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacked, "LOGITS", 2 * 32 * 4)
    generator = torch.Generator().manual_seed(1)
    some = StackedModel(JOBS[:2], EXAM, MODEL, "float32")
    with torch.no_grad():
        some.output.normal_(generator=generator)
    hidden = torch.randn(2, 11, 16, generator=generator, requires_grad=True)
    target = torch.randint(1, ROWS, (2, 11), generator=generator)
    weight = torch.tensor([1.0, 3.0])
    logits = torch.einsum("mnd,mpd->mpn", hidden, some.output[:, 1:])
    plain = torch.nn.functional.cross_entropy(logits, target - 1, reduction="none").mean(1)
    found = some.losses(hidden, target)
    assert torch.allclose(plain, found, rtol=1e-5)
    gradients = [torch.autograd.grad((x * weight).sum(), [hidden, some.output]) for x in (plain, found)]
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(*gradients, strict=True))
    assert not gradients[1][1][:, 0].any()


def test_packed_rows_hold_every_token_once() -> None:
    pairs = next_poi(walk([2, 60, 9, 41, 64, 3, 70, 30], 3), 100)
    windows = np.arange(8)[::-1].copy()
    (rows,) = pack(pairs, [windows], CPU)
    assert rows.owner.shape[1] % 8 == 0
    assert torch.equal(rows.token_at[rows.place], torch.arange(len(pairs.token)))
    assert np.array_equal(pairs.take(windows).token, pairs.token[rows.index.numpy()])
    assert (rows.owner >= 0).sum() == len(pairs.token)
    for window, length in enumerate(pairs.length[windows]):  # no window is broken over two rows
        assert (rows.owner == window).sum(1).max() == length
    assert pack(pairs, [], CPU) == []


def test_jobs_come_back_in_order_however_they_are_trained() -> None:
    """Other seeds and other lengths (a leak alone: few sessions) are groups of their own."""
    few = [job.train.take(np.arange(len(LENGTHS)) % 5 == 0) for job in JOBS]
    jobs = [
        JOBS[0], Job("leak", few[0], SEED), JOBS[1], Job("other seed", TRAIN[1], Seed(6)), Job("leak 2", few[1], SEED)
    ]  # fmt: skip
    assert groups(jobs) == [[0, 2], [1, 4], [3]]
    heard: list[float] = []
    exam = replace(EXAM, progress=lambda label, n: heard.append(n))
    found = train(jobs, replace(TRAINING, epochs=5), exam=exam)
    assert sum(heard) == pytest.approx(5)
    same(found, [train([job], replace(TRAINING, epochs=5))[0] for job in jobs])
    assert [r.name for r in found] == [job.name for job in jobs]
    assert len(found[0].ranks) == (TEST.length - 1).sum()


def test_same_seed_same_result_whatever_the_company() -> None:
    how = (replace(TRAINING, epochs=4), replace(MODEL, dropout=0.2))
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first = train(JOBS, *how)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(1)
    same(first, train(JOBS, *how))
    same(first[1:2], train(JOBS[1:2], *how))
    other = train([replace(JOBS[0], seed=Seed(6))], *how)
    assert not np.array_equal(first[0].ranks, other[0].ranks)


def test_pois_that_a_victim_does_not_know_count_as_wrong() -> None:
    brief = replace(TRAINING, epochs=2)
    known = train(JOBS[:1], brief)
    poi = TEST.poi.copy()
    poi[[1, 7]] = [0, ROWS + 3]  # the second POI of the first session, and the last of the second
    strange = replace(TEST, poi=poi)
    unknown = replace(VALIDATION, poi=np.zeros_like(VALIDATION.poi))
    (found,) = train(JOBS[:1], brief, exam=replace(EXAM, validation=unknown, test=strange))
    assert found.validation == 0.0
    assert np.flatnonzero(found.ranks == WRONG).tolist() == [0, 5]
    assert (known[0].ranks < ROWS).all()
    with pytest.raises(ValueError, match="victim 0: a POI"):
        train(JOBS[:1], TRAINING, exam=replace(EXAM, rows=ROWS - 2))


def test_nothing_to_learn_from_is_no_failure() -> None:
    jobs = [Job("none", walk([], 0), SEED), Job("singles", walk([1, 1], 0), SEED)]
    nothing = walk([], 0)
    empty = train(jobs, replace(TRAINING, epochs=1), exam=replace(EXAM, test=nothing))
    assert [len(r.ranks) for r in empty] == [0, 0]
    untrained = train(JOBS, replace(TRAINING, epochs=0), exam=replace(EXAM, validation=nothing))
    assert {(r.epochs, r.validation) for r in untrained} == {(0, 0.0)}
    assert train([], TRAINING) == []


def test_a_cycle_is_learned_without_fault() -> None:
    """A city where everybody goes on to the next POI, whichever they start from."""
    lengths = [8] * 60
    starts = np.random.default_rng(0).integers(0, ROWS - 1, 60)
    cycle = flat_sessions(((starts[:, None] + np.arange(8)) % (ROWS - 1) + 1).ravel(), lengths)
    training, exam = replace(TRAINING, epochs=20, patience=5), replace(EXAM, validation=cycle, test=TEST_CYCLE)
    (found,) = train([Job("cycle", cycle, SEED)], training, exam=exam)
    assert found.validation == 1.0
    assert (found.ranks == 1).all()


TEST_CYCLE = flat_sessions(np.arange(ROWS * 3) % (ROWS - 1) + 1, [9] * 6)


def test_a_markov_chain_is_learned_to_its_known_optimum() -> None:
    """The next POI is a fixed one of three with probability .6, .3, .1: nobody can be right more often than .6."""
    rng = np.random.default_rng(0)
    pois = 12
    follower = np.stack([rng.permutation(pois)[:3] for _ in range(pois)])  # (P, 3)

    def chain(sessions: int, length: int = 8) -> Sessions:
        path = [rng.integers(0, pois, sessions)]
        for _ in range(length - 1):
            path.append(follower[path[-1], rng.choice(3, sessions, p=[0.6, 0.3, 0.1])])
        return flat_sessions(np.stack(path, 1).ravel() + 1, [length] * sessions)

    job, exam = Job("chain", chain(400), SEED), Exam(chain(100), test := chain(300), pois + 1, CPU)
    chosen = Training(batch_sessions=32, learning_rate=0.005, epochs=20, patience=4)
    (found,) = train([job], chosen, exam=exam)
    pairs = next_poi(test, 10)
    optimum = (follower[pairs.token - 1, 0] == pairs.target - 1).mean()  # of those who know the chain, on this sample
    assert optimum == pytest.approx(0.6, abs=0.03)
    assert (found.ranks == 1).mean() == pytest.approx(optimum, abs=0.015)


def test_protocols() -> None:
    strong, paper = victim_settings("strong"), victim_settings("paper")
    assert (strong[0].tied, paper[0].tied) == (False, True)
    assert strong[1].patience > paper[1].patience > 0
    with pytest.raises(InputError, match="no protocol 'weak'"):
        victim_settings("weak")
    assert VICTIMS["transformer"].train([], EXAM, "strong") == []
    assert VICTIMS["transformer"].settings("paper") == paper
    assert Transformer(training=TRAINING).settings("strong") == (strong[0], TRAINING)


def test_memory_estimate_counts_all_weights() -> None:
    weights = sum(w.numel() for w in plain(MODEL).parameters())
    nothing = stacked.bytes_per_victim(ROWS, MODEL, TRAINING, np.zeros(0, np.int64))
    assert nothing == pytest.approx(4 * 6 * weights, rel=0.01)


def test_tf32_is_set_back() -> None:
    before = torch.get_float32_matmul_precision()
    with stacked.tf32(True):
        assert torch.get_float32_matmul_precision() == "high"
    with stacked.tf32(False):
        assert torch.get_float32_matmul_precision() == before
    assert torch.get_float32_matmul_precision() == before
