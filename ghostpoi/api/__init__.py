"""The Python API: one function and one result per step. The command line calls the same functions."""

from ghostpoi.api.audits import Audit, audit
from ghostpoi.api.choice import Choice, choose
from ghostpoi.api.inspection import Inspection, inspect
from ghostpoi.api.outputs import Export, Report, export, report, synth
from ghostpoi.api.release import Release, protect
from ghostpoi.api.verification import Verification, verify

__all__ = [
    "Audit", "Choice", "Export", "Inspection", "Release", "Report", "Verification", "audit", "choose",
    "export", "inspect", "protect", "report", "synth", "verify",
]  # fmt: skip
