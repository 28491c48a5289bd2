"""Exports: releases in the form that other tools train on. To add one, write a file here and add a line to EXPORTS."""

from ghostpoi.export.base import Export
from ghostpoi.export.flashback import Flashback
from ghostpoi.export.getnext import GETNext
from ghostpoi.export.hf import HuggingFace
from ghostpoi.export.libcity import LibCity
from ghostpoi.export.recbole import RecBole
from ghostpoi.export.skmob import ScikitMobility
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
