"""The whole city in hexagons, and example days for the map.

The public page counts released visits alone, as any reader of the release can. The release alone decides which days are
shown, so that the choice reveals nothing about clean rows.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from ghostpoi.data.checkins import Floats, Ints, Longs
from ghostpoi.errors import InputError
from ghostpoi.options import option
from ghostpoi.reports.page_data import PageData
from ghostpoi.reports.texts import plain

ACROSS = 26  # hexagons
WIDE = 1000.0  # of the drawing
EDGE = 0.005  # of the visits lie outside on each side
LEVELS = 5
FEW = 5  # visits; a change from fewer is not coloured
MOST_CORNERS = 20_000  # of outlines
STEPS = (0.1, 0.25, 0.5)  # of a change, relative to the larger number


@dataclass(frozen=True)
class Panel:
    title: str
    drawing: Markup
    key: list[tuple[str, str]]  # class and text


@dataclass(frozen=True)
class City:
    """The maps, how wide a hexagon is, and the share of visits that changed theirs with its control."""

    panels: list[Panel]
    hexagon_km: float
    height: float
    corners: str  # of a hexagon
    changed: float | None = None
    halves: float | None = None


def city(data: PageData, outlines: Path | None = None) -> City | None:
    """Draw the city; None where all visits lie at one point."""
    x, y = (np.nan_to_num(axis) for axis in data.venues.xy)  # row 0 is no venue
    shown = np.concatenate([side for side in (data.released, data.clean) if side is not None])
    shown = shown[shown > 0]
    (left, right), (low, high) = (np.quantile(axis[shown], (EDGE, 1 - EDGE)) for axis in (x, y))
    span = max(right - left, high - low)
    if not span:
        return None
    radius = span / ACROSS / np.sqrt(3)
    scale = WIDE / (right - left + 4 * radius)
    cell, at = _cells((x - left) / radius, (y - low) / radius)
    across, up = (at[:, 0] * radius + 2 * radius) * scale, (high - low + 2 * radius - at[:, 1] * radius) * scale
    height = (high - low + 4 * radius) * scale
    inside = (across > 0) & (across < WIDE) & (up > 0) & (up < height)
    r = radius * scale
    lines = Markup("") if outlines is None else _outlines(outlines, data, left - 2 * radius, high + 2 * radius, scale)
    places = list(zip(across, up, strict=True))

    def panel(title: str, classes: list[str], said: list[str], key: list[tuple[str, str]]) -> Panel:
        drawn = (
            f'<use href="#hexagon" x="{a:.0f}" y="{b:.0f}" class="{kind}" data-t="{escape(text)}"/>'
            for (a, b), shown, kind, text in zip(places, inside, classes, said, strict=True)
            if kind and shown
        )
        return Panel(title, lines + Markup("".join(drawn)), key)

    def counts(side: Ints) -> Longs:
        return np.bincount(cell[side[side > 0]], minlength=len(at))

    def apart(one: Longs, two: Longs) -> float:
        return float(np.abs(one / max(1, one.sum()) - two / max(1, two.sum())).sum() / 2)

    after, corners = counts(data.released), np.arange(6) * np.pi / 3
    shape = radius * np.sqrt(3), height, " ".join(f"{r * np.sin(a):.1f},{r * np.cos(a):.1f}" for a in corners)
    if data.clean is None:
        return City([panel("Visits in the release", *_levels(after, int(after.max())))], *shape)
    before, half = counts(data.clean), data.user % 2 == 0
    most = max(int(after.max()), int(before.max()))
    found = [
        panel("Before: clean data", *_levels(before, most)), panel("After: the release", *_levels(after, most)),
        panel("Difference", *_differences(before, after)),
    ]  # fmt: skip
    return City(found, *shape, apart(before, after), apart(counts(data.clean[half]), counts(data.clean[~half])))


def _cells(x: Floats, y: Floats) -> tuple[Longs, Floats]:
    """The hexagon of each place, in units of its radius, and the centres of the hexagons that occur."""
    q, r = x * np.sqrt(3) / 3 - y / 3, y * 2 / 3
    cube = np.stack([q, r, -q - r], axis=1)
    near = np.round(cube)
    worst, rows = np.abs(near - cube).argmax(axis=1), np.arange(len(near))
    near[rows, worst] = near[rows, worst] - near.sum(axis=1)
    centres, cell = np.unique(near[:, :2].astype(np.int64), axis=0, return_inverse=True)
    at = np.stack([np.sqrt(3) * (centres[:, 0] + centres[:, 1] / 2), 1.5 * centres[:, 1]], axis=1)
    return cell.reshape(-1), at


def _levels(visits: Longs, most: int) -> tuple[list[str], list[str], list[tuple[str, str]]]:
    edges = np.unique(np.geomspace(1, most + 1, LEVELS + 1).round().astype(int))
    level = np.searchsorted(edges, visits, side="right")
    texts = [f"{a:,} to {b - 1:,} visits" if b - 1 > a else f"{a:,}" for a, b in pairwise(edges)]
    kinds = [f"l{k}" if k else "" for k in level.tolist()]
    return kinds, [f"{n:,} visits" for n in visits.tolist()], [(f"l{k}", text) for k, text in enumerate(texts, 1)]


def _differences(before: Longs, after: Longs) -> tuple[list[str], list[str], list[tuple[str, str]]]:
    more = np.maximum(before, after)
    change = (after - before) / np.maximum(1, more)
    size = np.where(more < FEW, 0, np.searchsorted(STEPS, np.abs(change), side="right"))
    kinds = [
        "" if not n else f"{'up' if c > 0 else 'down'}{s}" if s else "same"
        for n, c, s in zip(more, change, size, strict=True)
    ]
    texts = [f"{a:,} visits before, {b:,} after" for a, b in zip(before, after, strict=True)]
    least = f"{STEPS[0]:.0%}"
    key = [("down3", f"{STEPS[2]:.0%} fewer"), ("down1", f"{least} fewer"), ("same", f"less than {least}"),
           ("up1", f"{least} more"), ("up3", f"{STEPS[2]:.0%} more")]  # fmt: skip
    return kinds, texts, key


def _outlines(path: Path, data: PageData, left: float, top: float, scale: float) -> Markup:
    try:
        parts = list(_rings(json.loads(path.read_text("utf-8"))))
        points = np.array([point[:2] for part in parts for point in part], dtype=np.float64).reshape(-1, 2)
    except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        raise InputError(
            f"{option('outlines', path)} is not a GeoJSON file of lines or polygons in degrees; give one, or "
            "leave it out"
        ) from None
    if not len(points) or not np.isfinite(points).all():
        raise InputError(f"{option('outlines', path)} holds no lines or polygons; give another file, or leave it out")
    x, y = data.venues.place(points[:, 1], points[:, 0])
    xs, ys = (x - left) * scale, (top - y) * scale
    drawn, start, step = [], 0, 1 + len(points) // MOST_CORNERS
    for part in parts:
        chosen = [*range(start, start + len(part), step), start + len(part) - 1]
        start += len(part)
        near = [k for k in chosen if -WIDE < xs[k] < 2 * WIDE and -WIDE < ys[k] < 3 * WIDE]
        if len(near) > 1:
            drawn.append("M" + "L".join(f"{xs[k]:.0f} {ys[k]:.0f}" for k in near))
    return Markup(f'<path class="outline" d="{"".join(drawn)}"/>')


def _rings(found: Any) -> Iterator[list[Any]]:
    """The lines of a GeoJSON object; points are skipped."""
    kind = found["type"]
    if part := {"FeatureCollection": "features", "Feature": "geometry", "GeometryCollection": "geometries"}.get(kind):
        inner = found[part]
        for one in [inner] if isinstance(inner, dict) else inner or []:
            yield from _rings(one)
        return
    depth = {"LineString": 0, "MultiLineString": 1, "Polygon": 1, "MultiPolygon": 2}.get(kind)
    lines = [] if depth is None else [found["coordinates"]]
    for _ in range(depth or 0):
        lines = [line for part in lines for line in part]
    yield from lines


DAY_S = 86_400
DAWN_S = 4 * 3600  # a day on the map begins at about four in the morning, by the sun
EXAMPLES = 12
GOOD_VENUES, GOOD_CHECKINS, GOOD_SPAN_S = 5, 9, 4 * 3600  # a day that is easy to follow and longer than a few minutes
MOST_CHECKINS = 40
BACKGROUND, NEAR = 3000, 150  # venues drawn in all and around each example: more make the map slow and the page large


def map_data(data: PageData) -> dict[str, Any]:
    """Everything that the map shows, as plain values; positions in km, rounded to ten metres."""
    days, sides = example_days(data), [data.released, *data.compared]
    shown = _background(data, days)
    x, y = ([round(float(v), 2) for v in axis[shown]] for axis in data.venues.xy)
    return {
        "venues": {"x": x, "y": y},
        "methods": list(data.releases)[: len(sides)],
        "examples": [_example(data, rows, sides) for rows in days],
        "clean": data.clean is not None,
    }


def example_days(data: PageData) -> list[Longs]:
    """The rows of a few users' days in time order: days with several venues first, then any others."""
    order = data.by_user
    solar = data.time + int(data.venues.centre[1] * DAY_S / 360) - DAWN_S
    user, date = data.user[order], (solar // DAY_S)[order]
    first = np.append(True, (np.diff(user) != 0) | (np.diff(date) != 0))
    start, day = np.flatnonzero(first), np.cumsum(first) - 1  # of every day of every user; the day of every row
    count = len(data.venues.name)
    stops = np.bincount(np.unique(day * count + data.released[order]) // count)
    length = np.bincount(day)
    span = data.time[order][start + length - 1] - data.time[order][start]
    is_good = (stops >= GOOD_VENUES) & (length <= GOOD_CHECKINS) & (span >= GOOD_SPAN_S)
    rank = np.minimum(stops, GOOD_VENUES) + is_good
    by_rank = np.lexsort((np.arange(len(start)), -rank, user[start]))
    best = by_rank[np.append(True, np.diff(user[start][by_rank]) != 0)]  # the first of the best days of every user
    good, chosen = best[rank[best] > GOOD_VENUES], best[np.argsort(-rank[best], kind="stable")][:EXAMPLES]
    if len(good) >= EXAMPLES:
        chosen = good[np.linspace(0, len(good) - 1, EXAMPLES).astype(int)]
    return [order[start[d] : start[d] + min(int(length[d]), MOST_CHECKINS)] for d in chosen]


def _background(data: PageData, days: list[Longs]) -> Longs:
    """The venues around every example, then the most visited ones, in ascending order."""
    visits = np.bincount(data.released, minlength=len(data.venues.name))
    if data.clean is not None:
        visits += np.bincount(data.clean, minlength=len(visits))
    x, y = data.venues.xy
    first = np.zeros(len(visits), bool)
    for rows in days:
        km = np.hypot(x - x[data.released[rows]].mean(), y - y[data.released[rows]].mean())
        first[np.argsort(np.where(visits > 0, km, np.inf), kind="stable")[:NEAR]] = True
    some = np.lexsort((-visits, ~first))[:BACKGROUND]
    return np.sort(some[visits[some] > 0])


def _example(data: PageData, rows: Longs, sides: list[Ints]) -> dict[str, Any]:
    table, n = data.main.table, len(rows)
    when = [datetime.fromtimestamp(int(t), UTC) for t in data.time[rows]]
    who = f"user {table.user_ids[table.user[rows[0]]]}"
    out: dict[str, Any] = {
        "label": plain(f"{who}, {when[0]:%a %d %b %Y}, {n} check-in{'s'[: n > 1]}"),
        "times": [f"{w:%H:%M}" for w in when],
        "sides": [_side(data, side[rows], rows) for side in sides],
    }
    if data.clean is not None:
        out["clean"] = _side(data, data.clean[rows], rows)
        for shown, side in zip(out["sides"], sides, strict=True):
            km = data.venues.km(data.clean[rows], side[rows])
            shown["moved"] = [round(float(k), 2) if v else None for k, v in zip(km, side[rows], strict=True)]
    return out


def _side(data: PageData, venue: Ints, rows: Longs) -> dict[str, Any]:
    """The stops of one side; blanks where that side withholds the row."""
    at = np.flatnonzero(venue)
    kmh = dict(zip(at[1:].tolist(), data.kmh(venue[at], data.time[rows][at]).tolist(), strict=True))
    x, y = ([round(float(axis[v]), 2) if v else None for v in venue] for axis in data.venues.xy)
    return {
        "x": x, "y": y, "venue": [plain(data.venues.name[v]) if v else "withheld" for v in venue],
        "category": [plain(data.venues.category[v]) if v else "" for v in venue],
        "speed": [round(kmh[k], 1) if k in kmh else None for k in range(len(venue))],  # from the previous stop
    }  # fmt: skip
