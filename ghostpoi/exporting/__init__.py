"""Exports: releases in the form that other tools train on. To add one, write a file here and add a line to EXPORTS."""

from ghostpoi.exporting.base import Export
from ghostpoi.plugins import Registry

EXPORTS: Registry[Export] = Registry(
    "exports",
    __name__,
    {
        "recbole": "recbole:RecBole",
        "libcity": "libcity:LibCity",
        "getnext": "getnext:GETNext",
        "flashback": "flashback:Flashback",
        "skmob": "skmob:ScikitMobility",
        "hf": "hf:HuggingFace",
    },
)

__all__ = ["EXPORTS", "Export"]
