"""Exports: releases in the form that other tools train on. To add one, write a file here and add a line to EXPORTS."""

from ghostpoi.exports.base import Export
from ghostpoi.plugins import Registry

EXPORTS: Registry[Export] = Registry(
    "exports",
    __name__,
    {
        "recbole": "atomic_files:RecBole",
        "libcity": "atomic_files:LibCity",
        "getnext": "trajectories:GETNext",
        "flashback": "trajectories:Flashback",
        "skmob": "tables:ScikitMobility",
        "hf": "tables:HuggingFace",
        "geojson": "tables:GeoJson",
        "gpkg": "tables:GeoPackage",
    },
)

__all__ = ["EXPORTS", "Export"]
