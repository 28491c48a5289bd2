"""Options and output functions that several commands share."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ghostpoi.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from ghostpoi.settings import Settings

File = Annotated[
    Path,
    typer.Argument(
        help="Check-ins: TSMC2014, CSV, TSV or Parquet; .gz, .xz and .zst files are decompressed.", readable=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Set = Annotated[
    list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Change a setting; repeatable.")
]
Config = Annotated[Path | None, typer.Option("--config", help="A TOML file of settings, one [section] each.")]
Map = Annotated[
    list[str] | None,
    typer.Option(
        "--map", metavar="FIELD=COLUMN", help="The column of user, poi, category, lat, lon or time; repeatable."
    ),
]
Protocol = Annotated[str, typer.Option(help="Settings of surrogate and victim: strong or paper.")]
Device = Annotated[str, typer.Option(help="Where models run: auto, cpu or cuda.")]

S = TypeVar("S", bound="Settings")


def say(text: str) -> None:
    """Print a message on stderr."""
    print(text, file=sys.stderr)


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object on stdout."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def console() -> "Console":
    """Return a console for stdout, 120 columns wide if stdout is not a terminal."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else 120)


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
