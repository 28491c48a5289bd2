"""`python -m benchmarks scale`: what a command costs, ratios between sizes, and the page that shows them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from small_city import called

from benchmarks import scale
from benchmarks.__main__ import main
from benchmarks.measured import Cost, Watch, measured
from docs.blocks import performance
from ghostpoi.errors import InputError

MEGABYTE = 1_000_000
# Holds 60 MB itself and 40 MB in a process of its own; both wait until stdin is closed.
HOLDS = """
import subprocess, sys
own = b"x" * 60_000_000
code = "import sys; own = b'x' * 40_000_000; print('ready', flush=True); sys.stdin.read()"
child = subprocess.Popen([sys.executable, "-c", code])
sys.stdin.read()
child.wait()
"""


def sizes() -> list[dict[str, Any]]:
    """Costs of three sizes that are easy to divide."""
    made = []
    for rows, regions, time in ((500_000, 5, 1.0), (1_000_000, 10, 2.0), (4_500_000, 45, 10.0)):
        polars = Cost(time, time, 10**8, time, 10**8, 0)
        protect = Cost(8 * time, 12 * time, rows * 100 + 10**9, 2 * time, rows * 10, 5 * 10**8, rows * 60)
        verify = Cost(4 * time, 6 * time, 9 * 10**8, time, 10**8, 4 * 10**8)
        made.append(scale.figures(rows, regions, rows * 20, polars, protect, verify))
    return made


def found() -> dict[str, Any]:
    sampled = {"regions": 1, "of_regions": 45, "rows": 2000, "seconds": 6.0}
    return scale.summary(sizes()) | {
        "sizes": sizes(), "ghost": scale.extrapolated(sampled, sizes()), "engine": "dask", "workers": 2,
        "peak_is": "all processes", "cores": 2, "load_before": 0.1,
    }  # fmt: skip


def test_ratios_and_growth() -> None:
    largest = sizes()[-1]
    assert (largest["rows_per_second"], largest["ratio"]) == (56_250, 8)
    assert (largest["verify_ratio"], largest["cpu_ratio"]) == (4, 12)
    # 80 s for 4.5 million rows are 17.8 µs each; 16 s for 1 million are 16 µs.
    assert scale.summary(sizes()) == {"ratio": 8, "growth": 62_500 / 56_250, "growth_from": 1_000_000}
    assert scale.summary(sizes()[:1])["growth"] is None
    assert scale.summary(sizes()[:2])["growth"] is None  # the largest is the one nearest to 1 million


def test_ghost_is_extrapolated_by_rows() -> None:
    ghost = found()["ghost"]
    assert ghost["seconds_per_row"] == 0.003
    assert [guess["seconds"] for guess in ghost["extrapolated"]] == [1500, 3000, 13_500]


def test_the_peak_is_the_largest_sum_at_one_moment() -> None:
    watch = Watch()
    watch.see(100, [10, 20], 1.0)
    watch.see(50, [90, 40], 2.0)
    watch.see(10, [], 2.5)
    assert watch == Watch(peak=180, main=100, worker=90, main_cpu=2.5, looks=3)


def test_memory_is_that_of_all_processes() -> None:
    pytest.importorskip("psutil")
    with subprocess.Popen([sys.executable, "-c", HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        watch = Watch()
        watch.look(process.pid)
        process.communicate()
    assert watch.main > 60 * MEGABYTE
    assert watch.worker > 40 * MEGABYTE
    assert watch.peak == watch.main + watch.worker
    watch.look(process.pid)  # it has ended
    assert watch.looks == 1


def test_the_disk_is_weighed_while_the_command_runs(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "rows").write_bytes(b"x" * 1000)
    os.link(tmp_path / "below" / "rows", tmp_path / "again")
    (tmp_path / "link").symlink_to("missing")
    watch = Watch()
    watch.weigh(tmp_path)
    (tmp_path / "below" / "rows").unlink()
    (tmp_path / "again").write_bytes(b"x" * 30)
    watch.weigh(tmp_path)
    assert watch.disk == 1000
    assert measured([sys.executable, "-c", ""], folder=tmp_path).disk_bytes == 30


def test_without_psutil_the_largest_process_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    cost = measured([sys.executable, "-c", "own = b'x' * 70_000_000; sum(range(10**6))"])
    assert cost.peak_bytes > 70 * MEGABYTE
    assert cost.cpu_seconds > 0
    assert (cost.main_bytes, cost.worker_bytes, cost.main_cpu_seconds) == (None, None, None)


def test_cpu_time_includes_processes_that_ended() -> None:
    burn = "import time\nwhile time.process_time() < 0.5: pass"
    cost = measured([sys.executable, "-c", f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {burn!r}])"])
    assert cost.cpu_seconds > 0.5


def test_a_command_that_fails_is_named() -> None:
    with pytest.raises(InputError, match=r"-c import sys; sys.exit\('no room'\) ended with code 1: no room"):
        measured([sys.executable, "-c", "import sys; sys.exit('no room')"])
    with pytest.raises(InputError, match="code -9: it said nothing"):
        measured([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])


def test_the_shape_of_a_world() -> None:
    assert scale.shape_of(33_000_000) == (330, 1420, 11_111)
    assert scale.shape_of(1_000_000) == (10, 1420, 11_111)
    assert scale.shape_of(1000) == (1, 14, 111)


def test_a_world_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = scale.world_of(1000, tmp_path)
    rows = pl.scan_parquet(made).select(pl.len()).collect().item()
    assert 500 < rows < 2000
    assert scale.rows_of_cities(made) == {"city-000": rows}
    monkeypatch.setattr(scale, "measured", lambda command: pytest.fail("it is there"))
    assert scale.world_of(1000, tmp_path) == made


def test_a_sample_of_cities(tmp_path: Path) -> None:
    rows = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6}
    assert scale.sample_of(rows, 1) == ["a"]
    assert scale.sample_of(rows, 3) == ["a", "c", "e"]
    assert scale.sample_of(rows, 9) == list(rows)
    (tmp_path / "world").mkdir()
    frame = pl.DataFrame({"city": ["b", "a", "b", "c", "b", "c"], "row": range(6)})
    for number, part in enumerate((frame[:3], frame[3:])):
        part.write_parquet(tmp_path / "world" / f"part-{number}.parquet")
    assert list(scale.rows_of_cities(tmp_path / "world").items()) == [("a", 1), ("c", 2), ("b", 3)]
    assert scale.write_cities(tmp_path / "world", ["a", "c"], tmp_path / "some.parquet") == 3
    assert sorted(pl.read_parquet(tmp_path / "some.parquet")["row"]) == [1, 3, 5]


def test_the_terminal_shows_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "scale", lambda sizes, workers, ghost, folder, say: found())
    lines = called("scale", main=main).stdout.splitlines()
    assert [" ".join(line.split()) for line in lines] == [
        "rows regions polars protect rows/s x polars memory verify memory GHOST (extrapolated)",
        "500,000 5 1.0 s 8.0 s 62,500 8.0 1.05 GB 4.0 s 0.90 GB 0.4 h",
        "1,000,000 10 2.0 s 16.0 s 62,500 8.0 1.10 GB 8.0 s 0.90 GB 0.8 h",
        "4,500,000 45 10.0 s 80.0 s 56,250 8.0 1.45 GB 40.0 s 0.90 GB 3.8 h",
        "Time per row at the largest size: 1.11 times that at 1,000,000 rows.",
        "GHOST ran on 1 of 45 regions, with 2,000 rows, on the CPU: 3.00 ms per row. All else of it is extrapolated.",
        "Engine: dask, workers: 2. Memory: resident peak of all processes.",
    ]


def test_without_dask_one_process_does_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, list[str], int]] = []

    def measure(rows: int, worlds: Path, place: Path, engine: list[str], workers: int, say: Any) -> dict[str, Any]:
        asked.append((rows, engine, workers))
        return sizes()[0]

    monkeypatch.setattr(scale, "_measure", measure)
    monkeypatch.setattr(scale, "find_spec", lambda name: None)
    said: list[str] = []
    assert scale.scale([9000, 2000, 9000], 4, 0, tmp_path / "new", said.append)["ghost"] is None
    assert asked == [(rows, ["--engine", "local", "--memory", "4GB"], 1) for rows in (2000, 9000)]
    assert said == ["Dask is not installed: one process does all the work"]


def test_a_result_needs_a_folder_to_lie_in(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    done = called("scale", "-o", missing / "scale.json", main=main)
    told = f"benchmarks: -o {missing / 'scale.json'}: the folder {missing} does not exist; create it first\n"
    assert (done.returncode, done.stderr) == (2, told)


def test_tables_of_the_page() -> None:
    assert performance.table(found()).splitlines()[2:] == [
        "|500 thousand|5|1.0|8.0|8.0|62,500|1.1|4.0|0.9|0.4|",
        "|1 million|10|2.0|16|8.0|62,500|1.1|8.0|0.9|0.8|",
        "|4.5 million|45|10|80|8.0|56,250|1.4|40|0.9|3.8|",
    ]
    # 4.5 µs of the main process and 22.5 µs of workers per row; 10 bytes of memory and 60 bytes of disk per row.
    assert performance.on_paper(found()).splitlines() == [
        "|rows|CPU, h|on 64 cores, h|on 512 cores, h|GB per worker|GB of the main process|disk, GB|",
        "|---|---|---|---|---|---|---|",
        "|1 billion|7.5|1.3|1.3|0.5|10|60|",
        "|10 billion|75|13|13|0.5|100|600|",
    ]


def test_the_page_says_what_is_not_measured() -> None:
    page = performance.section(found())
    assert "A row takes 1.11 times as long at 4.5 million rows as at 1 million." in page
    assert "GHOST ran on 1 of 45 cities (2,000 rows, 3.0 ms each, on the CPU); its times are extrapolated." in page
    assert "Other work" not in page
    assert "the load of the 2 cores was 6.9." in performance.section(found() | {"load_before": 6.92})
    assert "GHOST ran" not in performance.section(found() | {"ghost": None})


def test_the_curve_is_drawn(tmp_path: Path) -> None:
    [path] = performance.draw(found(), tmp_path)
    assert path.read_bytes() == performance.draw(found(), tmp_path)[0].read_bytes()
    assert path.name == "scale.svg"
