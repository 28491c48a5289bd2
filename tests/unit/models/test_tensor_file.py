"""Files of tensors: complete or absent, checked, readable only by their owner."""

import json
from pathlib import Path

import pytest
import torch

from ghostpoi.models import tensor_file

CPU = torch.device("cpu")
TENSORS = {"a": torch.arange(12.0).view(3, 4).t(), "step": torch.tensor(3.0), "none": torch.zeros(0, 2)}


def test_round_trip(tmp_path: Path) -> None:
    tensor_file.write(tmp_path / "v", TENSORS, {"key": "k", "done": 2})
    tensors, note = tensor_file.read(tmp_path / "v", CPU)
    assert note == {"key": "k", "done": 2}
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], value) for name, value in TENSORS.items())
    assert [(p.name, p.stat().st_mode & 0o777) for p in tmp_path.iterdir()] == [("v", 0o600)]


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tensor_file.read(tmp_path / "v", CPU)


def test_any_changed_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "v"
    tensor_file.write(path, TENSORS, {"key": "k"})
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        data = bytearray(whole)
        data[at] ^= 0x15
        path.write_bytes(data)
        with pytest.raises(tensor_file.Damaged):
            tensor_file.read(path, CPU)
    for length in range(0, len(whole), 41):
        path.write_bytes(whole[:length])
        with pytest.raises(tensor_file.Damaged):
            tensor_file.read(path, CPU)


def test_a_note_cannot_be_swapped(tmp_path: Path) -> None:
    path = tmp_path / "v"
    tensor_file.write(path, TENSORS, {"done": 1})
    path.write_bytes(path.read_bytes().replace(b'{\\"done\\": 1}', b'{\\"done\\": 2}'))
    with pytest.raises(tensor_file.Damaged, match="checksum"):
        tensor_file.read(path, CPU)
    assert json.dumps({"done": 1}) == '{"done": 1}'  # the form that was replaced
