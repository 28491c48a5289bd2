"""What the steps of the Python API return."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from ghostpoi.errors import InputError
from ghostpoi.stores import at_hand

if TYPE_CHECKING:
    import os

    import polars
    from typing_extensions import TypeVar

    from ghostpoi.formats import Rows
    from ghostpoi.release.verify import Check

    Frame = TypeVar("Frame", default=polars.DataFrame)
else:
    from typing import TypeVar

    Frame = TypeVar("Frame")


@dataclass(frozen=True, eq=False)
class Release(Generic[Frame]):
    """A release: its `manifest`, and where it was written, `folder` and `private`.

    `pairs` holds the clean and the released venue of every row, if asked for. Like the private folder, never publish
    them.

    >>> release = ghostpoi.protect("checkins.csv", pairs=True)
    >>> release.table.columns[:2], release.manifest["method"], release.folder
    (['user', 'venue_id'], 'crowd', None)
    >>> release.counts["withheld"], release.displacement["mean_km"] < 1
    (0, True)
    >>> release.pairs.columns
    ['row', 'clean', 'released', 'km']
    """

    manifest: dict[str, Any] = field(repr=False)
    _rows: Rows | None = field(repr=False)  # None: they are read from the folder on demand
    folder: Path | None = None
    private: Path | None = None
    pairs: polars.DataFrame | None = field(default=None, repr=False)

    @cached_property
    def table(self) -> Frame:
        """The released rows: as a frame of the caller's kind, or as a polars frame if the source was a file."""
        from ghostpoi.release.manifest import read_data

        with at_hand({"release": self.folder}, "verify") as here:
            rows = self._rows or read_data(folder_of(here["release"]), self.manifest).all_rows
        return rows.to_frame(self.manifest["columns"]["fields"])

    @property
    def counts(self) -> dict[str, Any]:
        """How many rows were substituted, kept and withheld: the section `rows` of the manifest."""
        return self.manifest["rows"]

    @property
    def displacement(self) -> dict[str, Any]:
        """How far substitutes are from the clean venues: the section `plausibility` of the manifest.

        It is empty if few rows of a release in a series are new.
        """
        return self.manifest["plausibility"] or {}

    def __repr__(self) -> str:
        far, method = self.displacement, self.manifest["method"]
        where = f" in {self.folder}" if self.folder else ""
        if far:
            method = f"{far['substitution_rate']:.1%} substituted with {method}, {far['mean_km']:.2f} km on average"
        return f"Release({self.manifest['data']['rows']:,} rows{where}, {method})"


def folder_of(release: Any) -> Path:
    """Return the folder of a release."""
    if not isinstance(release, Release):
        return Path(release)
    if release.folder is None:
        raise InputError("this release is in memory only; write it to a folder: protect(..., output=FOLDER)")
    return release.folder


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


@dataclass(frozen=True)
class Audit:
    """What adversaries still learn from a release. `found` is what `ghostpoi audit --json` prints.

    >>> found = ghostpoi.audit("checkins.csv", "release", victim="markov", seeds=1, naturalness=False)
    >>> found.gives_away["no_leak"]["low"] <= found.gives_away["no_leak"]["mean"]
    True
    >>> found.accuracy["clean"]["mean"] > found.accuracy["none"]["mean"]
    True
    """

    found: dict[str, Any] = field(repr=False)

    @property
    def strongest(self) -> str:
        """The adversary, or the control without the release, that predicts best."""
        return str(self.found["strongest"])

    @property
    def verdict(self) -> str:
        """What the release gives away, in the words of `ghostpoi audit`; the worse of both below."""
        return str(self.found["verdict"])

    @property
    def gives_away(self) -> dict[str, dict[str, Any]]:
        """By how much the strongest adversary exceeds what it has without the release: `no_leak` and `with_leak`."""
        return dict(self.found["gives_away"])

    @property
    def accuracy(self) -> dict[str, dict[str, Any]]:
        """Mean, deviation and seeds of acc@1: of victims of clean data, behind each adversary, and of the controls."""
        groups = {"clean": self.found["clean"]} | self.found["adversaries"] | self.found["controls"]
        return {name: measures["acc@1"] for name, measures in groups.items()}

    def __bool__(self) -> bool:
        """Whether the release is not beyond the limits of the settings file; true if there are none."""
        return not self.found["limits"] or self.found["limits"]["decision"] != "beyond your limits"

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it as JSON, for `ghostpoi.report(..., audit=[path])` about another tool's file."""
        Path(path).write_text(json.dumps(self.found), "utf-8")

    def __repr__(self) -> str:
        from ghostpoi.reports.audit_view import AuditView

        return f"Audit({AuditView.of(self.found).headline})"


@dataclass(frozen=True)
class Choice:
    """The settings that were tried. `found` is what `ghostpoi choose --json` prints, `page` where the page is, if any.

    >>> choice = ghostpoi.choose("checkins.csv", seeds=1, cache="cache")
    >>> ghostpoi.protect("checkins.csv", set=choice.settings)
    Release(5,636 rows, ...)
    """

    found: dict[str, Any] = field(repr=False)
    page: Path | None = None

    @property
    def recommended(self) -> dict[str, Any] | None:
        """The recommended settings, one of `tried`; None if no setting keeps all that was asked for."""
        return self.found["recommended"]

    @property
    def settings(self) -> dict[str, str]:
        """What `protect(set=...)` takes: the recommended settings or, if there are none, the nearest ones."""
        best = self.recommended or self.found["nearest"]
        return dict(text.split("=", 1) for text in best["settings"])

    @property
    def tried(self) -> list[dict[str, Any]]:
        """All settings that were tried, with what each protects and keeps."""
        return self.found["tried"]

    def __bool__(self) -> bool:
        return self.recommended is not None

    def __repr__(self) -> str:
        best = self.recommended
        of = f"of {len(self.tried)} settings"
        return f"Choice({best['name']}, {of})" if best else f"Choice(none {of} keeps all that was asked for)"


@dataclass(frozen=True)
class Person:
    """What a release says about one person. `found` is what `ghostpoi person --json` prints.

    >>> found = ghostpoi.person("release", user="17")
    >>> found.rows == len(found.found["checkins"])
    True
    """

    found: dict[str, Any] = field(repr=False)

    @property
    def rows(self) -> int:
        """The number of rows of this person."""
        return int(self.found["rows"])

    def __repr__(self) -> str:
        return f"Person({self.rows:,} rows, {self.found['first']} to {self.found['last']})"


@dataclass(frozen=True)
class Report:
    """The pages about a release. `pages` are their paths.

    >>> ghostpoi.report("release").page.name
    'report.html'
    """

    pages: tuple[Path, ...]

    @property
    def page(self) -> Path:
        """The page to open in a browser."""
        return self.pages[0]


@dataclass(frozen=True)
class Export:
    """A release in the form of another tool, in `folder`. `private` says whether it holds clean data.

    >>> found = ghostpoi.export("release", to="recbole", output="city")
    >>> sorted(path.name for path in found.folder.iterdir()), found.private
    (['README.md', 'city.inter', 'city.item', 'city.yaml'], False)
    """

    folder: Path
    private: bool
