"""Pseudonyms over a series: no two users share one, and a row that is released again keeps its own."""

import numpy as np

from ghostpoi.data.checkins import Checkins, Longs
from ghostpoi.errors import InputError
from ghostpoi.publish.pseudonym_ids import fresh_ids
from ghostpoi.publish.pseudonyms import NewUsers, numbers, released_order
from ghostpoi.publish.publication_settings import Publication
from ghostpoi.publish.series.drawn_rows import DrawnRows
from ghostpoi.randomness import Seed


def draw_users(
    table: Checkins, shown: Longs, settings: Publication, seed: Seed, most: int | None, earlier: DrawnRows,
    found: Longs,
) -> NewUsers:  # fmt: skip
    """Draw the pseudonyms of a table; `found` (N,) is the place of each row among the earlier ones, -1: new."""
    number, used = numbers(table, settings), np.unique(earlier.user)
    count = int(number.max()) + 1
    drawn = fresh_ids(table.user_ids.tolist(), count + len(used), seed.generator("pseudonyms"), most)
    ids = drawn[~np.isin(drawn.astype(str), used)][:count]
    kept = kept_users(table, settings, earlier, found)
    ids[list(kept)] = list(kept.values())
    return NewUsers(number, ids, shown[released_order(table.time[shown], ids[number[shown]])])


def kept_users(table: Checkins, settings: Publication, earlier: DrawnRows, found: Longs) -> dict[int, str]:
    """Return the earlier pseudonym of each number; refuse a file that cuts sessions otherwise than before."""
    again = np.flatnonzero(found >= 0)
    number, user = numbers(table, settings)[again], earlier.user[found[again]]
    pairs = sorted(set(zip(number.tolist(), user.tolist(), strict=True)))
    kept = dict(pairs)
    if len(kept) < len(pairs) or len(set(kept.values())) < len(pairs):
        raise InputError(
            f"{table.name} has rows that were released before, in other sessions: their pseudonyms cannot be repeated; "
            "give all rows of these sessions as they were, or leave them out"
        )
    return kept
