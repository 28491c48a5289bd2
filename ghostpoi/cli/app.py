"""The application: commands with the options that options.toml declares, exit codes and error messages."""

import atexit
import contextlib
import inspect
import io
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ghostpoi import __version__
from ghostpoi.cli import commands, study
from ghostpoi.cli.commands import interruption
from ghostpoi.cli.output import failed, log_to_stderr, say
from ghostpoi.cli.study import demo
from ghostpoi.errors import InputError
from ghostpoi.options import Option, declared, examples, panels
from ghostpoi.plugins import missing
from ghostpoi.progress import timed
from ghostpoi.stores import at_hand

FAULT = "ghostpoi itself"  # what failed if no plug-in did
READER_GONE = 141  # what a shell reports for a program that SIGPIPE ended
TYPES: dict[str, Any] = {
    "text": str, "names": str, "whole": int, "number": float, "flag": bool, "path": Path, "source": Path,
    "release": Path, "released": Path, "mapping": list[str], "settings": list[str],
}  # fmt: skip


def _place(text: str | Path) -> Path | str:
    """Return a path, as a default already is; a URL stays as it is, because a path would lose one of its slashes."""
    return text if "://" in str(text) else Path(text)


class _Quiet:
    """A command or group whose --help shows no type next to flags, and options in the order of the panels."""

    def get_params(self, ctx: Any) -> list[Any]:
        found: list[Any] = super().get_params(ctx)  # type: ignore[misc]  # of the class that stands behind it
        for one in found:
            if getattr(one, "is_flag", False):
                one.metavar = ""
        order = [*dict.fromkeys(panels().values()), None]
        return sorted(found, key=lambda one: order.index(getattr(one, "rich_help_panel", None)))


class _Command(_Quiet, TyperCommand):
    pass


class _Group(_Quiet, TyperGroup):
    pass


def _group(help: str, **options: Any) -> typer.Typer:
    return typer.Typer(no_args_is_help=True, help=help, cls=_Group, **options)


def _add(app: typer.Typer, run: Callable[..., None], name: str, group: str = "") -> None:
    """Add a command with its declared options to an application."""

    def command(**given: Any) -> None:
        with timed(" ".join(filter(None, (group, name)))), at_hand(given, declaration) as here:
            run(**here)

    declaration = f"{group}-{name}" if group else name
    options = declared()[declaration]
    parameters = [_parameter(one) for one in options.values() if one.only != "Python"]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    shown = "\n\n".join(["Examples:", *examples(name)]) if examples(name) else None
    app.command(name, help=inspect.getdoc(run), epilog=shown, cls=_Command)(command)


def _parameter(one: Option) -> inspect.Parameter:
    """Return an option as typer takes it."""
    kind = TYPES[one.type]
    kind = list[kind] if one.many else kind  # type: ignore[valid-type]
    value = None if one.type == "flag" else one.metavar or one.name.upper()
    texts: dict[str, Any] = {"help": one.help, "metavar": value, "min": one.min, "max": one.max}
    flags = one.flags or ([one.flag] if one.type == "flag" and not one.default else [])  # typer would add --no-...
    make = typer.Argument if one.argument else typer.Option
    if not one.argument:
        texts["rich_help_panel"] = panels().get(one.name)
    default: Any = inspect.Parameter.empty
    if not (one.required or (one.argument and one.default is None)):
        default = commands.default(one)
        kind = kind | None if default is None else kind
    if TYPES[one.type] is Path:
        texts["parser"] = _place
    return inspect.Parameter(
        one.name, inspect.Parameter.KEYWORD_ONLY, default=default,
        annotation=Annotated[kind, make(*flags, readable=one.readable, **texts)],
    )  # fmt: skip


app = _group(
    "Release check-ins that stay plausible but cannot be learned from, and measure what adversaries still learn.",
    pretty_exceptions_enable=False,
)
for run in (
    commands.inspect, commands.init, commands.choose, commands.protect, commands.verify, commands.audit,
    commands.report, commands.studio, commands.person, commands.export, commands.synth, commands.prepare, demo,
    commands.plugins,
):  # fmt: skip
    _add(app, run, run.__name__)
series_app = _group("Look into a series of releases, made with protect --series.")
study_app = _group("Reproduce the paper's tables and figures, or run a study of your own.")
below: list[tuple[typer.Typer, str, str, Callable[..., None]]] = [
    (series_app, "series", "show", commands.show_series), (series_app, "series", "verify", commands.verify_series),
    (series_app, "series", "forget", commands.forget_in_series), (study_app, "study", "list", study.list_studies),
    (study_app, "study", "run", study.run), (study_app, "study", "reproduce", study.reproduce),
    (study_app, "study", "tables", study.tables), (study_app, "study", "figures", study.figures),
]  # fmt: skip
for under, group, name, work in below:
    _add(under, work, name, group)
app.add_typer(series_app, name="series")
app.add_typer(study_app, name="study")


def _version(show: bool) -> None:
    if show:
        print(f"ghostpoi {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log on stderr what is done, and how long.")] = False,
    log_format: Annotated[
        str,
        typer.Option(metavar="FORMAT", help="json: write to stderr one JSON object a line only. Default: text."),
    ] = "text",
) -> None:
    if log_format not in ("text", "json"):
        raise InputError(f"--log-format {log_format}: use text or json")
    log_to_stderr(verbose, log_format == "json")


def main() -> None:
    """Run the command line.

    Exit codes: 0 done, 1 a check failed, 2 bad input, usage, disk or permissions, 130 interrupted, 141 nobody reads the
    output any more.
    """
    _hide_password()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the caller
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # not every terminal has every character
    with contextlib.suppress(ValueError):  # only the main thread may
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # clean up as after Ctrl-C
    try:
        code = app(prog_name="ghostpoi", standalone_mode=False)
        sys.stdout.flush()
    except InputError as e:
        _fail(str(e), e.code, _may_quote(e))
    except ModuleNotFoundError as e:
        _fail(missing(e.name or "") or _unexpected(e))
    except KeyboardInterrupt:
        _interrupted()
    except (BrokenPipeError, SystemExit):  # typer and rich exit by themselves when the reader has gone
        _discard_output()
        sys.exit(READER_GONE)
    except OSError as e:
        _fail(_sentence(e))
    except MemoryError:
        _fail("not enough memory; use a larger machine, a smaller file or smaller settings")
    except Exception as e:
        if hasattr(e, "format_message"):  # a usage error of typer
            _fail(f"{e.format_message().rstrip('.') or 'name a command'}; see ghostpoi --help")
        _fail(_unexpected(e))
    except BaseException as e:
        if type(e).__name__ != "PanicException":  # of polars, which is no Exception
            raise
        _fail(_unexpected(e))
    if code == 130:  # typer returns this after Ctrl-C
        _interrupted()
    atexit.register(_ignore_signals)
    sys.exit(code if isinstance(code, int) else 0)


def _hide_password() -> None:
    """Start again if a URL on the command line, which other users of the machine can list, holds a password."""
    if not any("://" in text for text in sys.argv):
        return
    from ghostpoi.formats.source import without_password

    for at, text in enumerate(sys.orig_argv):
        url, secret = without_password(text)
        if secret:
            os.environ["PGPASSWORD"] = secret
            os.execv(sys.executable, [*sys.orig_argv[:at], url, *sys.orig_argv[at + 1 :]])


def _ignore_signals() -> None:
    """Let nothing interrupt the exit, in which libraries would print a traceback."""
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_IGN)


def _interrupted() -> None:
    _ignore_signals()
    say(f"ghostpoi: {interruption()}")
    sys.exit(130)


QUIET = ("api", "cli", "files", "stores", "settings", "plugins", "release.make", "release.private_folder",
         "release.manifest", "regions.engine", "regions.dataset", "formats.databases", "formats.source")  # fmt: skip


def _may_quote(error: InputError) -> bool:
    """Return whether the sentence of an error may quote a value of a file: modules that see values have raised it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")
    return not f"{module.removeprefix('ghostpoi.')}.".startswith(tuple(f"{name}." for name in QUIET))


def _unexpected(error: BaseException) -> str:
    """Store the traceback of an error, which may quote clean values, for its owner alone; return what to say."""
    import tempfile
    import traceback

    from ghostpoi.plugins import at_fault

    last = traceback.extract_tb(error.__traceback__)[-1]
    what = f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}"
    who = f"the plug-in {name!r}" if (name := at_fault(error)) else FAULT
    try:
        handle, log = tempfile.mkstemp(prefix="ghostpoi-", suffix=".log")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as out:
            out.write("".join(traceback.format_exception(error)))
    except OSError:  # there is no place for it
        return f"{who} failed ({what}); report it to its authors"
    return f"{who} failed ({what}); report it to its authors with {log}, after you have removed clean data from it"


def _sentence(error: OSError) -> str:
    reason = (error.strerror or str(error)).lower()
    if error.filename is not None:
        return f"{error.filename} cannot be used ({reason}); check the path, its permissions and the disk"
    _discard_output()
    return f"the output cannot be written ({reason}); free some space or write it elsewhere"


def _discard_output() -> None:
    """Drop what is still in the buffer of stdout. Python would try again to write it, and complain."""
    stdout = sys.__stdout__
    if stdout is not None and stdout is sys.stdout:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())


def _fail(sentence: str, code: int = 2, may_quote: bool = False) -> None:
    with contextlib.suppress(OSError):  # there may be no place for the message either
        failed(f"ghostpoi: {sentence}", code, may_quote)
    sys.exit(code)
