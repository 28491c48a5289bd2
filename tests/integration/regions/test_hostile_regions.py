"""Datasets, machines and moments that a careless engine for regions would fail on."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
import pytest
from distributed import Client
from small_city import called, sentence
from small_world import SEED, contents, manifest, parts, protected, rows

from ghostpoi.files import locked, own_folder
from ghostpoi.regions import dataset
from ghostpoi.regions.engine import Scale, engine_of

pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask, about sockets and event loops
LOCAL = ("--engine", "local")


def island(latitude: float) -> pl.DataFrame:
    """Three visits to a venue that is far from all others."""
    far = {"venue_id": f"island {latitude}", "latitude": latitude, "longitude": -120.0, "city": "nowhere"}
    schema = rows().schema
    return rows()[:3].with_columns(pl.lit(value).cast(schema[name]).alias(name) for name, value in far.items())


@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_a_region_may_be_withheld_whole(ending: str, tmp_path: Path) -> None:
    world = parts(tmp_path / "world", 4, pl.concat([rows()[:100], island(-40), rows()[100:]]), ending)
    release = protected(world, tmp_path / "release", *LOCAL, "--no-candidate", "withhold")
    assert manifest(release)["regions"]["count"] == 4
    assert manifest(release)["rows"]["withheld"] >= 3
    assert not any(b"island" in content for content in contents(release).values())
    done = called("verify", release, "--against", world, *LOCAL)
    assert done.returncode == 0, done.stdout


def test_a_release_of_nothing_is_refused(tmp_path: Path) -> None:
    world = parts(tmp_path / "world", 1, pl.concat([island(-40), island(-50)]))
    words = ("--keep", "timezone_offset", *LOCAL, "--no-candidate", "withhold")
    said = sentence(called("protect", world, "-o", tmp_path / "release", *words))
    assert "all rows would be withheld" in said
    assert not (tmp_path / "release").exists()


def test_models_need_sessions_in_some_region(tmp_path: Path) -> None:
    words = ("--method", "ghost", *LOCAL, "--set", "filters.min_poi_checkins=1000")
    said = sentence(called("protect", parts(tmp_path / "world", 1), "-o", tmp_path / "release", *SEED, *words))
    assert "the filters leave no sessions in any region" in said
    assert not (tmp_path / "release").exists()


def test_nobody_else_reaches_the_tasks_on_this_machine() -> None:
    with engine_of(Scale(engine="dask", workers=1)) as engine:
        address = engine.client.scheduler.address  # type: ignore[attr-defined]
        assert address.startswith("tls://127.0.0.1:")
        for stranger in (address, address.replace("tls", "tcp")):
            with pytest.raises((OSError, TypeError, ValueError)):
                Client(stranger, timeout="2s")


def test_an_ended_command_leaves_no_clean_data(tmp_path: Path) -> None:
    world, place = parts(tmp_path / "world", 7), tmp_path / "temporary"
    place.mkdir()
    command = [sys.executable, "-m", "ghostpoi", "inspect", str(world), *LOCAL]
    for _ in range(10):  # on a busy machine, the command may end before the signal comes
        process = subprocess.Popen(command, env={**os.environ, "TMPDIR": str(place)}, stderr=subprocess.PIPE)
        while not [*place.rglob("venues.parquet")] and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=600)
        if process.returncode:
            break
    assert (process.returncode, err.strip()) == (130, b"ghostpoi: interrupted")
    assert not [*place.iterdir()]


def test_what_killed_commands_left_is_removed_and_what_others_use_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, used = (tmp_path / f"{dataset.PREFIX}{name}" for name in ("left", "used"))
    left.mkdir()
    used.mkdir()
    with locked(used), own_folder(dataset.PREFIX) as own:
        assert {path.name for path in tmp_path.glob("[!.]*")} == {own.name, used.name}
    assert [*tmp_path.iterdir()] == [used]


def test_a_text_part_without_rows_is_verified(tmp_path: Path) -> None:
    world = parts(tmp_path / "world", 2, ending=".csv")
    head = (world / "part-000.csv").read_bytes().split(b"\n")[0]
    (world / "part-002.csv").write_bytes(head + b"\n")
    release = protected(world, tmp_path / "release", *LOCAL)
    assert called("verify", release, "--against", world, *LOCAL).returncode == 0


def test_a_dry_run_knows_no_regions(tmp_path: Path) -> None:
    world = parts(tmp_path / "world", 1)
    said = sentence(called("protect", world, "-o", tmp_path / "release", "--dry-run", *LOCAL))
    assert said.startswith("--dry-run reads the whole file at once")


@pytest.mark.parametrize(
    ("regions", "why"),
    [
        ({"gap_km": 50}, "regions.count is missing"),
        ({"count": 3, "most_venues": 9, "most_rows": 9}, "regions.gap_km is missing"),
        ({"count": 3, "most_venues": 0, "most_rows": 9, "gap_km": 50}, "regions.most_venues has the wrong type"),
        ([3], "regions has the wrong type"),
        ({"count": "a"}, "regions.count has the wrong type"),
    ],
)
def test_a_manifest_with_other_regions_is_refused(regions: object, why: str, tmp_path: Path) -> None:
    release = protected(parts(tmp_path / "world", 1), tmp_path / "release", *LOCAL)
    path = release / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"regions": regions}))
    assert why in sentence(called("verify", release, "--against", tmp_path / "world"))


@pytest.mark.parametrize(
    ("engine", "missing", "ending"),
    [(LOCAL, "keep", ".csv"), (LOCAL, "drop", ".parquet"), ((), "keep", ".parquet"), ((), "drop", ".csv")],
)
def test_all_rows_of_a_part_may_lack_a_value(
    engine: tuple[str, ...], missing: str, ending: str, tmp_path: Path
) -> None:  # fmt: skip
    lacks = pl.int_range(pl.len()) < rows().height // 4
    frame = rows().sort("utc_time").with_columns(latitude=pl.when(~lacks).then("latitude"), timezone_offset=0)
    world = parts(tmp_path / "world", 6, frame, ending)
    words = ("--missing", missing, *engine)
    release = protected(world, tmp_path / "release", *words)
    assert len(contents(release)) == 6
    assert manifest(release)["data"]["rows"] == frame.height - (missing == "drop") * (rows().height // 4)
    done = called("verify", release, "--against", world, *engine)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_note_beside_the_parts_is_refused(tmp_path: Path) -> None:
    world = parts(tmp_path / "world", 2, ending=".csv")
    first = min(world.iterdir())
    (world / "z.csv").write_text(",".join(rows().columns) + "\n")  # without rows
    (world / "README.md").write_text("user 16 is Bob\n")
    said = sentence(called("protect", world, "-o", tmp_path / "release", *LOCAL))
    assert said.startswith(f"{world / 'README.md'} holds no rows, and not the columns of {first}; remove it")


def test_some_row_must_lack_nothing(tmp_path: Path) -> None:
    world = parts(tmp_path / "world", 2, rows().with_columns(latitude=pl.lit(None, pl.Float64)))
    for engine in (LOCAL, ()):
        said = sentence(called("protect", world, "-o", tmp_path / "release", "--missing", "drop", *engine))
        assert said == f"{world}: no row has a value in every mapped column; map other columns with --map FIELD=COLUMN"
