"""The steps of the Python API. options.toml declares their options, ghostpoi/__init__.pyi shows their types."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ghostpoi.api.door import Door, step
from ghostpoi.api.given import IN_DATABASES, REGION, VENUES, Given, divided, rows_request, source_of
from ghostpoi.api.results import (
    Audit,
    Choice,
    Export,
    Inspection,
    Person,
    Release,
    Report,
    Verification,
    folder_of,
)
from ghostpoi.errors import InputError
from ghostpoi.options import option
from ghostpoi.stores import url_of

if TYPE_CHECKING:
    import polars

    from ghostpoi.attack.evidence import LeakBy
    from ghostpoi.audits.request import AuditRequest
    from ghostpoi.release.plan import ReleasedRows


@step
def inspect(door: Door, given: Given) -> Inspection:
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

    at_scale, fields, texts = divided(given, given.fields, given.set)
    settings = changed(publication(given.method), texts, given.config)
    request = RowsRequest(settings=settings, method=given.method, mapping=fields)
    with door.bar(1.0) as report:
        summary = describe(source_of(given.source, given.reading), request, at_scale, report)
    for chosen in summary["columns"].values():
        chosen["chosen_by"] = door.text(chosen["chosen_by"])
    return Inspection(summary)


@step
def protect(door: Door, given: Given) -> Release[Any]:
    """Make a release: the same rows with plausible substitutes for their venues.

    With `output`, write the folder that you publish; the private folder goes next to it, or to `private`. A frame is
    written as Parquet. Without, write nothing. `keep` names columns to keep even though they may reveal clean venues,
    `drop` columns to leave out. `pairs=True` also returns the clean venue of every row, which must stay private. Omit
    `seed` for a real release. `engine`, `workers`, `scheduler`, `memory`, `map={"region": ...}` and settings of
    `regions` protect a dataset larger than memory, region by region. `to_table` also writes the rows to a table of the
    database that they come from.

    >>> ghostpoi.protect("checkins.csv", output="published")
    Release(5,636 rows in published, ... substituted with crowd, ... km on average)
    >>> table = polars.read_csv("checkins.csv")
    >>> ghostpoi.protect(table, "random", set={"candidates.radius_km": 2}, pseudonyms="session").table.shape
    (5636, 8)
    """
    from ghostpoi import formats
    from ghostpoi.regions.protect import make_release
    from ghostpoi.release.make import given_seed, release_in_memory
    from ghostpoi.release.private_folder import ReleaseRequest

    if given.output is None:
        for names in (("engine", "workers", "scheduler", "memory"),
                      ("private", "resume", "force", "series", "to_table")):  # fmt: skip
            if any(vars(given)[name] for name in names):
                raise InputError(
                    f"{', '.join(map(option, names[:-1]))} and {option(names[-1])} are for a release in a folder; name "
                    f"it with {option('output')}"
                )
    at_scale, fields, texts = divided(given, given.fields, given.set)
    rows = rows_request(given, fields, texts)
    rows = replace(rows, seed=given_seed(given.seed, given.allow_short_seed, door.say))
    file = source_of(given.source, given.reading)
    with door.bar(1.0) as report:
        if given.output is None:
            made = release_in_memory(rows, formats.read(file, rows.mapping), door.say, report)
            return Release(made.manifest, made.rows, pairs=_pairs(made) if given.pairs else None)
        own = given.private or Path(f"{given.output}.private")
        if given.private is None and url_of(given.output):
            raise InputError(
                f"{given.output} is in a store, where others may read what lies next to it; name a place of its own "
                f"for the private folder with {option('private')}"
            )
        request = ReleaseRequest(
            **vars(rows), file=file, release=given.output, private=own, resume=given.resume, force=given.force,
            series=given.series, to_table=given.to_table or "",
        )  # fmt: skip
        at_scale = replace(at_scale, device=given.device) if at_scale else None
        manifest, released = make_release(request, at_scale, door.say, report)
        rows_here, pairs = (released.rows, _pairs(released) if given.pairs else None) if released else (None, None)
        return Release(manifest, rows_here, given.output, own, pairs)


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


def _private_of(given: Given) -> Path | None:
    """Return the private folder that the caller names or, for what `protect` returned, the one that it wrote."""
    return given.private or (given.release.private if isinstance(given.release, Release) else None)


@step
def verify(door: Door, given: Given) -> Verification:
    """Check a release folder against its manifest and, with `against`, against the clean table.

    `signed_by` is the fingerprint of the key that must have signed the manifest.

    >>> ghostpoi.verify("release", against="checkins.csv").passed
    True
    """
    from ghostpoi.regions.compare import verify as check

    folder, alone = folder_of(given.release), given.against is None
    own = given.private if alone else _private_of(given)
    at_scale, _, _ = divided(given)
    stated = source_of(folder if alone else given.against, given.reading)
    clean = None if alone else stated
    with door.bar(1.0) as report:
        found = check(
            folder, clean, given.fields, given.signed_by, own, stated.limit, at_scale, report
        )  # fmt: skip
    return Verification(tuple(replace(one, detail=door.text(one.detail)) for one in found))


def audit_request(given: Given) -> AuditRequest:
    """Return what an audit is asked for."""
    from ghostpoi.audits.controls import parse_adversaries
    from ghostpoi.audits.request import AuditRequest, parse_victims
    from ghostpoi.models.devices import device as find_device
    from ghostpoi.release.manifest import MANIFEST

    names, victims = (None if one is None else ",".join(one) for one in (given.adversaries, given.victim))
    everybody = names == "all"
    ours = folder_of(given.release) if isinstance(given.release, Release) else given.release
    file = source_of(given.source, given.reading)
    of_file = {name: value for name, value in given.reading.items() if file.query is None or name not in IN_DATABASES}
    released = source_of(ours, of_file, "the released table")
    if [not one.in_memory and (one.path / MANIFEST).is_file() for one in (file, released)] == [True, False]:
        raise InputError(f"{file} is a release, and {released} is not; give the clean file first, then the release")
    return AuditRequest(
        file=file, release=released, adversaries=parse_adversaries(None if everybody else names, everybody),
        victims=parse_victims(victims, everybody), leak=given.leak, leak_by=cast("LeakBy", given.leak_by),
        seeds=given.seeds, protocol=given.protocol, device=find_device(given.device),
        mapping={field: column for field, column in given.fields.items() if not (given.dividing and field == REGION)},
        set=given.set, config=given.config, private=_private_of(given), cache=given.cache,
        naturalness=given.naturalness, all_controls=given.all_controls, store=given.store, replace=given.replace,
    )  # fmt: skip


@step
def audit(door: Door, given: Given) -> Audit:
    """Measure what adversaries still learn from a release: a folder, or another tool's file or frame of the same rows.

    `adversaries` lists names; "all" adds those that train a model, and the paper's victim. `victim`, too, is a list of
    names: each adversary is scored with the victim that does best on validation sessions. The result is stored in the
    manifest of a release folder, unless `store=False`. With `engine`, a release of many regions is audited region by
    region; `regions` is the number of regions to audit, by default enough to cover 300,000 rows.

    >>> ghostpoi.audit("checkins.csv", "release", victim="markov", seeds=1, naturalness=False)
    Audit(...)
    """
    from ghostpoi.audits.audit import audit as measure
    from ghostpoi.audits.audit import by_region

    if given.replace and not given.store:
        raise InputError(f"{option('replace')} and {option('no_store')} contradict each other; give one of them")
    request, (at_scale, _, _) = audit_request(given), divided(given)
    by_regions, together = by_region(request, at_scale), {}
    if given.series is not None:
        if by_regions:
            raise InputError(
                f"{option('series')} needs all rows at once; leave out {option('engine')} or {option('series')}"
            )
        from ghostpoi.audits.several import audit_series

        together = {"series": audit_series(given.series, request.release.path, request.file.limit)}
    try:
        with door.bar(1.0 if by_regions else request.work()) as progress:
            return Audit(measure(request, at_scale, given.regions, door.say, progress) | together)
    except InputError:
        if together:  # which needs no victim: a month can be too small for the other adversaries
            door.say(f"several releases: {together['series']['verdict']}")
        raise


@step
def person(door: Door, given: Given) -> Person:
    """Return what a release says about one person, for requests of access and erasure.

    `user` is an id as the release shows it. With `private`, the private folder, it is an id of the clean file, and the
    answer holds clean data.

    >>> ghostpoi.person("release", user="17").found["singled_out"]["hour"]["1"] <= 1
    True
    """
    from ghostpoi.audits.person import about
    from ghostpoi.formats.source import limit_of

    return Person(about(folder_of(given.release), given.user, given.private, limit_of(given.max_size)))


@step
def choose(door: Door, given: Given) -> Choice:
    """Try settings on a table and recommend the safest one that keeps what you need.

    A choice is true if it recommends a setting. With `output`, write a page about all trials; it describes clean data,
    so keep it private. `cache` is a private folder for finished work. With `engine`, settings are tried region by
    region; `regions` is the number of regions to use, by default enough to cover 300,000 rows.

    >>> ghostpoi.choose("checkins.csv", max_mean_km=3, seeds=1, cache="cache")
    Choice(..., of 12 settings)
    """
    from ghostpoi.audits.cache import default_folder, open_cache
    from ghostpoi.audits.choose import STRICTNESS, Asked, Wishes
    from ghostpoi.audits.choose import choose as try_settings
    from ghostpoi.reports.page import write_choice

    at_scale, fields, texts = divided(given, given.fields, given.set)
    _check(given, STRICTNESS)
    if given.regions is not None and at_scale is None:
        raise InputError(
            f"{option('regions')} is for a dataset of many regions and needs {option('engine')}; leave it out"
        )
    asked = None if given.pseudonyms == "keep" else given.pseudonyms
    rows = rows_request(Given("protect", vars(given) | {"pseudonyms": asked}), fields, texts)
    wishes = ("max_mean_km", "min_flows", "max_popularity_js", "min_rhythm", "keep_category")
    request = Asked(
        rows=rows, wishes=Wishes(**{name: vars(given)[name] for name in wishes}), leak=given.leak, seeds=given.seeds,
        cache=open_cache(given.cache or default_folder()),
    )  # fmt: skip
    file = source_of(given.source, given.reading)
    stated = file.reading.stated | (file.query.stated if file.query else {})
    if not isinstance(given.venues, str | os.PathLike | None):
        stated["venues"] = VENUES
    with door.bar(1.0) as progress:
        found = try_settings(file, request, at_scale, given.regions, progress)
    for one in found["tried_times"]:
        one["refused"] = door.text(one["refused"])
    times = found["times"] if found["times"] != rows.settings.identity.times else None
    for trial in found["tried"]:
        grouping = "method.category=group" in trial["settings"]
        repeated = {
            "set": [*given.set, *trial["settings"]], "map": given.map, "keep": list(given.keep),
            "drop": list(given.drop), **stated, "config": given.config,
            "taxonomy": given.taxonomy if grouping else None, "pseudonyms": asked, "times": times, **given.dividing,
        }  # fmt: skip
        trial["command"] = door.call("protect", file.place, repeated)
    for one in (*found["tried"], *found["tried_times"]):
        one["missed"] = [door.text(wish) for wish in one["missed"]]
    if given.output is not None:
        write_choice(given.output, file.path.name, found)
    return Choice(found, given.output)


def _check(given: Given, strictness: Sequence[str]) -> None:
    """Refuse what can be refused before any work."""
    if given.keep_category not in strictness:
        raise InputError(f"{option('keep_category', given.keep_category)}: use exact, group or any")
    if not 0 < given.leak <= 1:
        raise InputError(
            f"{option('leak', f'{given.leak:g}')}: give a share above 0 and at most 1; the paper's is 0.05"
        )
    for text in given.set:
        if text.startswith("method."):
            raise InputError(f"{option('set', text)}: choose tries the settings of the method itself; leave it out")
        if text.startswith("identity."):
            raise InputError(f"{option('set', text)}: use {option('pseudonyms')} instead")
    if (page := given.output) is not None and (not page.parent.is_dir() or page.is_dir()):
        raise InputError(f"{option('output', page)}: give the name of a page in a folder that exists")


@step
def report(door: Door, given: Given) -> Report:
    """Write an offline page: whether a release meets your limits, what it protects, and what it keeps.

    `compare` lists other releases of the same file. `with_clean=True` shows clean data next to the release, on a page
    in the private folder; never publish it. `dpia=True` writes two A4 pages for a data protection officer instead.

    >>> [path.name for path in ghostpoi.report("release").pages]
    ['report.html', 'card.md', 'croissant.json']
    """
    from ghostpoi.release.manifest import read_manifest, seal_of
    from ghostpoi.reports.release_view import About, is_file

    folder, about = folder_of(given.release), About(given.title, given.publisher, given.license)
    source, ours = source_of(folder, given.reading), not is_file(folder)  # looked at before charts are imported
    from ghostpoi.reports.page import write_dpia, write_pages

    if given.dpia:
        if others := [option(name) for name in ("with_clean", "compare", "audit", "private") if getattr(given, name)]:
            raise InputError(f"{option('dpia')} describes a single published release; leave out {' and '.join(others)}")
        return Report((write_dpia(source, given.output, about),))
    if ours and "regions" in read_manifest(folder):
        if given.with_clean:
            raise InputError(
                f"{option('with_clean')} is for a release of one region, and {folder} has many; leave it out"
            )
        door.say(f"warning: the page about {folder} is drawn from all its rows, which must fit into memory")
    pages = write_pages(
        source, private=_private_of(given) if given.with_clean else given.private, with_clean=given.with_clean,
        compare=tuple(folder_of(other) for other in given.compare), output=given.output, mapping=given.fields,
        audits=given.audit, about=about, outlines=given.outlines,
    )  # fmt: skip
    if ours and not seal_of(folder).signer:
        door.say(
            f"warning: {folder} is unsigned, so its figures may have been changed; check them with verify "
            f"{option('against')}"
        )
    return Report(tuple(pages))


@step
def export(door: Door, given: Given) -> Export:
    """Write a release in the form that another tool trains on; with `private`, also clean data to test on.

    >>> ghostpoi.export("release", to="hf", output="dataset").folder.name
    'dataset'
    """
    from ghostpoi.exports.write import export as write
    from ghostpoi.formats.source import limit_of

    release, limit = folder_of(given.release), limit_of(given.max_size)
    if left_out := write(release, given.to, given.output, given.private, limit).left_out:
        rows = f"{left_out:,} {'row' if left_out == 1 else 'rows'} with missing values"
        door.say(f"warning: {rows}: left out of the export, because other tools need every value")
    return Export(given.output, given.private is not None)


@step
def synth(door: Door, given: Given) -> polars.DataFrame:
    """Return the check-ins of a synthetic city: people with homes, jobs and habits at clustered venues.

    >>> ghostpoi.synth(users=150, pois=300, days=60, seed=7).write_csv("checkins.csv")
    """
    from ghostpoi.data.synthetic import make_city
    from ghostpoi.data.synthetic_files import city_frame

    return city_frame(make_city(given.users, given.pois, given.days, given.seed, given.density), given.seed)
