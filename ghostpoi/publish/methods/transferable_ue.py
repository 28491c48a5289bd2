"""transferable-ue: class-wise separable examples, which depend on no surrogate (after Ren et al., 2023).

The original makes examples of one class similar and those of different classes different. Here, the class of a position
is its next venue. Each next venue has its own order of all venues, and a position takes its first candidate in that
order. Two positions with the same next venue then get the same substitute with probability |common candidates| / |all
candidates| of both; with different next venues, they agree only by chance. The orders are public, so this is a baseline
and no defence.
"""

from dataclasses import dataclass

from ghostpoi.publish.methods.base import Method, Position, Tensor

MIX = (0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9, 0x14D049BB133111EB)  # odd constants, as in common hash functions
BITS = 33


@dataclass(frozen=True)
class TransferableUe(Method):
    """Take the candidate that comes first in the order of the next venue."""

    label = "Transferable UE"
    summary = "Take the candidate that comes first in an order of all venues that the next venue determines."

    def choose(self, position: Position, uniform: Tensor) -> Tensor:
        rank = _mixed(_mixed(position.target)[:, None] + position.candidates)  # (B, K)
        return rank.masked_fill(~position.feasible, 2**62).argmin(1)


def _mixed(number: Tensor) -> Tensor:
    """Scramble whole numbers into [0, 2^62), by products that wrap around and shifts."""
    for factor in MIX:
        number = (number * factor) & (2**62 - 1)
        number = number ^ (number >> BITS)
    return number
