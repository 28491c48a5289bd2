"""`ghostpoi.protect`: make a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, Unpack

from ghostpoi.api.door import Door, step
from ghostpoi.api.given import PathLike, ReadingOptions, assignments, divided, mapped, optional, source_of
from ghostpoi.errors import InputError
from ghostpoi.options import option
from ghostpoi.stores import at_hand, url_of

if TYPE_CHECKING:
    import polars
    from typing_extensions import TypeVar

    from ghostpoi.formats import Rows
    from ghostpoi.release.plan import ReleasedRows
    from ghostpoi.release.private_folder import RowsRequest

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


ReleaseLike: TypeAlias = PathLike | Release[Any]


@step
def protect(
    door: Door, source: PathLike | Frame, method: str = "crowd", *, output: PathLike | None = None,
    private: PathLike | None = None, seed: int | None = None, protocol: str = "strong", device: str = "auto",
    map: Mapping[str, str] | None = None, set: Mapping[str, Any] | Sequence[str] = (), config: PathLike | None = None,
    keep: Sequence[str] = (), drop: Sequence[str] = (), no_candidate: str | None = None,
    pseudonyms: str | None = None, times: str | None = None, purpose: str | None = None,
    taxonomy: PathLike | None = None, resume: bool = False, force: bool = False, keep_metadata: bool = False,
    allow_short_seed: bool = False, series: PathLike | None = None, engine: str | None = None, workers: int = 0,
    scheduler: str = "", memory: str | None = None, pairs: bool = False, to_table: str | None = None,
    **reading: Unpack[ReadingOptions],
) -> Release[Frame]:  # fmt: skip
    """Make a release: the same rows with plausible substitutes for their venues.

    With `output`, write the folder to publish and, next to it or at `private`, the private folder; a frame is written
    as Parquet. Without, write nothing. `keep` names columns to keep even though they may reveal clean venues, `drop`
    columns to leave out. `pairs=True` also returns the clean venue of every row, which must stay private. Omit `seed`
    for a real release. `engine`, `workers`, `scheduler`, `memory`, `map={"region": ...}` and settings of `regions`
    protect a dataset larger than memory, region by region. `to_table` also writes the rows to a table of the database
    that they come from.

    >>> ghostpoi.protect("checkins.csv", output="published")
    Release(5,636 rows in published, ... substituted with crowd, ... km on average)
    >>> table = polars.read_csv("checkins.csv")
    >>> ghostpoi.protect(table, "random", set={"candidates.radius_km": 2}, pseudonyms="session").table.shape
    (5636, 8)
    """
    from ghostpoi import formats
    from ghostpoi.regions.protect import make_release
    from ghostpoi.release.make import given_seed, release_in_memory, work
    from ghostpoi.release.private_folder import ReleaseRequest

    if output is None and (engine or memory or scheduler or workers):
        raise InputError(
            f"{option('engine')}, {option('workers')}, {option('scheduler')} and {option('memory')} are for a release "
            f"in a folder; name it with {option('output')}"
        )
    if output is None and (private is not None or resume or force or series or to_table):
        raise InputError(
            f"{option('private')}, {option('resume')}, {option('force')}, {option('series')} and {option('to_table')} "
            f"are for a release in a folder; name it with {option('output')}"
        )
    at_scale, fields, settings = divided(mapped(map, config), set, engine, workers, scheduler, memory)
    rows = rows_request(
        method, protocol=protocol, device=device, map=fields, set=settings, config=config, keep=keep, drop=drop,
        no_candidate=no_candidate, pseudonyms=pseudonyms, times=times, purpose=purpose, taxonomy=taxonomy,
        keep_metadata=keep_metadata,
    )  # fmt: skip
    rows = replace(rows, seed=given_seed(seed, allow_short_seed, door.say))
    file = source_of(source, reading)
    with door.bar(1.0 if at_scale else work(rows.settings)) as report:
        if output is None:
            made = release_in_memory(rows, formats.read(file, rows.mapping), door.say, report)
            return Release(made.manifest, made.rows, pairs=_pairs(made) if pairs else None)
        folder, own = Path(output), Path(private or f"{output}.private")
        if private is None and url_of(folder):
            raise InputError(
                f"{folder} is in a store, where others may read what lies next to it; name a place of its own for the "
                f"private folder with {option('private')}"
            )
        request = ReleaseRequest(
            **vars(rows),
            file=file,
            release=folder,
            private=own,
            resume=resume,
            force=force,
            series=optional(series),
            to_table=to_table or "",
        )
        at_scale = replace(at_scale, device=device) if at_scale else None
        manifest, released = make_release(request, at_scale, door.say, report)
        rows_here, pairs_here = (released.rows, _pairs(released) if pairs else None) if released else (None, None)
        return Release(manifest, rows_here, folder, own, pairs_here)


def rows_request(
    method: str, *, protocol: str = "strong", device: str = "auto", map: Mapping[str, str],
    set: Mapping[str, Any] | Sequence[str], config: PathLike | None, keep: Sequence[str], drop: Sequence[str],
    no_candidate: str | None = None, pseudonyms: str | None, times: str | None = None, purpose: str | None = None,
    taxonomy: PathLike | None, keep_metadata: bool = False,
) -> RowsRequest:  # fmt: skip
    """Return what is asked for; refuse values that no release can have."""
    from ghostpoi.data.places import read_taxonomy
    from ghostpoi.draw.publication import (
        WITHHOLD,
        check_read,
        device_for,
        preset,
        publication,
        with_identity,
        with_preset,
    )
    from ghostpoi.release.private_folder import RowsRequest
    from ghostpoi.settings import changed

    if no_candidate is None:
        no_candidate = preset(purpose, method)[WITHHOLD] if purpose else "keep"
    if no_candidate not in ("keep", "withhold"):
        raise InputError(f"{option('no_candidate', no_candidate)}: use keep or withhold")
    texts = assignments(set)
    base = with_preset(publication(method, protocol), purpose, method)
    check_read(settings := changed(base, texts, optional(config)), base, changed(base, texts, None))
    settings = with_identity(settings, {"pseudonyms": pseudonyms, "times": times}, texts)
    return RowsRequest(
        settings=settings, method=method, protocol=protocol, device=device_for(device, settings), mapping=dict(map),
        keep=tuple(keep), drop=tuple(drop), withhold=no_candidate == "withhold", keep_metadata=keep_metadata,
        purpose=purpose or "",
        groups=read_taxonomy(Path(taxonomy)) if taxonomy else {},
    )  # fmt: skip


def _pairs(made: ReleasedRows) -> polars.DataFrame:
    """Return the clean and the released venue of every released row. `row` is the row of the clean table, from 0."""
    import polars

    from ghostpoi.data.geo import haversine_km

    table, venues, shown = made.whole.table, made.whole.table.venues, made.shown
    clean, released = table.venue[shown], made.venues.poi[shown]
    places = (axis[venue] for venue in (clean, released) for axis in (venues.lat, venues.lon))
    ids = table.venue_ids.astype(str)
    columns = {"row": shown, "clean": ids[clean], "released": ids[released], "km": haversine_km(*places)}
    return polars.DataFrame({name: polars.Series(values.tolist()) for name, values in columns.items()})


def folder_of(release: Any) -> Path:
    """Return the folder of a release."""
    if not isinstance(release, Release):
        return Path(release)
    if release.folder is None:
        raise InputError("this release is in memory only; write it to a folder: protect(..., output=FOLDER)")
    return release.folder


def private_of(release: Any, private: PathLike | None) -> Path | None:
    """Return the private folder that the caller names or, for what `protect` returned, the one that it wrote."""
    if private is None:
        return release.private if isinstance(release, Release) else None
    return Path(private)
