"""The demonstration: a synthetic city, and what ghostpoi has to say about it."""

from pathlib import Path

from rich.console import Console

from ghostpoi import formats, render, summary
from ghostpoi.errors import InputError
from ghostpoi.settings import Settings
from ghostpoi.synth_file import write_city

USERS, POIS, DAYS, SEED = 500, 1500, 120, 7


def run(folder: Path, console: Console) -> None:
    """Make a city in `folder` and inspect it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise InputError(f"-o {folder}: the folder cannot be made ({e.strerror}); choose another") from None
    path = folder / "city.txt"
    write_city(path, USERS, POIS, DAYS, SEED)
    console.print(f"made a city: ghostpoi synth -o {path} --users {USERS} --pois {POIS} --days {DAYS} --seed {SEED}\n")
    table, _ = formats.read(path)
    render.inspection(console, str(path), summary.summarise(table, Settings()))
