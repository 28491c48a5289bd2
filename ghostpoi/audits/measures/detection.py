"""A12, the detector: can a reader distinguish released sessions from clean ones?

The adversary learns from both forms of the leaked sessions and is then shown every other session in one form: half of
them clean, half released. An AUC of .5 means that it never can, 1 that it always can. Statistics that describe a
session leave out its own forms, because the release contains every released session verbatim. Do not trust the result
with few leaked sessions: a detector that learned little reports .5 for any release.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ghostpoi.attack.adversaries.base import Described
from ghostpoi.data.checkins import Bools, Floats, Ints, Longs
from ghostpoi.data.geo import haversine_km, speed_kmh
from ghostpoi.data.sessions import Sessions, Vocabulary, spans
from ghostpoi.models.devices import seeded
from ghostpoi.randomness import Seed

DETECTION_VERSION = 1  # raised whenever the same input gives other measures
MIN_GAP_S = 60.0  # keeps equal times from dividing by zero
FAR = 8.0  # standard deviations at which features are clipped
MEMBERS, HIDDEN, BATCH, UPDATES = 4, 64, 1024, 250  # size and training of an ensemble of classifiers
RATE, DECAY, DROPOUT = 3e-3, 0.1, 0.2


class Detector(Described):
    """A12 restores nothing; `detect` measures it."""

    number = 12
    title = "detector"
    holds = "the release and the leaked sessions"
    does = "distinguishes released sessions from clean ones"


DETECTOR = Detector()


def detect(
    clean: Sessions, released: Ints, leaked: Bools, vocabulary: Vocabulary, seed: Seed, device: torch.device
) -> dict[str, float]:
    """Train and test the detector on clean sessions, released POIs (N,) and the leaked sessions (S,).

    `auc` is over sessions, `auc_positions` over single check-ins and the step that leads to them. Both are .5 if there
    is nothing to learn from or nothing to ask about.
    """
    if released.shape != clean.poi.shape or leaked.shape != (len(clean),):
        raise ValueError("the release needs one POI per clean position, and leaked one value per session")
    lessons, asked = (np.flatnonzero(some & (clean.length > 0)) for some in (leaked, ~leaked))
    order, half = seed.generator("detection", "halves").permutation(len(asked)), len(asked) // 2
    if not len(lessons) or not half:
        return {"auc": 0.5, "auc_positions": 0.5, "asked": 0.0}
    forms = [features(poi, clean, released, leaked, vocabulary) for poi in (clean.poi, released)]  # each (N, F)
    shown = asked[order[:half]], asked[order[half:]]
    learn, ask = ([_of(clean, f, s) for f, s in zip(forms, which, strict=True)] for which in ((lessons,) * 2, shown))
    return {
        "auc": _judge([_pooled(*p) for p in learn], [_pooled(*p) for p in ask], seed, "sessions", device),
        "auc_positions": _judge([x for x, _ in learn], [x for x, _ in ask], seed, "positions", device),
        "asked": float(len(asked)),
    }


def auc(positive: Floats, negative: Floats) -> float:
    """Return the exact probability that a positive scores above a negative, ties counting half (Mann-Whitney)."""
    if not len(positive) or not len(negative):
        return 0.5
    ordered = np.sort(negative)
    below = np.searchsorted(ordered, positive, "left").sum()
    not_above = np.searchsorted(ordered, positive, "right").sum()
    return float(below + not_above) / (2 * len(positive) * len(negative))


def features(poi: Ints, clean: Sessions, released: Ints, leaked: Bools, vocabulary: Vocabulary) -> Floats:
    """Return the features of every position of the sessions with these POIs (N,), (N, F).

    Statistics come from the release and the clean form of the leaked sessions; other clean POIs are never read.
    """
    s, v, session, rows = clean, vocabulary, clean.session_of(), len(vocabulary)
    user = s.user.astype(np.int64)[session]
    inside = np.repeat(leaked, s.length)
    later = np.diff(session, prepend=-1) == 0  # not the first of its session
    before = np.where(later, np.roll(poi, 1), poi)
    gap = np.where(later, np.diff(s.time, prepend=0), 0)
    km = haversine_km(v.lat[before], v.lon[before], v.lat[poi], v.lon[poi])
    speed = np.where(later, speed_kmh(km, gap, MIN_GAP_S), 0.0)
    hour = s.time / 86_400 * 2 * np.pi

    def step(x: Ints) -> Longs:
        return np.where(later, np.roll(x, 1), 0).astype(np.int64) * rows + x

    def keys(x: Ints) -> dict[str, Longs]:  # equal numbers stand for the same venue, step and so on
        category = v.category[x].astype(np.int64)
        steps = {"step": step(x), "category step": step(np.where(x > 0, v.category[x] + 1, 0))}
        return {"venue": x.astype(np.int64), "category": category, "habit": user * rows + x, **steps}

    asked, sources = keys(poi), {False: keys(released), True: keys(s.poi)}

    def seen(name: str, leak: bool = False) -> Floats:
        """log(1 + occurrences of the same key in other sessions of the release, or of the leaked clean ones)."""
        where = inside if leak else slice(None)
        return np.log1p(elsewhere(sources[leak][name][where], session[where], asked[name], session))

    popular, known_popular = seen("venue"), seen("venue", leak=True)
    again = session * rows + poi
    repeated = np.ones(len(again), bool)
    repeated[np.unique(again, return_index=True)[1]] = False
    columns = [
        later, np.log1p(km), later & (before == poi), np.log1p(speed), np.log1p(gap), np.sin(hour), np.cos(hour),
        popular, popular - seen("category"), known_popular, popular - known_popular,
        seen("step"), seen("step", leak=True), seen("category step"), seen("habit"), seen("habit", leak=True),
        repeated,
    ]  # fmt: skip
    return np.stack([np.asarray(c, np.float64) for c in columns], axis=1)


def elsewhere(key: Longs, session: Longs, asked: Longs, asked_session: Longs) -> Longs:
    """Count how often each asked key occurs in sessions other than the asking one."""
    names, of = np.unique(np.concatenate([key, asked]), return_inverse=True)
    of_key, of_asked = of[: len(key)], of[len(key) :]
    everywhere = np.bincount(of_key, minlength=len(names))[of_asked]
    pair, count = np.unique(session * len(names) + of_key, return_counts=True)
    wanted = asked_session * len(names) + of_asked
    at = np.minimum(np.searchsorted(pair, wanted), max(0, len(pair) - 1))
    own = np.where(pair[at] == wanted, count[at], 0) if len(pair) else np.zeros(len(asked), np.int64)
    return everywhere - own


def _of(sessions: Sessions, features: Floats, which: Longs) -> tuple[Floats, Longs]:
    """The features of these sessions, (M, F), and where each session starts."""
    length = sessions.length[which]
    return features[spans(sessions.start[which], length)], np.cumsum(length) - length


def _pooled(features: Floats, start: Longs) -> Floats:
    """One row per session: mean, deviation, minimum and maximum of every feature, and the length, (S, 4F + 1)."""
    length = np.diff(start, append=len(features))[:, None]
    mean = np.add.reduceat(features, start) / length
    square = np.add.reduceat(features**2, start) / length
    spread = np.sqrt(np.maximum(square - mean**2, 0))
    ends = (f.reduceat(features, start) for f in (np.minimum, np.maximum))
    return np.concatenate([mean, spread, *ends, np.log(length)], axis=1)


def _judge(learn: list[Floats], ask: list[Floats], seed: Seed, stage: str, device: torch.device) -> float:
    """Train a classifier on (clean, released) rows and return its AUC on others."""
    x = np.concatenate(learn)
    y = np.repeat([0.0, 1.0], [len(part) for part in learn])
    centre, scale = x.mean(0), x.std(0)
    scale[scale < 1e-9] = 1.0  # constant features carry no information
    inputs, *asked = (
        torch.from_numpy(((part - centre) / scale).clip(-FAR, FAR).astype(np.float32)).to(device) for part in (x, *ask)
    )
    model = _train(inputs, torch.from_numpy(y.astype(np.float32)).to(device), seed, stage)
    with torch.no_grad():
        clean, released = (model(part).mean(0) for part in asked)
    return auc(released.cpu().numpy().astype(np.float64), clean.cpu().numpy().astype(np.float64))


def _train(x: Tensor, y: Tensor, seed: Seed, stage: str) -> "Classifiers":
    order = seed.generator("detection", stage, "order")
    with seeded(x.device, seed.torch_seed("detection", stage)):
        model = Classifiers(x.shape[1]).to(x.device).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY, fused=True)
        for _ in range(UPDATES):
            rows = torch.from_numpy(order.integers(len(x), size=min(len(x), BATCH))).to(x.device)
            found = model(x[rows])
            loss = F.binary_cross_entropy_with_logits(found, y[rows].expand_as(found)) * MEMBERS
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return model.eval()


class Classifiers(nn.Module):
    """An ensemble of small networks, each a logistic regression plus one hidden layer."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.straight, self.widen, self.narrow = (
            nn.Parameter(torch.randn(MEMBERS, a, b) / a**0.5)
            for a, b in ((features, 1), (features, HIDDEN), (HIDDEN, 1))
        )
        self.shift, self.lift = (nn.Parameter(torch.zeros(MEMBERS, 1, n)) for n in (1, HIDDEN))

    def forward(self, x: Tensor) -> Tensor:
        """Return each member's log-odds that a row belongs to a released session, (M, F) -> (members, M)."""
        x = F.dropout(x.expand(MEMBERS, -1, -1), DROPOUT, self.training)
        bent = F.dropout(F.gelu(x @ self.widen + self.lift), DROPOUT, self.training)
        found: Tensor = x @ self.straight + bent @ self.narrow + self.shift
        return found.squeeze(2)
