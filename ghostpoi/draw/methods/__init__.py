"""Methods, which propose released venues. To add one, write a file here and add a line to METHODS."""

from ghostpoi.draw.methods.base import KEEP, AnyMethod, FreeDraw, Method
from ghostpoi.plugins import Registry

METHODS: Registry[AnyMethod] = Registry(
    "methods",
    __name__,
    {
        "ghost": "ghost:Ghost",
        "ghost-sym": "ghost:GhostSym",
        "ghost-ef": "ghost:GhostEf",
        "pgd": "ghost:Pgd",
        "em": "ghost:Em",
        "ts-ue": "unlearnable:TsUe",
        "ts-ue-calibrated": "unlearnable:TsUeCalibrated",
        "robust-ue": "unlearnable:RobustUe",
        "transferable-ue": "unlearnable:TransferableUe",
        "random": "ghost:Random",
        "crowd": "crowd:Crowd",
        "crowd-halves": "crowd:CrowdHalves",
        "geo-indistinguishability": "free:GeoIndistinguishability",
        "k-anonymous": "crowd:KAnonymous",
        "randomised-response": "crowd:RandomisedResponse",
        "synthetic": "free:Synthetic",
    },
)

__all__ = ["KEEP", "METHODS", "AnyMethod", "FreeDraw", "Method"]
