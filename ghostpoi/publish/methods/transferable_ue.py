"""transferable-ue: class-wise separable examples, which depend on no surrogate (after Ren et al., 2023).

The original makes examples of one class alike and those of different classes different. Here the class of a position is
its next POI. Each next POI has an order of all POIs of its own, and a position takes its first candidate in that order.
Two positions with the same next POI then get the same substitute with a probability of |common candidates| / |all
candidates| of both; with different next POIs they agree by chance alone. The orders are public: a baseline, no defence.
"""

from dataclasses import dataclass

from ghostpoi.publish.methods.base import Method, Position, Tensor

MIX = (0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9, 0x14D049BB133111EB)  # odd constants, as in common hash functions
BITS = 33


@dataclass(frozen=True)
class TransferableUe(Method):
    """Take the candidate that comes first in the order that belongs to the next POI."""

    label = "Transferable UE"
    summary = "Take the candidate that is first in a fixed order that belongs to the next venue."

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        rank = _mixed(_mixed(position.target)[:, None] + position.candidates)  # (B, K)
        return rank.masked_fill(~position.feasible, 2**62).argmin(1)


def _mixed(number: Tensor) -> Tensor:
    """Scramble whole numbers into [0, 2^62), by products that wrap around and shifts."""
    for factor in MIX:
        number = (number * factor) & (2**62 - 1)
        number = number ^ (number >> BITS)
    return number
