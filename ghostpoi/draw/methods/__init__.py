"""Methods, which propose released venues. To add one, write a file here and add a line to METHODS."""

from ghostpoi.draw.methods.base import KEEP, AnyMethod, Method
from ghostpoi.draw.methods.free_draw import FreeDraw
from ghostpoi.plugins import Registry

METHODS: Registry[AnyMethod] = Registry(
    "methods",
    __name__,
    {
        "ghost": "ghost:Ghost",
        "ghost-sym": "ghost:GhostSym",
        "ghost-ef": "ghost:GhostEf",
        "pgd": "pgd:Pgd",
        "em": "em:Em",
        "ts-ue": "ts_ue:TsUe",
        "ts-ue-calibrated": "ts_ue_calibrated:TsUeCalibrated",
        "robust-ue": "robust_ue:RobustUe",
        "transferable-ue": "transferable_ue:TransferableUe",
        "random": "random:Random",
        "crowd": "crowd:Crowd",
        "geo-indistinguishability": "geo_indistinguishability:GeoIndistinguishability",
        "k-anonymous": "k_anonymous:KAnonymous",
        "randomised-response": "randomised_response:RandomisedResponse",
        "synthetic": "synthetic:Synthetic",
    },
)

__all__ = ["KEEP", "METHODS", "AnyMethod", "FreeDraw", "Method"]
