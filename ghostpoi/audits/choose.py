"""Choose settings for a dataset: try a small grid on the publisher's own data and recommend the best protected setting.

Settings are compared by what audits report: what a release gives away. All settings face a few fast adversaries, among
them the one that is the strongest against crowds. Those that fulfil the wishes and do best then face the whole default
set under several seeds.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ghostpoi.audits.cache import Cache
from ghostpoi.audits.controls import CLEAN, default_adversaries
from ghostpoi.audits.measures.gaps import accuracy_lost
from ghostpoi.audits.request import Attacks
from ghostpoi.audits.trial import Option, Trial, Tried, Wishes, controls_of, frontier, options, protection
from ghostpoi.data.checkins import Checkins
from ghostpoi.draw.publication import Publication
from ghostpoi.draw.whole_table import check_category, grouped
from ghostpoi.errors import InputError
from ghostpoi.formats import Source
from ghostpoi.options import option as named
from ghostpoi.processes import process_pool
from ghostpoi.progress import Report, Say, no_report
from ghostpoi.regions.columns import test_all_columns
from ghostpoi.regions.dataset import dataset
from ghostpoi.regions.divide import read_region
from ghostpoi.regions.job import Job, refuse, sample, sampled
from ghostpoi.regions.scale import Scale, Stages
from ghostpoi.release.private_folder import RowsRequest
from ghostpoi.settings import override

__all__ = ["Asked", "Option", "Wishes", "choose"]

FAST = ("none", "posterior", "posterior-no-leak")  # what every setting faces
TRYING = 0.6  # share of the work
FINALISTS = 2  # settings that face the whole default set
FEW_GENUINE = 0.01  # a difference between shares of genuine rows that does not matter
WORTHWHILE = 50_000  # rows; with fewer, one process is done before others have started


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
        """Return the attacks on a setting."""
        return Attacks(
            adversaries=adversaries, leak=self.leak, seeds=seeds, naturalness=False, persons=False,
            distance=seeds == self.seeds,
        )  # fmt: skip

    def settings(self, option: Option) -> Publication:
        return override(self.rows.settings, option.assignments)

    @property
    def grouping(self) -> Publication:
        """The settings of a crowd that follows groups of categories."""
        return override(self.rows.settings, ["method.category=group"])


def choose(
    file: Source, asked: Asked, scale: Scale | None, count: int | None, say: Say, report: Report
) -> dict[str, Any]:
    """Try settings on a dataset: on `count` of its regions, by default on as many as have enough rows."""
    if scale and asked.wishes.keep_category == "group":
        refuse(replace(asked.rows, settings=asked.grouping), file.reading)
    with dataset(file, asked.rows, scale, asked.cache.folder, say, report) as (data, stages):
        test_all_columns(data, stages)
        chosen = sample(data.regions, count)
        table = read_region(data, chosen[0]).table
        check_category(table, asked.rows.settings if asked.wishes.keep_category == "any" else asked.grouping)
        if data.file:
            grouped(table, asked.rows.groups, asked.grouping.method)  # refuses a taxonomy that does not fit
        has_groups = bool(data.file or asked.rows.groups) or "category_group" in asked.rows.mapping
        tries = _Tries(data, asked, stages, [region.number for region in chosen])
        found = _decide(asked, options(asked.wishes, bool(table.category_field), has_groups), tries, report)
        return found if data.file else found | {"regions": sampled(data.regions, chosen, tries.numbers)}


@dataclass
class _Tries:
    """Measures settings on regions."""

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
            found = self.stages.regions(
                label, try_region, self.data, self.numbers, tuple(options), self.asked, attacks
            )  # fmt: skip
            self.numbers = [number for number in self.numbers if found[number] is not None]
            if not self.numbers:
                raise InputError(
                    f"{self.data.pieces.path}: the filters leave too few sessions in all {len(found):,} regions of "
                    f"the sample; try more with {named('regions')}, or lower filters.min_poi_checkins or "
                    f"filters.min_session_length with {named('set')}"
                )
            for option in options:
                yield option, Tried.joined({number: found[number][option] for number in self.numbers})


def try_region(
    data: Job, number: int, options: Sequence[Option], asked: Asked, attacks: Attacks
) -> dict[Option, Tried] | None:  # fmt: skip
    """Try settings on a region; None if a release of it has too few sessions."""
    table, found = read_region(data, data.regions[number]).table, {}
    for option in options:
        trial = _trial(table, option, asked, whole_file=False)
        if not trial.has_sessions:
            return None
        found[option] = trial.tried(attacks, asked.cache)
    return found


def try_table(table: Checkins, option: Option, asked: Asked, attacks: Attacks) -> Tried:
    """Try a setting on a table."""
    return _trial(table, option, asked, whole_file=True).tried(attacks, asked.cache)


def _trial(table: Checkins, option: Option, asked: Asked, whole_file: bool) -> Trial:
    """Make a trial. It is made again each time: a release takes seconds, and all of them would fill the memory."""
    settings = asked.settings(option)
    if option.category == "group":
        table = grouped(table, asked.rows.groups, settings.method)
    return Trial(table, settings, whole_file)


def _decide(asked: Asked, tried: Sequence[Option], tries: _Tries, report: Report) -> dict[str, Any]:
    """Return all that was tried as plain values, controls, and the recommended setting or None."""
    alone = report if tries.data.file else no_report  # stages report themselves
    found: dict[Option, dict[str, Any]] = {}
    audits: dict[Option, dict[str, Any]] = {}

    def learn(label: str, some: Sequence[Option], attacks: Attacks) -> Iterator[tuple[Option, Tried]]:
        for option, one in tries.each(label, some, attacks):
            audits[option] = one.audit(attacks, asked.settings(option))
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
    controls, moving = (controls_of(audits[nearest], measure) for measure in ("acc@1", "acc@1_moves"))
    for row in rows:
        lost = accuracy_lost([float(np.mean(controls[CLEAN]))], [row["worst"]])
        row["protection"] = round(lost[0], 4)
    if not possible:
        alone("done", 1 - TRYING)
    return {
        "tried": rows,
        "recommended": None if best is None else rows[tried.index(best)],
        "nearest": rows[tried.index(nearest)],
        "controls": controls,
        "controls_on_moves": moving,
        "leak": asked.leak,
        "seeds": asked.seeds,
        "victims": list(asked.attacks(FAST, 1).victims),
        "pseudonyms": asked.rows.settings.identity.pseudonyms,
        "wishes": vars(asked.wishes),
    }


def _order(found: Mapping[str, Any]) -> tuple[float, float]:
    """Order by protection, then by usefulness."""
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
