"""Where a release is built: in the private folder, so that no second draw lies next to a release."""

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from small_city import SEED, SETS, called, city, protect, release, sentence

from ghostpoi.release import private_folder as release_module

WORDS = ("--method", "random", "--seed", SEED)


def seen_while_built(folder: Path, monkeypatch: pytest.MonkeyPatch, *more: object) -> tuple[list[str], Path]:
    """Make a release; return what lay next to it when it was complete but had no name, and where it was built."""
    real, seen = release_module.publish_folder, []

    def publish(staging: Path, *arguments: Any) -> None:
        seen.append((sorted(p.name for p in folder.iterdir() if not p.name.endswith(".lock")), staging))
        real(staging, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(release_module, "publish_folder", publish)
        made = protect(city(), folder / "r", *WORDS, *more)
    assert made.data.read_bytes() == release("random").data.read_bytes()
    ((beside, staging),) = seen
    return beside, staging


def test_a_release_is_built_in_the_private_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside, staging = seen_while_built(tmp_path, monkeypatch)
    assert beside == ["r.private"]
    assert staging == tmp_path / "r.private" / "unfinished" / "release"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r", "r.private"]


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no second file system")
def test_on_another_file_system_it_is_built_beside_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as elsewhere:
        private = Path(elsewhere) / "p"
        if private.parent.stat().st_dev == tmp_path.stat().st_dev:
            pytest.skip("one file system")
        beside, staging = seen_while_built(tmp_path, monkeypatch, "--private", private)
        assert beside == [staging.parent.name]
        assert staging.parent.parent == tmp_path
        assert [p.name for p in tmp_path.iterdir()] == ["r"]
        seen_while_built(tmp_path, monkeypatch, "--private", private, "--force")
        assert [p.name for p in tmp_path.iterdir()] == ["r"]
        assert "unfinished" not in {p.name for p in private.iterdir()}


@pytest.mark.parametrize("place", ["r.private/unfinished/replaced", ".r.0123abcd.partial/replaced"])
def test_an_older_release_that_was_moved_away_comes_back(place: str, tmp_path: Path) -> None:
    """A run was killed after it moved the older release away and before the new one had its name."""
    made = protect(city(), tmp_path / "r", *WORDS)
    (tmp_path / place).parent.mkdir()
    before = made.data.read_bytes()
    made.folder.rename(tmp_path / place)
    again = ("protect", city(), "-o", made.folder, "--method", "random", *SETS)
    assert "exists already" in sentence(called(*again))
    assert made.data.read_bytes() == before
    assert called("verify", made.folder, "--against", city()).returncode == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r", "r.private"]
