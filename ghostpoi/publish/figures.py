"""The public figures of a release that follow from the clean and the released venue of every row.

`protect` writes them into the manifest; `verify` computes them again.
"""

from typing import Any

from ghostpoi.data.checkins import Longs
from ghostpoi.data.displacement import displacement, published, without_category
from ghostpoi.publish.methods import Method
from ghostpoi.publish.substitution import Substitution
from ghostpoi.publish.whole_table import WholeTable, count_rows, genuine_rows


def figures(whole: WholeTable, method: Method, released: Substitution, shown: Longs) -> dict[str, Any]:
    """Return the sections `rows` and `plausibility` of the manifest. `shown` are the rows that are not withheld."""
    moved = published(displacement(whole.table.venues, whole.table.venue, released.poi))
    return {
        "rows": count_rows(whole, released)
        | {"withheld": len(whole.table) - len(shown)}
        | genuine_rows(whole, method, shown, released.poi[shown]),
        "plausibility": moved if whole.table.category_field else without_category(moved),
    }
