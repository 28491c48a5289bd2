"""The application: commands, exit codes and error messages."""

import sys
from typing import Annotated

import typer

from ghostpoi import __version__
from ghostpoi.cli import bench, commands, study
from ghostpoi.cli.demo import demo
from ghostpoi.cli.options import add, say
from ghostpoi.errors import InputError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Release check-ins that stay plausible but cannot be learned from, and measure what adversaries still learn.",
)
publishing = (commands.inspect, commands.protect, commands.verify, commands.audit, commands.report)
for command in (*publishing, commands.synth, commands.prepare, demo, commands.plugins):
    add(app, command)
app.add_typer(bench.app, name="bench")
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
    """Run the command line. Exit codes: 0 done, 1 a check failed, 2 bad input or usage, 130 interrupted."""
    try:
        code = app(prog_name="ghostpoi", standalone_mode=False)
    except InputError as e:
        _fail(str(e))
    except KeyboardInterrupt:
        say("ghostpoi: interrupted")
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except Exception as e:
        if hasattr(e, "format_message"):  # a usage error of typer
            _fail(f"{e.format_message().rstrip('.') or 'name a command'}; see ghostpoi --help")
        raise
    if code == 130:  # typer returns this after Ctrl-C
        say("ghostpoi: interrupted")
    sys.exit(code if isinstance(code, int) else 0)


def _fail(sentence: str) -> None:
    # File names may contain control characters.
    say("ghostpoi: " + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in sentence))
    sys.exit(2)
