"""`ghostpoi.inspect`: what is in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Unpack

from ghostpoi.api.door import Door, step
from ghostpoi.api.given import PathLike, ReadingOptions, divided, optional, source_of

if TYPE_CHECKING:
    from ghostpoi.api.given import Source


@dataclass(frozen=True)
class Inspection:
    """What is in a table. `summary` is what `ghostpoi inspect --json` prints.

    >>> found = ghostpoi.inspect("checkins.csv")
    >>> found.columns["poi"], found.coverage > 0.9
    ('venue_id', True)
    >>> sorted(found.summary["sessions"])
    ['test', 'train', 'val']
    """

    summary: dict[str, Any] = field(repr=False)

    @property
    def columns(self) -> dict[str, str]:
        """The column of each field."""
        return {name: chosen["column"] for name, chosen in self.summary["columns"].items()}

    @property
    def coverage(self) -> float:
        """The share of rows that the method can substitute."""
        return float(self.summary["method"]["coverage"])

    def __repr__(self) -> str:
        s = self.summary
        return f"Inspection({s['checkins']:,} check-ins of {s['users']:,} users at {s['pois']:,} venues)"


@step
def inspect(
    door: Door, source: Source, method: str = "crowd", *, map: Mapping[str, str] | None = None,
    set: Mapping[str, Any] | Sequence[str] = (), config: PathLike | None = None, engine: str | None = None,
    workers: int = 0, scheduler: str = "", memory: str | None = None, **reading: Unpack[ReadingOptions],
) -> Inspection:  # fmt: skip
    """Describe a table: its contents, what each filter drops, and how many check-ins a method can substitute.

    With `engine`, work region by region; the summary then also describes the regions.

    >>> ghostpoi.inspect("checkins.csv")
    Inspection(5,636 check-ins of 149 users at 271 venues)
    >>> ghostpoi.inspect(polars.read_csv("checkins.csv"), map={"poi": "venue_id"}).columns["user"]
    'user'
    """
    from ghostpoi.draw.publication import publication
    from ghostpoi.regions.describe import inspect as describe
    from ghostpoi.release.private_folder import RowsRequest
    from ghostpoi.settings import changed

    at_scale, fields, texts = divided(map, set, engine, workers, scheduler, memory)
    request = RowsRequest(settings=changed(publication(method), texts, optional(config)), method=method, mapping=fields)
    with door.bar(1.0) as report:
        summary = describe(source_of(source, reading), request, at_scale, door.say, report)
    for chosen in summary["columns"].values():
        chosen["chosen_by"] = door.text(chosen["chosen_by"])
    return Inspection(summary)
