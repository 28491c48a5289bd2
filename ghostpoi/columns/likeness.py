"""Test whether users with similar values of a column visit similar venues, as filters and vectors of visits reveal.

A value is taken apart into bits, numbers or words. Two users are alike if these agree. The control is the same values,
shuffled among the users.
"""

import re

import numpy as np
import polars as pl
from scipy.sparse import csr_matrix

from ghostpoi.columns.related import Finding, RelatedVenues
from ghostpoi.columns.traces import text_of
from ghostpoi.data.checkins import Floats

USERS = 400  # with the most rows
FEWEST = 40  # users
SHUFFLES = 20
ALIKE = 0.1  # largest allowed correlation of the two likenesses
SURE = 6.0  # standard deviations of the control
FEW = 4  # users with the same value, on average
PARTS = 3  # fewer do not describe visits
HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{8,})")
BITS = re.compile(r"[01]{8,}")
NUMBERS = re.compile(r"-?\d+(?:\.\d+)?")


def likeness(values: pl.Series, related: RelatedVenues) -> Finding | None:
    """Return how well the likeness of values, one per user, predicts that of the users' visits; None if it does not."""
    table = related.table
    rows = np.bincount(table.user, minlength=len(values))
    some = np.argsort(-rows, kind="stable")[:USERS]
    parts = _parts([text_of(value) for value in values.gather(some).to_list()])
    if parts is None or len(some) < FEWEST:
        return None
    pairs = np.triu_indices(len(some), 1)
    of_values, draw, found = _alike(parts), np.random.default_rng(0), 0.0
    for place in (table.venue, table.category):
        visits = csr_matrix((np.ones(len(table)), (table.user, place))).toarray()[some]
        visits /= visits.sum(axis=1, keepdims=True)
        of_visits = _alike(np.sqrt(visits))[pairs]
        if not (np.ptp(of_values[pairs]) and np.ptp(of_visits)):  # as all users are where no categories are known
            continue
        orders = [np.arange(len(some)), *(draw.permutation(len(some)) for _ in range(SHUFFLES))]
        first, *control = [float(np.corrcoef(of_values[np.ix_(o, o)][pairs], of_visits)[0, 1]) for o in orders]
        if first > max(ALIKE, SURE * float(np.std(control))):
            found = max(found, first)
    return Finding(found, "is alike for users who visit the same venues", "correlation") if found else None


def _parts(texts: list[str]) -> Floats | None:
    """Take texts apart into bits, numbers or words, (users, parts); None if they have too few."""
    if all(BITS.fullmatch(text) for text in texts) and len({len(text) for text in texts}) == 1:
        return np.array([[int(bit) for bit in text] for text in texts], float)
    digits = [HEX.fullmatch(text) for text in texts]
    if all(digits) and len({len(text) for text in texts}) == 1:
        data = [
            np.frombuffer(bytes.fromhex(found[1].zfill(len(found[1]) + len(found[1]) % 2)), np.uint8)
            for found in digits
            if found
        ]
        return np.unpackbits(np.stack(data), axis=1).astype(float)
    each = [NUMBERS.findall(text) for text in texts]
    if len({len(one) for one in each}) == 1 and len(each[0]) >= PARTS:
        return np.array(each, float)
    if len(set(texts)) <= len(texts) / FEW:
        return np.eye(len(texts))[np.unique(texts, return_inverse=True)[1]]
    words = pl.Series([list(dict.fromkeys(re.findall(r"\w+", text))) for text in texts], dtype=pl.List(pl.String))
    if not words.list.len().mean() or words.list.len().mean() < PARTS:  # type: ignore[operator]
        return None
    user = np.repeat(np.arange(len(texts)), words.list.len().to_numpy())
    word = words.explode().cast(pl.Categorical).to_physical().to_numpy()[: len(user)]
    return np.asarray(csr_matrix((np.ones(len(user)), (user, word))).toarray())


def _alike(parts: Floats) -> Floats:
    """Return the correlation of each two rows, after the usual value of each part is taken away, (n, n)."""
    centred = parts - parts.mean(axis=0)
    centred -= centred.mean(axis=1, keepdims=True)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    centred = centred / np.where(length > 0, length, 1)
    found: Floats = centred @ centred.T
    return found
