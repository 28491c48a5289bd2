"""Protect files with every preset of `protect --for`, and measure what each release gives away about people.

    python docs/rerun_presets.py NYC=FILE California=FILE [--drop COLUMN...]

stores results/presets.json; `make pages` then writes the table on docs/how-to/protect.md. Two cities take about ten
minutes on two cores. The last release has the preset `public` with larger crowds, which hide usual places better.

An outsider knows four check-ins of a person: the part of the day (a quarter) or the hour, and the place, as wide as a
crowd. A person is singled out if the release has one person alone who fits one of these or, together, those in one
session. Rows are joined if a key occurs once in the clean file and once in the release, in the same row: the second,
the second of the week, the gaps before and after the check-in within its session. What the release rounds, the outsider
rounds too.
"""

import argparse
import json
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import ghostpoi
from ghostpoi import formats
from ghostpoi.audits.match import read_pair
from ghostpoi.audits.measures import persons as measure
from ghostpoi.audits.persons import Again, Persons, PersonSettings, Scene, summary
from ghostpoi.data.checkins import Floats, Longs
from ghostpoi.draw.publication import PRESETS
from ghostpoi.formats import Source
from ghostpoi.release.identity import coarse
from ghostpoi.release.manifest import settings_of
from ghostpoi.settings import FilterSettings

RESULTS = Path(__file__).parent.parent / "results" / "presets.json"
SEED = 133449441170179652605563928414472319799
KNOWN, DRAWS, MOST = 4, 5, 100_000  # check-ins of a person, draws of each, people
WEEK_S, DAY_S = 7 * 86_400, 86_400
RELEASES: dict[str, tuple[str | None, list[str]]] = {  # the preset of each, and what is set in addition
    "default": (None, []), **{name: (name, []) for name in PRESETS},
    "public, crowds of 256": ("public", ["method.size=256"]),
}  # fmt: skip
SQUARE = 1 / 111.195  # degrees in a kilometre
ROWS = {  # of the table: the text and the format of each figure
    "one_of_four_part": ("people singled out by one of four known check-ins (part of the day and place)", ".1%"),
    "four_part": ("the same, by those in one session together", ".1%"),
    "one_of_four_hour": ("people singled out by one of four known check-ins (hour and place)", ".1%"),
    "four_hour": ("the same, by those in one session together", ".1%"),
    "joined_second": ("rows joined by the time", ".1%"),
    "joined_minute": ("rows joined by the minute", ".1%"),
    "joined_week": ("rows joined by the time of the week", ".1%"),
    "joined_gaps": ("rows joined by the gaps before and after", ".1%"),
    "joined_gaps_and_hour": ("rows joined by these gaps and the hour of the week", ".1%"),
    "linked": ("later sessions assigned to the right person", ".0%"),
    "linked_control": ("control: all assigned to the most active person", ".0%"),
    "next": ("user ids of a next release, all new, assigned to the right person", ".0%"),
    "next_control": ("control: all assigned to the most active person", ".0%"),
    "home_exact": ("homes named exactly", ".0%"),
    "home_within_1km": ("homes named within 1 km", ".0%"),
    "flows": ("common part of flows between 1 km squares, by part of the day", ".3f"),
    "mean_km": ("mean displacement, km", ".2f"),
    "withheld": ("rows left out", ".1%"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--drop", nargs="+", default=[], help="columns to leave out, where a file has them")
    given = parser.parse_args()
    found: dict[str, Any] = {}
    for text in given.files:
        name, _, file = text.partition("=")
        for label, (purpose, more) in RELEASES.items():
            now = measured(Path(file), purpose, more, given.drop)
            found.setdefault(name, {})[label] = {key: round(value, 4) for key, value in now.items()}
    RESULTS.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


def measured(file: Path, purpose: str | None, more: list[str], drop: list[str]) -> dict[str, float]:
    """Return what a release of a file with a preset gives away."""
    with tempfile.TemporaryDirectory() as scratch:
        table, release = Path(scratch, "checkins.csv"), Path(scratch, "release")
        clean = formats.read(file)
        clean.rows.to_frame(clean.mapping).drop(drop, strict=False).write_csv(table)
        made = ghostpoi.protect(table, output=release, purpose=purpose, seed=SEED, set=more)
        return figures(table, release, made.manifest)


def figures(file: Path, release: Path, manifest: dict[str, Any]) -> dict[str, float]:
    """Measure a release."""
    pair = read_pair(Source(file), Source(release), {})
    scene, settings = Scene.of(pair, FilterSettings(), PersonSettings(), Again()), settings_of(manifest)
    view = scene.views["release"]
    shown, known, division = view.shown, view.known, view.division
    drawn = measure.draws(known.person, MOST, DRAWS, KNOWN, np.random.default_rng(0))
    found: dict[str, float] = {}
    for name in ("part", "hour"):
        matcher = measure.Matcher(shown, measure.RESOLUTIONS[name], division.around)
        alone = replace(known, unit=np.arange(len(known)))  # the outsider joins no two of them
        found[f"one_of_four_{name}"] = float(measure.singled_out(matcher, alone, drawn).any(axis=1).mean())
        found[f"four_{name}"] = float(measure.singled_out(matcher, known, drawn)[:, -1].mean())
    clean, time, unit = pair.clean.time[pair.clean_row], pair.released.time, shown.unit
    rounded, rows = coarse(pair.clean, settings)[pair.clean_row], len(pair.clean)
    joins: dict[str, tuple[Longs, ...]] = {
        "second": (rounded, time), "minute": (rounded // 60, time // 60), "week": (rounded % WEEK_S, time % WEEK_S),
        "gaps": (_gaps(rounded, clean, unit), _gaps(time, clean, unit)),
    }  # fmt: skip
    if settings.identity.times == "shift":
        hours = (np.column_stack([gaps, t % WEEK_S]) for gaps, t in zip(joins["gaps"], (rounded, time), strict=True))
        joins["gaps_and_hour"] = tuple(hours)
    found |= {f"joined_{name}": _joined(*keys) / rows for name, keys in joins.items()}
    homes = {(*name, "release"): counts for name, counts in scene.homes(view)}
    tallies = dict(scene.linkage("release")) | homes
    people = summary(Persons(tallies, None, division.km, rows)) or {}
    v = scene.venues
    flows = [
        _flows(times, units, v.lat[venue], v.lon[venue])
        for times, units, venue in (
            (pair.clean.time, pair.clean.user.astype(np.int64), pair.clean.venue), (time, unit, shown.venue),
        )
    ]  # fmt: skip
    return found | {
        "linked": people["linkage"]["sessions"]["release"]["mean"],
        "linked_control": people["linkage"]["sessions"]["control"]["mean"],
        "next": people["next_release"]["ids"]["release"]["mean"],
        "next_control": people["next_release"]["ids"]["control"]["mean"],
        **{f"home_{name}": one["release"]["mean"] for name, one in people["home"].items()},
        "flows": 2 * sum((flows[0] & flows[1]).values()) / sum(sum(one.values()) for one in flows),
        "mean_km": manifest["plausibility"]["mean_km"], "withheld": 1 - len(time) / rows,
    }  # fmt: skip


def _joined(clean: Longs, shown: Longs) -> int:
    """Count the rows whose key occurs once on either side, and in the same row."""
    key = np.unique(np.concatenate([clean, shown]), axis=0, return_inverse=True)[1].reshape(2, -1)
    once = [np.bincount(one, minlength=int(key.max()) + 1)[one] == 1 for one in key]
    return int(((key[0] == key[1]) & once[0] & once[1]).sum())


def _gaps(time: Longs, order: Longs, unit: Longs) -> Longs:
    """Return the gaps before and after each check-in under its user id, (N, 2), -1 for none."""
    at = np.lexsort((order, time, unit))
    gap = np.where(np.diff(unit[at]) == 0, np.diff(time[at]), -1)
    found = np.empty((len(time), 2), np.int64)
    found[at] = np.stack([np.append(-1, gap), np.append(gap, -1)], axis=1)
    return found


def _flows(time: Longs, unit: Longs, lat: Floats, lon: Floats) -> "Counter[tuple[int, ...]]":
    """Count the steps within a day under one user id, by the part of the day and the squares of both ends."""
    at = np.lexsort((time, unit))
    y, x = np.floor(lat / SQUARE), np.floor(lon * np.cos(np.radians(np.median(lat))) / SQUARE)
    step = (np.diff(unit[at]) == 0) & (np.diff(time[at]) <= DAY_S)
    part = time[at] // (DAY_S // 4) % 4
    columns = (part[:-1], y[at][:-1], x[at][:-1], y[at][1:], x[at][1:])
    return Counter(zip(*(column[step].astype(int).tolist() for column in columns), strict=True))


def table(found: dict[str, Any]) -> str:
    """Return the figures as a Markdown table."""
    columns = [(city, preset) for city, each in found.items() for preset in each]
    lines = [["", *(f"{city}, {preset}" for city, preset in columns)], ["---"] * (len(columns) + 1)]
    lines += [
        [text, *(f"{format(found[c][p][key], form) if key in found[c][p] else ''}" for c, p in columns)]
        for key, (text, form) in ROWS.items()
    ]
    return "".join(f"{' | '.join(line)}\n" for line in lines)


if __name__ == "__main__":
    main()
