"""A quick trial of settings: a release of the sample, attacked by the adversaries that `choose` tries first."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ghostpoi.api.door import Door, through
from ghostpoi.audits.choose import FAST
from ghostpoi.formats import Source
from ghostpoi.reports.audit_view import AuditView
from ghostpoi.reports.charts.city import city
from ghostpoi.reports.decision import answers
from ghostpoi.reports.page_data import read_page_data

QUICK = {"adversaries": FAST, "victim": "markov", "seeds": 1, "naturalness": False}


def trial(folder: Path, request: Mapping[str, Any], door: Door) -> dict[str, Any]:
    """Return what the settings protect and keep, next to the clean sample, and its map."""
    out, private = folder / "release", folder / "release.private"
    shared = {"source": request["sample"], "private": private, "map": request["map"], "config": request["config"]}
    shared |= request["reading"]
    released = through(door, "protect", shared | request["changes"] | {"output": out, "force": True})
    found = through(door, "audit", shared | QUICK | {"release": out, "cache": folder / "cache"}).found
    audit = AuditView.of(found)
    data = read_page_data([Source.of(out)], private)
    drawn = city(data)
    return {
        "answers": [asdict(one) | {"big": one.big, "top": one.top, "bar": one.bar} for one in answers(audit)],
        "clean": _clean(audit),
        "moved": released.displacement,
        "rows": released.counts,
        "city": drawn and {
            "panels": [(panel.title, str(panel.drawing), panel.key) for panel in drawn.panels],
            "height": drawn.height, "corners": drawn.corners, "km": drawn.hexagon_km,
        },
    }  # fmt: skip


def _clean(audit: AuditView) -> dict[str, Any]:
    """What the file would give away as it is."""
    floor = max(audit.controls[name].acc1["mean"] for name in audit.without_release.values())
    people = {row.label: row.clean["mean"] for row in audit.persons if row.clean}
    return {"next": audit.clean.acc1["mean"], "without": floor, "people": people}
