"""The summary of `inspect` of a table."""

from typing import Any

from ghostpoi.data.checkins import Checkins
from ghostpoi.regions.describe import count, summary
from ghostpoi.settings import Settings


def summarise(table: Checkins, settings: Settings) -> dict[str, Any]:
    """Return what `inspect` counts."""
    return summary(count(table, settings)[0], settings)
