"""The public figures of a release that follow from the clean and the released venue of every row.

`protect` writes them into the manifest; `verify` computes them again.
"""

from collections.abc import Mapping
from typing import Any

from ghostpoi.data.checkins import Longs
from ghostpoi.data.displacement import displacement, published, without_category
from ghostpoi.publish.methods import AnyMethod
from ghostpoi.publish.substitution import Substitution
from ghostpoi.publish.whole_table import WholeTable, count_rows, genuine_rows

FEW_ROWS = 100  # of a release in a series
BY_RULE = ("rows", "no_candidate")  # counts that say nothing about draws


def figures(
    whole: WholeTable, method: AnyMethod, released: Substitution, shown: Longs, missing: Mapping[str, int]
) -> dict[str, Any]:
    """Return the sections `rows` and `plausibility` of the manifest. `shown` are the rows that are not withheld.

    `missing` counts the rows that lack a value: kept or dropped. A kept row is left genuine. A release of a series
    with few new rows has neither outcomes of draws nor plausibility: they would tell the venues of single rows.
    """
    genuine = with_kept(genuine_rows(whole, method, shown, released.poi[shown]), len(shown), missing.get("kept", 0))
    moved = published(displacement(whole.table.venues, whole.table.venue, released.poi))
    counts = count_rows(whole, released)
    if few := whole.crowds is not None and (len(whole.table) < FEW_ROWS or bool(whole.repeated.any())):
        counts = {name: {key: group[key] for key in BY_RULE} for name, group in counts.items()}
        del genuine["drawn_own"]
    return {
        "rows": counts
        | {"withheld": len(whole.table) - len(shown)}
        | genuine
        | ({"missing": dict(missing)} if missing else {}),
        "plausibility": None if few else moved if whole.table.category_field else without_category(moved),
    }


def with_kept(genuine: dict[str, dict[str, Any]], shown: int, kept: int) -> dict[str, dict[str, Any]]:
    """Count kept rows that lack a value as left genuine, among `shown` rows of the table."""
    if not kept:
        return genuine
    rows = {name: found["rows"] + kept * (name == "left_genuine") for name, found in genuine.items()}
    return {name: {"rows": count, "share": round(count / (shown + kept), 3)} for name, count in rows.items()}
