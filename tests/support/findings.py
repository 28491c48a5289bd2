"""How tests of findings read a page and compare methods."""

from collections.abc import Sequence

from docs.blocks.common import DOCS, known
from ghostpoi.audits.measures.gaps import holm
from ghostpoi.study.results import Results


def prose(page: str) -> str:
    """A page of the documentation on one line."""
    return " ".join((DOCS / page).read_text("utf-8").split())


def signs(results: Results, one: str, two: str, keys: Sequence[str]) -> list[int]:
    """Whether one method is clearly above another (1), clearly below (-1), or neither, in each key."""
    return [known(gap).sign for gap in holm([results.against(one, two, key) for key in keys])]
