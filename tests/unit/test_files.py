"""Files appear complete or not at all; private folders are closed to others."""

from pathlib import Path

import numpy as np
import pytest

from ghostpoi.files import locked, make_private_folder, replacing, save_arrays


def test_a_file_appears_complete_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with replacing(path, mode=0o600) as out:
        out.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_write_leaves_the_old_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def interrupted() -> None:
        with replacing(path) as out:
            out.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_private_folder_is_closed_to_others(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir(mode=0o755)
    for name in ("f", "g/h"):
        make_private_folder(tmp_path / name)
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o700


def test_saved_arrays_are_those_that_numpy_loads(tmp_path: Path) -> None:
    arrays = {"number": np.arange(5), "text": np.array(["ä", "bc"]), "empty": np.zeros((0, 2))}
    path = tmp_path / "arrays.npz"
    with replacing(path) as out:
        save_arrays(out, arrays)
    with np.load(path, allow_pickle=False) as found:
        assert found.files == list(arrays)
        for name, array in arrays.items():
            assert found[name].dtype == array.dtype
            assert found[name].tolist() == array.tolist()


def test_a_signal_before_the_lock_file_goes_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unlink, signals = Path.unlink, [KeyboardInterrupt]

    def interrupted(path: Path, missing_ok: bool = False) -> None:
        if signals:
            raise signals.pop()
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", interrupted)
    with pytest.raises(KeyboardInterrupt), locked(tmp_path / "folder"):
        assert (tmp_path / ".folder.lock").exists()
    assert list(tmp_path.iterdir()) == []
