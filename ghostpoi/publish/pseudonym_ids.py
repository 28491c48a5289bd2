"""Fresh random ids of the same form as those of a file.

The form is common to all new ids and says nothing about single users: the usual length and, at each place, the kinds of
characters that occur there.
"""

import math
import re
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ghostpoi.errors import InputError
from ghostpoi.formats.fields import NO_VALUE

NONZERO = string.digits[1:]
NUMBERED = re.compile(r"([^\d\s\"]*)([0-9]+)(\.0)?")  # a polars float ends with .0
HEX = {"0123456789abcdef": re.compile(r"[0-9a-f-]+"), "0123456789ABCDEF": re.compile(r"[0-9A-F-]+")}
ROOM = 2  # times as many ids as are in use, so that few draws repeat one

Form = list[str]  # the characters of each place


def fresh_ids(
    ids: Sequence[str], count: int, draw: np.random.Generator, most: int | None = None
) -> NDArray[np.object_]:
    """Draw distinct ids of the form of these, none of which is one of these or reads as a missing value, (count,).

    A form with too few ids is lengthened. `most` is the largest number that the column can hold; None: it holds text.
    """
    form = form_for(ids, count, most)
    known, found = set(ids), dict[str, None]()
    while len(found) < count:
        drawn = (d for d in _draw(form, count - len(found), draw) if d not in known and d.lower() not in NO_VALUE)
        found |= dict.fromkeys(d for d in drawn if most is None or float(d) <= most)
    return np.array(list(found), object)


def form_for(ids: Sequence[str], count: int, most: int | None) -> Form:
    """Return the form of these ids, lengthened until it has enough of them; refuse a type that holds too few."""
    form = form_of(ids if most is None else [i.lstrip("-") for i in ids])
    while _room(form, most) < ROOM * (count + len(ids)):
        form = _longer(form)
        if most is not None and _least(form) > most:
            raise InputError(
                f"the type of the user column has too few values for {count:,} pseudonyms; store user ids as 64-bit "
                "integers or as text"
            )
    return form


def form_of(ids: Sequence[str]) -> Form:
    """Return the form of some ids: a number behind a common prefix, hexadecimal digits, or kinds of characters."""
    parts = [found.groups("") for i in ids if i.isprintable() and (found := NUMBERED.fullmatch(i))]
    around = {(prefix, end) for prefix, _, end in parts}
    # What stands around the number of a single user may be a name.
    if len(parts) == len(ids) and len(around) == 1 and (len(set(ids)) > 1 or around == {("", "")}):
        padded = any(number[0] == "0" and len(number) > 1 for _, number, _ in parts)
        first, more = (string.digits if padded else NONZERO), max(len(number) for _, number, _ in parts) - 1
        return [*parts[0][0], first, *[string.digits] * more, *parts[0][2]]
    lengths = Counter(map(len, ids))
    usual = max(lengths, key=lambda length: (lengths[length], length))
    places = [set(place) for place in zip(*(i for i in ids if len(i) == usual), strict=True)]
    for digits, pattern in HEX.items():
        if all(map(pattern.fullmatch, ids)) and any(map(str.isdigit, "".join(ids))):
            return ["-" if place == {"-"} else digits for place in places]
    return ["".join(sorted(set(map(_kind, place)))) for place in places]


def _kind(character: str) -> str:
    """Return all characters of one kind. Signs are alone in their kind, except those that a file may have to quote."""
    if character.isdigit():
        return string.digits
    if character.isalpha() or character.isspace() or not character.isprintable() or character == '"':
        return string.ascii_uppercase if character.isupper() else string.ascii_lowercase
    return character


def _longer(form: Form) -> Form:
    """Repeat the last place that varies."""
    at = max((i for i, place in enumerate(form) if len(place) > 1), default=len(form) - 1)
    more = form[at] if len(form[at]) > 1 and form[at] != NONZERO else string.digits
    return [*form[: at + 1], more, *form[at + 1 :]]


def _room(form: Form, most: int | None) -> int:
    """Return how many ids a form has."""
    room = math.prod(map(len, form))
    return room if most is None else min(room, most - _least(form) + 1)


def _least(form: Form) -> int:
    return int(float("".join(place[0] for place in form)))


def _draw(form: Form, count: int, draw: np.random.Generator) -> list[str]:
    text = np.empty((count, len(form)), "U1")
    for at, place in enumerate(form):
        text[:, at] = np.array(list(place))[draw.integers(0, len(place), count)]
    drawn: list[str] = text.view(f"U{len(form)}")[:, 0].tolist()
    return drawn
