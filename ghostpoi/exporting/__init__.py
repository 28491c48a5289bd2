"""Exports: releases in the form that other tools train on. To add one, write a file here and add a line to EXPORTS."""

from ghostpoi.exporting.base import Export
from ghostpoi.exporting.flashback import Flashback
from ghostpoi.exporting.getnext import GETNext
from ghostpoi.exporting.hf import HuggingFace
from ghostpoi.exporting.libcity import LibCity
from ghostpoi.exporting.recbole import RecBole
from ghostpoi.exporting.skmob import ScikitMobility
from ghostpoi.plugins import Registry

EXPORTS: Registry[Export] = Registry(
    "exports",
    {
        "recbole": RecBole(),
        "libcity": LibCity(),
        "getnext": GETNext(),
        "flashback": Flashback(),
        "skmob": ScikitMobility(),
        "hf": HuggingFace(),
    },
)

__all__ = ["EXPORTS", "Export"]
