"""Exports: releases in the form that other tools train on. To add one, write a file here and add a line to EXPORTS."""

from ghostpoi.export.base import Export
from ghostpoi.export.recbole import RecBole
from ghostpoi.plugins import Registry

EXPORTS: Registry[Export] = Registry("exports", {"recbole": RecBole()})

__all__ = ["EXPORTS", "Export"]
