"""The example plug-in in examples/ can be installed next to ghostpoi, and its method and adversary are found."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from small_city import SEED, SETS

from ghostpoi.data.synthetic_files import write_city

PACKAGE = "ghostpoi-nearest"
SMALL_VICTIM = ["--victim", "transformer"] + [
    word
    for text in ("victim.dim=16", "victim.heads=2", "victim.feed_forward=16", "training.epochs=3")
    for word in ("--set", text)
]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the package was installed into, without a network."""
    scratch = tmp_path_factory.mktemp("example")
    source, target = scratch / PACKAGE, scratch / "site"
    shutil.copytree(ROOT / "examples" / PACKAGE, source, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "-q"]
    subprocess.run([sys.executable, "-m", "pip", "install", *offline, "--target", target, source], check=True)
    return target


def ghostpoi(installed: Path, *arguments: object) -> str:
    """What the command prints when the example is installed."""
    path = os.pathsep.join([str(installed), str(ROOT)])
    command = [sys.executable, "-m", "ghostpoi", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_method_protects_and_its_adversary_undoes_most_of_it(installed: Path, tmp_path: Path) -> None:
    city, release = tmp_path / "city.txt", tmp_path / "release"
    write_city(city, 150, 300, 60, 3)
    ghostpoi(installed, "protect", city, "-o", release, "--method", "nearest", "--seed", SEED, *SETS)
    manifest = json.loads((release / "manifest.json").read_text())
    assert manifest["method"] == "nearest"
    assert manifest["plausibility"]["substitution_rate"] > 0.8
    ghostpoi(installed, "verify", release, "--against", city)

    wanted = ["--adversaries", "undo-nearest", "--seeds", 1, "--no-naturalness", "--json", *SMALL_VICTIM]
    found = json.loads(ghostpoi(installed, "audit", city, release, *wanted))
    recovered = {name: adversary["restored"]["mean"] for name, adversary in found["adversaries"].items()}
    assert set(recovered) == {"none", "undo-nearest"}
    assert recovered["undo-nearest"] > recovered["none"] + 0.3
