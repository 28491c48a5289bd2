"""random: the control that every method must beat."""

from dataclasses import dataclass

from ghostpoi.publish.methods.base import Method


@dataclass(frozen=True)
class Random(Method):
    """Draw uniformly from the candidate set, without a model."""

    label = "random (control)"
    summary = "Draw uniformly from the candidate set: the control."
    exact_channel = True
