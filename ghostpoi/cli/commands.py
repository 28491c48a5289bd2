"""The commands of publishers and auditors."""

from pathlib import Path

import typer

from ghostpoi.cli.options import changed, console, mapping, reads_files, reads_tables, say, show, tell
from ghostpoi.errors import InputError

Texts = list[str] | None  # of an option that may be repeated


@reads_tables
def inspect(
    file: Path, method: str = "crowd", json: bool = False, map: Texts = None, set: Texts = None,
    config: Path | None = None,
) -> None:  # fmt: skip
    """Describe a file: its contents, what each filter drops, and how many check-ins a method can substitute."""
    from ghostpoi.cli import terminal_output
    from ghostpoi.data import formats
    from ghostpoi.data.formats.chosen_columns import chosen_columns
    from ghostpoi.data.inspect import summarise
    from ghostpoi.publish.publication_settings import publication
    from ghostpoi.publish.whole_table import describe_sets

    settings = changed(publication(method), set, config)
    read = formats.read(file, mapping(map))
    summary = {
        "format": read.format,
        "columns": chosen_columns(read, mapping(map)),
        "missing": {"rows": len(read.missing), "first": read.missing_at},
        **summarise(read.table, settings),
        "method": {"name": method, **describe_sets(read.table, settings)},
    }
    show(summary, json, terminal_output.inspection, file)


@reads_tables
def protect(
    file: Path, output: Path, method: str = "crowd", seed: int | None = None, protocol: str = "strong",
    device: str = "auto", private: Path | None = None, map: Texts = None, set: Texts = None,
    config: Path | None = None, keep: Texts = None, drop: Texts = None, no_candidate: str = "keep",
    pseudonyms: str | None = None, taxonomy: Path | None = None, resume: bool = False, force: bool = False,
    dry_run: bool = False, keep_metadata: bool = False, allow_short_seed: bool = False, series: Path | None = None,
    json: bool = False,
) -> None:  # fmt: skip
    """Make a release: the same rows with plausible substitutes for their venues."""
    from ghostpoi.cli import terminal_output
    from ghostpoi.data.taxonomy import read_taxonomy
    from ghostpoi.progress import bar
    from ghostpoi.publish.device_choice import device_for
    from ghostpoi.publish.private_folder import ReleaseRequest
    from ghostpoi.publish.publication_settings import publication, with_pseudonyms
    from ghostpoi.publish.release import given_seed, make_release, work
    from ghostpoi.publish.seal import fingerprint

    if no_candidate not in ("keep", "withhold"):
        raise InputError(f"--no-candidate {no_candidate}: use keep or withhold")
    settings = with_pseudonyms(changed(publication(method, protocol), set, config), pseudonyms, set or [])
    where, groups = device_for(device, settings), read_taxonomy(taxonomy) if taxonomy else {}
    if dry_run and series:
        raise InputError("--dry-run estimates a release that stands alone; leave --series out")
    if dry_run:
        from ghostpoi.publish.cost_estimate import estimate

        found = estimate(file, mapping(map), keep or [], drop or [], settings, where, groups)
        show(found, json, terminal_output.estimate)
        return
    private = private or Path(f"{output}.private")
    request = ReleaseRequest(
        file=file, release=output, private=private, settings=settings, method=method, protocol=protocol, device=where,
        mapping=mapping(map), keep=tuple(keep or ()), drop=tuple(drop or ()), withhold=no_candidate == "withhold",
        seed=given_seed(seed, allow_short_seed, say), resume=resume, force=force, keep_metadata=keep_metadata,
        groups=groups, series=series,
    )  # fmt: skip
    with bar(work(settings)) as report:
        manifest = make_release(request, say, report)
    show(manifest, json, terminal_output.released, output, private, fingerprint(private))


@reads_tables
def verify(
    release: Path, against: Path | None = None, private: Path | None = None, signed_by: str | None = None,
    map: Texts = None, json: bool = False,
) -> None:  # fmt: skip
    """Check a release against its manifest; exit code 1 if a check fails."""
    from ghostpoi.cli import terminal_output
    from ghostpoi.publish.verify import verify

    checks = verify(release, against, mapping(map), signed_by, private)
    details = [{"check": check.name, "passed": check.passed, "detail": check.detail} for check in checks]
    passed = all(check.passed for check in checks)
    show({"passed": passed, "checks": details}, json, terminal_output.verification)
    if not passed:
        raise typer.Exit(1)


@reads_tables
def audit(
    file: Path, release: Path, adversaries: str | None = None, everybody: bool = False, victim: str = "transformer",
    leak: float = 0.05, seeds: int = 3, protocol: str = "strong", device: str = "auto", map: Texts = None,
    set: Texts = None, config: Path | None = None, private: Path | None = None, cache: Path | None = None,
    naturalness: bool = True, all_controls: bool = False, no_store: bool = False, replace: bool = False,
    make_report: bool = False, series: Path | None = None, json: bool = False,
) -> None:  # fmt: skip
    """Measure what adversaries still learn from a release. Call it again to resume after an interruption."""
    from ghostpoi.cli import terminal_output
    from ghostpoi.evaluate.audit import AuditRequest, audit, work
    from ghostpoi.evaluate.default_set import parse_adversaries
    from ghostpoi.models.devices import device as find_device
    from ghostpoi.progress import bar

    if make_report and (no_store or not release.is_dir()):
        raise InputError("--report needs a release folder and a stored audit; leave --no-store out")
    if replace and no_store:
        raise InputError("--replace and --no-store contradict each other; give one of them")
    request = AuditRequest(
        file=file, release=release, adversaries=parse_adversaries(adversaries, everybody), victim=victim, leak=leak,
        seeds=seeds, protocol=protocol, device=find_device(device), mapping=mapping(map), set=set or [], config=config,
        private=private, cache=cache, naturalness=naturalness, all_controls=all_controls, store=not no_store,
        replace=replace,
    )  # fmt: skip
    together = None
    if series is not None:
        from ghostpoi.evaluate.series_audit import audit_series

        together = audit_series(series, release)
    with bar(work(request)) as progress:
        found = audit(request, say, progress)
    if together is not None:
        found = found | {"series": together}
    show(found, json, terminal_output.audited, release)
    if make_report:
        from ghostpoi.report.page import ReportRequest, write_pages

        for path in write_pages(ReportRequest(release=release)):
            say(f"wrote {path}")


@reads_tables
def choose(
    file: Path, output: Path = Path("choice.html"), max_mean_km: float = 2.0, min_flows: float = 0.5,
    max_popularity_js: float = 0.1, keep_category: str = "any", pseudonyms: str = "keep", leak: float = 0.05,
    seeds: int = 3, map: Texts = None, set: Texts = None, config: Path | None = None, taxonomy: Path | None = None,
    keep: Texts = None, drop: Texts = None, cache: Path | None = None, json: bool = False,
) -> None:  # fmt: skip
    """Try settings on a file and recommend the safest one that keeps what you need; exit code 1 if none does."""
    from ghostpoi.cli import terminal_output
    from ghostpoi.cli.choice import prepare_choice
    from ghostpoi.evaluate.choose import choose, work
    from ghostpoi.evaluate.choose.options import Wishes
    from ghostpoi.progress import bar
    from ghostpoi.report.choice_page import write_choice

    wishes = Wishes(
        max_mean_km=max_mean_km, min_flows=min_flows, max_popularity_js=max_popularity_js,
        keep_category=keep_category,  # type: ignore[arg-type]
    )  # fmt: skip
    request, command = prepare_choice(
        file, wishes, output, pseudonyms, leak, seeds, map, set, config, taxonomy, keep, drop, cache
    )
    with bar(work(request)) as progress:
        found = choose(request, progress)
    for trial in found["trials"]:
        trial["command"] = command(trial["settings"])
    write_choice(output, file.name, found)
    show(found, json, terminal_output.chosen, output)
    if found["recommended"] is None:
        raise typer.Exit(1)


@reads_tables
def report(
    release: Path, output: Path | None = None, compare: list[Path] | None = None, private: Path | None = None,
    with_clean: bool = False, map: Texts = None, audits: list[Path] | None = None,
) -> None:  # fmt: skip
    """Write an offline page about a release: verdict, map, plausibility, utility, trade-off."""
    from ghostpoi.publish.manifest import seal_of
    from ghostpoi.report.page import ReportRequest, write_pages

    request = ReportRequest(
        release=release, private=private, with_clean=with_clean, compare=tuple(compare or ()), output=output,
        mapping=mapping(map), audits=tuple(audits or ()),
    )  # fmt: skip
    for path in write_pages(request):
        tell(path)
    if release.is_dir() and not seal_of(release).signer:
        say(f"warning: {release} is unsigned, so its figures may have been changed; check them with verify --against")


@reads_files
def export(release: Path, to: str, output: Path, private: Path | None = None) -> None:
    """Write a release in the form that another tool trains on; with --private, also clean data to test on."""
    from ghostpoi.export.write import export

    export(release, to, output, private)
    tell(output)
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
def prepare(file: Path, output: Path, map: Texts = None, set: Texts = None, config: Path | None = None) -> None:
    """Write sessions, venues and candidate sets to one file, for studies and GPU machines. Keep it private."""
    from ghostpoi.data import prepared
    from ghostpoi.settings import Settings

    if not output.parent.is_dir():
        raise InputError(f"-o {output}: the folder {output.parent} does not exist; create it first")
    data = prepared.prepare_file(file, mapping(map), changed(Settings(), set, config))
    prepared.save(output, data)
    sessions = " / ".join(f"{len(part):,}" for part in (data.train, data.val, data.test))
    say(f"{output}: {sessions} sessions, {len(data.vocabulary) - 1:,} venues")


def plugins() -> None:
    """List methods, adversaries, victims, formats and exports, including those of installed packages."""
    from ghostpoi.cli import terminal_output

    terminal_output.plugins(console())
