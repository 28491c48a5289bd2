"""The options of all commands, and the functions with which commands parse settings and print results.

Everything that is printed passes `printable` or `SafeConsole`: names from files may contain terminal escapes.
"""

import functools
import inspect
import json
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ghostpoi.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from ghostpoi.api.wording import Caller

OPTIONS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("options.toml").read_text("utf-8"))

READING = (
    "columns",
    "decimal",
    "time_format",
    "timezone",
    "missing",
    "venues",
    "cluster_points",
)  # named as the fields of `Reading`


def add(app: typer.Typer, command: Callable[..., None], group: str = "", name: str = "") -> None:
    """Add a command to an application, with the flags and help texts of options.toml."""
    name = name or command.__name__
    texts = OPTIONS["common"] | OPTIONS.get(group, {}) | OPTIONS.get(f"{group}-{name}" if group else name, {})
    signature = inspect.signature(command)
    parameters = []
    for p in signature.parameters.values():
        text = dict(texts[p.name])
        only_on = [f"--{p.name.replace('_', '-')}"] if p.default is False else []  # typer would add --no-...
        flags, make = text.pop("flags", only_on), typer.Argument if text.pop("argument", False) else typer.Option
        parameters.append(p.replace(annotation=Annotated[p.annotation, make(*flags, **text)]))
    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    app.command(name)(command)


def reads_files(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option --max-size, which limits what it reads, and let the API speak to its caller."""
    return _with_options(command, ["max_size"])


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that state how to read a file of check-ins. It gets them as keywords."""
    return _with_options(command, [*READING, "max_size"])


def _with_options(command: Callable[..., None], names: Iterable[str]) -> Callable[..., None]:
    """Add text options to the signature of a command."""

    @functools.wraps(command)
    def called(*arguments: Any, **more: Any) -> None:
        from ghostpoi.api.wording import called_by

        with called_by(command_line()):
            command(*arguments, **more)

    signature = inspect.signature(command)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=str | None) for name in names
    ]
    called.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    return called


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


def printable(text: object) -> str:
    """Show control characters, including line ends, as escapes such as \\x1b."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))


def say(text: str) -> None:
    """Print a message on stderr."""
    print(printable(text), file=sys.stderr)


def tell(text: object) -> None:
    """Print a line on stdout."""
    print(printable(text))


def console() -> "Console":
    """Return a console for stdout, 120 columns wide if stdout is not a terminal. It shows control characters."""
    from rich.console import Console
    from rich.segment import Segment

    class SafeConsole(Console):
        def render(self, *arguments: Any, **more: Any) -> Iterator[Segment]:
            for segment in super().render(*arguments, **more):
                text = segment.text
                if not segment.control and not text.isprintable():
                    text = "\n".join(map(printable, text.split("\n")))
                yield Segment(text, segment.style, segment.control)

    return SafeConsole(highlight=False, emoji=False, width=None if sys.stdout.isatty() else 120)


def show(result: dict[str, Any], as_json: bool, render: Callable[..., None], *names: object) -> None:
    """Print a result on stdout: as one JSON object, or with a function of `render`."""
    if as_json:
        text = json.dumps(result, indent=2, ensure_ascii=False)
        print("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))
    else:
        render(console(), *names, result)


def command_line() -> "Caller":
    """Return who calls the steps of the API here: somebody at a terminal."""
    from ghostpoi.api.wording import Caller
    from ghostpoi.progress import bar

    return Caller(say, bar, lambda text: text, command_of)


def command_of(step: str, source: str, keywords: Mapping[str, Any]) -> str:
    """Return the command line of a step with these options."""
    words = ["ghostpoi", step, source, "-o", "RELEASE"]
    for name, value in keywords.items():
        many = [f"{key}={one}" for key, one in value.items()] if isinstance(value, Mapping) else value
        values = many if isinstance(many, list) else [many] if many is not None else []
        words += [word for one in values for word in (f"--{name.replace('_', '-')}", str(one))]
    return shlex.join(words)


def mapping(texts: list[str] | None) -> dict[str, str]:
    """Parse `--map FIELD=COLUMN`."""
    found = {}
    for text in texts or []:
        field, equals, column = text.partition("=")
        if not (equals and column):
            raise InputError(f"--map {text!r} is not of the form field=column, e.g. --map poi=venue_id")
        found[field] = column
    return found
