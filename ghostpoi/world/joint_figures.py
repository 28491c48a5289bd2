"""Figures of a dataset, from those of its regions."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

from ghostpoi.data.displacement import MoveCounts, published, without_category

SHARES = ("left_genuine", "drawn_own")  # of all released rows


def joint_figures(each: Sequence[dict[str, Any]], moved: Sequence[MoveCounts]) -> dict[str, Any]:
    """Return the sections `rows`, `plausibility` and `data` of a manifest, given those of all regions."""
    total = sum(one["data"]["rows"] for one in each)
    rows = reduce(_added, (one["rows"] for one in each))
    for name in SHARES:
        rows[name]["share"] = round(rows[name]["rows"] / total, 3) if total else 0.0
    joint = each[0]["plausibility"]
    if len(each) > 1:
        has_category = joint["category_match"] is not None
        joint = published(MoveCounts.added(moved).measures)
        joint = joint if has_category else without_category(joint)
    return {"rows": rows, "plausibility": joint, "data": {"rows": total}}


def _added(one: dict[str, Any], two: dict[str, Any]) -> dict[str, Any]:
    """Add two trees of numbers."""
    keys = dict.fromkeys([*one, *two])
    return {
        key: _added(one.get(key, {}), two.get(key, {}))
        if isinstance(one.get(key, two.get(key)), dict)
        else one.get(key, 0) + two.get(key, 0)
        for key in keys
    }
