"""Venues that a release never shows: homes, categories that the publisher names, and venues with few visitors.

Somebody who is seen at a home usually lives there, so its id and position name a person. A category counts as a home if
its id or its name is in `HOMES`: places that people live in, alone or with others. Hotels, hostels and whole
neighbourhoods are not in it. A category whose name is not in the file is known by its id, if that is Foursquare's.
"""

import re
from collections.abc import Iterable

import numpy as np

from ghostpoi.data.checkins import Bools, Checkins
from ghostpoi.settings import HideSettings

HOMES = (
    "home", "home (private)", "private home", "house", "residence", "private residence", "apartment", "apartments",
    "apartment or condo", "condo", "residential building", "residential building (apartment / condo)",
    "housing development", "trailer park", "assisted living", "college residence hall", "dormitory",
    # Foursquare: Residence and what is below it, and College Residence Hall.
    "4e67e38e036454776db1fb3a", "4bf58dd8d48988d103941735", "4d954b06a243a5684965b473", "4f2a210c4b9023bd5841ed28",
    "52f2ab2ebcbc57f1066b8b55", "5032891291d4c4b30a586d68", "4bf58dd8d48988d1b2941735",
)  # fmt: skip


def _plain(name: str) -> str:
    """Reduce a name to its words: letters and digits in lower case."""
    return " ".join(re.findall(r"[^\W_]+", name.lower()))


WORDS = frozenset(map(_plain, HOMES))


def is_hidden(called: Iterable[str], rule: HideSettings) -> bool:
    """Return whether venues of a category of this id and name are never released."""
    words = (WORDS if rule.homes else frozenset()) | {_plain(name) for name in rule.categories.split(";")} - {""}
    return bool(words & {_plain(text) for text in called})


def hidden_categories(table: Checkins, rule: HideSettings) -> Bools:
    """Mark the categories of a table, (C,), whose venues are never released."""
    ids = table.category_ids.tolist()
    return np.array([is_hidden((i, table.category_names.get(i, "")), rule) for i in ids], bool)


def hidden_venues(table: Checkins, rule: HideSettings) -> Bools:
    """Mark the venues of a table, (V+1,), that are never released."""
    hidden = np.append(hidden_categories(table, rule), False)[table.venues.category]  # row 0 has the category -1
    if rule.min_visitors > 1:
        pairs = np.unique(table.venue.astype(np.int64) * len(table.user_ids) + table.user)
        visitors = np.bincount(pairs // max(1, len(table.user_ids)), minlength=len(hidden))
        hidden[1:] |= visitors[1:] < rule.min_visitors
    return hidden
