"""A Dask cluster that shares nothing but a store: each process has folders of its own, and one worker is killed."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from conftest import ROOT
from distributed import Client, LocalCluster
from moto.server import ThreadedMotoServer
from object_store import BUCKET, SECRET, Store, object_store
from small_city import called
from small_world import SEED, contents, parts

from ghostpoi.regions import protect

pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask, about sockets and event loops

HIDE = "mount -t tmpfs none {folder} && exec {command}"  # in a view of the file system of its own


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with object_store() as found:
        yield found


@contextmanager
def worker(scheduler: str, place: Path, hidden: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a worker that cannot see a folder, where the system allows that."""
    place.mkdir()
    command = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler, "--nthreads", "1", "--no-nanny",
               "--no-dashboard", "--local-directory", str(place / "dask")]  # fmt: skip
    apart = ["unshare", "--mount"]
    if subprocess.run([*apart, "true"], capture_output=True).returncode == 0:
        text = HIDE.format(folder=hidden, command=" ".join(command))
        command = [*apart, "sh", "-c", text]
    (place / "tmp").mkdir()
    environment = {**os.environ, "TMPDIR": str(place / "tmp")}
    with (place / "log").open("wb") as log:
        started = subprocess.Popen(command, cwd=place, env=environment, stdout=log, stderr=log)
    try:
        yield started
    finally:
        started.kill()
        started.wait()


@contextmanager
def cluster(tmp_path: Path, count: int = 2) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    hidden = tmp_path / "main"
    hidden.mkdir()
    with ExitStack() as stack:
        one = stack.enter_context(
            LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50)
        )
        address = one.scheduler_address
        started = [stack.enter_context(worker(address, tmp_path / f"w{n}", hidden)) for n in range(count)]
        with Client(address) as client:
            client.wait_for_workers(count, timeout=600)
        yield address, started


@pytest.mark.parametrize("killed", [False, True], ids=["whole", "one killed"])
def test_a_cluster_without_a_shared_folder(
    store: Store, killed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = parts(tmp_path / "data", 7)
    for path in data.iterdir():
        store.put(f"world{killed}/{path.name}", path)
    local = tmp_path / "release"
    assert called("protect", data, "-o", local, "--engine", "local", *SEED).returncode == 0
    with cluster(tmp_path) as (address, workers):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "main"))
        kept = f"s3://{BUCKET}/private{killed}"

        def kill() -> None:
            while not any("/fragments/" in key for key in store.keys(f"private{killed}/unfinished/")):
                time.sleep(0.02)
            os.kill(workers[0].pid, signal.SIGKILL)

        killer = threading.Thread(target=kill, daemon=True)
        if killed:
            killer.start()
        words = ("-o", f"s3://{BUCKET}/out{killed}", "--private", kept, "--engine", "dask", "--scheduler", address)
        done = called("protect", f"s3://{BUCKET}/world{killed}", *words, *SEED)
        assert done.returncode == 0, done.stderr
        assert (workers[0].poll() is not None) == killed
        check = called("verify", f"s3://{BUCKET}/out{killed}", "--against", f"s3://{BUCKET}/world{killed}",
                       "--private", kept, "--engine", "dask", "--scheduler", address)  # fmt: skip
        assert check.returncode == 0, check.stdout + check.stderr
    assert contents(store.fetch(f"out{killed}", tmp_path / "copy")) == contents(local)
    assert not store.keys(f"private{killed}/unfinished/")
    assert {key.split("/")[1] for key in store.keys(f"private{killed}/")} == {"pairs", "run.json", "signing.key"}
    assert not any((tmp_path / "main").iterdir())
    for log in tmp_path.glob("w?/log"):
        assert SECRET not in log.read_text()


def test_rows_of_this_machine_reach_workers_elsewhere(store: Store, tmp_path: Path) -> None:
    """The input is a file of the main process, which no worker sees."""
    data = parts(tmp_path / "main-data", 2)
    with cluster(tmp_path) as (address, _):
        moved = data.rename(tmp_path / "main" / "data")
        words = ("--private", f"s3://{BUCKET}/own", "--engine", "dask", "--scheduler", address, *SEED)
        done = called("protect", moved, "-o", tmp_path / "release", *words)
        assert done.returncode == 0, done.stderr
    assert called("verify", tmp_path / "release", "--against", moved).returncode == 0


def test_a_store_that_goes_away(tmp_path: Path) -> None:
    """The server stops while workers draw: one sentence, nothing published; with another server the run goes on."""
    data = parts(tmp_path / "data", 3)
    words = ("-o", f"s3://{BUCKET}/gone", "--private", f"s3://{BUCKET}/kept", "--engine", "dask", "--workers", 2)
    with object_store() as store:

        def stop() -> None:
            while not any("/fragments/" in key for key in store.keys("kept/unfinished/")):
                time.sleep(0.02)
            store.server.stop()

        threading.Thread(target=stop, daemon=True).start()
        failed = called("protect", data, *words, *SEED)
        assert failed.returncode == 1, failed.stderr
        assert failed.stderr.startswith(f"ghostpoi: the connection to s3://{BUCKET}/"), failed.stderr
        assert failed.stderr.endswith("was lost; check the network, then try again\n")
        again = ThreadedMotoServer(*store.server.get_host_and_port(), verbose=False)  # moto keeps its objects
        again.start()
        assert "gone/manifest.json" not in store.keys("gone/")
        resumed = called("protect", data, *words, *SEED, "--resume")
        assert resumed.returncode == 0, resumed.stderr
        assert called("verify", f"s3://{BUCKET}/gone", "--against", data).returncode == 0
        again.stop()


def test_a_machine_that_is_lost(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folders are gone with it. Another machine goes on with the seed and the regions that are done."""
    data = parts(tmp_path / "data", 2)
    place, words = tmp_path / "lost", ("-o", f"s3://{BUCKET}/saved", "--private", f"s3://{BUCKET}/safe")
    place.mkdir()
    command = [sys.executable, "-m", "ghostpoi", "protect", str(data), *words, "--engine", "local", *SEED]
    with subprocess.Popen(command, env={**os.environ, "TMPDIR": str(place)}, cwd=ROOT) as started:
        while not any("/released/" in key for key in store.keys("safe/unfinished/")):
            assert started.poll() is None
            time.sleep(0.01)
        started.kill()
    shutil.rmtree(place)
    kept, again = [key for key in store.keys("safe/") if "/released/" in key], list[int]()
    real = protect.protect_table
    monkeypatch.setattr(protect, "protect_table", lambda *a, **k: again.append(1) or real(*a, **k))
    resumed = called("protect", data, *words, "--engine", "local", *SEED, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert len(again) + len(kept) == 3
    assert kept
    assert called("protect", data, "-o", tmp_path / "release", "--engine", "local", *SEED).returncode == 0
    assert contents(store.fetch("saved", tmp_path / "copy")) == contents(tmp_path / "release")
    assert not store.keys("safe/unfinished/")
