"""The scripts of the guide "Run ghostpoi in production", run as they stand: a real PostgreSQL server, an S3 server."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from conftest import ROOT
from database_files import OLDEST
from object_store import BUCKET, Store, object_store
from postgres import PASSWORD, Server, server
from small_city import SIZE

from ghostpoi.data import synthetic as synth
from ghostpoi.data.synthetic_files import city_frame

TIME = "%a %b %d %H:%M:%S %z %Y"


@pytest.fixture(scope="module")
def visits() -> pl.DataFrame:
    frame = city_frame(synth.make_city(*SIZE, 3), 3).drop("timezone_offset")
    return frame.with_columns(visited_at=pl.col("utc_time").str.to_datetime(TIME, time_zone="UTC")).drop("utc_time")


@pytest.fixture(scope="module")
def running(visits: pl.DataFrame) -> Iterator[Server]:
    with server() as found:
        found.load("visits", visits.sort("visited_at").to_arrow(compat_level=OLDEST))
        yield found


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with object_store() as found:
        yield found


def scripts() -> list[str]:
    return re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "how-to" / "production.md").read_text(), re.DOTALL)


def run(script: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **more}
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, cwd=folder, env=environment)


def test_two_nights(running: Server, store: Store, visits: pl.DataFrame, tmp_path: Path) -> None:
    job, check = scripts()
    days = visits["visited_at"].dt.date()
    first, second = (str(day) for day in days.value_counts(sort=True)["visited_at"].head(2).sort())
    given = {"DATABASE": running.url(""), "PGPASSWORD": PASSWORD, "OUT": f"s3://{BUCKET}/public",
             "OWN": f"s3://{BUCKET}/vault"}  # fmt: skip
    keys = set()
    for night in (first, second):
        done = run(job, tmp_path, NIGHT=night, **given)
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stderr.splitlines()]
        assert [line["message"] for line in lines if line.get("step") == "protect"] == [
            "protect begins", "protect is done"
        ]  # fmt: skip
        assert PASSWORD not in done.stdout + done.stderr
        (key,) = re.findall("signed by key ([0-9a-f]{32})", done.stdout)
        keys.add(key)
        manifest = json.loads(store.get(f"public/{night}/manifest.json"))
        assert manifest["data"]["rows"] == (days.cast(pl.String) == night).sum()
    assert len(keys) == 1
    (key,) = keys
    reader = {"OUT": given["OUT"], "NIGHT": second}
    assert run(check, tmp_path, KEY=key, **reader).returncode == 0
    assert run(check, tmp_path, KEY="0" * 32, **reader).returncode == 1
    store.put(f"public/{second}/checkins.parquet", b"something else")
    assert run(check, tmp_path, KEY=key, **reader).returncode == 1
    repeated = run(job, tmp_path, NIGHT=first, **given)
    assert repeated.returncode == 2
    assert "exists already" in repeated.stderr
    refused = run(job, tmp_path, NIGHT="2031-01-01", **given)
    assert refused.returncode == 2
    lost = run(job, tmp_path, NIGHT="2031-01-01", **given | {"DATABASE": "postgresql://publisher@127.0.0.1:1/city"})
    assert lost.returncode == 2
    assert "cannot be reached" in lost.stderr
    assert not store.keys("public/2031-01-01") + store.keys("vault/2031-01-01")
