"""`ghostpoi.inspect`: what is in a file; `ghostpoi.verify`: whether a release is what its manifest says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Unpack

from ghostpoi.api.door import Door, step
from ghostpoi.api.given import PathLike, ReadingOptions, divided, mapped, optional, source_of
from ghostpoi.api.release import ReleaseLike, folder_of, private_of

if TYPE_CHECKING:
    from ghostpoi.api.given import Source
    from ghostpoi.release.verify import Check


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

    at_scale, fields, texts = divided(mapped(map, config), set, engine, workers, scheduler, memory)
    request = RowsRequest(settings=changed(publication(method), texts, optional(config)), method=method, mapping=fields)
    with door.bar(1.0) as report:
        summary = describe(source_of(source, reading), request, at_scale, door.say, report)
    for chosen in summary["columns"].values():
        chosen["chosen_by"] = door.text(chosen["chosen_by"])
    return Inspection(summary)


@dataclass(frozen=True)
class Verification:
    """The checks of a release, each with `name`, `passed` and `detail`. It is true if all of them pass.

    >>> found = ghostpoi.verify("release")
    >>> bool(found), found.failed, found.checks[1].name
    (True, [], 'data file')
    """

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return not self.failed

    @property
    def failed(self) -> list[Check]:
        """The checks that failed."""
        return [check for check in self.checks if not check.passed]

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        wrong = f"; failed: {', '.join(check.name for check in self.failed)}" if self.failed else ""
        return f"Verification({len(self.checks) - len(self.failed)} of {len(self.checks)} checks passed{wrong})"


@step
def verify(
    door: Door, release: ReleaseLike, *, against: Source | None = None, private: PathLike | None = None,
    signed_by: str | None = None, map: Mapping[str, str] | None = None, config: PathLike | None = None,
    engine: str | None = None, workers: int = 0, scheduler: str = "", memory: str | None = None,
    **reading: Unpack[ReadingOptions],
) -> Verification:  # fmt: skip
    """Check a release folder against its manifest and, with `against`, against the clean table.

    `signed_by` is the fingerprint of the key that must have signed the manifest.

    >>> ghostpoi.verify("release", against="checkins.csv").passed
    True
    """
    from ghostpoi.regions.compare import verify as check

    folder = folder_of(release)
    own = private if against is None else private_of(release, private)
    at_scale, _, _ = divided(None, (), engine, workers, scheduler, memory)
    stated = source_of(folder if against is None else against, reading)
    clean = None if against is None else stated
    given = (mapped(map, config), signed_by, optional(own), stated.limit, at_scale)
    with door.bar(1.0) as report:
        found = check(folder, clean, *given, door.say, report)
    return Verification(tuple(replace(one, detail=door.text(one.detail)) for one in found))
