"""The commands of publishers and auditors."""

from pathlib import Path
from typing import Any

import typer

from ghostpoi.cli import terminal_output
from ghostpoi.cli.options import console, interruptible, mapping, reads_files, reads_tables, say, show, tell
from ghostpoi.errors import InputError

Texts = list[str] | None  # of an option that may be repeated


@reads_tables
def inspect(
    file: Path, method: str = "crowd", json: bool = False, map: Texts = None, set: Texts = None,
    config: Path | None = None, engine: str | None = None, workers: int = 0, scheduler: str = "",
    memory: str | None = None, **reading: Any,
) -> None:  # fmt: skip
    """Describe a file: its contents, what each filter drops, and how many check-ins a method can substitute."""
    from ghostpoi.api.inspection import inspect

    found = inspect(
        file, method, map=mapping(map), set=set or (), config=config, engine=engine, workers=workers,
        scheduler=scheduler, memory=memory, **reading,
    )  # fmt: skip
    show(found.summary, json, terminal_output.inspection, file)


@reads_tables
def protect(
    file: Path, output: Path, method: str = "crowd", seed: int | None = None, protocol: str = "strong",
    device: str = "auto", private: Path | None = None, map: Texts = None, set: Texts = None,
    config: Path | None = None, keep: Texts = None, drop: Texts = None, no_candidate: str = "keep",
    pseudonyms: str | None = None, taxonomy: Path | None = None, resume: bool = False, force: bool = False,
    dry_run: bool = False, keep_metadata: bool = False, allow_short_seed: bool = False, series: Path | None = None,
    engine: str | None = None, workers: int = 0, scheduler: str = "", memory: str | None = None, json: bool = False,
    **reading: Any,
) -> None:  # fmt: skip
    """Make a release: the same rows with plausible substitutes for their venues."""
    from ghostpoi.api.release import protect, rows_request
    from ghostpoi.publish.seal import fingerprint

    asked: dict[str, Any] = {
        "protocol": protocol, "device": device, "map": mapping(map), "set": set or (), "config": config,
        "keep": keep or (), "drop": drop or (), "no_candidate": no_candidate, "pseudonyms": pseudonyms,
        "taxonomy": taxonomy, "keep_metadata": keep_metadata,
    }  # fmt: skip
    if dry_run and series:
        raise InputError("--dry-run estimates a release that stands alone; leave --series out")
    if dry_run and (engine or workers or scheduler or memory):
        raise InputError(
            "--dry-run reads the whole file at once; leave --engine and the other options of regions out, or describe "
            "the regions with ghostpoi inspect"
        )
    if dry_run:
        from ghostpoi.api.reading import source_of
        from ghostpoi.publish.cost_estimate import estimate

        r = rows_request(method, **asked)
        found = estimate(source_of(file, reading), r.mapping, r.keep, r.drop, r.settings, r.device, r.groups)
        show(found, json, terminal_output.estimate)
        return
    with interruptible("go on with --resume"):
        made = protect(
            file, method, output=output, private=private, seed=seed, resume=resume, force=force,
            allow_short_seed=allow_short_seed, series=series, engine=engine, workers=workers, scheduler=scheduler,
            memory=memory, **asked, **reading,
        )  # fmt: skip
    own = made.private or output
    show(made.manifest, json, terminal_output.released, output, own, fingerprint(own))


@reads_tables
def verify(
    release: Path, against: Path | None = None, private: Path | None = None, signed_by: str | None = None,
    map: Texts = None, engine: str | None = None, workers: int = 0, scheduler: str = "", memory: str | None = None,
    json: bool = False, **reading: Any,
) -> None:  # fmt: skip
    """Check a release against its manifest; exit code 1 if a check fails."""
    from ghostpoi.api.verification import verify

    found = verify(
        release, against=against, private=private, signed_by=signed_by, map=mapping(map), engine=engine,
        workers=workers, scheduler=scheduler, memory=memory, **reading,
    )  # fmt: skip
    details = [{"check": check.name, "passed": check.passed, "detail": check.detail} for check in found.checks]
    show({"passed": found.passed, "checks": details}, json, terminal_output.verification)
    if not found:
        raise typer.Exit(1)


@reads_tables
def audit(
    file: Path, release: Path, adversaries: str | None = None, everybody: bool = False, victim: str = "transformer",
    leak: float = 0.05, seeds: int = 3, protocol: str = "strong", device: str = "auto", map: Texts = None,
    set: Texts = None, config: Path | None = None, private: Path | None = None, cache: Path | None = None,
    naturalness: bool = True, all_controls: bool = False, no_store: bool = False, replace: bool = False,
    make_report: bool = False, series: Path | None = None, engine: str | None = None, workers: int = 0,
    scheduler: str = "", memory: str | None = None, regions: int | None = None, json: bool = False, **reading: Any,
) -> None:  # fmt: skip
    """Measure what adversaries still learn from a release. Call it again to resume after an interruption."""
    from ghostpoi.api.audits import audit

    if make_report and (no_store or not release.is_dir()):
        raise InputError("--report needs a release folder and a stored audit; leave --no-store out")
    if everybody and adversaries is not None:
        raise InputError(f"--all and --adversaries {adversaries} contradict each other; give one of them")
    with interruptible("call it again to go on"):
        found = audit(
            file, release, adversaries="all" if everybody else adversaries, victim=victim, leak=leak, seeds=seeds,
            protocol=protocol, device=device, map=mapping(map), set=set or (), config=config, private=private,
            cache=cache, naturalness=naturalness, all_controls=all_controls, store=not no_store, replace=replace,
            series=series, engine=engine, workers=workers, scheduler=scheduler, memory=memory, regions=regions,
            **reading,
        )  # fmt: skip
    show(found.found, json, terminal_output.audited, release)
    if make_report:
        from ghostpoi.api.reports import report

        for path in report(release, **reading).pages:
            say(f"wrote {path}")


@reads_tables
def choose(
    file: Path, output: Path = Path("choice.html"), max_mean_km: float = 2.0, min_flows: float = 0.5,
    max_popularity_js: float = 0.1, keep_category: str = "any", pseudonyms: str = "keep", leak: float = 0.05,
    seeds: int = 3, map: Texts = None, set: Texts = None, config: Path | None = None, taxonomy: Path | None = None,
    keep: Texts = None, drop: Texts = None, cache: Path | None = None, engine: str | None = None, workers: int = 0,
    scheduler: str = "", memory: str | None = None, regions: int | None = None, json: bool = False, **reading: Any,
) -> None:  # fmt: skip
    """Try settings on a file and recommend the safest one that keeps what you need; exit code 1 if none does."""
    from ghostpoi.api.choice import choose

    with interruptible("call it again to go on"):
        choice = choose(
            file, output=output, max_mean_km=max_mean_km, min_flows=min_flows, max_popularity_js=max_popularity_js,
            keep_category=keep_category, pseudonyms=pseudonyms, leak=leak, seeds=seeds, map=mapping(map),
            set=set or (), config=config, taxonomy=taxonomy, keep=keep or (), drop=drop or (), cache=cache,
            engine=engine, workers=workers, scheduler=scheduler, memory=memory, regions=regions, **reading,
        )  # fmt: skip
    show(choice.found, json, terminal_output.chosen, output)
    if not choice:
        raise typer.Exit(1)


@reads_tables
def report(
    release: Path, output: Path | None = None, compare: list[Path] | None = None, private: Path | None = None,
    with_clean: bool = False, map: Texts = None, audits: list[Path] | None = None, title: str = "",
    publisher: str = "", license: str = "", **reading: Any,
) -> None:  # fmt: skip
    """Write an offline page about a release: verdict, map, plausibility, utility, trade-off."""
    from ghostpoi.api.reports import report

    made = report(
        release, output=output, compare=compare or (), private=private, with_clean=with_clean, map=mapping(map),
        audit=audits or (), title=title, publisher=publisher, license=license, **reading,
    )  # fmt: skip
    for path in made.pages:
        tell(path)


@reads_files
def export(release: Path, to: str, output: Path, private: Path | None = None, **reading: Any) -> None:
    """Write a release in the form that another tool trains on; with --private, also clean data to test on."""
    from ghostpoi.api.exports import export

    tell(export(release, to, output, private=private, **reading).folder)
    if private is not None:
        say(f"{output} holds clean data, so it is private: never publish it")


def synth(
    output: Path, users: int = 500, pois: int = 1500, days: int = 120, seed: int = 0, density: float = 40.0,
    cities: int | None = None, travellers: float | None = None, rows_per_part: int | None = None,
    format: str | None = None,
) -> None:  # fmt: skip
    """Write a synthetic city, or many: people with homes, jobs and habits who check in at clustered venues."""
    from ghostpoi.data.synthetic_file import write_city

    for flag, value in (("travellers", travellers), ("rows-per-part", rows_per_part), ("format", format)):
        if cities is None and value is not None:
            raise InputError(f"--{flag} is for several cities; add --cities")
    if cities is None:
        rows, where = write_city(output, users, pois, days, seed, density), ""
    else:
        from ghostpoi.data.synthetic_parts import ROWS_PER_PART, write_world
        from ghostpoi.data.synthetic_world import TRAVELLERS, World
        from ghostpoi.progress import bar

        world = World(cities, users, pois, days, seed, density, TRAVELLERS if travellers is None else travellers)
        part = ROWS_PER_PART if rows_per_part is None else rows_per_part
        with bar(cities) as report:
            rows = write_world(output, world, part, format or "parquet", report)
        users, pois = int(world.city_users.sum()), int(world.city_pois.sum())
        where = f" in {cities:,} cities ({rows / cities:,.0f} check-ins per city on average)"
    say(f"{output}: {rows:,} check-ins of {users:,} people at {pois:,} venues{where} over {days:,} days")


@reads_tables
def prepare(
    file: Path, output: Path, map: Texts = None, set: Texts = None, config: Path | None = None, **reading: Any,
) -> None:  # fmt: skip
    """Write sessions, venues and candidate sets to one file, for studies and GPU machines. Keep it private."""
    from ghostpoi.api.reading import source_of
    from ghostpoi.data import prepared
    from ghostpoi.formats.prepare import prepare_file
    from ghostpoi.settings import Settings, changed

    if not output.parent.is_dir():
        raise InputError(f"-o {output}: the folder {output.parent} does not exist; create it first")
    data = prepare_file(source_of(file, reading), mapping(map), changed(Settings(), set or [], config))
    prepared.save(output, data)
    sessions = " / ".join(f"{len(part):,}" for part in (data.train, data.val, data.test))
    say(f"{output}: {sessions} sessions, {len(data.vocabulary) - 1:,} venues")


def plugins() -> None:
    """List methods, adversaries, victims, formats and exports, including those of installed packages."""
    terminal_output.plugins(console())
