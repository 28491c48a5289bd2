"""What a stranger installs: the wheel and the sdist, the container, and the oldest dependencies that are allowed."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest
from conftest import ROOT
from small_city import city, scratch
from wheels import sources, wheel

TWINE = ROOT / ".tools" / "packaging" / "bin" / "python"
NEEDS_TORCH = ("models", "all", "dev")  # an old torch brings CUDA


def run(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done  # type: ignore[no-any-return]


def installed(folder: Path, *words: object, **options: object) -> None:
    """Install packages from an index; skip if none is reached."""
    done = subprocess.run(
        [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--no-compile", *map(str, words)],
        capture_output=True, text=True, **options,  # type: ignore[call-overload]
    )  # fmt: skip
    if "Failed to establish a new connection" in done.stderr or "Temporary failure in name resolution" in done.stderr:
        pytest.skip("no package index is reached")
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not TWINE.exists(), reason="twine is not installed; run make tools")
def test_an_index_takes_the_wheel_and_the_sdist(tmp_path: Path) -> None:
    source = sources(tmp_path / "source")
    shutil.copytree(ROOT / "ghostpoi", source / "ghostpoi", ignore=shutil.ignore_patterns("__pycache__"))
    build = f"from setuptools.build_meta import build_sdist; print(build_sdist({str(tmp_path)!r}))"
    sdist = run(sys.executable, "-c", build, cwd=source).stdout.splitlines()[-1]
    for found in (wheel(), tmp_path / sdist):
        checked = run(TWINE, "-m", "twine", "check", "--strict", found)
        assert checked.stdout.count("PASSED") == 1, checked.stdout
    names = run("tar", "tzf", tmp_path / sdist).stdout
    for name in ("ghostpoi/options.toml", "ghostpoi/py.typed", "LICENSE", "README.md"):
        assert f"/{name}\n" in names


def works(python: Path, folder: Path, **options: object) -> None:
    """Make, check and describe a release from a CSV file, SQLite and a store in memory."""
    folder.mkdir()
    shutil.copy(city(), folder / "city.txt")
    ghostpoi = (python.with_name("ghostpoi"),)
    run(*ghostpoi, "protect", "city.txt", "-o", "release", cwd=folder, **options)
    run(*ghostpoi, "verify", "release", "--against", "city.txt", cwd=folder, **options)
    run(*ghostpoi, "report", "release", cwd=folder, **options)
    run(*ghostpoi, "export", "release", "--to", "recbole", "-o", "town", cwd=folder, **options)
    run(python, "-c", STORES, cwd=folder, **options)


STORES = """
import random, sqlite3, ghostpoi
from datetime import UTC, datetime
release = ghostpoi.protect("city.txt", output="memory://a/release", private="memory://a/private")
assert ghostpoi.verify(release)
with sqlite3.connect("city.db") as connection:
    connection.execute("create table visits (user, poi, lat real, lon real, time)")
    draw = random.Random(1)
    for minute in sorted(draw.sample(range(40_000), 600)):
        time = datetime.fromtimestamp(1_767_000_000 + 60 * minute, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        place = draw.randrange(50)
        row = (f"u{draw.randrange(20)}", f"p{place}", 40 + place / 1e3, 1.5, time)
        connection.execute("insert into visits values (?, ?, ?, ?, ?)", row)
assert ghostpoi.inspect("city.db", table="visits").summary["checkins"] == 600
assert ghostpoi.protect("city.db", table="visits", output="from-table", to_table="released").table.height == 600
"""


def test_the_oldest_dependencies_that_are_allowed(tmp_path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    groups = [project["dependencies"], *(extras[name] for name in extras if name not in NEEDS_TORCH)]
    oldest = [text.replace(">=", "==") for group in groups for text in group]
    assert all("==" in text for text in oldest)
    venv.create(tmp_path / "old", with_pip=True)
    installed(tmp_path / "old", *oldest, wheel())
    python = tmp_path / "old" / "bin" / "python"
    listed = json.loads(run(python, "-m", "pip", "list", "--format", "json").stdout)
    versions = {one["name"].lower(): one["version"] for one in listed}
    for text in oldest:
        name, _, version = text.partition("==")
        assert versions[name.lower()].startswith(version)
    works(python, tmp_path / "work")


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n", "", (ROOT / "Containerfile").read_text())
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def test_the_container_or_else_its_steps_in_a_clean_environment(tmp_path: Path) -> None:
    """Folders at the root are folders below a temporary one, and the image is this machine's Python."""
    for program in ("podman", "buildah", "docker"):
        if shutil.which(program) and subprocess.run([program, "info"], capture_output=True).returncode == 0:
            run(program, "build", "-t", "ghostpoi-test", "-f", "Containerfile", ".", cwd=ROOT)
            if program != "buildah":
                run(program, "run", "--rm", "ghostpoi-test", "--version")
            return
    tmp_path.chmod(0o755)
    root, state = scratch() / "container", {"user": "root", "WORKDIR": "/"}
    root.mkdir()
    scratch().chmod(0o755)
    (root / "bin").mkdir()
    (root / "bin" / "python").symlink_to(sys._base_executable)  # type: ignore[attr-defined]
    environment = {"PATH": f"{root / 'bin'}:/usr/bin:/bin", "HOME": str(root), "EXTRAS": "databases,s3"}
    environment |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}

    def placed(text: str) -> str:
        return re.sub(r"(?<![\w.$])/(opt|src|data)\b", rf"{root}/\1", text)

    for name, rest in instructions():
        if name == "RUN":
            assert state["user"] == "root"
            done = subprocess.run(["sh", "-ec", placed(rest)], cwd=placed(state["WORKDIR"]), env=environment,
                                  capture_output=True, text=True)  # fmt: skip
            assert done.returncode == 0, done.stderr
        elif name == "COPY" and not rest.startswith("--from"):
            *files, target = rest.split()
            for file in files:
                into = Path(placed(state["WORKDIR"])) / target
                copy = shutil.copytree if (ROOT / file).is_dir() else shutil.copy
                copy(ROOT / file, into)
        elif name == "WORKDIR":
            Path(placed(rest)).mkdir(parents=True, exist_ok=True)
            state["WORKDIR"] = rest
        elif name == "ENV":
            for word in shlex.split(rest):
                key, _, value = word.partition("=")
                environment[key] = placed(value).replace("$PATH", environment["PATH"])
        elif name == "USER":
            state["user"] = rest
        else:
            assert name in ("FROM", "ARG", "COPY", "ENTRYPOINT", "CMD")
    assert state == {"user": "10001:10001", "WORKDIR": "/data"}
    assert dict(instructions())["ENTRYPOINT"] == '["ghostpoi"]'
    can_be_read = all(path.stat().st_mode & 0o001 for path in Path(sys._base_executable).resolve().parents)  # type: ignore[attr-defined]
    as_user = {"user": 10001, "group": 10001, "extra_groups": []} if os.geteuid() == 0 and can_be_read else {}
    work = root / "data" / "work"
    if as_user:
        os.chown(root / "data", 10001, 10001)
    (root / "opt" / "ghostpoi" / "bin").chmod(0o755)
    old = os.umask(0o022)
    work.parent.chmod(0o777)
    works(root / "opt" / "ghostpoi" / "bin" / "python", work, env=environment | {"HOME": "/nonexistent"})
    os.umask(old)
    found = run(root / "opt" / "ghostpoi" / "bin" / "ghostpoi", "protect", work / "city.txt", "-o", root / "data" / "r",
                env=environment | {"HOME": "/nonexistent"}, cwd=root / "data", **as_user)  # fmt: skip
    assert "signed by key" in found.stdout
