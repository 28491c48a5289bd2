"""The options of all commands, and the functions with which commands parse settings and print results."""

import inspect
import json
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ghostpoi.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from ghostpoi.settings import Settings

OPTIONS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("options.toml").read_text("utf-8"))

S = TypeVar("S", bound="Settings")


def add(app: typer.Typer, command: Callable[..., None], group: str = "", name: str = "") -> None:
    """Add a command to an application, with the flags and help texts of options.toml."""
    name = name or command.__name__
    texts = OPTIONS["common"] | OPTIONS.get(group, {}) | OPTIONS.get(f"{group}-{name}" if group else name, {})
    for p in inspect.signature(command).parameters.values():
        text = dict(texts[p.name])
        only_on = [f"--{p.name.replace('_', '-')}"] if p.default is False else []  # typer would add --no-...
        flags, make = text.pop("flags", only_on), typer.Argument if text.pop("argument", False) else typer.Option
        command.__annotations__[p.name] = Annotated[p.annotation, make(*flags, **text)]
    app.command(name)(command)


def say(text: str) -> None:
    """Print a message on stderr."""
    print(text, file=sys.stderr)


def console() -> "Console":
    """Return a console for stdout, 120 columns wide if stdout is not a terminal."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else 120)


def show(result: dict[str, Any], as_json: bool, render: Callable[..., None], *names: object) -> None:
    """Print a result on stdout: as one JSON object, or with a function of `render`."""
    if as_json:
        print(json.dumps(result, indent=2, ensure_ascii=False))
    else:
        render(console(), *names, result)


def changed(base: S, assignments: list[str] | None, config: Path | None) -> S:
    """Apply a settings file, then `--set` assignments."""
    from ghostpoi import settings

    return settings.override(settings.load(config, base) if config else base, assignments or [])


def mapping(texts: list[str] | None) -> dict[str, str]:
    """Parse `--map FIELD=COLUMN`."""
    found = {}
    for text in texts or []:
        field, equals, column = text.partition("=")
        if not (equals and column):
            raise InputError(f"--map {text!r} is not of the form field=column, e.g. --map poi=venue_id")
        found[field] = column
    return found
