"""Checks of a release whose user ids are pseudonyms."""

from typing import Any

import numpy as np

from ghostpoi.data.checkins import Checkins, Longs
from ghostpoi.publish.manifest import settings_of
from ghostpoi.publish.pseudonyms import PrivateMap, numbers, released_order
from ghostpoi.publish.publication_settings import Publication
from ghostpoi.publish.verify.check import Check

UNIT = {"session": "session", "week": "week of a user"}


def order_check(written: Checkins, manifest: dict[str, Any]) -> list[Check]:
    """Check what anyone can see: how many pseudonyms there are, and that the order of rows follows from the release."""
    if settings_of(manifest).identity.pseudonyms == "keep":
        return []
    stated, found = manifest.get("identity", {}).get("ids"), len(written.user_ids)
    order = released_order(written.time, written.user_ids[written.user])
    moved = np.flatnonzero(order != np.arange(len(order)))
    if len(moved):
        return [Check("row order", False, f"row {moved[0] + 1:,} is not in the order of time and user id")]
    detail = f"{found:,} user ids, {'as' if found == stated else f'not {stated} as'} in the manifest"
    return [Check("user ids", found == stated, f"{detail}; rows are ordered by time")]


def pseudonym_check(
    known: PrivateMap, clean: Checkins, shown: Longs, written: Checkins, settings: Publication
) -> Check:
    """Check that each pseudonym covers one session or week, is the one of the private map, and is no clean user id."""
    number, row, ids = numbers(clean, settings), known.row, written.user_ids[written.user]
    problem = None
    if not np.array_equal(np.sort(row), shown) or len(known.pseudonym) != number.max() + 1:
        problem = "the private map is of another file or release"
    elif not (clean.time[row] == written.time).all():
        problem = f"row {int(np.argmin(clean.time[row] == written.time)) + 1:,} has another time than its clean row"
    elif kept := sorted(set(written.user_ids).intersection(clean.user_ids)):
        problem = f"{len(kept):,} user ids occur in the clean file, for example {kept[0]!r}"
    elif not (right := ids == known.pseudonym[number[row]].astype(object)).all():
        problem = f"{int((~right).sum()):,} rows have another pseudonym than the private map gives them"
    elif len(np.unique(known.pseudonym)) != len(known.pseudonym):
        problem = "two pseudonyms have the same id"
    unit = UNIT[settings.identity.pseudonyms]
    return Check("pseudonyms", not problem, problem or f"{len(written.user_ids):,} new user ids, one per {unit}")
