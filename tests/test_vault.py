"""Tensors on disk: whole or absent, checked, for their owner alone."""

import json
from pathlib import Path

import pytest
import torch

from ghostpoi.models import tensor_file as vault

CPU = torch.device("cpu")
TENSORS = {"a": torch.arange(12.0).view(3, 4).t(), "step": torch.tensor(3.0), "none": torch.zeros(0, 2)}


def test_round_trip(tmp_path: Path) -> None:
    vault.write(tmp_path / "v", TENSORS, {"key": "k", "done": 2})
    tensors, note = vault.read(tmp_path / "v", CPU)
    assert note == {"key": "k", "done": 2}
    assert tensors.keys() == TENSORS.keys()
    assert all(torch.equal(tensors[name], value) for name, value in TENSORS.items())
    assert [(p.name, p.stat().st_mode & 0o777) for p in tmp_path.iterdir()] == [("v", 0o600)]


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        vault.read(tmp_path / "v", CPU)


def test_every_byte_counts(tmp_path: Path) -> None:
    path = tmp_path / "v"
    vault.write(path, TENSORS, {"key": "k"})
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        data = bytearray(whole)
        data[at] ^= 0x15
        path.write_bytes(data)
        with pytest.raises(vault.Damaged):
            vault.read(path, CPU)
    for length in range(0, len(whole), 41):
        path.write_bytes(whole[:length])
        with pytest.raises(vault.Damaged):
            vault.read(path, CPU)


def test_a_note_cannot_be_swapped(tmp_path: Path) -> None:
    path = tmp_path / "v"
    vault.write(path, TENSORS, {"done": 1})
    path.write_bytes(path.read_bytes().replace(b'{\\"done\\": 1}', b'{\\"done\\": 2}'))
    with pytest.raises(vault.Damaged, match="checksum"):
        vault.read(path, CPU)
    assert json.dumps({"done": 1}) == '{"done": 1}'  # the form that was replaced


def test_a_folder_is_closed_to_others(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir(mode=0o755)
    for name in ("f", "g/h"):
        vault.make_folder(tmp_path / name)
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o700
