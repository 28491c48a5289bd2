"""Choose settings for a dataset: try a small grid on the publisher's own data and recommend the best protected setting.

All settings face a few fast adversaries, among them the strongest against crowds. Those that fulfil the wishes and do
best then face the whole default set under several seeds. A trial protects in memory, then measures as an audit would.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from ghostpoi.attack.victims import victim_settings
from ghostpoi.audits import rhythm
from ghostpoi.audits.audit import measured, with_windows
from ghostpoi.audits.cache import Cache
from ghostpoi.audits.controls import ALONE, CLEAN, FLOORS, LEAK_MIXED, LEAK_ONLY, LEAK_STAY, MARKOV, default_adversaries
from ghostpoi.audits.match import TablePair, align, has_sessions
from ghostpoi.audits.measures.gaps import accuracy_lost
from ghostpoi.audits.request import Attacks, AuditSettings
from ghostpoi.audits.result import Measured, given_away, result
from ghostpoi.audits.result import joined as join
from ghostpoi.audits.verdicts import LEAKS
from ghostpoi.data.checkins import Checkins
from ghostpoi.draw.methods.base import KeepsCategory
from ghostpoi.draw.publication import Publication
from ghostpoi.draw.table import protect_table
from ghostpoi.draw.whole_table import check_category, genuine_rows, grouped, prepare
from ghostpoi.errors import InputError
from ghostpoi.formats import Source
from ghostpoi.options import option as named
from ghostpoi.processes import process_pool
from ghostpoi.progress import Report, no_report
from ghostpoi.randomness import Seed
from ghostpoi.regions.columns import test_all_columns
from ghostpoi.regions.dataset import Stages, dataset
from ghostpoi.regions.divide import read_region
from ghostpoi.regions.engine import Scale
from ghostpoi.regions.job import Job, refuse, sample, sampled
from ghostpoi.release import identity
from ghostpoi.release.identity import numbers
from ghostpoi.release.private_folder import RowsRequest
from ghostpoi.settings import override

FAST = ("none", "posterior", "posterior-no-leak")  # what every setting faces
TRYING = 0.6  # share of the work
FINALISTS = 2  # settings that face the whole default set
FEW_GENUINE = 0.01  # a difference between shares of genuine rows that does not matter
WORTHWHILE = 50_000  # rows; with fewer, one process is done before others have started
CPU = torch.device("cpu")
SEED = Seed(Seed(0).derive("choose"))
# Minimum size and maximum width of a crowd. Crowds of any category are the default with other sizes; those of one
# category are far apart, so wide ones move visits by many kilometres.
ANY = ((16, 40.0), (32, 40.0), (48, 40.0), (64, 40.0))
NARROW = ((8, 3.0), (16, 5.0), (32, 10.0))
STRICTNESS: tuple[KeepsCategory, ...] = ("exact", "group", "any")
EPSILON = 1e-9


@dataclass(frozen=True)
class Option:
    """One setting of crowds."""

    category: KeepsCategory
    draw: Literal["even", "popular"]
    size: int
    reach_km: float

    @property
    def name(self) -> str:
        kind = {"exact": "same category", "group": "same group", "any": "any category"}[self.category]
        how = {"even": "drawn evenly", "popular": "by popularity"}[self.draw]
        return f"crowds of {self.size} venues within {self.reach_km:g} km, {kind}, {how}"

    @property
    def assignments(self) -> list[str]:
        """The settings as `--set` takes them."""
        values = {"category": self.category, "draw": self.draw, "size": self.size, "reach_km": f"{self.reach_km:g}"}
        return [f"method.{key}={value}" for key, value in values.items()]


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What a release must keep to be useful. Among the settings that do, the best protected one is recommended."""

    max_mean_km: float = 2.0
    min_flows: float = 0.4
    max_popularity_js: float = 0.1
    min_rhythm: float = 1.0  # below 1, other times may be recommended
    keep_category: KeepsCategory = "any"

    def missed(self, trial: Mapping[str, Any]) -> list[str]:
        """Name the wishes that a trial does not fulfil, as options of the command."""
        wanted = {
            named("max_mean_km", f"{self.max_mean_km:g}"): trial["mean_km"] - self.max_mean_km,
            named("min_flows", f"{self.min_flows:g}"): self.min_flows - trial["flows"],
            named("max_popularity_js", f"{self.max_popularity_js:g}"): trial["popularity"] - self.max_popularity_js,
        }
        return [name for name, excess in wanted.items() if excess > EPSILON]


def options(wishes: Wishes, has_category: bool = True, has_groups: bool = True) -> list[Option]:
    """Return the settings to try; a file without categories has crowds of any category only.

    Groups are left out where they are unknown: those of regions cannot be learned, since all must have the same. Draws
    without popularity are tried where they can protect best: in any category.
    """
    allowed = STRICTNESS[: STRICTNESS.index(wishes.keep_category) + 1] if has_category else STRICTNESS[-1:]
    allowed = tuple(category for category in allowed if has_groups or category != "group")
    widths = {category: ANY if category == "any" else NARROW for category in allowed}
    popular = [Option(category, "popular", *width) for category in allowed[::-1] for width in widths[category]]
    return popular + [Option(allowed[-1], "even", *width) for width in widths[allowed[-1]][::2]]


def frontier(trials: list[dict[str, Any]]) -> list[bool]:
    """Mark the trials that no other beats: none is better in protection, flows or distance and as good in the rest.

    Protection is what is given away to the adversaries which all settings faced.
    """
    costs = np.array([[t["given_away_of_fast"], -t["flows"], t["mean_km"]] for t in trials])
    beats = np.all(costs <= costs[:, None], axis=2) & np.any(costs < costs[:, None], axis=2)  # (trial, other)
    return [not any(row) for row in beats]


class Tried(NamedTuple):
    """What an audit measures of a setting, in a table or in a region of it."""

    measured: Measured
    gives_away: Mapping[str, Any]
    left_genuine: int  # rows

    def use(self, audit: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a release keeps: distances and rows of the whole table, statistics of its sessions."""
        moved, kept = audit["plausibility"], audit["utility"]
        return {
            "mean_km": moved["mean_km"], "p95_km": moved["p95_km"], "substituted": moved["substitution_rate"],
            "genuine_rows": self.left_genuine,
            "left_genuine": round(self.left_genuine / self.measured.rows.moved.rows, 3),
            "category_match": moved["category_match"], "flows": kept["flows"]["common_part"],
            "popularity": kept["popularity"]["poi_js"], "category_js": kept["popularity"]["category_js"],
            "category_hour_js": kept["hours"]["category_hour_js"],
        }  # fmt: skip


def joined(each: Mapping[int, Tried]) -> Tried:
    """Join what was measured in several regions, by their numbers."""
    if len(each) == 1:
        return next(iter(each.values()))
    parts = {number: one.measured for number, one in each.items()}
    whole = join(list(parts.values()))
    return Tried(whole, given_away(whole, parts), sum(one.left_genuine for one in each.values()))


def protection(audit: Mapping[str, Any]) -> dict[str, Any]:
    """Return what adversaries learn from a release: what it gives away, as audits report it, and the worst case."""
    known = audit["adversaries"] | {name: audit["controls"][name] for name in (LEAK_MIXED, *ALONE)}
    most = max((audit["gives_away"][leak] for leak in LEAKS), key=lambda one: float(one["mean"]))
    accuracy = {name: one["acc@1"] for name, one in known.items()}
    return {
        "given_away": most["mean"], "given_away_error": (most["high"] - most["low"]) / 2,
        "gives_away": audit["gives_away"], "verdict": audit["verdict"], "distance": audit["distance"],
        "accuracy": accuracy, "strongest": audit["strongest"], "worst": accuracy[audit["strongest"]]["mean"],
        "worst_on_moves": max(one["acc@1_moves"]["mean"] for one in known.values()),
        "test_positions": audit["test_positions"],
    }  # fmt: skip


def audit_settings(settings: Publication) -> AuditSettings:
    return AuditSettings(
        settings.filters, settings.candidates, settings.speed, settings.hide, *victim_settings("strong")
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the publisher asks for."""

    rows: RowsRequest  # with all settings but the crowd's own
    wishes: Wishes = field(default_factory=Wishes)
    leak: float = 0.05
    seeds: int = 3
    cache: Cache

    @property
    def adversaries(self) -> tuple[str, ...]:
        return default_adversaries(pseudonyms=self.rows.settings.rotates_users)

    def attacks(self, adversaries: tuple[str, ...], seeds: int) -> Attacks:
        return Attacks(
            adversaries=adversaries, leak=self.leak, seeds=seeds, naturalness=False, persons=False,
            distance=seeds == self.seeds,
        )  # fmt: skip

    def settings(self, option: Option) -> Publication:
        return override(self.rows.settings, option.assignments)

    def with_times(self, kind: str) -> Publication:
        return override(self.rows.settings, [f"identity.times={kind}"])

    @property
    def grouping(self) -> Publication:
        """The settings of a crowd that follows groups of categories."""
        return override(self.rows.settings, ["method.category=group"])


def choose(file: Source, asked: Asked, scale: Scale | None, count: int | None, report: Report) -> dict[str, Any]:
    """Try settings on a dataset: on `count` of its regions, by default on as many as have enough rows."""
    if scale and asked.wishes.keep_category == "group":
        refuse(replace(asked.rows, settings=asked.grouping), file.reading)
    with dataset(file, asked.rows, scale, asked.cache.folder, report) as (data, stages):
        data = test_all_columns(data, stages)
        chosen = sample(data.regions, count)
        table = read_region(data, chosen[0]).table
        check_category(table, asked.rows.settings if asked.wishes.keep_category == "any" else asked.grouping)
        if data.file:
            grouped(table, asked.rows.groups, asked.grouping.method)  # refuses a taxonomy that does not fit
        has_groups = bool(data.file or asked.rows.groups) or "category_group" in asked.rows.mapping
        numbers = [region.number for region in chosen]
        kind, each = _times(data, asked, stages, numbers)
        asked = replace(asked, rows=replace(asked.rows, settings=asked.with_times(kind)))
        tries = _Tries(data, asked, stages, numbers)
        found = _decide(asked, options(asked.wishes, bool(table.category_field), has_groups), tries, report)
        found |= {"times": kind, "tried_times": each}
        return found if data.file else found | {"regions": sampled(data.regions, chosen, tries.numbers)}


def _times(data: Job, asked: Asked, stages: Stages, numbers: list[int]) -> tuple[str, list[dict[str, Any]]]:
    """Try other times, unless the settings state some; return the safest that keep the wish, and all that was found."""
    stated = asked.rows.settings.identity.times
    kinds = rhythm.KINDS if stated == "keep" else (stated,)
    each = [*stages.regions("trying times", try_times, data, numbers, kinds, asked).values()]
    rows = rhythm.compared({kind: [one[kind] for one in each] for kind in kinds}, asked.wishes.min_rhythm)
    return rhythm.safest(rows)["times"], rows


def try_times(data: Job, number: int, kinds: Sequence[str], asked: Asked) -> dict[str, rhythm.Rhythm | str]:
    """Measure each kind of times in a region, or say why the file cannot be released so."""
    file, found = read_region(data, data.regions[number]), dict[str, rhythm.Rhythm | str]()
    kept = data.columns.keep if data.columns else []
    for kind in kinds:
        settings = asked.with_times(kind)
        try:
            identity.check_times(file, settings, in_series=False)
            identity.check_time_columns(file, settings, kept, asked.rows.keep)
            found[kind] = rhythm.tried(file.table, settings)
        except InputError as e:
            if len(kinds) == 1:  # stated in the settings
                raise
            found[kind] = e.text
    return found


@dataclass
class _Tries:
    data: Job
    asked: Asked
    stages: Stages
    numbers: list[int]  # of the regions; those with too few sessions are left out once that is known

    def each(self, label: str, options: Sequence[Option], attacks: Attacks) -> Iterator[tuple[Option, Tried]]:
        """Yield what was measured of each setting. On a large table, settings are tried side by side."""
        workers = min(os.cpu_count() or 1, len(options))
        if self.data.file and workers > 1 and len(self.data.file.table) >= WORTHWHILE:
            with process_pool(workers) as pool:
                begun = {pool.submit(try_table, self.data.file.table, o, self.asked, attacks): o for o in options}
                yield from ((begun[done], done.result()) for done in as_completed(begun))
        elif self.data.file:
            yield from ((option, try_table(self.data.file.table, option, self.asked, attacks)) for option in options)
        elif options:
            asked = tuple(options), self.asked, attacks
            found = self.stages.regions(label, try_region, self.data, self.numbers, *asked)
            self.numbers = [number for number in self.numbers if found[number] is not None]
            if not self.numbers:
                raise InputError(
                    f"{self.data.pieces.path}: the filters leave too few sessions in all {len(found):,} regions of "
                    f"the sample; try more with {named('regions')}, or lower filters.min_poi_checkins or "
                    f"filters.min_session_length with {named('set')}"
                )
            for option in options:
                yield option, joined({number: found[number][option] for number in self.numbers})


class TooFew(Exception):
    """A release of a region has too few sessions to train, validate and test a victim on."""


def try_region(
    data: Job, number: int, options: Sequence[Option], asked: Asked, attacks: Attacks
) -> dict[Option, Tried] | None:  # fmt: skip
    """Try settings on a region; None if a release of it has too few sessions."""
    table = read_region(data, data.regions[number]).table
    try:
        return {option: try_table(table, option, asked, attacks, whole_file=False) for option in options}
    except TooFew:
        return None


def try_table(table: Checkins, option: Option, asked: Asked, attacks: Attacks, whole_file: bool = True) -> Tried:
    """Try a setting on a table: measure a region alone, a whole file over several windows."""
    settings = asked.settings(option)
    if option.category == "group":
        table = grouped(table, asked.rows.groups, settings.method)
    whole = prepare(table, settings, whole_file)
    venue, v, rows = protect_table(whole, settings, SEED, CPU).poi, table.venues, len(table)
    shown = np.unique(venue)  # a release describes only the venues that it shows
    after = replace(
        table, venue=(np.searchsorted(shown, venue) + 1).astype(np.int32), lat=v.lat[venue], lon=v.lon[venue],
        category=v.category[venue], venue_ids=np.append("", table.venue_ids[shown]),
        time=identity.drawn_times(table, settings, SEED)[0],
    )  # fmt: skip
    pseudonym = numbers(table, settings) if settings.rotates_users else None
    manifest = {"method": "crowd", "settings": settings.public()}  # what audits read of it
    pair = TablePair(table, after, np.arange(rows), manifest, {}, pseudonym)
    chosen, more = audit_settings(settings), (attacks.contests([]), asked.cache, lambda text: None, no_report)
    if whole_file:
        found, away = with_windows(attacks, chosen, pair, *more)
    elif has_sessions(replace(after, time=table.time), chosen.filters):
        found = measured(attacks, chosen, pair, align(pair, chosen.filters), *more)
        away = given_away(found, {})
    else:
        raise TooFew
    return Tried(found, away, genuine_rows(whole, settings.method, np.arange(rows), venue)["left_genuine"])


def _decide(asked: Asked, tried: Sequence[Option], tries: _Tries, report: Report) -> dict[str, Any]:
    """Return all that was tried as plain values, controls, and the recommended setting or None."""
    alone = report if tries.data.file else no_report  # stages report themselves
    found: dict[Option, dict[str, Any]] = {}
    audits: dict[Option, dict[str, Any]] = {}

    def learn(label: str, some: Sequence[Option], attacks: Attacks) -> Iterator[tuple[Option, Tried]]:
        for option, one in tries.each(label, some, attacks):
            s = asked.settings(option)
            manifest = {"method": "crowd", "settings": s.public()}
            audits[option] = result(attacks, audit_settings(s), manifest, one.measured, one.gives_away)
            yield option, one

    for option, one in learn("trying", tried, asked.attacks(FAST, 1)):
        measured = one.use(audits[option]) | protection(audits[option])
        fast = {f"{name}_of_fast": measured[name] for name in ("given_away", "worst")}
        found[option] = measured | fast | {"missed": asked.wishes.missed(measured), "complete": False}
        alone(f"tried {option.name}", TRYING / len(tried))
    possible = sorted((o for o in tried if not found[o]["missed"]), key=lambda o: _order(found[o]))[:FINALISTS]
    alone("all adversaries on the best", 0)
    for option, _ in learn("trying the best", possible, asked.attacks(asked.adversaries, asked.seeds)):
        found[option] |= protection(audits[option]) | {"complete": True}
        alone(f"all adversaries on {option.name}", (1 - TRYING) / len(possible))
    best = _best(possible, found)
    rows = [{"name": o.name, "settings": o.assignments, **found[o]} for o in tried]
    for row, on_frontier in zip(rows, frontier(rows), strict=True):
        row["frontier"] = on_frontier
    nearest = best or min(tried, key=lambda o: (len(found[o]["missed"]), *_order(found[o])))
    known = {CLEAN: audits[nearest]["clean"]} | audits[nearest]["controls"]
    controls, moving = (
        {name: known[name][measure]["seeds"] for name in (CLEAN, LEAK_ONLY, LEAK_STAY)}
        | {name: known[name][measure]["mean"] for name in (*FLOORS, MARKOV)}
        for measure in ("acc@1", "acc@1_moves")
    )
    for row in rows:
        row["protection"] = round(accuracy_lost([float(np.mean(controls[CLEAN]))], [row["worst"]])[0], 4)
    if not possible:
        alone("done", 1 - TRYING)
    return {
        "tried": rows, "recommended": None if best is None else rows[tried.index(best)],
        "nearest": rows[tried.index(nearest)], "controls": controls, "controls_on_moves": moving,
        "leak": asked.leak, "seeds": asked.seeds, "victims": list(asked.attacks(FAST, 1).victims),
        "pseudonyms": asked.rows.settings.identity.pseudonyms, "wishes": vars(asked.wishes),
    }  # fmt: skip


def _order(found: Mapping[str, Any]) -> tuple[float, float]:
    return found["given_away"], -found["flows"]


def _best(finalists: Sequence[Option], found: Mapping[Option, dict[str, Any]]) -> Option | None:
    """Return the most useful finalist among those that give away as little as the best, as far as the test can tell.

    Genuine rows count as protection: they make a release useful, but nothing hides them.
    """
    least = min((found[o] for o in finalists), key=_order, default=None)
    if least is None:
        return None
    equal = [o for o in finalists if found[o]["given_away"] <= least["given_away"] + least["given_away_error"]]
    fewest = min(found[o]["left_genuine"] for o in equal)
    equal = [o for o in equal if found[o]["left_genuine"] <= fewest + FEW_GENUINE]
    return max(equal, key=lambda o: (found[o]["flows"], -found[o]["popularity"]))
