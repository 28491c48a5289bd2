"""The device of a release, chosen without torch where no model runs."""

from typing import TYPE_CHECKING

from ghostpoi.errors import InputError
from ghostpoi.extras import need
from ghostpoi.options import option
from ghostpoi.publish.publication_settings import Publication

if TYPE_CHECKING:
    import torch


def device_for(name: str, settings: Publication) -> "torch.device | None":
    """Return the device called `auto`, `cpu` or `cuda`; None if the method needs no torch, whatever is asked for."""
    if settings.method.needs_torch:
        need("models")
        from ghostpoi.models.devices import device

        return device(name)
    if name not in ("auto", "cpu", "cuda"):
        raise InputError(f"{option('device', name)}: there is no such device; use auto, cpu or cuda")
    return None
