"""The wheel and its metadata, made offline."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT
from packaging.requirements import Requirement
from wheels import sources, wheel


def test_the_wheel_holds_the_whole_package_and_nothing_else() -> None:
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "ghostpoi").rglob("*") if path.is_file()}
    packed = {name for name in zipfile.ZipFile(wheel()).namelist() if ".dist-info/" not in name}
    assert packed == {name for name in files if "__pycache__" not in name}


def test_the_metadata_names_extras_and_authors() -> None:
    (name,) = (n for n in zipfile.ZipFile(wheel()).namelist() if n.endswith("METADATA"))
    lines = zipfile.ZipFile(wheel()).read(name).decode().splitlines()
    assert {line.split()[1] for line in lines if line.startswith("Provides-Extra: ")} >= {"models", "report", "all"}
    assert "Author: The ghostpoi maintainers" in lines
    needed = [Requirement(line.partition(": ")[2]) for line in lines if line.startswith("Requires-Dist: ")]
    assert {r.name for r in needed if r.marker is None}.isdisjoint({"torch", "safetensors", "matplotlib"})
    by_extra = {extra: {r.name for r in needed if f'"{extra}"' in str(r.marker)} for extra in ("models", "all")}
    assert by_extra == {"models": {"torch", "safetensors"}, "all": {"ghostpoi"}}


@pytest.mark.parametrize("url", ["", "https://host/owner/ghostpoi/"])
def test_links_of_the_package_page_are_absolute_if_the_address_is_known(url: str, tmp_path: Path) -> None:
    source = sources(tmp_path / "source")
    (source / "ghostpoi").mkdir()
    shutil.copy(ROOT / "ghostpoi" / "__init__.py", source / "ghostpoi")
    command = [sys.executable, "setup.py", "-q", "egg_info"]
    subprocess.run(command, cwd=source, env={**os.environ, "GHOSTPOI_URL": url}, check=True, capture_output=True)
    text = (source / "ghostpoi.egg-info" / "PKG-INFO").read_text("utf-8")
    assert text.endswith((ROOT / "README.md").read_text("utf-8")) == (not url)
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not link.startswith("#")]
    assert len(links) > 10
    assert all(link.startswith("https://") for link in links) == bool(url)
    if url:
        assert "](https://host/owner/ghostpoi/raw/main/docs/figures/report.png)" in text
        assert "Project-URL: Source, https://host/owner/ghostpoi\n" in text
        for link in links:
            if "/main/" in link:
                assert (ROOT / link.partition("/main/")[2].partition("#")[0]).exists(), link
