"""Parts of an audit that some releases need: kept columns, and the control `random-matched`."""

from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np

from ghostpoi.attack.evidence import KeptColumn, Rule
from ghostpoi.audits.match import AlignedSessions, TablePair
from ghostpoi.columns.dependence import value_codes
from ghostpoi.columns.traces import NUMBER, TOKEN, numbers, readings, text_of
from ghostpoi.data.checkins import Floats, Ints
from ghostpoi.data.geo import haversine_km
from ghostpoi.data.sessions import Vocabulary
from ghostpoi.draw.channel import Channel, uniform
from ghostpoi.draw.methods import AnyMethod
from ghostpoi.randomness import Seed

NEAR_KM = 0.5  # a position names the nearest venue within this distance
MOST_DECODED = 50_000  # distinct values


def kept_columns(pair: TablePair, data: AlignedSessions) -> tuple[KeptColumn, ...]:
    """Return the kept columns at the positions of the training sessions."""
    ids = pair.clean.venue_ids
    poi_of_id = {str(ids[v]): poi for poi, v in enumerate(data.vocabulary.venue.tolist()) if 0 < v < len(ids)}
    out = []
    for name, column in pair.kept.items():
        code = value_codes(column)
        first = np.unique(code, return_index=True)[1]
        values = column.gather(first[:MOST_DECODED]).to_list()
        named = np.zeros(len(first), np.int32)
        named[: len(values)] = [_named(value, poi_of_id, data.vocabulary) for value in values]
        at = code[data.train.row]
        out.append(KeptColumn(name, at, named[at], numbers(column)[data.train.row]))
    return (*out, *_positions(pair, data))


def _positions(pair: TablePair, data: AlignedSessions) -> Iterator[KeptColumn]:
    """Yield pairs of columns that look like latitudes and longitudes of the city."""
    v, row = data.vocabulary, data.train.row
    values = {name: numbers(column)[row] for name, column in pair.kept.items()}

    def inside(axis: Floats) -> dict[str, Floats]:
        low, high = axis[1:].min() - 0.1, axis[1:].max() + 0.1
        return {name: value for name, value in values.items() if ((value > low) & (value < high)).mean() > 0.5}

    for (one, lat), (two, lon) in product(inside(v.lat).items(), inside(v.lon).items()):
        if one != two:
            named = [_nearest(a, b, v) if a == a and b == b else 0 for a, b in zip(lat, lon, strict=True)]
            nothing = np.zeros(len(row), np.int64), np.full(len(row), np.nan)
            yield KeptColumn(f"{one}, {two}", nothing[0], np.array(named, np.int32), nothing[1])


def _named(value: object, poi_of_id: dict[str, int], vocabulary: Vocabulary) -> int:
    """Return the POI whose id or position a value holds, or 0."""
    text = readings(value if isinstance(value, bytes) else text_of(value))
    for token in (text, *TOKEN.findall(text)):
        if token in poi_of_id:
            return poi_of_id[token]
    degrees = [float(number) for number in NUMBER.findall(text)[:4]]
    for lat, lon in pairwise(degrees):
        for one, two in ((lat, lon), (lon, lat)):
            if abs(one) <= 90 and abs(two) <= 180 and (poi := _nearest(one, two, vocabulary)):
                return poi
    return 0


def _nearest(lat: float, lon: float, vocabulary: Vocabulary) -> int:
    v: Ints = np.flatnonzero(np.abs(vocabulary.lat - lat) < 0.01).astype(np.int32)
    v = v[v > 0]
    if not len(v):
        return 0
    km = haversine_km(np.array(lat), np.array(lon), vocabulary.lat[v], vocabulary.lon[v])
    return int(v[km.argmin()]) if km.min() < NEAR_KM else 0


def matched_draw(rule: Rule, clean: Ints, released: Ints, seed: Seed) -> Ints:
    """Draw a release, (N,), from the clean POIs (N,) and the audited release (N,).

    Where the audit knows no other venue of the set, the released venue stays.
    """
    generator = seed.generator("audit", "random-matched")
    if rule.candidates.everywhere:  # any POI but the clean one
        other = generator.integers(1, max(2, len(rule.candidates.poi) - 1), len(clean))
        return np.where(released != clean, other + (other >= clean), released).astype(np.int32)
    sets = rule.candidates.poi[clean]  # (N, K)
    other = (sets > 0) & (sets != clean[:, None])
    size = other.sum(axis=1)
    k = (generator.random(len(clean)) * size).astype(np.int64)  # take the k-th other
    column = (np.cumsum(other, axis=1) <= k[:, None]).sum(axis=1)
    drawn = (released != clean) & (size > 0)
    return np.where(drawn, sets[np.arange(len(clean)), np.where(drawn, column, 0)], released).astype(np.int32)


def matched_rule(method: AnyMethod, rule: Rule, clean: Ints, released: Ints) -> Rule:
    """Return what an adversary knows about the control: the method's sets and the share of venues that stay."""
    sets, channel = rule.candidates, uniform(rule.candidates)
    has, moves = sets.size[clean] > 0, channel.clean != channel.released
    anchors, share = np.unique(channel.clean[moves]), float((released == clean)[has].mean()) if has.any() else 0.0
    # Sets of its own hold the venue itself, which stays as often as any other is drawn.
    if share and len(anchors) and not method.own_sets:
        probability = np.where(moves, (1 - share) * channel.probability, channel.probability)
        channel = Channel.of(
            np.append(channel.clean, anchors), np.append(channel.released, anchors),
            np.append(probability, np.full(len(anchors), share)), channel.symbols,
        )  # fmt: skip
    return Rule(sets, channel, True, rule.lat, rule.lon)
