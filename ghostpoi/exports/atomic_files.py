"""Atomic files, typed tables of RecBole (recbole.io) and of LibCity (libcity.ai)."""

import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

import polars as pl

from ghostpoi.exports.base import Described, ExportData, Visits, csv_text

HISTORY = 50  # the last items of a prefix: RecBole's MAX_ITEM_LIST_LENGTH, which it does not enforce on such files
MISSING = re.compile(r"[-#<.\d]*(n/?a|nan|null|none|ind|qnan)>?", re.IGNORECASE | re.ASCII)  # to pandas, no value
SPECIAL = re.compile(r'[\s"%]')  # separators and quotes; % so that the codes can be undone
ROWS = ("user_id:token", "item_id:token", "timestamp:float")
ITEMS = ("item_id:token", "latitude:float", "longitude:float", "category:token")
STEPS = ("user_id:token", "item_id_list:token_seq", *ROWS[1:])

RECBOLE_SETTINGS = """USER_ID_FIELD: user_id
ITEM_ID_FIELD: item_id
TIME_FIELD: timestamp
load_col:
  inter: [{columns}]
train_neg_sample_args: ~
"""
RECBOLE_SPLIT = """benchmark_filename: [train, valid, test]
alias_of_item_id: [item_id_list]
"""


class RecBole(Described):
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
            f"{name}.yaml": RECBOLE_SETTINGS.format(columns=", ".join(columns)) + (RECBOLE_SPLIT if data.parts else ""),
        }
        return found | {f"{name}.{part}.inter": _table(STEPS, _steps(v, ids)) for part, v in data.parts.items()}


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


GEO = ("geo_id", "type", "coordinates", "venue_id", "venue_category_name")
USR = ("usr_id", "user_id")
DYNA = ("dyna_id", "type", "time", "entity_id", "location")
LIBCITY_CONFIG = {
    "geo": {"including_types": ["Point"], "Point": {"venue_id": "other", "venue_category_name": "enum"}},
    "usr": {"properties": {"user_id": "other"}},
    "dyna": {"including_types": ["trajectory"], "trajectory": {"entity_id": "usr_id", "location": "geo_id"}},
    "info": {"distance_upper": 30.0},
}


class LibCity(Described):
    """Atomic files of all rows; with clean data, also one .dyna file per part."""

    summary = "LibCity: NAME.geo, NAME.usr, NAME.dyna and config.json; with --private, a .dyna file per part"

    def files(self, data: ExportData) -> dict[str, str]:
        venues, name = data.venues, data.name
        places = [f"[{lon},{lat}]" for lat, lon in zip(venues.lat.tolist(), venues.lon.tolist(), strict=True)]
        geo = zip(places, venues.id, venues.category, strict=True)
        found = {
            f"{name}.geo": csv_text(GEO, ((k - 1, "Point", *row) for k, row in enumerate(geo) if k)),
            f"{name}.usr": csv_text(USR, ((k, user) for user, k in data.number.items())),
            f"{name}.dyna": _dyna(data, data.released),
            "config.json": json.dumps(LIBCITY_CONFIG, indent=2) + "\n",
        }
        return found | {f"{name}.{part}.dyna": _dyna(data, visits) for part, visits in data.parts.items()}


def _dyna(data: ExportData, visits: Visits) -> str:
    rows = data.rows(visits).select(pl.col("time").dt.strftime("%Y-%m-%dT%H:%M:%SZ"), "user", pl.col("venue") - 1)
    return csv_text(DYNA, ((k, "trajectory", *row) for k, row in enumerate(rows.iter_rows())))
