"""The settings of A10, in a module of their own so that adversaries import without torch."""

from dataclasses import dataclass

from ghostpoi.settings import ModelSettings, Training


@dataclass(frozen=True)
class BridgeSettings:
    """How the paired bridge is trained and sampled."""

    model: ModelSettings = ModelSettings(dropout=0.1)
    training: Training = Training(epochs=50, batch_sessions=64)  # more would memorise a leak of a few hundred sessions
    max_updates: int = 500  # a leak too large for that is read in larger batches
    steps: int = 32  # N, the length of the chain
    jump: float = 0.03  # b, the probability of a jump per step
    cross_entropy: float = 0.5  # lambda, the weight of the cross-entropy beside the divergence of posteriors
    average: float = 0.99  # of the weights, per update
    samples: int = 8  # ways back that vote
    restricted: bool = True  # to A(released), where the evidence has a rule
