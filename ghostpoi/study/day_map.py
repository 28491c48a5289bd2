"""One day of one user on the map, clean and as every method releases it."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.figure import Figure

from ghostpoi.audits.cache import Cache
from ghostpoi.audits.controls import CLEAN
from ghostpoi.data import prepared
from ghostpoi.data.checkins import Ints
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.errors import InputError
from ghostpoi.study import labels
from ghostpoi.study.figures import FORMATS, INK, METHODS, STYLE, save
from ghostpoi.study.run import Releases

DAY_S = 86_400
STOPS = (5, 7)  # of the day that is drawn: at least so many venues, at most so many check-ins
MARGIN = 0.012  # degrees around the day
SHAPES = "osD^vP*Xhp"
SHOWN = ("random", "pgd", "em", "ts-ue-calibrated", "ghost", "ghost-ef", "crowd")
ACROSS = 4  # panels in a row
CITY = (120, 350, 60, 0)  # users, venues, days and seed of the synthetic city


def draw_map(
    folder: Path, say: Callable[[str], None], data: Path | None = None, formats: Sequence[str] = FORMATS
) -> list[Path]:
    """Release a city once per method and draw one day: prepared data, or a synthetic city, the one fit to publish."""
    from ghostpoi.study import prepare_city  # needs polars

    city = prepared.load(data) if data else prepare_city(*CITY)
    train, v = city.train, city.vocabulary
    with TemporaryDirectory() as place:
        releases = Releases(city, "strong", torch.device("cpu"), Cache(Path(place)), say)
        released = {method: releases.published(method, 0).poi for method in SHOWN}
    with plt.rc_context(STYLE["rc"]):
        return save(day_map(train.poi, v, released, typical_day(train, v)), folder, "map", formats)


def day_map(clean_poi: Ints, vocabulary: Vocabulary, released: Mapping[str, Ints], at: slice) -> Figure:
    """Draw one panel for the clean day and one per release."""
    sides, clean, lat, lon = {CLEAN: clean_poi} | dict(released), clean_poi[at], vocabulary.lat, vocabulary.lon
    shown = np.unique(np.concatenate([poi[at] for poi in sides.values()]))
    near = np.ones(len(lat), bool)
    for axis in (lat, lon):
        near &= np.abs(axis - axis[shown].mean()) < np.ptp(axis[shown]) / 2 + MARGIN
    categories = {int(c): n for n, c in enumerate(dict.fromkeys(vocabulary.category[clean]))}
    across = min(len(sides), ACROSS)
    down = -(-len(sides) // across)
    figure, grid = plt.subplots(down, across, figsize=(2.9 * across, 3.5 * down), sharex=True, sharey=True)
    panels = grid.ravel()
    for axes in panels[len(sides) :]:
        axes.remove()
    ring = {"s": 90, "facecolors": "none", "edgecolors": "#888888", "linewidths": 0.9}
    for axes, (method, poi) in zip(panels, sides.items(), strict=False):
        path = poi[at]
        axes.scatter(lon[near], lat[near], s=3, color="#BBBBBB", linewidths=0, rasterized=True)
        axes.plot(lon[path], lat[path], color=METHODS.get(method, (INK,))[0], linewidth=1.2, zorder=2)
        axes.scatter(lon[clean], lat[clean], zorder=3, **ring)
        for n, (p, q) in enumerate(zip(path, clean, strict=True), 1):
            kind = categories[int(vocabulary.category[q])]
            style = {"marker": SHAPES[kind % len(SHAPES)], "color": f"C{kind}", "edgecolors": INK}
            axes.scatter(lon[p], lat[p], s=34, linewidths=0.5, zorder=4, **style)
            axes.annotate(str(n), (lon[p], lat[p]), xytext=(4, 4), textcoords="offset points", fontsize=7, zorder=5)
        moved, rate = int((path != clean).sum()), float((poi != clean_poi).mean())
        text = f"{labels.method(method)}\n{moved} of {len(path)} moved here,\n{rate:.0%} in the whole city"
        axes.set_title(CLEAN if method == CLEAN else text, fontsize=9)
        axes.set(xticks=[], yticks=[], aspect=1 / np.cos(np.radians(np.nanmean(lat[shown]))))
        axes.grid(False)
    caption = "Rings: clean venues. Marker and colour: category. Numbers: order of the visits."
    figure.text(0.5, 0.04, caption, ha="center")
    return figure


def typical_day(sessions: Sessions, vocabulary: Vocabulary) -> slice:
    """Find a day with about six stops, as in the paper: the one of median extent."""
    found: list[tuple[float, int, int]] = []
    for first, end in pairwise(sessions.start.tolist()):
        day = sessions.time[first:end] - sessions.time[first] <= DAY_S
        last = first + min(int(day.sum()), STOPS[1])
        poi = sessions.poi[first:last]
        if len(np.unique(poi)) >= STOPS[0]:
            found.append((float(np.ptp(vocabulary.lat[poi]) + np.ptp(vocabulary.lon[poi])), first, last))
    if not found:
        raise InputError(f"no day of {STOPS[0]} different venues to draw; use a larger city")
    _, first, last = sorted(found)[len(found) // 2]
    return slice(first, last)
