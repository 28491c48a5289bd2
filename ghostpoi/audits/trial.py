"""The settings that `choose` tries, and one trial: protect in memory with a setting, then measure as an audit would."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch

from ghostpoi.attack.adversaries import ADVERSARIES
from ghostpoi.attack.victims import victim_settings
from ghostpoi.audits.cache import Cache
from ghostpoi.audits.controls import CLEAN, FLOORS, LEAK_MIXED, LEAK_ONLY, LEAK_STAY, MARKOV
from ghostpoi.audits.grid import Contest, Grid, Release, judges_of
from ghostpoi.audits.match import AlignedSessions, TablePair, align, has_sessions, public_rule
from ghostpoi.audits.measures.accuracy import moves as leads_elsewhere
from ghostpoi.audits.measures.utility import utility
from ghostpoi.audits.request import RELEASE
from ghostpoi.audits.result import means
from ghostpoi.data.checkins import Checkins
from ghostpoi.data.displacement import Moves, joined_moves, moves
from ghostpoi.draw.methods.base import KeepsCategory
from ghostpoi.draw.publication import Publication
from ghostpoi.draw.table import protect_table
from ghostpoi.draw.walks import Substitution
from ghostpoi.draw.whole_table import WholeTable, genuine_rows, prepare
from ghostpoi.options import option
from ghostpoi.randomness import Seed
from ghostpoi.release.users import numbers

WIDTHS = ((8, 3.0), (16, 5.0), (32, 10.0))  # minimum size and maximum width of a crowd
STRICTNESS: tuple[KeepsCategory, ...] = ("exact", "group", "any")
EPSILON = 1e-9


@dataclass(frozen=True)
class Option:
    """One setting of crowds."""

    category: KeepsCategory
    draw: Literal["even", "popular-by-hour"]
    size: int
    reach_km: float

    @property
    def name(self) -> str:
        kind = {"exact": "same category", "group": "same group", "any": "any category"}[self.category]
        how = {"even": "drawn evenly", "popular-by-hour": "by popularity"}[self.draw]
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
    min_flows: float = 0.5
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
    popular = [Option(category, "popular-by-hour", *width) for category in allowed[::-1] for width in WIDTHS]
    return popular + [Option(allowed[-1], "even", *width) for width in WIDTHS]


def frontier(trials: list[dict[str, Any]]) -> list[bool]:
    """Mark the trials that no other beats: none is better in worst case, flows or distance and as good in the rest.

    The worst case is that of the adversaries which all settings faced.
    """

    def costs(trial: dict[str, Any]) -> tuple[float, float, float]:
        return trial["worst_of_fast"], -trial["flows"], trial["mean_km"]

    def beats(one: tuple[float, ...], two: tuple[float, ...]) -> bool:
        return one != two and all(a <= b for a, b in zip(one, two, strict=True))

    every = [costs(trial) for trial in trials]
    return [not any(beats(other, own) for other in every) for own in every]


ALL, MOVES = "all", "moves"  # steps of the test sessions: all, and those to another venue
VICTIM = "markov"  # it trains in a second and learns as much as a Transformer on the cities that were measured
CPU = torch.device("cpu")
Accuracies = dict[str, dict[str, Any]]  # acc@1 over all steps and over moves, by adversary or control


@dataclass(frozen=True)
class Useful:
    """What a release of a table, or of a region, keeps, and what that is counted over."""

    moved: Moves
    left_genuine: int  # rows
    kept: dict[str, float]  # statistics of sessions
    positions: int
    steps: int
    has_category: bool

    @property
    def measures(self) -> dict[str, float | None]:
        """Distances and rows of the whole table, statistics of its sessions."""
        moved = self.moved.measures
        return {
            "mean_km": moved["mean_km"],
            "p95_km": moved["p95_km"],
            "substituted": moved["substitution_rate"],
            "genuine_rows": self.left_genuine,
            "left_genuine": round(self.left_genuine / self.moved.rows, 3),
            "category_match": moved["category_match"] if self.has_category else None,
            **self.kept,
        }


@dataclass(frozen=True)
class Tried:
    """What was measured of a setting in a region: acc@1 per seed behind each adversary, and over how many steps."""

    accuracies: Accuracies
    positions: Mapping[str, int]
    useful: Useful | None = None


def joined(each: Sequence[Tried]) -> Accuracies:
    """Return accuracies over the test steps of all regions, and over their moves."""
    if len(each) == 1:
        return each[0].accuracies
    return {
        part: means([one.accuracies[part] for one in each], [one.positions[part] for one in each])
        for part in each[0].accuracies
    }


def joined_use(each: Sequence[Useful]) -> Useful:
    """Join what a setting keeps in several regions. Flows and visits to venues are those of the whole."""
    if len(each) == 1:
        return each[0]
    positions, steps = [one.positions for one in each], [one.steps for one in each]
    weights = dict.fromkeys(each[0].kept, positions) | {"flows": steps}
    return Useful(
        joined_moves([one.moved for one in each]), sum(one.left_genuine for one in each),
        means([one.kept for one in each], weights), sum(positions), sum(steps), each[0].has_category,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Trial:
    """A setting, applied to a table. Everything is computed on first use and kept."""

    table: Checkins
    settings: Publication
    leak: float
    cache: Cache
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
        return TablePair(table, after, np.arange(len(table)), None, {}, pseudonym)

    @cached_property
    def _data(self) -> AlignedSessions:
        return align(self._pair, self.settings.filters)

    @property
    def has_sessions(self) -> bool:
        """Whether there are sessions to train, validate and test a victim on."""
        return has_sessions(self._pair.released, self.settings.filters)

    @property
    def test_positions(self) -> dict[str, int]:
        """The number of clean steps that victims are tested on, and of moves among them."""
        test = self._data.test
        return {ALL: test.positions - len(test), MOVES: int(leads_elsewhere(test).sum())}

    def usefulness(self) -> Useful:
        """Return what the release keeps."""
        rows, released, data = np.arange(len(self.table)), self._released.poi, self._data
        kept = utility(data.all, data.all_released, data.vocabulary, self._whole.hidden[data.vocabulary.venue])
        genuine = genuine_rows(self._whole, self.settings.method, rows, released)
        return Useful(
            moves(self.table.venues, self.table.venue, released),
            genuine["left_genuine"]["rows"],
            {
                "flows": kept["flows"]["common_part"],
                "popularity": kept["popularity"]["poi_js"],
                "category_js": kept["popularity"]["category_js"],
                "category_hour_js": kept["hours"]["category_hour_js"],
            },
            data.all.positions,
            data.all.positions - len(data.all),
            bool(self.table.category_field),
        )

    def accuracies(self, adversaries: Sequence[str], seeds: int) -> Accuracies:
        """Return acc@1 of the victim behind each adversary, and of `leak-mixed`, per seed."""
        wanted = [
            Contest(RELEASE, name, self._ratio(name), one)
            for name in (*adversaries, LEAK_MIXED) for one in judges_of(name, (VICTIM,))
        ]  # fmt: skip
        return self._measured(wanted, seeds)

    def controls(self, seeds: int) -> Accuracies:
        """Return acc@1 of victims that train on clean data and on the leak alone, and the floors."""
        found = self._measured(
            [
                Contest(CLEAN, CLEAN, None, VICTIM),
                *(Contest(CLEAN, control, self.leak, VICTIM) for control in (LEAK_ONLY, LEAK_STAY)),
            ],
            seeds,
        )
        floors = self._grid(1).floors()
        counted = {part: {name: floors[name][part]["acc@1"] for name in (*FLOORS, MARKOV)} for part in found}
        return {part: found[part] | counted[part] for part in found}

    def _measured(self, contests: Sequence[Contest], seeds: int) -> Accuracies:
        named = {contest.adversary: found for contest, found in self._grid(seeds).measures(contests).items()}
        return {part: {name: found[part]["acc@1"] for name, found in named.items()} for part in (ALL, MOVES)}

    def _ratio(self, adversary: str) -> float | None:
        known = ADVERSARIES.get(adversary)
        return self.leak if known is None or known.uses_leak else None

    def _grid(self, seeds: int) -> Grid:
        data, (model, training) = self._data, victim_settings("strong")
        rule = public_rule(self._pair, data.vocabulary, self.settings, self.settings.method)
        release = Release(lambda number: data.released, rule, data.pseudonym)
        return Grid(
            train=data.train, val=data.val, test=data.test, vocabulary=data.vocabulary,
            releases={RELEASE: release}.__getitem__, seeds=seeds, protocol="strong", model=model, training=training,
            device=CPU, cache=self.cache,
        )  # fmt: skip
