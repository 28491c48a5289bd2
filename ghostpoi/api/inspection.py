"""`ghostpoi.inspect`: what is in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Unpack

from ghostpoi.api.reading import PathLike, ReadingOptions, assignments, opened, optional
from ghostpoi.api.wording import caller, step

if TYPE_CHECKING:
    from ghostpoi.api.reading import Source


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
    source: Source, method: str = "crowd", *, map: Mapping[str, str] | None = None,
    set: Mapping[str, Any] | Sequence[str] = (), config: PathLike | None = None, **reading: Unpack[ReadingOptions],
) -> Inspection:  # fmt: skip
    """Describe a table: its contents, what each filter drops, and how many check-ins a method can substitute.

    >>> ghostpoi.inspect("checkins.csv")
    Inspection(5,636 check-ins of 149 users at 271 venues)
    >>> ghostpoi.inspect(polars.read_csv("checkins.csv"), map={"poi": "venue_id"}).columns["user"]
    'user'
    """
    from ghostpoi.data import formats
    from ghostpoi.data.formats.chosen_columns import chosen_columns
    from ghostpoi.data.inspect import summarise
    from ghostpoi.publish.publication_settings import publication
    from ghostpoi.publish.whole_table import describe_sets
    from ghostpoi.settings import changed

    settings, mapping = changed(publication(method), assignments(set), optional(config)), dict(map or {})
    with opened(source, reading) as file:
        read = formats.read(file, mapping)
        columns = chosen_columns(read, mapping)
        for chosen in columns.values():
            chosen["chosen_by"] = caller().text(chosen["chosen_by"])
        summary = {
            "format": read.format,
            "columns": columns,
            "missing": {"rows": len(read.missing), "first": read.missing_at},
            **summarise(read.table, settings),
            "method": {"name": method, **describe_sets(read.table, settings)},
        }
    return Inspection(summary)
