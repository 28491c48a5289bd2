"""Victims that are trained in processes side by side are those that are trained one by one."""

from pathlib import Path

import pytest
import torch
from round_city import CLEAN, POIS, run, text


def test_victims_side_by_side_are_those_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, release = tmp_path / "clean.csv", tmp_path / "release.csv"
    file.write_text(text(CLEAN))
    release.write_text(text([(u, (p + 5) % POIS, t) for u, p, t in CLEAN]))
    one = run(file, release, adversaries=("none",))
    monkeypatch.setattr("ghostpoi.attack.victims.base.WORTHWHILE", 0)
    torch.set_num_threads(2)
    two = run(file, release, adversaries=("none",), cache=tmp_path / "other")
    assert two["clean"] == one["clean"]
    assert two["controls"] == one["controls"]
