"""Every method writes the bytes that it wrote when these hashes were recorded: same input, settings and seed.

A change that alters releases on purpose records new hashes (run this file with GHOSTPOI_RECORD=1) and says so in the
changelog.
"""

import hashlib
import json
import os
from typing import Any

import pytest
import torch
from conftest import ROOT
from small_city import release

FILE = ROOT / "tests" / "recorded_hashes.json"
RECORDED: dict[str, Any] = json.loads(FILE.read_text())
WITHOUT_MODELS = ("random", "crowd", "transferable-ue")


@pytest.mark.parametrize(
    "case", RECORDED["releases"], ids=lambda c: "-".join([c["method"], c["kind"], *c["more"][1::2]])
)
def test_a_release_has_the_recorded_bytes(case: dict[str, Any]) -> None:
    models = case["method"] not in WITHOUT_MODELS or "method.beta=0.5" in case["more"]
    here = (torch.__version__, torch.backends.cpu.get_cpu_capability())
    if models and here != (RECORDED["torch"], RECORDED["cpu"]):
        pytest.skip(f"recorded with torch {RECORDED['torch']} on {RECORDED['cpu']}; other kernels round differently")
    made = release(case["method"], case["kind"], *case["more"])
    found = hashlib.sha256(made.data.read_bytes()).hexdigest()
    if os.environ.get("GHOSTPOI_RECORD"):  # without -n: the cases share a file
        case["sha256"] = found
        FILE.write_text(json.dumps(RECORDED, indent=1) + "\n")
    assert found == case["sha256"]
