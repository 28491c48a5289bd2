"""Methods, which propose released venues. To add one, write a file here and add a line to METHODS."""

from ghostpoi.plugins import Registry
from ghostpoi.publish.methods.base import KEEP, AnyMethod, Method
from ghostpoi.publish.methods.crowd import Crowd
from ghostpoi.publish.methods.em import Em
from ghostpoi.publish.methods.free_draw import FreeDraw
from ghostpoi.publish.methods.geo_indistinguishability import GeoIndistinguishability
from ghostpoi.publish.methods.ghost import Ghost, GhostEf, GhostSym
from ghostpoi.publish.methods.k_anonymous import KAnonymous
from ghostpoi.publish.methods.pgd import Pgd
from ghostpoi.publish.methods.random import Random
from ghostpoi.publish.methods.randomised_response import RandomisedResponse
from ghostpoi.publish.methods.robust_ue import RobustUe
from ghostpoi.publish.methods.synthetic import Synthetic
from ghostpoi.publish.methods.transferable_ue import TransferableUe
from ghostpoi.publish.methods.ts_ue import TsUe
from ghostpoi.publish.methods.ts_ue_calibrated import TsUeCalibrated

METHODS: Registry[AnyMethod] = Registry(
    "methods",
    {
        "ghost": Ghost(),
        "ghost-sym": GhostSym(),
        "ghost-ef": GhostEf(),
        "pgd": Pgd(),
        "em": Em(),
        "ts-ue": TsUe(),
        "ts-ue-calibrated": TsUeCalibrated(),
        "robust-ue": RobustUe(),
        "transferable-ue": TransferableUe(),
        "random": Random(),
        "crowd": Crowd(),
        "geo-indistinguishability": GeoIndistinguishability(),
        "k-anonymous": KAnonymous(),
        "randomised-response": RandomisedResponse(),
        "synthetic": Synthetic(),
    },
)

__all__ = ["KEEP", "METHODS", "AnyMethod", "FreeDraw", "Method"]
