"""A taxonomy of categories: a CSV file with the columns `category` and `group`."""

import csv
from pathlib import Path

from ghostpoi.errors import InputError

FORM = "give a CSV file with the header line category,group and one line per category"


def read_taxonomy(path: Path) -> dict[str, str]:
    """Read the group of every category. A category is named as in the check-ins."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as e:
        raise InputError(f"the taxonomy {path} cannot be read ({e}); {FORM}") from None
    groups: dict[str, str] = {}
    for line, row in enumerate(rows, 2):
        category, group = row.get("category"), row.get("group")
        if not category or not group:
            raise InputError(f"{path}, line {line}: the category or its group is missing; {FORM}")
        if groups.setdefault(category, group) != group:
            raise InputError(f"{path}, line {line}: {category!r} is in two groups; remove one of its lines")
    if not groups:
        raise InputError(f"the taxonomy {path} is empty; {FORM}")
    return groups
