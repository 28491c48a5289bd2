"""Two runs at once: the second is refused, whatever folder they share, and a killed run blocks nobody."""

from pathlib import Path
from typing import Any

import pytest
from small_city import SEED, SETS, called, city, protect, release, sentence

from ghostpoi.release import make as making

SHARED = {
    "both folders": (["-o", "r"], ["-o", "r"], "r"),
    "the release": (["-o", "r", "--private", "p"], ["-o", "r", "--private", "q"], "r"),
    "the private folder": (["-o", "r", "--private", "p"], ["-o", "s", "--private", "p"], "p"),
}


@pytest.mark.parametrize("case", SHARED)
@pytest.mark.parametrize("force", [False, True])
def test_the_second_of_two_runs_is_refused(
    case: str, force: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, shared = SHARED[case]
    real, said = making.protect_table, []
    monkeypatch.chdir(tmp_path)

    def meanwhile(*arguments: Any, **more: Any) -> Any:
        """The second command runs while the first draws."""
        before = sorted(tmp_path.rglob("*"))
        command = ("protect", city(), *second, "--method", "random", *SETS)
        said.append(sentence(called(*command, *(["--force"] if force else []))))
        assert sorted(tmp_path.rglob("*")) == before
        return real(*arguments, **more)

    monkeypatch.setattr(making, "protect_table", meanwhile)
    done = called("protect", city(), *first, "--method", "random", "--seed", SEED, *SETS)
    assert done.returncode == 0
    folder = tmp_path / shared
    assert said == [f"another ghostpoi is writing {folder}; wait until it has finished, or choose another folder"]
    assert (tmp_path / "r" / "checkins.txt").read_bytes() == release("random").data.read_bytes()
    assert not list(tmp_path.glob(".*"))


def test_the_lock_file_of_a_killed_run_blocks_nobody(tmp_path: Path) -> None:
    for name in (".r.lock", ".r.private.lock"):
        (tmp_path / name).touch()
    protect(city(), tmp_path / "r", "--method", "random")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["r", "r.private"]
