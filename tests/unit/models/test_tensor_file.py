"""Files of tensors: complete or absent, checked, readable only by their owner."""

import json
from pathlib import Path

import pytest
import torch

from ghostpoi.models import trajectory_lm

CPU = torch.device("cpu")
TENSORS = {"a": torch.arange(12.0).view(3, 4).t(), "step": torch.tensor(3.0), "none": torch.zeros(0, 2)}


def test_round_trip(tmp_path: Path) -> None:
    trajectory_lm.write_tensors(tmp_path / "v", TENSORS, {"key": "k", "done": 2})
    tensors, note = trajectory_lm.read_tensors(tmp_path / "v", CPU)
    assert note == {"key": "k", "done": 2}
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], value) for name, value in TENSORS.items())
    assert [(p.name, p.stat().st_mode & 0o777) for p in tmp_path.iterdir()] == [("v", 0o600)]


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        trajectory_lm.read_tensors(tmp_path / "v", CPU)


def test_any_changed_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "v"
    trajectory_lm.write_tensors(path, TENSORS, {"key": "k"})
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        data = bytearray(whole)
        data[at] ^= 0x15
        path.write_bytes(data)
        with pytest.raises(trajectory_lm.Damaged):
            trajectory_lm.read_tensors(path, CPU)
    for length in range(0, len(whole), 41):
        path.write_bytes(whole[:length])
        with pytest.raises(trajectory_lm.Damaged):
            trajectory_lm.read_tensors(path, CPU)


def test_a_note_cannot_be_swapped(tmp_path: Path) -> None:
    path = tmp_path / "v"
    trajectory_lm.write_tensors(path, TENSORS, {"done": 1})
    path.write_bytes(path.read_bytes().replace(b'{\\"done\\": 1}', b'{\\"done\\": 2}'))
    with pytest.raises(trajectory_lm.Damaged, match="checksum"):
        trajectory_lm.read_tensors(path, CPU)
    assert json.dumps({"done": 1}) == '{"done": 1}'  # the form that was replaced
