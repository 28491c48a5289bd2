"""The commands of publishers and auditors."""

from pathlib import Path
from typing import Annotated

import typer

from ghostpoi.cli.options import (
    Config,
    Device,
    File,
    Json,
    Map,
    Protocol,
    Set,
    changed,
    console,
    mapping,
    print_json,
    say,
)
from ghostpoi.errors import InputError

Release = Annotated[Path, typer.Argument(help="The release folder.")]


def inspect(file: File, json: Json = False, map: Map = None, set: Set = None, config: Config = None) -> None:
    """Describe a file: its contents, what each filter drops, and how many check-ins have candidates."""
    from ghostpoi.cli import render
    from ghostpoi.data import formats
    from ghostpoi.data.inspect import summarise
    from ghostpoi.settings import Settings

    settings = changed(Settings(), set, config)
    summary = summarise(formats.read(file, mapping(map)).table, settings)
    if json:
        print_json(summary)
    else:
        render.inspection(console(), str(file), summary)


def protect(
    file: File,
    output: Annotated[Path, typer.Option("-o", "--output", help="The release folder to create.")],
    method: Annotated[str, typer.Option(help="The method; `ghostpoi plugins` lists all methods.")] = "crowd",
    seed: Annotated[
        int | None, typer.Option(help="For experiments only. Default: 128 bits from the operating system.", min=0)
    ] = None,
    protocol: Protocol = "strong",
    device: Device = "auto",
    private: Annotated[
        Path | None, typer.Option(help="The private folder, for seed, pairs and models. Default: RELEASE.private.")
    ] = None,
    map: Map = None,
    set: Set = None,
    config: Config = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="COLUMN", help="Keep a column even though it may reveal the venue; repeatable."),
    ] = None,
    no_candidate: Annotated[
        str, typer.Option(help="What to do with rows whose venue has no candidate: keep or withhold.")
    ] = "keep",
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing release and its private folder.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate time, memory and substitutions; write nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Make a release: the same rows with plausible substitutes for their venues."""
    from ghostpoi.cli import render
    from ghostpoi.models.devices import device as find_device
    from ghostpoi.progress import bar
    from ghostpoi.publish.protocols import publication
    from ghostpoi.publish.release import given_seed, make_release, work
    from ghostpoi.publish.request import ReleaseRequest

    if no_candidate not in ("keep", "withhold"):
        raise InputError(f"--no-candidate {no_candidate}: use keep or withhold")
    settings, where = changed(publication(method, protocol), set, config), find_device(device)
    if dry_run:
        from ghostpoi.data import formats
        from ghostpoi.publish.estimate import estimate
        from ghostpoi.publish.whole_table import prepare

        guess = estimate(prepare(formats.read(file, mapping(map)).table, settings), settings, where)
        print_json(guess) if json else render.estimate(console(), guess)
        return
    private = private or Path(f"{output}.private")
    request = ReleaseRequest(
        file=file, release=output, private=private, settings=settings, method=method, protocol=protocol, device=where,
        mapping=mapping(map), keep=tuple(keep or ()), withhold=no_candidate == "withhold", seed=given_seed(seed, say),
        resume=resume, force=force,
    )  # fmt: skip
    with bar(work(settings)) as report:
        manifest = make_release(request, say, report)
    if json:
        print_json(manifest)
    else:
        render.released(console(), output, private, manifest)


def verify(
    release: Release,
    against: Annotated[Path | None, typer.Option(help="The file that the release was made from.")] = None,
    map: Map = None,
    json: Json = False,
) -> None:
    """Check a release against its manifest; exit code 1 if a check fails."""
    from ghostpoi.cli import render
    from ghostpoi.publish.verify import verify as run

    checks = run(release, against, mapping(map))
    passed = all(check.passed for check in checks)
    if json:
        details = [{"check": check.name, "passed": check.passed, "detail": check.detail} for check in checks]
        print_json({"passed": passed, "checks": details})
    else:
        render.verification(console(), checks)
    if not passed:
        raise typer.Exit(1)


def audit(
    file: File,
    release: Annotated[Path, typer.Argument(help="The release folder, or a file of the same rows from another tool.")],
    adversaries: Annotated[
        str | None,
        typer.Option(
            help="Names separated by commas; `none` always runs. Default: every adversary that trains no model."
        ),
    ] = None,
    everybody: Annotated[
        bool, typer.Option("--all", help="Run every adversary, including the slow ones that train a model.")
    ] = False,
    victim: Annotated[str, typer.Option(help="The model trained on what each adversary restores.")] = "transformer",
    leak: Annotated[float, typer.Option(help="Leak ratio: share of training sessions that leaked.")] = 0.05,
    seeds: Annotated[
        int, typer.Option(help="Repetitions, each with its own leaked sessions, adversaries and victims.", min=1)
    ] = 3,
    protocol: Protocol = "strong",
    device: Device = "auto",
    map: Map = None,
    set: Set = None,
    config: Config = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            help="The folder for finished work, made from clean data. Default: RELEASE.private/audit if "
            "RELEASE.private exists, otherwise ~/.cache/ghostpoi/audit."
        ),
    ] = None,
    naturalness: Annotated[
        bool,
        typer.Option("--naturalness/--no-naturalness", help="Train a trajectory LM and rate the release with it."),
    ] = True,
    all_controls: Annotated[
        bool,
        typer.Option("--all-controls", help="Run every adversary against the random control, not just two of them."),
    ] = False,
    no_store: Annotated[bool, typer.Option("--no-store", help="Do not store the result in the manifest.")] = False,
    make_report: Annotated[bool, typer.Option("--report", help="Write RELEASE/report.html afterwards.")] = False,
    json: Json = False,
) -> None:
    """Measure what adversaries still learn from a release. Call it again to resume after an interruption."""
    from ghostpoi.cli import audit_text
    from ghostpoi.evaluate.audit import AuditRequest, parse_adversaries, work
    from ghostpoi.evaluate.audit import audit as run
    from ghostpoi.models.devices import device as find_device
    from ghostpoi.progress import bar

    if make_report and (no_store or not release.is_dir()):
        raise InputError("--report needs a release folder and a stored audit; leave --no-store out")
    request = AuditRequest(
        file=file, release=release, adversaries=parse_adversaries(adversaries, everybody), victim=victim, leak=leak,
        seeds=seeds, protocol=protocol, device=find_device(device), mapping=mapping(map), set=set or [], config=config,
        cache=cache, naturalness=naturalness, all_controls=all_controls, store=not no_store,
    )  # fmt: skip
    with bar(work(request)) as progress:
        found = run(request, say, progress)
    if json:
        print_json(found)
    else:
        audit_text.audited(console(), str(release), found)
    if make_report:
        from ghostpoi.report.page import ReportRequest, write_pages

        for path in write_pages(ReportRequest(release=release)):
            say(f"wrote {path}")


def report(
    release: Release,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The page. Default: RELEASE/report.html, or DIR/report.html.")
    ] = None,
    compare: Annotated[
        list[Path] | None, typer.Option(help="Another release of the same file, for comparison; repeatable.")
    ] = None,
    private: Annotated[Path | None, typer.Option(help="The private folder of the release; with --with-clean.")] = None,
    with_clean: Annotated[
        bool, typer.Option("--with-clean", help="Show clean data beside the release. Keep this page private.")
    ] = False,
) -> None:
    """Write an offline page about a release: verdict, map, plausibility, utility, trade-off."""
    from ghostpoi.report.page import ReportRequest, write_pages

    request = ReportRequest(
        release=release, private=private, with_clean=with_clean, compare=tuple(compare or ()), output=output
    )
    for path in write_pages(request):
        print(path)


def synth(
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            help="The file: .txt (TSMC2014), .csv, .tsv or .parquet, optionally with .gz, .xz or .zst.",
        ),
    ],
    users: Annotated[int, typer.Option(help="Number of people.")] = 500,
    pois: Annotated[int, typer.Option(help="Number of venues.")] = 1500,
    days: Annotated[int, typer.Option(help="Number of days.")] = 120,
    seed: Annotated[int, typer.Option(help="The same seed gives the same city.")] = 0,
) -> None:
    """Write a synthetic city: people with homes, jobs and habits who check in at clustered venues."""
    from ghostpoi.data.synthetic_file import write_city

    rows = write_city(output, users, pois, days, seed)
    say(f"{output}: {rows:,} check-ins of {users:,} people at {pois:,} venues over {days:,} days")


def prepare(
    file: File,
    output: Annotated[Path, typer.Option("-o", "--output", help="The .npz file to write.")],
    map: Map = None,
    set: Set = None,
    config: Config = None,
) -> None:
    """Write sessions, venues and candidate sets to one file, for studies and GPU machines. Keep it private."""
    from ghostpoi.data import prepared
    from ghostpoi.settings import Settings

    if not output.parent.is_dir():
        raise InputError(f"-o {output}: the folder {output.parent} does not exist; create it first")
    data = prepared.prepare_file(file, mapping(map), changed(Settings(), set, config))
    prepared.save(output, data)
    sessions = " / ".join(f"{len(part):,}" for part in (data.train, data.val, data.test))
    say(f"{output}: {sessions} sessions, {len(data.vocabulary) - 1:,} venues")


def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write to.")] = Path("demo"),
) -> None:
    """Show what ghostpoi does on a synthetic city, without any data or network."""
    from ghostpoi.cli.demo import run

    run(output, console())


def plugins() -> None:
    """List methods, adversaries, victims and formats, including those of installed packages."""
    from ghostpoi.cli import render

    render.plugins(console())


COMMANDS = (inspect, protect, verify, audit, report, synth, prepare, demo, plugins)
