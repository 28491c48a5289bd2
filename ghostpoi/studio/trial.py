"""A quick trial of settings: a release of the sample, attacked by the adversaries that `choose` tries first."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import ghostpoi
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
    config = {"map": request["map"], "config": request["config"]}
    released = through(door, ghostpoi.protect)(
        request["sample"], output=out, private=private, force=True, **config, **request["changes"], **request["reading"]
    )  # fmt: skip
    found = through(door, ghostpoi.audit)(
        request["sample"], out, private=private, cache=folder / "cache", **config, **QUICK, **request["reading"]
    ).found
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
