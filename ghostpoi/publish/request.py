"""A request to `protect`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ghostpoi.publish.protocols import Publication
from ghostpoi.randomness import Seed

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class ReleaseRequest:
    """Everything that the publisher can choose."""

    file: Path
    release: Path
    private: Path
    settings: Publication
    method: str
    protocol: str
    device: "torch.device"
    mapping: dict[str, str]
    keep: tuple[str, ...] = ()
    withhold: bool = False  # omit rows whose venue has no candidate
    seed: Seed | None = None
    resume: bool = False
    force: bool = False
