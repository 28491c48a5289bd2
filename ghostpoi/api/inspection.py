"""`ghostpoi.inspect`: what is in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Unpack

from ghostpoi.api.door import Door, step
from ghostpoi.api.reading import PathLike, ReadingOptions, assignments, optional, source_of
from ghostpoi.api.scale import scale_of, without_region, without_regions

if TYPE_CHECKING:
    from ghostpoi import formats
    from ghostpoi.api.reading import Source
    from ghostpoi.publish.private_folder import RowsRequest


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
    from ghostpoi.publish.private_folder import RowsRequest
    from ghostpoi.publish.publication_settings import publication
    from ghostpoi.settings import changed

    at_scale = scale_of(map or {}, assignments(set), engine, workers, scheduler, memory)
    settings = changed(publication(method), without_regions(set), optional(config))
    request = RowsRequest(
        settings=settings, method=method, protocol="strong", device=None, mapping=without_region(map or {})
    )
    file = source_of(source, reading)
    if at_scale is None:
        summary = _whole(file, request)
    else:
        from ghostpoi.world.inspect import inspect

        with door.bar(1.0) as report:
            summary = inspect(file, request, at_scale, door.say, report)
    for chosen in summary["columns"].values():
        chosen["chosen_by"] = door.text(chosen["chosen_by"])
    return Inspection(summary)


def _whole(file: formats.Source, request: RowsRequest) -> dict[str, Any]:
    """Summarise a table that is read at once."""
    from ghostpoi import formats
    from ghostpoi.data.inspect import summarise
    from ghostpoi.formats.chosen_columns import chosen_columns
    from ghostpoi.formats.kinds import misnamed
    from ghostpoi.publish.whole_table import describe_sets

    read = formats.read(file, request.mapping)
    return {
        "format": read.format,
        "misnamed": misnamed(file, read.kind),
        "columns": chosen_columns(read, request.mapping),
        "missing": {"rows": len(read.missing), "first": read.missing_at},
        **summarise(read.table, request.settings),
        "method": {"name": request.method, **describe_sets(read.table, request.settings)},
    }
