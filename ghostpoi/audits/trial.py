"""The settings that `choose` tries, and one trial: protect in memory with a setting, then measure as an audit would."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch

from ghostpoi.attack.victims import victim_settings
from ghostpoi.audits.audit import measured, with_windows
from ghostpoi.audits.cache import Cache
from ghostpoi.audits.controls import ALONE, CLEAN, FLOORS, LEAK_MIXED, LEAK_ONLY, LEAK_STAY, MARKOV
from ghostpoi.audits.given_away import given_away
from ghostpoi.audits.match import TablePair, align, has_sessions
from ghostpoi.audits.request import Attacks, AuditSettings
from ghostpoi.audits.result import Measured, joined, result
from ghostpoi.audits.verdicts import LEAKS
from ghostpoi.data.checkins import Checkins
from ghostpoi.draw.methods.base import KeepsCategory
from ghostpoi.draw.publication import Publication
from ghostpoi.draw.table import protect_table
from ghostpoi.draw.walks import Substitution
from ghostpoi.draw.whole_table import WholeTable, genuine_rows, prepare
from ghostpoi.options import option
from ghostpoi.progress import no_report
from ghostpoi.randomness import Seed
from ghostpoi.release.users import numbers

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
    keep_category: KeepsCategory = "any"

    def missed(self, trial: Mapping[str, Any]) -> list[str]:
        """Name the wishes that a trial does not fulfil, as options of the command."""
        wanted = {
            option("max_mean_km", f"{self.max_mean_km:g}"): trial["mean_km"] - self.max_mean_km,
            option("min_flows", f"{self.min_flows:g}"): self.min_flows - trial["flows"],
            option("max_popularity_js", f"{self.max_popularity_js:g}"): trial["popularity"] - self.max_popularity_js,
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

    def costs(trial: dict[str, Any]) -> tuple[float, float, float]:
        return trial["given_away_of_fast"], -trial["flows"], trial["mean_km"]

    def beats(one: tuple[float, ...], two: tuple[float, ...]) -> bool:
        return one != two and all(a <= b for a, b in zip(one, two, strict=True))

    every = [costs(trial) for trial in trials]
    return [not any(beats(other, own) for other in every) for own in every]


CPU = torch.device("cpu")


@dataclass(frozen=True)
class Tried:
    """What an audit measures of a setting, in a table or in a region of it."""

    measured: Measured
    gives_away: Mapping[str, Any]
    left_genuine: int  # rows

    @staticmethod
    def joined(each: Mapping[int, "Tried"]) -> "Tried":
        """Join what was measured in several regions, by their numbers."""
        if len(each) == 1:
            return next(iter(each.values()))
        parts = {number: one.measured for number, one in each.items()}
        whole = joined(list(parts.values()))
        return Tried(whole, given_away(whole, parts), sum(one.left_genuine for one in each.values()))

    def audit(self, attacks: Attacks, settings: Publication) -> dict[str, Any]:
        """Return the result of an audit of a release with these settings."""
        return result(attacks, audit_settings(settings), public(settings), self.measured, self.gives_away)

    def use(self, audit: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a release keeps: distances and rows of the whole table, statistics of its sessions."""
        moved, kept = audit["plausibility"], audit["utility"]
        return {
            "mean_km": moved["mean_km"],
            "p95_km": moved["p95_km"],
            "substituted": moved["substitution_rate"],
            "genuine_rows": self.left_genuine,
            "left_genuine": round(self.left_genuine / self.measured.rows.moved.rows, 3),
            "category_match": moved["category_match"],
            "flows": kept["flows"]["common_part"],
            "popularity": kept["popularity"]["poi_js"],
            "category_js": kept["popularity"]["category_js"],
            "category_hour_js": kept["hours"]["category_hour_js"],
        }


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


def controls_of(audit: Mapping[str, Any], measure: str) -> dict[str, Any]:
    """Return what settings are compared with: accuracies per seed, and those of floors."""
    known = {CLEAN: audit["clean"]} | audit["controls"]
    counted = {name: known[name][measure]["mean"] for name in (*FLOORS, MARKOV)}
    return {name: known[name][measure]["seeds"] for name in (CLEAN, LEAK_ONLY, LEAK_STAY)} | counted


def audit_settings(settings: Publication) -> AuditSettings:
    """Return the settings of an audit of a release with these settings."""
    s, (model, training) = settings, victim_settings("strong")
    return AuditSettings(s.filters, s.candidates, s.speed, s.hide, model, training)


def public(settings: Publication) -> dict[str, Any]:
    """Return the part of the manifest that an audit reads."""
    return {"method": "crowd", "settings": settings.public()}


@dataclass(frozen=True, eq=False)
class Trial:
    """A setting, applied to a table."""

    table: Checkins
    settings: Publication
    whole_file: bool = True  # else a region, which may have no sessions and no candidates

    @cached_property
    def _whole(self) -> WholeTable:
        return prepare(self.table, self.settings, self.whole_file)

    @cached_property
    def _released(self) -> Substitution:
        return protect_table(self._whole, self.settings, Seed(Seed(0).derive("choose")), CPU)

    @cached_property
    def _pair(self) -> TablePair:
        table, venue, v = self.table, self._released.poi, self.table.venues
        shown = np.unique(venue)  # a release describes only the venues that it shows
        after = replace(
            table, venue=(np.searchsorted(shown, venue) + 1).astype(np.int32), lat=v.lat[venue], lon=v.lon[venue],
            category=v.category[venue], venue_ids=np.append("", table.venue_ids[shown]),
        )  # fmt: skip
        pseudonym = numbers(table, self.settings) if self.settings.rotates_users else None
        return TablePair(table, after, np.arange(len(table)), public(self.settings), {}, pseudonym)

    @property
    def has_sessions(self) -> bool:
        """Whether there are sessions to train, validate and test a victim on."""
        return has_sessions(self._pair.released, self.settings.filters)

    def tried(self, attacks: Attacks, cache: Cache) -> Tried:
        """Measure the release as an audit would: a region alone, a whole file over several windows."""
        chosen, pair, contests = audit_settings(self.settings), self._pair, attacks.contests([])
        if self.whole_file:
            found, away = with_windows(attacks, chosen, pair, contests, cache, lambda text: None, no_report)
        else:
            data = align(pair, chosen.filters)
            found = measured(attacks, chosen, pair, data, contests, cache, lambda text: None, no_report)
            away = given_away(found, {})
        rows = np.arange(len(self.table))
        genuine = genuine_rows(self._whole, self.settings.method, rows, self._released.poi)
        return Tried(found, away, genuine["left_genuine"]["rows"])
