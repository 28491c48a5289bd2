"""`ghostpoi.audit`: what adversaries still learn; `ghostpoi.person`: about one person; `ghostpoi.choose`: settings."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from ghostpoi.api.door import Door, step
from ghostpoi.api.given import (
    REGION,
    VENUES,
    PathLike,
    ReadingOptions,
    assignments,
    divided,
    mapped,
    optional,
    source_of,
)
from ghostpoi.api.release import Release, ReleaseLike, folder_of, private_of, rows_request
from ghostpoi.errors import InputError
from ghostpoi.options import option

if TYPE_CHECKING:
    from ghostpoi.api.given import Source
    from ghostpoi.attack.evidence import LeakBy
    from ghostpoi.audits.request import AuditRequest


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

    def write(self, path: PathLike) -> None:
        """Write it as JSON, for `ghostpoi.report(..., audit=[path])` about another tool's file."""
        Path(path).write_text(json.dumps(self.found), "utf-8")

    def __repr__(self) -> str:
        from ghostpoi.reports.audit_view import AuditView

        return f"Audit({AuditView.of(self.found).headline})"


def audit_request(
    source: Source, release: ReleaseLike | Source, *, adversaries: Sequence[str] | str | None,
    victim: Sequence[str] | str | None, leak: float, leak_by: str, seeds: int, protocol: str, device: str,
    map: Mapping[str, str] | None, set: Mapping[str, Any] | Sequence[str], config: PathLike | None,
    private: PathLike | None, cache: PathLike | None, naturalness: bool, all_controls: bool, store: bool,
    replace: bool, at_scale: bool = False, **reading: Unpack[ReadingOptions],
) -> AuditRequest:  # fmt: skip
    """Return what an audit is asked for."""
    from ghostpoi.audits.controls import parse_adversaries
    from ghostpoi.audits.request import AuditRequest, parse_victims
    from ghostpoi.models.devices import device as find_device

    names, victims = (given if isinstance(given, str | None) else ",".join(given) for given in (adversaries, victim))
    everybody = names == "all"
    ours = folder_of(release) if isinstance(release, Release) else release
    file, released = source_of(source, reading), source_of(ours, reading, "the released table")
    if _is_release(file) and not _is_release(released):
        raise InputError(f"{file} is a release, and {released} is not; give the clean file first, then the release")
    return AuditRequest(
        file=file, release=released, adversaries=parse_adversaries(None if everybody else names, everybody),
        victims=parse_victims(victims, everybody), leak=leak, leak_by=cast("LeakBy", leak_by), seeds=seeds,
        protocol=protocol, device=find_device(device),
        mapping={field: column for field, column in mapped(map, config).items() if not (at_scale and field == REGION)},
        set=assignments(set), config=optional(config), private=private_of(release, private), cache=optional(cache),
        naturalness=naturalness, all_controls=all_controls, store=store, replace=replace,
    )  # fmt: skip


@step
def audit(
    door: Door, source: Source, release: ReleaseLike | Source, *, adversaries: Sequence[str] | str | None = None,
    victim: Sequence[str] | str | None = None, leak: float = 0.05, leak_by: str = "session", seeds: int = 3,
    protocol: str = "strong", device: str = "auto", map: Mapping[str, str] | None = None,
    set: Mapping[str, Any] | Sequence[str] = (),
    config: PathLike | None = None, private: PathLike | None = None, cache: PathLike | None = None,
    naturalness: bool = True, all_controls: bool = False, store: bool = True, replace: bool = False,
    series: PathLike | None = None, engine: str | None = None, workers: int = 0, scheduler: str = "",
    memory: str | None = None, regions: int | None = None, **reading: Unpack[ReadingOptions],
) -> Audit:  # fmt: skip
    """Measure what adversaries still learn from a release: a folder, or another tool's file or frame of the same rows.

    `adversaries` lists names; "all" adds those that train a model, and the paper's victim. `victim` lists names too:
    each adversary counts with the victim that does best on validation sessions. The result is stored in the manifest
    of a release folder, unless `store=False`. With `engine`, a release of many regions is audited region by region:
    `regions` of them, by default as many as have 300,000 rows.

    >>> ghostpoi.audit("checkins.csv", "release", victim="markov", seeds=1, naturalness=False)
    Audit(...)
    """
    from ghostpoi.audits.audit import audit as measure
    from ghostpoi.audits.audit import by_region

    if replace and not store:
        raise InputError(f"{option('replace')} and {option('no_store')} contradict each other; give one of them")
    at_scale, _, _ = divided(None, (), engine, workers, scheduler, memory)
    request = audit_request(
        source, release, adversaries=adversaries, victim=victim, leak=leak, leak_by=leak_by, seeds=seeds,
        protocol=protocol, device=device, map=map, set=set, config=config, private=private, cache=cache,
        naturalness=naturalness, all_controls=all_controls, store=store, replace=replace, at_scale=bool(at_scale),
        **reading,
    )  # fmt: skip
    by_regions = by_region(request, at_scale)
    if by_regions and series is not None:
        raise InputError(
            f"{option('series')} needs all rows at once; leave out {option('engine')} or {option('series')}"
        )
    together = {}
    if series is not None:
        from ghostpoi.audits.several import audit_series

        together = {"series": audit_series(Path(series), request.release.path, request.file.limit)}
    try:
        with door.bar(1.0 if by_regions else request.work()) as progress:
            return Audit(measure(request, at_scale, regions, door.say, progress) | together)
    except InputError:
        if together:  # which needs no victim: a month can be too small for the other adversaries
            door.say(f"several releases: {together['series']['verdict']}")
        raise


def _is_release(source: Any) -> bool:
    from ghostpoi.release.manifest import MANIFEST

    return not source.in_memory and (source.path / MANIFEST).is_file()


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


@step
def person(
    door: Door, release: ReleaseLike, user: str, *, private: PathLike | None = None, max_size: str | None = None
) -> Person:
    """Return what a release says about one person, for requests of access and erasure.

    `user` is an id as the release shows it. With `private`, the private folder, it is an id of the clean file, and the
    answer holds clean data.

    >>> ghostpoi.person("release", user="17").found["singled_out"]["hour"]["1"] <= 1
    True
    """
    from ghostpoi.audits.person import about
    from ghostpoi.formats.source import limit_of

    return Person(about(folder_of(release), user, optional(private), limit_of(max_size)))


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


@step
def choose(
    door: Door, source: Source, *, output: PathLike | None = None, max_mean_km: float = 2.0, min_flows: float = 0.4,
    max_popularity_js: float = 0.1, min_rhythm: float = 1.0, keep_category: str = "any", pseudonyms: str = "keep",
    leak: float = 0.05, seeds: int = 3, map: Mapping[str, str] | None = None,
    set: Mapping[str, Any] | Sequence[str] = (), config: PathLike | None = None, taxonomy: PathLike | None = None,
    keep: Sequence[str] = (), drop: Sequence[str] = (), cache: PathLike | None = None, engine: str | None = None,
    workers: int = 0, scheduler: str = "", memory: str | None = None, regions: int | None = None,
    **reading: Unpack[ReadingOptions],
) -> Choice:  # fmt: skip
    """Try settings on a table and recommend the safest one that keeps what you need.

    A choice is true if it recommends one. With `output`, write a page about all trials; it describes clean data, so
    keep it private. `cache` is a private folder for finished work. With `engine`, settings are tried region by region,
    on `regions` of them, by default as many as have 300,000 rows.

    >>> ghostpoi.choose("checkins.csv", max_mean_km=3, seeds=1, cache="cache")
    Choice(..., of 12 settings)
    """
    from ghostpoi.audits.cache import default_folder, open_cache
    from ghostpoi.audits.choose import STRICTNESS, Asked, Wishes
    from ghostpoi.audits.choose import choose as try_settings
    from ghostpoi.reports.page import write_choice

    texts, page = assignments(set), optional(output)
    at_scale, fields, settings = divided(mapped(map, config), texts, engine, workers, scheduler, memory)
    _check(texts, keep_category, STRICTNESS, leak, page)
    if regions is not None and at_scale is None:
        raise InputError(
            f"{option('regions')} is for a dataset of many regions and needs {option('engine')}; leave it out"
        )
    wishes = Wishes(
        max_mean_km=max_mean_km, min_flows=min_flows, max_popularity_js=max_popularity_js,
        min_rhythm=min_rhythm, keep_category=keep_category,  # type: ignore[arg-type]
    )  # fmt: skip
    asked = None if pseudonyms == "keep" else pseudonyms
    rows = rows_request(
        "crowd", map=fields, set=settings, config=config, keep=keep, drop=drop, pseudonyms=asked, taxonomy=taxonomy
    )
    request = Asked(
        rows=rows, wishes=wishes, leak=leak, seeds=seeds,
        cache=open_cache(Path(cache) if cache else default_folder()),
    )  # fmt: skip
    file = source_of(source, reading)
    stated = file.reading.stated | (file.query.stated if file.query else {})
    if not isinstance(reading.get("venues", ""), str | os.PathLike | None):
        stated["venues"] = VENUES
    with door.bar(1.0) as progress:
        found = try_settings(file, request, at_scale, regions, door.say, progress)
    given: dict[str, Any] = {"engine": engine, "workers": workers, "scheduler": scheduler, "memory": memory}
    other = found["times"] if found["times"] != rows.settings.identity.times else None
    for one in found["tried_times"]:
        one["refused"] = door.text(one["refused"])
        one["missed"] = [door.text(wish) for wish in one["missed"]]
    for trial in found["tried"]:
        grouping = "method.category=group" in trial["settings"]
        repeated = {
            "set": [*texts, *trial["settings"]], "map": dict(map or {}), "keep": list(keep), "drop": list(drop),
            **stated, "config": config, "taxonomy": taxonomy if grouping else None,
            "pseudonyms": asked, "times": other, **{name: value or None for name, value in given.items()},
        }  # fmt: skip
        trial["command"] = door.call("protect", file.place, repeated)
        trial["missed"] = [door.text(wish) for wish in trial["missed"]]
    if page is not None:
        write_choice(page, file.path.name, found)
    return Choice(found, page)


def _check(texts: list[str], keep_category: str, strictness: Sequence[str], leak: float, page: Path | None) -> None:
    """Refuse what can be refused before any work."""
    if keep_category not in strictness:
        raise InputError(f"{option('keep_category', keep_category)}: use exact, group or any")
    if not 0 < leak <= 1:
        raise InputError(f"{option('leak', f'{leak:g}')}: give a share above 0 and at most 1; the paper's is 0.05")
    if own := [text for text in texts if text.startswith("method.")]:
        raise InputError(f"{option('set', own[0])}: choose tries the settings of the method itself; leave it out")
    if own := [text for text in texts if text.startswith("identity.")]:
        raise InputError(f"{option('set', own[0])}: use {option('pseudonyms')} instead")
    if page is not None and (not page.parent.is_dir() or page.is_dir()):
        raise InputError(f"{option('output', page)}: give the name of a page in a folder that exists")
