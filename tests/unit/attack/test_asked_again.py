"""What need not be computed again: restorations without seed or leak, and states that two adversaries ask for."""

from dataclasses import replace

import pytest
import torch
from anonymous_city import choices, city, drawn

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.adversaries.base import Predictor, predicted, purify
from ghostpoi.attack.adversaries.hidden_markov import HiddenMarkov, StepLengths, _answers
from ghostpoi.attack.evidence import Evidence, Rule, leak
from ghostpoi.data.checkins import Ints
from ghostpoi.data.sessions import Sessions
from ghostpoi.draw.channel import uniform
from ghostpoi.randomness import Seed

SEEDLESS = [name for name, one in ADVERSARIES.items() if not (one.needs_seed or one.uses_leak)]


def evidence(clean: Sessions, seed: int) -> Evidence:
    sets = choices(12)
    return Evidence.of(drawn(clean, sets), clean.poi, leak(clean, 0.3, Seed(seed)), 13, Rule(sets, uniform(sets), True))


def test_these_adversaries_need_no_seed() -> None:
    predict = ["posterior-no-leak", "posterior-informed-no-leak"]
    assert ["none", "deconvolution", "habits", "step-lengths", "session-habits", *predict] == SEEDLESS


@pytest.mark.parametrize("name", SEEDLESS)
def test_without_a_seed_every_leak_and_every_seed_restores_the_same(name: str) -> None:
    clean, one = city(40, 12), ADVERSARIES[name]

    def restored(seed: int) -> Ints:
        known, more = evidence(clean, seed), (Seed(seed), torch.device("cpu"))
        if not isinstance(one, Predictor):
            return purify(one, known, *more)[0]
        found = predicted(one, known, clean, *more).restored
        assert found is not None
        return found

    assert (restored(1) == restored(2)).all()


def test_the_same_question_is_answered_once_and_another_one_anew() -> None:
    known = evidence(city(40, 12), 1)
    _answers.clear()
    first = HiddenMarkov().infer(known)
    again = HiddenMarkov().infer(evidence(city(40, 12), 1))
    assert again[1] is first[1]
    for model, asked in (
        (StepLengths(), known),
        (HiddenMarkov(rounds=2), known),
        (HiddenMarkov(), known.without_leak()),
        (HiddenMarkov(), replace(known, released=replace(known.released, time=known.released.time + 1))),
    ):
        assert model.infer(asked)[1] is not first[1]
    found = HiddenMarkov().inferred(known)
    assert (found[1] == first[1]).all()
