"""RecBole (recbole.io): atomic files, typed and separated by tabs."""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from ghostpoi.exporting.base import ExportData, Visits

HISTORY = 50  # the last items of a prefix: RecBole's MAX_ITEM_LIST_LENGTH, which it does not enforce on such files
MISSING = re.compile(r"[-#<.\d]*(n/?a|nan|null|none|ind|qnan)>?", re.IGNORECASE | re.ASCII)  # to pandas, no value
SPECIAL = re.compile(r'[\s"%]')  # separators and quotes; % so that the codes can be undone
ROWS = ("user_id:token", "item_id:token", "timestamp:float")
ITEMS = ("item_id:token", "latitude:float", "longitude:float", "category:token")
STEPS = ("user_id:token", "item_id_list:token_seq", *ROWS[1:])

SETTINGS = """USER_ID_FIELD: user_id
ITEM_ID_FIELD: item_id
TIME_FIELD: timestamp
load_col:
  inter: [{columns}]
train_neg_sample_args: ~
"""
SPLIT = """benchmark_filename: [train, valid, test]
alias_of_item_id: [item_id_list]
"""
USAGE = """In the folder above this one:

    from recbole.quick_start import run_recbole
    run_recbole("GRU4Rec", "{name}", ["{name}/{name}.yaml"], {{"data_path": "."}})

Spaces, quotes and `%` in ids are written as `%20`, `%22` and `%25`.
"""
SPLIT_USAGE = """
Each row of `train`, `valid`, `test` and `clean` is one step inside a session: the venues so far, and the next one.
`train` shows released venues; `clean` shows the clean venues of the same steps; `valid` and `test` are clean. A model
that is trained on `clean` shows what can be learned without protection: `benchmark_filename: [clean, valid, test]`.
"""


class RecBole:
    """Atomic files of all rows; with clean data, also one file of steps per part, for RecBole's sequential models."""

    summary = "RecBole: NAME.inter, NAME.item and NAME.yaml; with --private, steps to train, validate and test on"

    def files(self, data: ExportData) -> dict[str, str]:
        venues, rows, name = data.venues, data.released, data.name
        ids = [token(text) for text in venues.id]
        items = zip(ids[1:], venues.lat[1:], venues.lon[1:], map(token, venues.category[1:]), strict=True)
        visits = zip(map(token, rows.user), (ids[v] for v in rows.venue), rows.time, strict=True)
        columns = [column.partition(":")[0] for column in (STEPS if data.parts else ROWS)]
        found = {
            f"{name}.inter": _table(ROWS, visits),
            f"{name}.item": _table(ITEMS, items),
            f"{name}.yaml": SETTINGS.format(columns=", ".join(columns)) + (SPLIT if data.parts else ""),
        }
        return found | {f"{name}.{part}.inter": _table(STEPS, _steps(v, ids)) for part, v in data.parts.items()}

    def usage(self, data: ExportData) -> str:
        return USAGE.format(name=data.name) + (SPLIT_USAGE if data.parts else "")


def token(text: str) -> str:
    """Encode what RecBole would take for a separator, a quote or a missing value."""
    special = text[:1] if MISSING.fullmatch(text) else ""
    return (f"%{ord(special):02X}" if special else "") + SPECIAL.sub(lambda c: quote(c[0]), text[len(special) :])


def _steps(visits: Visits, ids: list[str]) -> Iterable[tuple[Any, ...]]:
    """One row per visit but the first of each session: what came before it, and itself."""
    for start, end in zip(visits.start[:-1], visits.start[1:], strict=True):
        items = [ids[v] for v in visits.venue[start:end]]
        for k in range(1, len(items)):
            before = " ".join(items[max(0, k - HISTORY) : k])
            yield token(visits.user[start + k]), before, items[k], visits.time[start + k]


def _table(head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> str:
    return "".join("\t".join(map(str, row)) + "\n" for row in (head, *rows))
