"""The command line: parses, calls, prints. Whatever is slow to import is imported by the command that needs it."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ghostpoi.errors import InputError
from ghostpoi.version import __version__

if TYPE_CHECKING:
    from rich.console import Console

    from ghostpoi.settings import Settings

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Release check-ins that stay plausible yet cannot be learned from, and measure what can still be learned.",
)

File = Annotated[
    Path,
    typer.Argument(
        help="Check-ins: TSMC2014, CSV, TSV or Parquet; .gz, .xz and .zst are read directly.", readable=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change a setting; may be repeated.")
]
Config = Annotated[Path | None, typer.Option("--config", help="A TOML file of settings, [section] by section.")]
Map = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="FIELD=COLUMN", help="Which column is user, poi, category, lat, lon or time."),
]


def version(show: bool) -> None:
    if show:
        print(f"ghostpoi {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def inspect(file: File, json: Json = False, map: Map = None, set: Set = None, config: Config = None) -> None:
    """Say what is in a file, what every filter drops, and how many check-ins have candidates."""
    from ghostpoi.cli import render
    from ghostpoi.data import formats
    from ghostpoi.data import inspect as summary

    settings = _settings(set, config)
    table, _ = formats.read(file, _mapping(map))
    figures = summary.summarise(table, settings)
    if json:
        _print_json(figures)
    else:
        render.inspection(_console(), str(file), figures)


@app.command()
def protect(
    file: File,
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder of the release.")],
    method: Annotated[str, typer.Option(help="crowd, ghost, ghost-sym, ghost-ef, pgd, em, ts-ue or random.")] = "crowd",
    seed: Annotated[
        int | None, typer.Option(help="For experiments. Left out, it is 128 bits from the operating system.", min=0)
    ] = None,
    protocol: Annotated[str, typer.Option(help="strong or paper.")] = "strong",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    private: Annotated[
        Path | None, typer.Option(help="The folder of seed, pairs and models. Default: RELEASE.private.")
    ] = None,
    map: Map = None,
    set: Set = None,
    config: Config = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep", metavar="COLUMN", help="Keep a column that looks like a trace of the venue."),
    ] = None,
    no_candidate: Annotated[
        str, typer.Option(help="Rows whose venue has no candidate: keep them as they are, or withhold them.")
    ] = "keep",
    resume: Annotated[bool, typer.Option("--resume", help="Go on after an interruption.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing release and its private folder.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate time, memory and substitutions; write nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Make a release: the same rows, with venues replaced by plausible ones that teach a model the wrong thing."""
    from ghostpoi import settings as settings_module
    from ghostpoi.cli import render
    from ghostpoi.data import formats
    from ghostpoi.models.devices import device as find_device
    from ghostpoi.publish import protocols, release

    if no_candidate not in ("keep", "withhold"):
        raise InputError(f"--no-candidate {no_candidate}: use keep or withhold")
    base = protocols.publication(method, protocol)
    settings = settings_module.override(settings_module.load(config, base) if config else base, set or [])
    where = find_device(device)
    if dry_run:
        from ghostpoi.publish.estimate import estimate
        from ghostpoi.publish.table import prepare

        table, _ = formats.read(file, _mapping(map))
        figures = estimate(prepare(table, settings), settings, where)
        _print_json(figures) if json else render.estimate(_console(), figures)
        return
    private = private or Path(f"{output}.private")
    request = release.Request(
        file, output, private, settings, method, protocol, _mapping(map), keep or [], no_candidate == "withhold",
        release.given_seed(seed, _say), resume, force, where,
    )  # fmt: skip
    from ghostpoi.progress import bar

    with bar(release.work(settings)) as report:
        manifest = release.make(request, _say, report)
    if json:
        _print_json(manifest)
    else:
        render.released(_console(), output, private, manifest)


@app.command()
def verify(
    release: Annotated[Path, typer.Argument(help="The folder that protect wrote.")],
    against: Annotated[Path | None, typer.Option(help="The file that the release was made from.")] = None,
    map: Map = None,
    json: Json = False,
) -> None:
    """Check a release line by line; exit code 1 if a line fails."""
    from ghostpoi.cli import render
    from ghostpoi.publish.verify import verify as check

    lines = check(release, against, _mapping(map))
    passed = all(line.passed for line in lines)
    if json:
        checks = [{"check": li.check, "passed": li.passed, "detail": li.detail} for li in lines]
        _print_json({"passed": passed, "checks": checks})
    else:
        render.verification(_console(), lines)
    if not passed:
        raise typer.Exit(1)


@app.command()
def audit(
    file: File,
    release: Annotated[Path, typer.Argument(help="A folder that protect wrote, or another tool's file of these rows.")],
    adversaries: Annotated[
        str | None,
        typer.Option(help="Names, separated by commas; none always runs. Default: all that train no model."),
    ] = None,
    everybody: Annotated[
        bool, typer.Option("--all", help="All adversaries, those too that train a model of their own.")
    ] = False,
    leak: Annotated[float, typer.Option(help="Share of training sessions whose clean values leaked.")] = 0.05,
    seeds: Annotated[int, typer.Option(help="Repetitions: each with another leak, adversary and victim.", min=1)] = 3,
    protocol: Annotated[str, typer.Option(help="strong or paper.")] = "strong",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    map: Map = None,
    set: Set = None,
    config: Config = None,
    cache: Annotated[
        Path | None,
        typer.Option(
            help="The folder of finished victims, made of clean data. Default: RELEASE.private/audit where "
            "RELEASE.private exists, else ~/.cache/ghostpoi/audit."
        ),
    ] = None,
    naturalness: Annotated[
        bool, typer.Option("--naturalness/--no-naturalness", help="Train a trajectory LM and rate the release by it.")
    ] = True,
    all_controls: Annotated[
        bool, typer.Option("--all-controls", help="Random against every adversary, not only none and the strongest.")
    ] = False,
    no_store: Annotated[bool, typer.Option("--no-store", help="Leave the manifest of the release as it is.")] = False,
    make_report: Annotated[bool, typer.Option("--report", help="Then write RELEASE/report.html.")] = False,
    json: Json = False,
) -> None:
    """Measure what adversaries still learn from a release; go on after an interruption by calling it again."""
    from ghostpoi.cli import audit_text
    from ghostpoi.evaluate.audit import Request, parse_adversaries, work
    from ghostpoi.evaluate.audit import audit as run
    from ghostpoi.models.devices import device as find_device
    from ghostpoi.progress import bar

    if make_report and (no_store or not release.is_dir()):
        raise InputError("--report needs a release folder and an audit that is stored in it; leave --no-store out")
    names = parse_adversaries(adversaries, everybody)
    request = Request(
        file, release, names, leak, seeds, protocol, find_device(device), _mapping(map), set or [], config, cache,
        naturalness, all_controls, not no_store,
    )  # fmt: skip
    with bar(work(request)) as report:
        found = run(request, _say, report)
    if json:
        _print_json(found)
    else:
        audit_text.audited(_console(), str(release), found)
    if make_report:
        from ghostpoi.report.page import Request as Page
        from ghostpoi.report.page import write_pages

        for path in write_pages(Page(release)):
            _say(f"wrote {path}")


@app.command()
def report(
    release: Annotated[Path, typer.Argument(help="The folder that protect wrote.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The page. Default: RELEASE/report.html, or DIR/report.html.")
    ] = None,
    compare: Annotated[
        list[Path] | None,
        typer.Option(help="Another release of the same file, to compare methods with; may be repeated."),
    ] = None,
    private: Annotated[Path | None, typer.Option(help="The private folder of the release; with --with-clean.")] = None,
    with_clean: Annotated[
        bool, typer.Option("--with-clean", help="Show clean data beside the released: for your own eyes.")
    ] = False,
) -> None:
    """Write one page about a release that works from disk: verdict, map, plausibility, utility, trade-off."""
    from ghostpoi.report.page import Request, write_pages

    for path in write_pages(Request(release, private, with_clean, tuple(compare or ()), output)):
        print(path)


@app.command()
def synth(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The file: .txt (TSMC2014), .csv, .tsv, .parquet; + .gz ...")
    ],
    users: Annotated[int, typer.Option(help="People.")] = 500,
    pois: Annotated[int, typer.Option(help="Venues.")] = 1500,
    days: Annotated[int, typer.Option(help="Days.")] = 120,
    seed: Annotated[int, typer.Option(help="The same seed gives the same city.")] = 0,
) -> None:
    """Make a synthetic city: people with homes, jobs and habits checking in at clustered venues."""
    from ghostpoi.data.synthetic_file import write_city

    rows = write_city(output, users, pois, days, seed)
    _say(f"{output}: {rows:,} check-ins of {users:,} people at {pois:,} venues over {days:,} days")


@app.command()
def demo(
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write to.")] = Path("demo"),
) -> None:
    """Show what ghostpoi does, on a synthetic city: no data and no network needed."""
    from ghostpoi.cli.demo import run

    run(output, _console())


bench_app = typer.Typer(no_args_is_help=True, help="Measure speed, as ratios in one run.")
app.add_typer(bench_app, name="bench")


@bench_app.command("prepare")
def bench_prepare(
    json: Json = False,
    rows: Annotated[int, typer.Option(help="Check-ins of the synthetic table.")] = 5_000_000,
    pois: Annotated[int, typer.Option(help="Venues to find candidates for.")] = 1_000_000,
) -> None:
    """Reading, filtering, segmenting and candidate search, against polars alone."""
    from ghostpoi.bench import prepare

    _print_figures(prepare.run(rows, pois, _say), json)


Data = Annotated[Path | None, typer.Option("--data", help="Prepared data; default: NYC where present, else synthetic.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]


@bench_app.command("scoring")
def bench_scoring(
    json: Json = False,
    data: Data = None,
    share: Annotated[float, typer.Option(help="Share of the sessions scored both ways.", min=0, max=1)] = 1.0,
) -> None:
    """One scoring pass against its brute-force definition and the matrix-product peak."""
    from ghostpoi.bench import data as bench_data
    from ghostpoi.bench import scoring

    _print_figures(scoring.run(bench_data.load(data), share, _say), json)


@bench_app.command("training")
def bench_training(
    json: Json = False,
    data: Data = None,
    share: Annotated[float, typer.Option(help="Share of the sessions trained on.", min=0, max=1)] = 0.25,
    epochs: Annotated[int, typer.Option(help="Epochs each way.", min=1)] = 3,
) -> None:
    """A packed epoch against the plain padded loop."""
    from ghostpoi.bench import data as bench_data
    from ghostpoi.bench import training

    _print_figures(training.run(bench_data.load(data), share, epochs, _say), json)


@bench_app.command("protect")
def bench_protect(
    json: Json = False,
    data: Data = None,
    method: Annotated[str, typer.Option(help="The method.")] = "ghost",
    device: Device = "cpu",
) -> None:
    """Protecting the training split under the paper's settings, the trajectory LM included."""
    from ghostpoi.bench import data as bench_data
    from ghostpoi.bench import protect
    from ghostpoi.models.devices import device as find_device

    _print_figures(protect.run(bench_data.load(data), method, find_device(device), _say), json)


@bench_app.command("growth")
def bench_growth(
    json: Json = False,
    sessions: Annotated[int, typer.Option(help="Sessions measured of each city.", min=1)] = 2000,
    device: Device = "cpu",
) -> None:
    """An epoch and a scoring pass on synthetic cities of growing size."""
    from ghostpoi.bench import growth
    from ghostpoi.models.devices import device as find_device

    _print_figures(growth.run(sessions, find_device(device), _say), json)


study_app = typer.Typer(
    no_args_is_help=True, help="Reproduce the paper's tables and figures, or run a study of your own."
)
app.add_typer(study_app, name="study")
Study = Annotated[str, typer.Argument(help="A study's name (see study list), or a TOML file.")]
Results = Annotated[Path, typer.Option(help="The folder of results.")]
Prepared = Annotated[Path, typer.Option("--data", help="What ghostpoi prepare wrote.")]
Protocol = Annotated[str, typer.Option(help="strong or paper.")]


@study_app.command("list")
def study_list() -> None:
    """The studies that come with ghostpoi."""
    from ghostpoi.study import plan

    for name in plan.names():
        study = plan.load(name)
        print(f"{name:10} {study.title}; {len(study.methods)} methods, {len(study.adversaries)} adversaries")


@study_app.command("run")
def study_run(
    names: Annotated[list[str], typer.Argument(help="Names of studies (see study list), or TOML files.")],
    data: Prepared,
    protocol: Protocol = "strong",
    device: Device = "auto",
    results: Results = Path("results"),
    victims: Annotated[
        bool, typer.Option(help="--no-victims: only make releases and restorations, for a later run to train on.")
    ] = True,
    show_tables: Annotated[
        bool, typer.Option("--tables", help="Print the tables at the end, as study tables does.")
    ] = False,
) -> None:
    """Make the cells of a study that are missing: one JSON each, all seeds in it."""
    from ghostpoi.data import prepared as dataset_file
    from ghostpoi.models.devices import device as find_device
    from ghostpoi.study import plan
    from ghostpoi.study.run import Runner

    studies = [plan.load(name) for name in names]
    prepared, where = dataset_file.load(data), find_device(device)
    for study in studies:
        folder = Runner(study, protocol, prepared, where, results, _say).run(victims)
        _say(f"{study.name}: cells in {folder}")
    for name in names if show_tables else ():
        study_tables(name, results, protocol)


@study_app.command("calibrate")
def study_calibrate(
    data: Prepared,
    protocol: Protocol = "paper",
    device: Device = "auto",
    results: Results = Path("results"),
    seeds: Annotated[int, typer.Option(min=1, help="Clean victims to train.")] = 3,
    trials: Annotated[int, typer.Option(min=1, help="Releases of TS-UE to make.")] = 7,
) -> None:
    """Find what the paper leaves open, on the clean model and on TS-UE's substitution rate alone. Changes nothing."""
    from ghostpoi.data import prepared as dataset_file
    from ghostpoi.models.devices import device as find_device
    from ghostpoi.study import calibrate
    from ghostpoi.study.run import commit, hardware, write_json

    prepared, where = dataset_file.load(data), find_device(device)
    found = {
        "protocol": protocol,
        "data": prepared.name,
        "hardware": hardware(where),
        "commit": commit(),
        "clean": calibrate.clean_epochs(prepared, protocol, where, seeds, _say),
        "ts-ue": calibrate.reach(prepared, protocol, where, trials, _say),
    }
    write_json(results / f"calibration-{protocol}.json", found)


@study_app.command("tables")
def study_tables(
    name: Study,
    results: Results = Path("results"),
    protocol: Annotated[str, typer.Option(help="strong, paper, or both.")] = "strong",
    latex: Annotated[bool, typer.Option("--latex", help="LaTeX instead of Markdown.")] = False,
) -> None:
    """Print the tables of a study, with the paper's printed numbers where it has any."""
    from ghostpoi.study.results import PROTOCOLS
    from ghostpoi.study.results import Results as StudyResults
    from ghostpoi.study.tables import tables

    found = [StudyResults.read(results, name, p) for p in (PROTOCOLS if protocol == "both" else (protocol,))]
    for one in found:
        if not one.cells:
            _say(f"no results of {name} under {one.protocol} in {results}; make them with ghostpoi study run {name}")
    for table in tables(found):
        print(table.latex() if latex else table.markdown())


@study_app.command("figures")
def study_figures(
    name: Annotated[
        str, typer.Argument(help="main, rounds, leak, adaptive or crowds; or map, one day clean and released.")
    ],
    results: Results = Path("results"),
    protocol: Protocol = "strong",
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write to.")] = Path("figures"),
    data: Annotated[
        Path | None,
        typer.Option("--data", help="For map: prepared data. The picture shows it clean; default: synthetic."),
    ] = None,
) -> None:
    """Draw the figures of a study as PNG and SVG."""
    from ghostpoi.study import figures
    from ghostpoi.study.figures.day_map import draw_map
    from ghostpoi.study.results import Results as StudyResults

    if name == "map":
        paths = draw_map(output, _say, data)
    else:
        paths = figures.draw(StudyResults.read(results, name, protocol), folder=output)
    for path in paths:
        print(path)


@study_app.command("page")
def study_page(
    output: Annotated[Path, typer.Option("-o", "--output", help="The Markdown file to write.")],
    name: Annotated[
        str, typer.Argument(help="reproduction: the paper's claims. adaptive: adversaries that know the rule.")
    ] = "reproduction",
    results: Results = Path("results"),
    folder: Annotated[
        Path | None, typer.Option("--figures", help="The folder of its figures; default: figures beside the page.")
    ] = None,
) -> None:
    """Write a result page: its template, filled with tables and figures. Fails if a claim contradicts the results."""
    from ghostpoi.study import pages

    print(pages.write(name, results, output, folder, _say))


@app.command()
def prepare(
    file: File,
    output: Annotated[Path, typer.Option("-o", "--output", help="The .npz file to write.")],
    map: Map = None,
    set: Set = None,
    config: Config = None,
) -> None:
    """Put what a study and a GPU machine need into one file. It is clean data: keep it to yourself."""
    from ghostpoi.data import prepared as dataset_file
    from ghostpoi.data.prepare import prepare_file

    if not output.parent.is_dir():
        raise InputError(f"-o {output}: the folder {output.parent} does not exist; make it first")
    data = prepare_file(file, _mapping(map), _settings(set, config))
    dataset_file.save(output, data)
    _say(
        f"{output}: {len(data.train):,} / {len(data.val):,} / {len(data.test):,} sessions, "
        f"{len(data.vocabulary) - 1:,} POIs"
    )


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 the check says no, 2 bad input or usage, 130 interrupted."""
    try:
        code = app(standalone_mode=False)
    except InputError as e:
        _fail(str(e))
    except KeyboardInterrupt:
        _say("ghostpoi: interrupted")
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except Exception as e:
        if hasattr(e, "format_message"):  # typer's own complaints about usage
            _fail(f"{e.format_message().rstrip('.') or 'name a command'}; see ghostpoi --help")
        raise
    if code == 130:  # typer's answer to Ctrl-C
        _say("ghostpoi: interrupted")
    sys.exit(code if isinstance(code, int) else 0)


def _fail(sentence: str) -> None:
    _say("ghostpoi: " + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in sentence))  # a file's name, say
    sys.exit(2)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _print_json(figures: dict[str, Any]) -> None:
    print(json.dumps(figures, indent=2, ensure_ascii=False))


def _print_figures(figures: dict[str, Any], as_json: bool) -> None:
    if as_json:
        _print_json(figures)
        return
    for name, value in figures.items():
        print(f"{name:28} {value:,.3f}" if isinstance(value, float) else f"{name:28} {value}")


def _console() -> "Console":
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else 120)


def _settings(assignments: list[str] | None, config: Path | None) -> "Settings":
    from ghostpoi import settings

    base = settings.Settings()
    return settings.override(settings.load(config, base) if config else base, assignments or [])


def _mapping(texts: list[str] | None) -> dict[str, str]:
    mapping = {}
    for text in texts or []:
        field, equals, column = text.partition("=")
        if not (equals and column):
            raise InputError(f"--map {text!r} is not of the form field=column, e.g. --map poi=venue_id")
        mapping[field] = column
    return mapping
