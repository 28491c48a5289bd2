"""What several test files need: the real data where present, tiny tables, the real command line."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
import torch

from ghostpoi.data.checkins import Checkins

# A busy machine is not a failure, and `make test` tries the same examples each time. `make nightly` looks for new ones.
patient = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("quick", patient, max_examples=20, derandomize=True)
hypothesis.settings.register_profile("thorough", patient, max_examples=400, print_blob=True)
hypothesis.settings.load_profile("quick")
os.environ["OMP_NUM_THREADS"] = "1"  # of the commands that tests start: see one_thread

HEADER = "user,poi,category,lat,lon,time"
ROOT = Path(__file__).parent.parent


def real_data(name: str) -> Path:
    """A file of real check-ins, or a skip that says where it was looked for."""
    path = Path(os.environ.get("GHOSTPOI_DATA", ROOT.parent / "shared" / "data")) / name
    if not path.is_file():
        pytest.skip(f"{path} is absent (set GHOSTPOI_DATA to the folder that holds it)")
    return path


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Tiny models on busy cores: several threads would wait for each other far longer than they compute."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True, scope="module")
def three_seeds(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let every study of a file with made-up cells ask for three seeds, as many as those have."""
    if not {"Fabricated", "main_cells", "made"} & vars(request.module).keys():
        yield
        return
    from ghostpoi.study import plan

    load = plan.load
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "load", lambda name: replace(study := load(name), seeds=min(3, study.seeds)))
        yield


@pytest.fixture
def one_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Audit the last window of each user's sessions alone. With few steps, others train all victims again."""
    monkeypatch.setattr("ghostpoi.audits.audit.MOST_WINDOWS", 1)


@pytest.fixture(scope="session")
def nyc() -> Path:
    return real_data("dataset_TSMC2014_NYC.txt.xz")


@pytest.fixture(scope="session")
def tokyo() -> Path:
    return real_data("dataset_TSMC2014_TKY_sample.txt.xz")


def checkins(rows: Iterable[tuple[Any, ...]]) -> Checkins:
    """A table of (user, poi, time) or (user, poi, time, category, lat, lon); ids may be anything."""
    full = [(*row, "c", 0.0, 0.0)[:6] if len(row) == 3 else row for row in rows]
    user, poi, time, category, lat, lon = zip(*full, strict=True)
    (user, users), (venue, venues), (category, categories) = (_coded(ids) for ids in (user, poi, category))
    return Checkins(
        user, venue + np.int32(1), category, np.array(lat, float), np.array(lon, float), np.array(time, np.int64),
        users, np.concatenate([[""], venues]), categories,
    )  # fmt: skip


def _coded(ids: Iterable[Any]) -> tuple[np.ndarray, np.ndarray]:
    seen: dict[Any, int] = {}
    code = np.array([seen.setdefault(i, len(seen)) for i in ids], np.int32)
    return code, np.array([str(i) for i in seen], object)


def same_checkins(one: Checkins, two: Checkins) -> None:
    for name in ("user", "venue", "category", "lat", "lon", "time", "user_ids", "venue_ids", "category_ids"):
        a, b = getattr(one, name), getattr(two, name)
        assert a.dtype == b.dtype, name
        assert np.array_equal(a, b), name
    assert one.category_field == two.category_field


@pytest.fixture
def save(tmp_path: Path) -> Callable[[str, bytes | str], Path]:
    """Write a file into the test's own folder."""

    def write(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def ghostpoi(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """The real command line, in a process of its own. Only a command that hangs reaches the limit of ten minutes."""
    command = [sys.executable, "-c", "from ghostpoi.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT, **options)
