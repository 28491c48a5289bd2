"""What a test found in a column, and the thresholds of all tests."""

from dataclasses import dataclass

import numpy as np

from ghostpoi.data.checkins import Bools

TELLS = 0.01  # smallest share of rows, beyond chance, that counts
ERRORS = 4.0  # standard errors that a share must exceed, so that chance alone almost never refuses a column


@dataclass(frozen=True)
class Finding:
    """A column reveals something about clean venues."""

    share: float  # from 0 to 1, beyond chance; 0: nothing was found, but no rule recognises the column as harmless
    reason: str  # a verb phrase: "contains the id of the clean venue"
    of: str = "of rows"  # what the share is a share of

    def __str__(self) -> str:
        return f"{self.reason} ({self.share:.1%} {self.of})" if self.share else self.reason


def beyond_chance(hit: Bools, chance: Bools) -> float:
    """Return the share of hits beyond the share by chance; 0 if it is below the thresholds."""
    if not len(hit):
        return 0.0
    one, two = float(hit.mean()), float(chance.mean())
    error = float(np.sqrt((one + two) / len(hit)))
    return one - two if one - two > max(TELLS, ERRORS * error) else 0.0


def strongest(findings: list[Finding]) -> Finding | None:
    """Return the finding with the largest share, the first among equals."""
    return max((f for f in findings if f.share > 0), key=lambda f: f.share, default=None)
