"""Who may enter folders and read files, whatever the umask is."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_city import SEED, SETS, called, city, rich_frame
from small_world import SEED as WORLD
from small_world import parts

MOST = {"r": (0o755, 0o644), "r.private": (0o700, 0o600)}  # of folders and of files


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def divided(folder: Path) -> Path:
    """A folder with a part inside another folder."""
    (folder / "day=1").mkdir(parents=True)
    frame = rich_frame().drop("mood", "checkin")
    frame.head(400).write_csv(folder / "day=1" / "one.csv")
    frame.slice(400).write_csv(folder / "two.csv")
    return folder


@pytest.mark.usefixtures("open_umask")
@pytest.mark.parametrize("kind", ["file", "folder", "regions", "series"])
def test_nobody_else_may_write(kind: str, tmp_path: Path) -> None:
    more: list[object] = [*SETS, "--seed", SEED]
    if kind == "folder":
        file = divided(tmp_path / "in")
        more += ["--map", "user=Who", "--map", "poi=spot"]
    elif kind == "regions":
        file, more = parts(tmp_path / "in", 2), [*WORLD, "--engine", "local"]
    else:
        file = city()
        more += ["--series", tmp_path / "series"] if kind == "series" else []
    done = called("protect", file, "-o", tmp_path / "r", *more)
    assert done.returncode == 0, done.stderr
    assert called("report", tmp_path / "r").returncode == 0
    places = MOST | ({"series": MOST["r.private"]} if kind == "series" else {})
    for place, (folders, files) in places.items():
        for path in (tmp_path / place, *(tmp_path / place).rglob("*")):
            mode = stat.S_IMODE(path.stat().st_mode)
            assert mode & ~(folders if path.is_dir() else files) == 0, f"{path.name} {mode:o}"
