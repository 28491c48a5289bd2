"""A small city and small models, shared by the tests of protect: each release is made once."""

import contextlib
import csv
import io
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

from ghostpoi import formats
from ghostpoi.cli import main
from ghostpoi.cli.app import FAULT
from ghostpoi.data import synthetic as synth
from ghostpoi.data.synthetic_files import city_frame, write_city
from ghostpoi.draw.publication import Publication, Task, publication
from ghostpoi.draw.whole_table import WholeTable, prepare
from ghostpoi.models.transformer import CausalTransformer
from ghostpoi.settings import override

torch.set_num_threads(1)

MODELS = [  # in a settings file, which may serve methods that train no model
    *(f"{model}.{key}" for model in ("surrogate", "lm") for key in ("dim=16", "heads=2", "feed_forward=16")),
    "rounds.outer=2", "rounds.inner=1", "lm_training.epochs=1",
]  # fmt: skip
SMALL = ["filters.min_poi_checkins=5"]
SEED = 0xC0FFEE00112233445566778899AABBCC
SIZE = (60, 200, 30)  # users, POIs, days
MAP = ["--map", "user=Who", "--map", "poi=spot"]
RICH = [*MAP, "--keep", "checkin"]  # to protect the rich table: its ids of check-ins cannot be known to be harmless
Done = subprocess.CompletedProcess[str]


@cache
def scratch() -> Path:
    """A folder for the whole session, with all that is made once."""
    _keep.append(tempfile.TemporaryDirectory())
    return Path(_keep[-1].name)


_keep: list[tempfile.TemporaryDirectory[str]] = []


def settings_file() -> Path:
    """A settings file with small models."""
    path, tables = scratch() / "small.toml", dict[str, list[str]]()
    for text in MODELS:
        section, _, line = text.partition(".")
        tables.setdefault(section, []).append(line)
    path.write_text("".join(f"[{section}]\n" + "\n".join(lines) + "\n" for section, lines in tables.items()))
    return path


CONFIG = settings_file()
SETS = ["--set", *SMALL, "--config", str(CONFIG)]


def settings(method: str = "ghost", *more: str, protocol: str = "strong") -> Publication:
    return override(publication(method, protocol), [*MODELS, *SMALL, *more])


@cache
def city() -> Path:
    """A TSMC2014 file."""
    path = scratch() / "city.txt"
    write_city(path, *SIZE, 3)
    return path


@cache
def prepared() -> WholeTable:
    return prepare(formats.read(city()).table, settings())


def task_of(settings: Publication, lm: CausalTransformer | None = None) -> Task:
    """The publisher's task on the city."""
    whole = prepared()
    return Task(settings, whole.data.all, whole.data.vocabulary, whole.session_sets, lm)


@cache
def rich_frame() -> pl.DataFrame:
    """The city with other column names, what a venue decides, what a user decides, and what nobody decides."""
    frame = city_frame(synth.make_city(*SIZE, 3), 3)
    draw = random.Random(5)
    name = {v: f'{draw.choice(["Joe", "Ann"])}\'s "{v[:5]}", Inc' for v in frame["venue_id"].unique().sort()}
    street = {v: f"{draw.randrange(900)} {v[5:9]} St, New York" for v in name}
    return pl.DataFrame(
        {
            "title": [name[v] for v in frame["venue_id"]],
            "Who": frame["user"],
            "spot": frame["venue_id"],
            "gender": ["mf"[int(u) % 2] for u in frame["user"]],
            "catid": frame["category_id"],
            "lat": frame["latitude"],
            "mood": [draw.choice(["good", "bad", ""]) for _ in range(frame.height)],
            "lng": frame["longitude"],
            "address": [street[v] for v in frame["venue_id"]],
            "checkin": [f"{draw.getrandbits(96):024x}" for _ in range(frame.height)],
            "timestamp": frame["utc_time"],
        }
    )


@cache
def rich_csv() -> Path:
    path = scratch() / "rich.csv"
    with path.open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(rich_frame().columns)
        writer.writerows(rich_frame().iter_rows())
    return path


@cache
def rich_parquet() -> Path:
    """Venues as numbers, and times as times."""
    number = {v: 10_007 * (i + 3) for i, v in enumerate(rich_frame()["spot"].unique(maintain_order=True))}
    path = scratch() / "rich.parquet"
    rich_frame().with_columns(
        spot=pl.Series([number[v] for v in rich_frame()["spot"]]),
        Who=pl.col("Who").cast(pl.Int32),
        timestamp=pl.col("timestamp").str.to_datetime("%a %b %d %H:%M:%S %z %Y"),
    ).write_parquet(path)
    return path


def called(*words: object, main: Callable[[], None] = main) -> Done:
    """The command line in this process: the same `main`, without the seconds that its imports take."""
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["ghostpoi", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
    assert isinstance(left.value.code, int)
    assert FAULT not in err.getvalue(), err.getvalue()
    return Done(words, left.value.code, out.getvalue(), err.getvalue())


def sentence(done: Done) -> str:
    """What a refusal says: one sentence, exit code 2."""
    assert done.returncode == 2, (done.stdout, done.stderr)
    lines = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("ghostpoi: ")
    assert lines[0].isprintable()
    return lines[0].removeprefix("ghostpoi: ")


@dataclass(frozen=True)
class Release:
    """A release and all that its making printed."""

    folder: Path
    file: Path
    done: Done

    @property
    def private(self) -> Path:
        return Path(f"{self.folder}.private")

    @property
    def manifest(self) -> dict[str, Any]:
        manifest: dict[str, Any] = json.loads((self.folder / "manifest.json").read_text())
        return manifest

    @property
    def data(self) -> Path:
        return self.folder / str(self.manifest["data"]["file"])


def protect(file: Path, folder: Path, *more: object) -> Release:
    done = called("protect", file, "-o", folder, *SETS, *more)
    assert done.returncode == 0, done.stderr
    return Release(folder, file, done)


@cache
def release(method: str = "random", kind: str = "txt", *more: str) -> Release:
    """A release of the city (txt) or of the rich table (csv, parquet), made once."""
    file = {"txt": city, "csv": rich_csv, "parquet": rich_parquet}[kind]()
    folder = Path(tempfile.mkdtemp(dir=scratch())) / "release"
    where = [] if kind == "txt" else RICH
    return protect(file, folder, "--method", method, "--seed", SEED, *where, *more)
