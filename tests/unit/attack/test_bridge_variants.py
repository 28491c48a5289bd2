"""A27 draws further releases of the leaked sessions by the rule; A28 learns to restore what is natural."""

from dataclasses import replace

import numpy as np
import pytest
from anonymous_city import CPU, SEED, SMALL, choices, city, drawn

from ghostpoi.attack.adversaries import bridge_models
from ghostpoi.attack.adversaries.bridges import AugmentedBridge, Bridge, NaturalBridge
from ghostpoi.attack.evidence import Evidence, Rule
from ghostpoi.data.sessions import Sessions
from ghostpoi.draw.channel import uniform
from ghostpoi.models.trajectory_lm import log_likelihood, pretrain
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.settings import Training, TrajectoryLM

POIS, COPIES = 12, 3
LM = TrajectoryLM(SMALL, Training(epochs=30, learning_rate=5e-3))


@pytest.fixture(scope="module")
def clean() -> Sessions:
    return city(60, POIS)


@pytest.fixture(scope="module")
def lm(clean: Sessions) -> CausalTransformer:
    return pretrain(clean, POIS + 1, LM, SEED)


def known(clean: Sessions, leaked: int) -> Evidence:
    sets = choices(POIS)
    which = np.arange(len(clean)) < leaked
    return Evidence.of(drawn(clean, sets), clean.poi, which, POIS + 1, Rule(sets, uniform(sets), True))


def test_further_releases_follow_the_rule_and_differ(clean: Sessions, lm: CausalTransformer) -> None:
    evidence = known(clean, len(clean))
    made = list(bridge_models.natural_draws(lm, clean, evidence, COPIES, SEED))
    allowed = evidence.rule.candidates.poi
    for poi in made:
        has = (allowed[clean.poi] > 0).any(1)
        assert (allowed[clean.poi[has]] == poi[has][:, None]).any(1).all()
        assert (poi[~has] == clean.poi[~has]).all()  # one without substitutes stays
    assert len({poi.tobytes() for poi in made}) == COPIES
    again = list(bridge_models.natural_draws(lm, clean, evidence, COPIES, SEED))
    assert all((one == other).all() for one, other in zip(made, again, strict=True))


def test_further_releases_are_more_natural_than_even_draws(clean: Sessions, lm: CausalTransformer) -> None:
    evidence = known(clean, len(clean))
    made = bridge_models.natural_draws(lm, clean, evidence, COPIES, SEED)
    found = [log_likelihood(lm, replace(clean, poi=poi)).mean() for poi in made]
    even = log_likelihood(lm, evidence.released).mean()
    assert min(found) > even + 0.1


def test_the_naturalness_loss_makes_what_is_restored_likelier(clean: Sessions) -> None:
    evidence = known(clean, 20)
    training = Training(epochs=15, batch_sessions=16, learning_rate=5e-3)
    judge = pretrain(clean, POIS + 1, LM, SEED)

    def natural(weight: float) -> float:
        found = bridge_models.answers(evidence, NaturalBridge(SMALL, training, lm=LM, natural=weight), SEED, CPU)[-1]
        return float(log_likelihood(judge, replace(clean, poi=found)).mean())

    assert natural(2.0) > natural(0.0)


def test_without_naturalness_and_without_copies_a_variant_is_a2(clean: Sessions) -> None:
    evidence, training = known(clean, 20), Training(epochs=5, batch_sessions=16, learning_rate=5e-3)
    two = bridge_models.answers(evidence, Bridge(SMALL, training), SEED, CPU)[-1]
    for variant in (
        AugmentedBridge(SMALL, training, lm=LM, copies=0),
        NaturalBridge(SMALL, training, lm=LM, natural=0),
    ):
        assert (bridge_models.answers(evidence, variant, SEED, CPU)[-1] == two).all()
