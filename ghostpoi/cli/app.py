"""The application: commands, exit codes and error messages."""

import contextlib
import io
import os
import signal
import sys
from typing import Annotated

import typer

from ghostpoi import __version__
from ghostpoi.cli import commands, series, study
from ghostpoi.cli.demo import demo
from ghostpoi.cli.options import add, interruption, say
from ghostpoi.errors import InputError
from ghostpoi.extras import missing

READER_GONE = 141  # what a shell reports for a program that SIGPIPE ended

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Release check-ins that stay plausible but cannot be learned from, and measure what adversaries still learn.",
)
publishing = (commands.inspect, commands.choose, commands.protect, commands.verify, commands.audit, commands.report)
for command in (*publishing, commands.export, commands.synth, commands.prepare, demo, commands.plugins):
    add(app, command)
app.add_typer(series.app, name="series")
app.add_typer(study.app, name="study")


def _version(show: bool) -> None:
    if show:
        print(f"ghostpoi {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line.

    Exit codes: 0 done, 1 a check failed, 2 bad input, usage, disk or permissions, 130 interrupted, 141 nobody reads the
    output any more.
    """
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
        _fail(str(e), e.code)
    except ModuleNotFoundError as e:
        if sentence := missing(e.name or ""):
            _fail(sentence)
        raise
    except KeyboardInterrupt:
        say(f"ghostpoi: {interruption()}")
        sys.exit(130)
    except (BrokenPipeError, SystemExit):  # typer and rich exit by themselves when the reader has gone
        _discard_output()
        sys.exit(READER_GONE)
    except OSError as e:
        _fail(_sentence(e))
    except MemoryError:
        _fail("the memory is not enough; use a larger machine, a smaller file or smaller settings")
    except Exception as e:
        if hasattr(e, "format_message"):  # a usage error of typer
            _fail(f"{e.format_message().rstrip('.') or 'name a command'}; see ghostpoi --help")
        raise
    if code == 130:  # typer returns this after Ctrl-C
        say(f"ghostpoi: {interruption()}")
    sys.exit(code if isinstance(code, int) else 0)


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


def _fail(sentence: str, code: int = 2) -> None:
    with contextlib.suppress(OSError):  # there may be no place for the message either
        say(f"ghostpoi: {sentence}")
    sys.exit(code)
