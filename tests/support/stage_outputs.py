"""A tiny input for every stage of a study, and what the stage makes of it.

    python tests/support/stage_outputs.py

records the outputs of stages whose version, or the version of a stage before, is new; and on other hardware or with
another torch the outputs of all stages that use models.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.adversaries.base import Adversary, predicted, purify
from ghostpoi.attack.counting import Sparse
from ghostpoi.attack.evidence import EVIDENCE_VERSION, Evidence, KeptColumn, Outside, Rule, leak
from ghostpoi.attack.victims import VICTIMS, base
from ghostpoi.attack.victims.base import Exam, Job, Victim
from ghostpoi.attack.victims.judge import DISTANCE_VERSION, RADII_KM, discs_of, guesses
from ghostpoi.attack.victims.judge import floors as near_floors
from ghostpoi.attack.victims.neural import Transformer
from ghostpoi.audits.cache import Cache
from ghostpoi.audits.controls import LEAK_MIXED
from ghostpoi.audits.grid import RESTORATION_VERSION, Contest, Grid, Release
from ghostpoi.audits.measures import accuracy as accuracies
from ghostpoi.audits.measures.accuracy import ACCURACY_VERSION
from ghostpoi.audits.measures.detection import DETECTION_VERSION, detect
from ghostpoi.audits.measures.utility import PLAUSIBILITY_VERSION, UTILITY_VERSION, plausibility, utility
from ghostpoi.data.candidates import CANDIDATES_VERSION, Candidates, candidate_sets
from ghostpoi.data.checkins import Ints
from ghostpoi.data.places import Places, of_sessions, with_use
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.draw.channel import uniform
from ghostpoi.draw.crowds import by_hours
from ghostpoi.draw.methods import METHODS, AnyMethod, Method
from ghostpoi.draw.publication import Publication, Task
from ghostpoi.draw.table import DRAW_VERSION, publish
from ghostpoi.models import trajectory_lm
from ghostpoi.models.trajectory_lm import TRAJECTORY_LM_VERSION
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.randomness import Seed
from ghostpoi.settings import CandidateSettings, ModelSettings, Rounds, SpeedSettings, Training, TrajectoryLM

CPU, SEED = torch.device("cpu"), Seed(11)
VENUES, CATEGORIES, USERS, DAY = 48, 4, 16, 86_400
MODEL = ModelSettings(dim=16, heads=2, feed_forward=16, max_positions=12)
TRAINING = Training(batch_sessions=16, learning_rate=0.01, epochs=2)
LM = TrajectoryLM(MODEL, TRAINING)
SHAPE = "dim heads layers feed_forward max_positions dropout tied start"
RECIPE = "learning_rate weight_decay batch_sessions epochs patience clip precision"


@dataclass(frozen=True)
class Stage:
    """A stage, its version and the versions of the stages before it, and how its output is made."""

    version: int
    output: Callable[[], Any]
    before: dict[str, int]
    models: bool = True  # it uses torch, whose kernels differ between versions and machines


@cache
def vocabulary() -> Vocabulary:
    """Venues a few hundred metres apart, and some farther away than the speed mask allows."""
    draw = np.random.default_rng(0)
    lat, lon = 40 + draw.integers(0, 40, VENUES) / 1000, -74 + draw.integers(0, 40, VENUES) / 1000
    lat[::6] += 0.5
    category = (np.arange(VENUES) % CATEGORIES).astype(np.int32)
    return Vocabulary(
        np.append(np.nan, lat), np.append(np.nan, lon), np.append(np.int32(-1), category),
        np.arange(VENUES + 1, dtype=np.int32),
    )  # fmt: skip


@cache
def sessions(number: int = 0, per_user: int = 6) -> Sessions:
    """Users who mostly go round a few venues of their own, at hours that follow the category of the first."""
    draw = np.random.default_rng(number + 1)
    user = np.repeat(np.arange(USERS, dtype=np.int32), per_user)
    length = draw.integers(2, 9, len(user))
    who, begin = np.repeat(user, length), np.repeat(np.arange(len(user)) % per_user * 2, length)
    place = np.arange(len(who)) - np.repeat(np.cumsum(length) - length, length)
    own = np.random.default_rng(0).integers(1, VENUES + 1, (USERS, 5))
    poi = np.where(draw.random(len(who)) < 0.8, own[who, place % 5], draw.integers(1, VENUES + 1, len(who)))
    start = np.append(0, np.cumsum(length))
    time = (4 + begin) * DAY + place * 2400 + 4 * 3600 * np.repeat(poi[start[:-1]] % CATEGORIES, length)
    return Sessions(user, start, poi.astype(np.int32), time, np.arange(len(who)))


@cache
def places() -> Places:
    return with_use(of_sessions(sessions(), vocabulary()), sessions())


@cache
def sets() -> Candidates:
    """The next and the previous three venues of the same category: made by hand, so that no stage decides them."""
    venue = np.arange(1, VENUES + 1)[:, None]
    near = (venue - 1 + CATEGORIES * np.array([1, 2, 3, -1, -2, -3])) % VENUES + 1
    return Candidates(np.vstack([0 * near[:1], near]).astype(np.int32), np.ones(VENUES + 1))


def released(number: int = 0) -> Ints:
    """A release by hand: one of the candidates of each visit."""
    poi = sessions().poi
    return sets().poi[poi, np.random.default_rng(100 + number).integers(0, 6, len(poi))]


def task(method: AnyMethod, own_sets: Candidates) -> Task:
    settings = Publication(
        method=method, speed=SpeedSettings(limit_kmh=5.0), rounds=Rounds(outer=2, inner=1), surrogate=MODEL,
        training=TRAINING, lm=MODEL, lm_training=TRAINING,
    )  # fmt: skip
    lm = CausalTransformer(VENUES + 1, MODEL, 1).requires_grad_(False) if method.needs_trajectory_lm else None
    return Task(settings, sessions(), vocabulary(), own_sets, lm)


def evidence(adversary: Adversary) -> Evidence:
    """What an adversary may know: the rule, a leak, and further releases, columns or pseudonyms if it uses them."""
    clean = sessions()
    further = (released(1), released(2)) if adversary.many_releases else ()
    named = np.where(np.arange(clean.positions) % 3 == 0, clean.poi, 0).astype(np.int32)
    kept = KeptColumn("note", clean.poi % 7, named, clean.poi / 2)
    return Evidence.of(
        replace(clean, poi=released()), clean.poi, leak(clean, 0.25, SEED), VENUES + 1,
        Rule(sets(), uniform(sets()), True, vocabulary().lat, vocabulary().lon), further,
        (kept,) if adversary.needs_columns else (),
        np.arange(len(clean)) + USERS if adversary.needs_pseudonyms else None,
        Outside.true(clean, vocabulary()) if adversary.needs_outside else None,
    )  # fmt: skip


def in_studies(model: ModelSettings, training: Training) -> list[Any]:
    """The settings of a study, which the tiny input replaces; by name, so that a new field changes nothing."""
    shape = [getattr(model, key) for key in SHAPE.split()]
    return [*shape, *(getattr(training, key) for key in RECIPE.split())]


def candidates() -> Any:
    rules = [CandidateSettings(category=kind, min_candidates=3) for kind in ("exact", "any", "learned")]
    found = [candidate_sets(places(), rule) for rule in rules]
    return [(one.poi, one.radius_km) for one in found], by_hours(places())


class Probe(Method):
    """A method of the tests, so that a change of another method is no change of the draw."""

    needs_surrogate = True

    def choose(self, position: Any, uniform: Any) -> Any:
        return position.adv().argmax(1)


def draws() -> Any:
    by_weight, by_model = (publish(task(method, sets()), SEED, CPU) for method in (Method(), Probe()))
    return [(one.poi, one.mask_emptied) for one in (by_weight, by_model)]


def method(name: str) -> Any:
    made: Any = METHODS[name]
    made = replace(made, size=4) if name == "crowd" else made  # so that venues are divided
    rule = made.channel(own := made.candidate_sets(places(), CandidateSettings()), vocabulary().lat, vocabulary().lon)
    return publish(task(made, own), SEED, CPU).poi, rule


def lm() -> Any:
    model = trajectory_lm.pretrain(sessions(), VENUES + 1, LM, SEED)
    return trajectory_lm.log_likelihood(model, sessions(1)), trajectory_lm.naturalness(model, sessions(1))


def held() -> Any:
    hidden = evidence(ADVERSARIES["relink"])
    return [leak(sessions(), ratio, SEED) for ratio in (0.1, 0.5)], hidden.released.user, hidden.clean, hidden.pseudonym


def adversary(name: str) -> Any:
    found: Any = ADVERSARIES[name]
    known = evidence(found)
    if found.predicts:
        small = replace(found, model=MODEL, training=TRAINING) if found.trains else found
        made = predicted(small, known, sessions(1), SEED, CPU)
        scores = [part.dense() if isinstance(part, Sparse) else part for part in made.scorer.probabilities(sessions(2))]
        return made.restored, [np.asarray(part) for part in scores]
    if not found.trains:
        return purify(found, known, SEED, CPU), found.users(known)
    tiny = replace(found, model=MODEL, training=TRAINING)
    return purify(tiny, known, SEED, CPU), in_studies(found.model, found.training)


def restoration() -> Any:
    release = Release(released, Rule(sets(), uniform(sets()), True))
    with TemporaryDirectory() as folder:
        grid = Grid(
            train=sessions(), val=sessions(1), test=sessions(2), vocabulary=vocabulary(), releases=lambda name: release,
            seeds=1, protocol="strong", model=MODEL, training=TRAINING, device=CPU, cache=Cache(Path(folder)),
        )  # fmt: skip
        found = [grid.restoration(Contest("a", name, 0.25, "none"), 0) for name in ("none", LEAK_MIXED)]
    return [(one.poi, {k: v for k, v in one.measures.items() if k != "adversary_seconds"}) for one in found]


def victim(name: str) -> Any:
    """Victims alone and in a stack, after a short training; and the settings that they have in studies."""
    exam = Exam(sessions(1, 2), sessions(2, 2), VENUES + 1, CPU, vocabulary=vocabulary())
    jobs = [
        Job(f"{number}", replace(sessions(), poi=poi), SEED) for number, poi in enumerate((sessions().poi, released()))
    ]
    settings = [in_studies(*VICTIMS[name].settings(protocol)) for protocol in ("strong", "paper")]
    small: Victim = Transformer(MODEL, TRAINING) if name == "transformer" else VICTIMS[name]
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "victim_settings", lambda protocol: (MODEL, TRAINING))
        for some in (jobs[:1], jobs[1:], jobs):
            found += [(one.ranks, one.validation, one.epochs) for one in small.train(some, exam, "strong")]
    return settings, found


def accuracy() -> Any:
    train, test = sessions(), sessions(2)
    ranks = np.random.default_rng(3).integers(1, 20, int((test.length - 1).sum())).astype(float)
    floors = [floor(train, test, VENUES + 1) for floor in (accuracies.popularity, accuracies.stay, accuracies.markov)]
    return accuracies.accuracy(ranks, test), floors


def distance() -> Any:
    v, scores = vocabulary(), np.random.default_rng(4).random((20, VENUES + 1), np.float32)
    near = [guesses(scores, discs_of(v), radius, CPU) for radius in RADII_KM]
    return near, near_floors(v, sessions(), sessions(2))


def of_release(measure: Callable[..., Any], *more: Any) -> Any:
    return measure(sessions(), released(), *more)


def stages() -> dict[str, Stage]:
    """All stages by the name under which cells hold them."""
    drawn = {"candidates": CANDIDATES_VERSION, "draw": DRAW_VERSION}
    attack = {"evidence": EVIDENCE_VERSION}
    clean, v = sessions(), vocabulary()
    found = {
        "candidates": Stage(CANDIDATES_VERSION, candidates, {}, models=False),
        "trajectory-lm": Stage(TRAJECTORY_LM_VERSION, lm, {}),
        "draw": Stage(DRAW_VERSION, draws, {}),
        "evidence": Stage(EVIDENCE_VERSION, held, {}, models=False),
        "restoration": Stage(RESTORATION_VERSION, restoration, attack, models=False),
        "accuracy": Stage(ACCURACY_VERSION, accuracy, {}, models=False),
        "distance": Stage(DISTANCE_VERSION, distance, {}, models=False),
        "plausibility": Stage(PLAUSIBILITY_VERSION, partial(of_release, plausibility, v, SpeedSettings()), {}, False),
        "utility": Stage(UTILITY_VERSION, partial(of_release, utility, v), {}, models=False),
        "detection": Stage(
            DETECTION_VERSION, partial(of_release, detect, leak(clean, 0.25, SEED), v, SEED, CPU), attack
        ),
    }
    for name in METHODS.builtin:
        made = METHODS[name]
        lm_before = {"trajectory-lm": TRAJECTORY_LM_VERSION} if made.needs_trajectory_lm else {}
        found[f"method/{name}"] = Stage(made.version, partial(method, name), drawn | lm_before, made.needs_torch)
    for name in ADVERSARIES.builtin:
        one = ADVERSARIES[name]
        found[f"adversary/{name}"] = Stage(one.version, partial(adversary, name), attack, one.trains)
    for name in VICTIMS.builtin:
        found[f"victim/{name}"] = Stage(VICTIMS[name].version, partial(victim, name), {})
    return found


def plain(value: Any, floats: list[float] | None = None) -> Iterator[str]:
    """The text of an output, with floats to six digits; or, if `floats` is given, with the floats moved there."""
    if isinstance(value, np.ndarray):
        yield f"{value.dtype.kind}{value.shape}"
        yield from (_number(number, floats) for number in value.ravel().tolist())
    elif isinstance(value, dict):
        yield from (text for key in value for text in (key, *plain(value[key], floats)))
    elif isinstance(value, list | tuple):
        yield from (text for part in value for text in ("(", *plain(part, floats), ")"))
    elif is_dataclass(value):
        yield from plain([getattr(value, field.name) for field in fields(value)], floats)
    else:
        yield _number(value, floats) if isinstance(value, float) else repr(value)


def _number(value: float, floats: list[float] | None) -> str:
    if floats is None or not isinstance(value, float):
        return f"{value:.6g}"
    floats.append(value)
    return "~"


RECORDED = Path(__file__).parent.parent / "recorded_stages.json"
COMMAND = "python tests/support/stage_outputs.py"


def here() -> dict[str, str]:
    """What decides how models round."""
    return {"torch": torch.__version__, "cpu": torch.backends.cpu.get_cpu_capability()}


DIGITS = 1e-3  # how far, relatively, the floats of a model's output may differ between machines with one kind of CPU


def outcome(stage: Stage) -> dict[str, Any]:
    """What is recorded of an output: a hash, and of the floats that a model makes their mean and size by halves."""
    floats: list[float] | None = [] if stage.models else None
    found: dict[str, Any] = {"sha256": hashlib.sha256("\n".join(plain(stage.output(), floats)).encode()).hexdigest()}
    if floats:
        halves = np.array_split(np.array(floats), 2)
        found["floats"] = [float(f"{x:.6g}") for half in halves for x in (half.mean(), np.sqrt((half**2).mean()))]
    return found


def agrees(found: dict[str, Any], known: dict[str, Any]) -> bool:
    """Whether an output is the recorded one, as far as machines agree."""
    floats = found.get("floats", []), known.get("floats", [])
    return found["sha256"] == known["sha256"] and len(floats[0]) == len(floats[1]) and np.allclose(*floats, rtol=DIGITS)


def problem(name: str, stage: Stage, recorded: dict[str, Any]) -> str | None:
    """What is wrong with a stage: its output changed but no version, or a version and nothing was recorded."""
    known = recorded["stages"].get(name, {})
    if (known.get("version"), known.get("before")) != (stage.version, stage.before):
        return f"no output of version {stage.version} of {name} is recorded; run {COMMAND}"
    if agrees(outcome(stage), known):
        return None
    before = f", or of {' or '.join(stage.before)} if the change lies there," if stage.before else ""
    return f"the output of {name} changed: raise its version{before} and run {COMMAND}"


def record() -> None:
    torch.set_num_threads(1)
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {"stages": {}}
    elsewhere = any(recorded.get(key) != value for key, value in here().items())
    found = {}
    for name, stage in stages().items():
        known = recorded["stages"].get(name, {})
        same = (known.get("version"), known.get("before")) == (stage.version, stage.before)
        keep = same and not (stage.models and elsewhere)
        made = {"version": stage.version, "before": stage.before}
        found[name] = known if keep else made | outcome(stage)
    RECORDED.write_text(json.dumps(here() | {"stages": found}, indent=1) + "\n")


if __name__ == "__main__":
    record()
