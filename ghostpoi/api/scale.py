"""Which options ask for the engine of datasets that are larger than memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ghostpoi.api.reading import assignments

if TYPE_CHECKING:
    from ghostpoi.world.scale import Scale

SECTION, FIELD = "regions.", "region"  # of settings, of --map


def scale_of(
    map: Mapping[str, str], set: Sequence[str], engine: str | None, workers: int, scheduler: str, memory: str | None
) -> Scale | None:
    """Return how to divide a dataset, if an option asks for that."""
    own = [text for text in set if text.startswith(SECTION)]
    if not (own or FIELD in map or engine or workers or scheduler or memory):
        return None
    from ghostpoi.formats.source import bytes_of
    from ghostpoi.settings import Divided, override
    from ghostpoi.world.scale import Scale

    return Scale(
        settings=override(Divided(), own).regions, region_column=map.get(FIELD, ""), engine=engine or "local",
        workers=workers, scheduler=scheduler, memory=None if memory is None else bytes_of(memory, "memory"),
    )  # fmt: skip


def without_region(map: Mapping[str, str]) -> dict[str, str]:
    """Return the fields that a table can have."""
    return {field: column for field, column in map.items() if field != FIELD}


def without_regions(set: Mapping[str, Any] | Sequence[str]) -> list[str]:
    """Return the settings of a release."""
    return [text for text in assignments(set) if not text.startswith(SECTION)]
