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


def figures(
    whole: WholeTable, method: AnyMethod, released: Substitution, shown: Longs, missing: Mapping[str, int]
) -> dict[str, Any]:
    """Return the sections `rows` and `plausibility` of the manifest. `shown` are the rows that are not withheld.

    `missing` counts the rows that lack a value: kept or dropped. A kept row is left genuine.
    """
    genuine = with_kept(genuine_rows(whole, method, shown, released.poi[shown]), len(shown), missing.get("kept", 0))
    moved = published(displacement(whole.table.venues, whole.table.venue, released.poi))
    return {
        "rows": count_rows(whole, released)
        | {"withheld": len(whole.table) - len(shown)}
        | genuine
        | ({"missing": dict(missing)} if missing else {}),
        "plausibility": moved if whole.table.category_field else without_category(moved),
    }


def with_kept(genuine: dict[str, dict[str, Any]], shown: int, kept: int) -> dict[str, dict[str, Any]]:
    """Count kept rows that lack a value as left genuine, among `shown` rows of the table."""
    if not kept:
        return genuine
    rows = {name: found["rows"] + kept * (name == "left_genuine") for name, found in genuine.items()}
    return {name: {"rows": count, "share": round(count / (shown + kept), 3)} for name, count in rows.items()}
