"""Files that are too large or expand too much are refused before they fill the memory; --max-size lifts the limit."""

import io
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import HEADER
from small_city import SEED, SETS, called, city, release, sentence

from ghostpoi.data.synthetic_files import COMPRESS
from ghostpoi.formats import source

REPEATED = b"u,p\n" * (25 << 20)  # 100 MB
BOMB = (
    "expands to more than 200 times its size, as a decompression bomb does; if that is right, read it with --max-size "
)


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_decompression_bomb(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.csv{suffix}"
    path.write_bytes(COMPRESS[suffix](REPEATED))
    said = sentence(called("inspect", path))
    assert said == f"{path} {BOMB}{source.shown(source.usual_limit().size)}"
    lifted = sentence(called("inspect", path, "--max-size", "1GB"))
    assert lifted.startswith(f"{path}, line 1: no column looks like the user among u, p; ")
    bounded = sentence(called("inspect", path, "--max-size", "50MB"))
    assert bounded == f"{path} expands to more than 50MB; allow more with --max-size 200MB"


@contextmanager
def pipe(path: Path, content: bytes, repeat: bool = False) -> Iterator[Path]:
    """A named pipe that gives this content, once or again and again, to the first who opens it and to nobody else."""
    os.mkfifo(path)

    def give() -> None:
        try:
            with path.open("wb", buffering=0) as out:
                out.write(content)
                while repeat:
                    out.write(content)
        except BrokenPipeError:
            pass

    writer = threading.Thread(target=give)
    writer.start()
    yield path
    writer.join()


def test_an_endless_pipe(tmp_path: Path) -> None:
    with pipe(tmp_path / "pipe", b"y\n" * 5000, repeat=True) as path:
        said = sentence(called("inspect", path, "--max-size", "3 MB"))
    assert said == f"{path} is larger than 3MB; allow more with --max-size 12MB"


def test_an_endless_device() -> None:
    said = sentence(called("inspect", "/dev/zero", "--max-size", "0.1GiB"))
    assert said == "/dev/zero is larger than 107MB; allow more with --max-size 429MB"


def test_a_pipe_is_opened_once(tmp_path: Path) -> None:
    content = city().read_bytes()
    with pipe(tmp_path / "a", content) as path:
        assert called("inspect", path, *SETS[-2:]).stdout.splitlines()[0] == str(path)
    with pipe(tmp_path / "b", content) as path:
        done = called("protect", path, "-o", tmp_path / "r", "--method", "random", "--seed", SEED, *SETS)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "r" / "checkins").read_bytes() == release().data.read_bytes()
    with pipe(tmp_path / "c", content) as path:
        assert called("verify", tmp_path / "r", "--against", path).returncode == 0


@pytest.mark.parametrize(
    "command",
    [
        ("inspect", "FILE"),
        ("protect", "FILE", "-o", "OUT"),
        ("protect", "FILE", "-o", "OUT", "--dry-run"),
        ("verify", "RELEASE"),
        ("verify", "RELEASE", "--against", "FILE"),
        ("audit", "FILE", "RELEASE"),
        ("report", "RELEASE"),
        ("prepare", "FILE", "-o", "OUT"),
    ],
)
def test_every_command_that_reads_a_file_has_the_limit(command: tuple[str, ...], tmp_path: Path) -> None:
    made = release()
    names = {"FILE": str(made.file), "RELEASE": str(made.folder), "OUT": str(tmp_path / "out")}
    said = sentence(called(*(names.get(word, word) for word in command), "--max-size", "10kB"))
    file = made.data if "RELEASE" in command else made.file
    assert said == f"{file} is larger than 10KB; allow more with --max-size 40KB"
    assert list(tmp_path.iterdir()) == []


def parquet(path: Path, columns: dict[str, pa.Array], groups: int) -> Path:
    out = io.BytesIO()
    table = pa.table(columns)
    with pq.ParquetWriter(out, table.schema, compression="zstd") as writer:
        for _ in range(groups):
            writer.write_table(table)
    path.write_bytes(out.getvalue())
    return path


def test_a_short_parquet_file_of_many_equal_rows(tmp_path: Path) -> None:
    path = parquet(tmp_path / "x.parquet", dict.fromkeys(HEADER.split(","), pa.array([0] * 250_000)), 8)
    assert path.stat().st_size < 100_000
    said = sentence(called("inspect", path))
    assert said == f"{path} {BOMB}{source.shown(source.usual_limit().size)}"
    said = sentence(called("inspect", path, "--max-size", "20MB"))
    assert said == f"{path} expands to more than 20MB; allow more with --max-size 80MB"
    assert "2,000,000 check-ins" in called("inspect", path, "--max-size", "1GB").stdout


def test_a_short_parquet_file_that_repeats_a_long_text(tmp_path: Path) -> None:
    long = pa.array(["x" * 100_000, "y"]).dictionary_encode()
    text = pa.DictionaryArray.from_arrays(pa.array([0] * 5000, pa.int32()), long.dictionary)  # 500 MB
    columns = dict.fromkeys(HEADER.split(","), pa.array([0] * 5000)) | {"name": text}
    path = parquet(tmp_path / "x.parquet", columns, 1)
    plain = pq.ParquetFile(path).schema_arrow.field("name").type
    assert pa.types.is_dictionary(plain)  # stays short in memory, so it is read
    assert "5,000 check-ins" in called("inspect", path, "--max-size", "100MB").stdout
    schema = pa.schema([*pa.table(columns).schema][:-1]).append(pa.field("name", pa.string()))
    with pq.ParquetWriter(path, schema, store_schema=False) as writer:
        writer.write_table(pa.table(columns).cast(schema))
    said = sentence(called("inspect", path, "--max-size", "100MB"))
    assert said == f"{path} expands to more than 100MB; allow more with --max-size 400MB"


@pytest.mark.parametrize("size", ["lots", "0", "-1GB", "1e9", "GB", "1 PB"])
def test_what_is_no_size(size: str) -> None:
    said = sentence(called("inspect", city(), f"--max-size={size}"))
    assert said == f"--max-size {size!r} is not a size; give a number with a unit, e.g. --max-size 20GB"


@pytest.mark.parametrize(("pages", "size"), [(10**7, 4 * 10**9), (10**6, 512_000_000)])
def test_the_usual_limit_follows_the_memory(pages: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": pages}.get)
    assert source.usual_limit() == source.SizeLimit(size)
