"""The public figures of a release that follow from the clean and the released venue of every row.

`protect` writes them into the manifest; `verify` computes them again.
"""

from typing import Any

from ghostpoi.data.displacement import displacement, published
from ghostpoi.publish.substitution import Substitution
from ghostpoi.publish.whole_table import WholeTable, count_rows


def figures(whole: WholeTable, released: Substitution, withheld: int) -> dict[str, Any]:
    """Return the sections `rows` and `plausibility` of the manifest."""
    return {
        "rows": count_rows(whole, released) | {"withheld": withheld},
        "plausibility": published(displacement(whole.table.venues, whole.table.venue, released.poi)),
    }
