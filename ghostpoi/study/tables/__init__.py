"""Tables of a study: the paper's layouts for its own studies, generic ones for all others."""

from collections.abc import Sequence

from ghostpoi.study.results import Results
from ghostpoi.study.tables import generic, reproduction
from ghostpoi.study.tables.prior import beside_prior
from ghostpoi.study.tables.table import Table, show

__all__ = ["Table", "show", "tables"]


def tables(found: Sequence[Results]) -> list[Table]:
    """Make all tables of a study that was measured under one or more protocols."""
    name = found[0].study.name
    if name in reproduction.LAYOUTS:
        return reproduction.tables(found)
    made = [table for results in found for table in generic.tables(results)]
    return [*made, *(beside_prior(results) for results in found if name == "adaptive")]
