"""Files that are being written: they have no name until they are complete, and what a kill leaves is removed."""

from pathlib import Path

import pytest

from ghostpoi import files
from ghostpoi.files import remove_partial, replacing


@pytest.fixture(params=["nameless", "named"])
def named(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the file system can write files without a name, as all of Linux can."""
    if request.param == "named":
        monkeypatch.setattr(files, "_nameless", lambda folder: None)
    return bool(request.param == "named")


def test_a_file_appears_when_it_is_complete(named: bool, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    for content, mode in ((b"one", 0o644), (b"two", 0o600)):
        with replacing(path, mode) as out:
            out.write(content)
            out.flush()
            hidden = [p.name for p in tmp_path.iterdir() if p != path]
            assert len(hidden) == named
            remove_partial(tmp_path)  # by another process: it leaves alone what is being written
        assert (path.read_bytes(), path.stat().st_mode & 0o777) == (content, mode)
        assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_an_error_leaves_the_old_file(named: bool, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(b"old")

    def fail() -> None:
        with replacing(path) as out:
            out.write(b"new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]
    assert path.read_bytes() == b"old"


def test_what_a_kill_left_is_removed_by_name(tmp_path: Path) -> None:
    for name in (".page.html.abc.partial", ".card.md.abc.partial", ".bashrc", "x.partial"):
        (tmp_path / name).touch()
    remove_partial(tmp_path, "page.html")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".bashrc", ".card.md.abc.partial", "x.partial"]
    remove_partial(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".bashrc", "x.partial"]
