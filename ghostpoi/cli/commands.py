"""What each command does with its options, which options.toml declares."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shlex import join
from typing import Any

import typer

from ghostpoi.cli import output as terminal
from ghostpoi.cli.output import console, say, show, tell
from ghostpoi.errors import InputError
from ghostpoi.files import make_private_folder, refuse_loops
from ghostpoi.options import Option, declared, option, with_urls
from ghostpoi.stores import url_of


def default(one: Option) -> Any:
    """Return what a command takes if an option is not given."""
    if one.type == "flag":
        return bool(one.default)
    return Path(one.default) if one.type == "path" and one.default is not None else one.default


def defaults(command: str) -> dict[str, Any]:
    """Return what a command takes if none of its options are given."""
    return {one.name: default(one) for one in declared()[command].values() if one.only != "Python"}


def step(name: str, asked: dict[str, Any]) -> Any:
    """Call a step of the Python API with what a command was given, as somebody at a terminal."""
    from ghostpoi.api.door import through

    return through(terminal.door(), name, given(name, asked))


def given(name: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of a step for what a command was given."""
    options = [one for one in declared()[name].values() if not one.only and one.name in asked]
    for one in options:
        refuse_loops(asked[one.name])
    return {one.keyword: keyword_value(one, asked[one.name]) for one in options}


def keyword_value(one: Option, value: Any) -> Any:
    """Return the value of a keyword for what the command line gives."""
    if one.type == "flag":
        return value is not one.negates
    if one.type == "mapping":
        return mapping(value)
    if one.type == "names":
        return None if value is None else [value]
    return value or () if one.is_list else value


def mapping(texts: list[str] | None) -> dict[str, str]:
    """Parse `--map FIELD=COLUMN`."""
    found = {}
    for text in texts or []:
        field, equals, column = text.partition("=")
        if not (equals and column):
            example = option("map", "poi=venue_id")
            raise InputError(f"{option('map', text, shown=repr)} is not of the form field=column, e.g. {example}")
        found[field] = column
    return found


_hints: list[str] = []  # how to go on with the command that was interrupted


@contextmanager
def interruptible(how: str) -> Iterator[None]:
    """Let the message about an interruption inside the block say how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        _hints.append(how)
        raise


def interruption() -> str:
    """Return the message about an interruption, once."""
    return f"interrupted: {_hints.pop()}" if _hints else "interrupted"


def inspect(json: bool, **asked: Any) -> None:
    """Describe a file: its contents, what each filter drops, and how many check-ins a method can substitute."""
    show(step("inspect", asked).summary, json, terminal.inspection, asked["file"])


def init(file: Path, output: Path, force: bool, map: list[str] | None, **reading: Any) -> None:
    """Write a commented settings file for a file of check-ins, with the columns that were found; --config reads it."""
    from ghostpoi import formats
    from ghostpoi.api.given import source_of
    from ghostpoi.files import replacing
    from ghostpoi.settings import settings_file

    if output.exists() and not force:
        raise InputError(f"{output} exists; add {option('force')} to replace it, or choose another {option('output')}")
    if not output.parent.is_dir():
        raise InputError(f"{option('output', output)}: the folder {output.parent} does not exist; create it first")
    found = formats.read(source_of(file, given("init", reading)), mapping(map))
    with replacing(output) as out:
        out.write(settings_file(with_urls(str(file)), {"columns": found.mapping}).encode())
    again = join(["ghostpoi", "choose", *_named({"file": file, **reading}), "--config", str(output)])
    say(f"wrote {output}; look at the columns, decide on the limits, then: {again}")


def protect(json: bool, dry_run: bool, **asked: Any) -> None:
    """Make a release: the same rows with plausible substitutes for their venues."""
    from ghostpoi.release.manifest import fingerprint

    if dry_run:
        return _estimate(json, asked)
    with interruptible(f"go on with {option('resume')}"):
        made = step("protect", asked)
    own = made.private or asked["output"]
    show(made.manifest, json, terminal.released, asked["output"], own, fingerprint(own), _named(asked))


def _named(asked: dict[str, Any]) -> list[str]:
    """Return the words that name the check-ins of a command: the file, and what is read of a database."""
    more = [(f"--{name.replace('_', '-')}", asked[name]) for name in ("table", "query", "order_by") if asked.get(name)]
    return [with_urls(str(asked["file"])), *(word for pair in more for word in pair)]


def _estimate(json: bool, asked: dict[str, Any]) -> None:
    from ghostpoi.api.given import Given, divided, rows_request, source_of
    from ghostpoi.release.make import estimate

    if asked["series"]:
        raise InputError(f"{option('dry_run')} estimates a release that stands alone; leave {option('series')} out")
    wanted = Given("protect", given("protect", asked))
    at_scale, fields, texts = divided(wanted, wanted.fields, wanted.set)
    if at_scale:
        raise InputError(
            f"{option('dry_run')} reads the whole file at once; leave out {option('engine')} and the other region "
            "options, or use ghostpoi inspect to describe the regions"
        )
    request = rows_request(wanted, fields, texts)
    show(estimate(source_of(wanted.source, wanted.reading), request), json, terminal.estimate)


def verify(json: bool, **asked: Any) -> None:
    """Check a release against its manifest; exit code 1 if a check fails."""
    _checked(step("verify", asked).checks, json)


def _checked(checks: Any, json: bool) -> None:
    details = [{"check": check.name, "passed": check.passed, "detail": check.detail} for check in checks]
    passed = all(check.passed for check in checks)
    show({"passed": passed, "checks": details}, json, terminal.verification)
    if not passed:
        raise typer.Exit(1)


def audit(json: bool, everybody: bool, make_report: bool, dry_run: bool, **asked: Any) -> None:
    """Measure what adversaries still learn from a release; exit code 1 if it is beyond your limits.

    Call it again to resume after an interruption.
    """
    release, names = asked["release"], asked["adversaries"]
    if make_report and asked["no_store"]:
        raise InputError(f"{option('make_report')} shows the stored audit; leave {option('no_store')} out")
    if make_report and not release.is_dir():
        raise InputError(
            f"{option('make_report')} needs a folder of ghostpoi protect, which {release} is not; for another tool's "
            "file, keep what audit --json prints and give it to report --audit"
        )
    if everybody and names is not None:
        raise InputError(
            f"{option('everybody')} and {option('adversaries', names)} contradict each other; give one of them"
        )
    if dry_run:
        return _audit_plan(json, asked | {"adversaries": "all" if everybody else names})
    with interruptible("call it again to go on"):
        found = step("audit", asked | {"adversaries": "all" if everybody else names})
    show(found.found, json, terminal.audited, release)
    if make_report:
        for path in step("report", defaults("report") | {"release": release, "max_size": asked["max_size"]}).pages:
            say(f"wrote {path}")
    if not found:
        raise typer.Exit(1)


def _audit_plan(json: bool, asked: dict[str, Any]) -> None:
    """Check what an audit is asked for, and say what it would run."""
    from ghostpoi.api.given import Given
    from ghostpoi.api.steps import audit_request
    from ghostpoi.release.manifest import checked_manifest

    wanted = Given("audit", given("audit", asked))
    if wanted.series or wanted.regions or wanted.dividing:
        raise InputError(
            f"{option('dry_run')} plans an audit of one release at once; leave {option('engine')}, the other options "
            f"of regions and {option('series')} out"
        )
    request = audit_request(wanted)
    request.check()
    folder = request.release.path
    request.settings_for(checked_manifest(folder) if folder.is_dir() else None)
    show(request.plan(), json, terminal.audit_plan, request.release.path)


def choose(json: bool, **asked: Any) -> None:
    """Try settings on a file and recommend the safest one that keeps what you need; exit code 1 if none does."""
    with interruptible("call it again to go on"), page_about(asked["file"], asked["output"]) as page:
        choice = step("choose", asked | {"output": page})
    show(choice.found, json, terminal.chosen, choice.page)
    if not choice:
        raise typer.Exit(1)


@contextmanager
def page_about(file: Path | str, given: Path | None) -> Iterator[Path | None]:
    """Yield where the page about a clean file goes: if no option says it, into a private folder next to the file."""
    from ghostpoi.formats.folder import root_of

    if isinstance(file, str) or url_of(file):
        yield given
        return
    source = root_of(file).absolute()
    private = source.with_name(f"{source.name or 'input'}.private")
    if given is not None or not source.parent.is_dir():  # the step says what is wrong with such a file
        yield given
        return
    try:
        make_private_folder(private)
    except OSError as e:
        why = (e.strerror or str(e)).lower()
        raise InputError(f"{private} cannot hold the page ({why}); name another with {option('output')}") from None
    try:
        yield private / "choice.html"
    except BaseException:
        with suppress(OSError):  # it is not empty
            private.rmdir()
        raise


def report(**asked: Any) -> None:
    """Write an offline page: whether a release meets your limits, what it protects, and what it keeps."""
    for path in step("report", asked).pages:
        tell(path)


def person(json: bool, **asked: Any) -> None:
    """Show what a release says about one person, for requests of access and erasure."""
    show(step("person", asked).found, json, terminal.person)
    if asked["private"] is not None:
        say("this answer holds clean data: give it to that person only")


def export(**asked: Any) -> None:
    """Write a release in the form that another tool trains on; with --private, also clean data to test on."""
    tell(step("export", asked).folder)
    if asked["private"] is not None:
        say(f"{asked['output']} holds clean data, so it is private: never publish it")


def synth(
    output: Path, users: int, pois: int, days: int, seed: int, density: float, cities: int | None,
    travellers: float | None, rows_per_part: int | None, format: str | None,
) -> None:  # fmt: skip
    """Write a synthetic city, or many: people with homes, jobs and habits who check in at clustered venues."""
    from ghostpoi.data.synthetic_files import write_city

    for name, value in (("travellers", travellers), ("rows_per_part", rows_per_part), ("format", format)):
        if cities is None and value is not None:
            raise InputError(f"{option(name)} is for several cities; add {option('cities')}")
    if cities is None:
        rows, where = write_city(output, users, pois, days, seed, density), ""
    else:
        from ghostpoi.data.synthetic_files import ROWS_PER_PART, TRAVELLERS, World, write_world
        from ghostpoi.progress import bar

        world = World(cities, users, pois, days, seed, density, TRAVELLERS if travellers is None else travellers)
        part = ROWS_PER_PART if rows_per_part is None else rows_per_part
        with bar(cities) as report:
            rows = write_world(output, world, part, format or "parquet", report)
        users, pois = int(world.city_users.sum()), int(world.city_pois.sum())
        where = f" in {cities:,} cities ({rows / cities:,.0f} check-ins per city on average)"
    say(f"{output}: {rows:,} check-ins of {users:,} people at {pois:,} venues{where} over {days:,} days")


def prepare(file: Path, output: Path, map: list[str] | None, set: list[str] | None, config: Path | None,
            **reading: Any) -> None:  # fmt: skip
    """Write sessions, venues and candidate sets to one file, for studies and GPU machines. Keep it private."""
    from ghostpoi.api.given import source_of
    from ghostpoi.data import prepared
    from ghostpoi.settings import Settings, changed, columns_of
    from ghostpoi.study import prepare_file

    if not output.parent.is_dir():
        raise InputError(f"{option('output', output)}: the folder {output.parent} does not exist; create it first")
    source = source_of(file, given("prepare", reading))
    data = prepare_file(source, columns_of(config) | mapping(map), changed(Settings(), set or [], config))
    prepared.save(output, data)
    sessions = " / ".join(f"{len(part):,}" for part in (data.train, data.val, data.test))
    say(f"{output}: {sessions} sessions, {len(data.vocabulary) - 1:,} venues")


def studio(file: str, folder: list[Path] | None, port: int, browser: bool) -> None:
    """Go the whole way from a file to a published release in a browser, on this machine alone."""
    from ghostpoi.studio.server import serve

    first = Path(file) if file else None
    folders = [*([first.parent] if first else []), *(folder or ([] if first else [Path.cwd()]))]
    for one in folders:
        if not one.is_dir():
            raise InputError(f"{option('folder', one)}: there is no such folder; name one that exists")
    serve(first, folders, port, browser, say)


def plugins() -> None:
    """List methods, adversaries, victims, formats and exports, including those of installed packages."""
    terminal.plugins(console())


def show_series(folder: Path, json: bool) -> None:
    """List the releases of a series: what was released when, and what its crowds hold."""
    from ghostpoi.release.series.overview import describe

    show(describe(folder), json, terminal.series, folder)


def verify_series(folder: Path, json: bool) -> None:
    """Check that a series folder is whole and agrees with its releases; exit code 1 if a check fails."""
    from dataclasses import replace

    from ghostpoi.options import in_shell
    from ghostpoi.release.series.overview import verify_series

    _checked([replace(check, detail=in_shell(check.detail)) for check in verify_series(folder)], json)


def forget_in_series(folder: Path, user: str, json: bool) -> None:
    """Remove what a series folder keeps of one person, and refuse later files with rows of that person."""
    from ghostpoi.release.series.overview import forget

    show(forget(folder, user), json, terminal.forgotten, folder)
