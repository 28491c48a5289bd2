"""What a publisher can ask of `protect`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ghostpoi.publish.protocols import Publication
from ghostpoi.randomness import Seed

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class ReleaseRequest:
    """What the publisher asked for."""

    file: Path
    release: Path
    private: Path
    settings: Publication
    method: str
    protocol: str
    device: "torch.device"
    mapping: dict[str, str]
    keep: tuple[str, ...] = ()
    withhold: bool = False  # leave rows without a candidate out of the release
    seed: Seed | None = None
    resume: bool = False
    force: bool = False
