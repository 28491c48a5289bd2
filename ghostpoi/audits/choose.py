"""Choose settings for a dataset: try a small grid on the publisher's own data and recommend the best protected setting.

All settings face two fast adversaries. Those that fulfil the wishes and do best then face the whole default set under
several seeds. An adversary is measured by a victim that trains in a second.
"""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, field, replace
from typing import Any

from ghostpoi.audits.cache import Cache
from ghostpoi.audits.controls import CLEAN, default_adversaries
from ghostpoi.audits.measures.gaps import SAMPLING_ERRORS, accuracy_lost, spread, strongest
from ghostpoi.audits.trial import (
    ALL,
    MOVES,
    VICTIM,
    Accuracies,
    Option,
    Trial,
    Tried,
    Wishes,
    frontier,
    joined,
    joined_use,
    options,
)
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

FAST = ("none", "habits+leak")  # what every setting faces
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

    def each(
        self, label: str, options: Sequence[Option], adversaries: Sequence[str], seeds: int, use: bool = False
    ) -> Iterator[tuple[Option, list[Tried]]]:
        """Yield what was measured of each setting. On a large table, settings are tried side by side."""
        asked = (self.asked, adversaries, seeds, use)
        workers = min(os.cpu_count() or 1, len(options))
        if self.data.file and workers > 1 and len(self.data.file.table) >= WORTHWHILE:
            with process_pool(workers) as pool:
                begun = {pool.submit(try_table, self.data.file.table, option, *asked): option for option in options}
                yield from ((begun[done], [done.result()]) for done in as_completed(begun))
        elif self.data.file:
            yield from ((option, [try_table(self.data.file.table, option, *asked)]) for option in options)
        elif options:
            found = self.stages.regions(label, try_region, self.data, self.numbers, tuple(options), *asked)
            self.numbers = [number for number in self.numbers if found[number] is not None]
            if not self.numbers:
                raise InputError(
                    f"{self.data.pieces.path}: the filters leave too few sessions in all {len(found):,} regions of "
                    f"the sample; try more with {named('regions')}, or lower filters.min_poi_checkins or "
                    f"filters.min_session_length with {named('set')}"
                )
            yield from ((option, [found[number][option] for number in self.numbers]) for option in options)

    def controls(self, option: Option) -> Accuracies:
        """Return what every setting is compared with."""
        found = self.stages.regions("trying controls", control_region, self.data, self.numbers, self.asked, option)
        return joined([found[number] for number in self.numbers])


def try_region(
    data: Job, number: int, options: Sequence[Option], asked: Asked, *more: Any
) -> dict[Option, Tried] | None:
    """Try settings on a region; None if a release of it has too few sessions."""
    table, found = read_region(data, data.regions[number]).table, {}
    for option in options:
        trial = _trial(table, option, asked, whole_file=False)
        if not trial.has_sessions:
            return None
        found[option] = _tried(trial, *more)
    return found


def try_table(table: Checkins, option: Option, asked: Asked, *more: Any) -> Tried:
    """Try a setting on a table."""
    return _tried(_trial(table, option, asked, whole_file=True), *more)


def _tried(trial: Trial, adversaries: Sequence[str], seeds: int, use: bool) -> Tried:
    """Return what a setting protects and, if asked for, what it keeps."""
    useful = trial.usefulness() if use else None
    return Tried(trial.accuracies(adversaries, seeds), trial.test_positions, useful)


def control_region(data: Job, number: int, asked: Asked, option: Option) -> Tried:
    """Measure in a region what settings are compared with."""
    trial = _trial(read_region(data, data.regions[number]).table, option, asked, data.file is not None)
    return Tried(trial.controls(asked.seeds), trial.test_positions)


def _trial(table: Checkins, option: Option, asked: Asked, whole_file: bool) -> Trial:
    """Make a trial. It is made again each time: a release takes seconds, and all of them would fill the memory."""
    settings = override(asked.rows.settings, option.assignments)
    if option.category == "group":
        table = grouped(table, asked.rows.groups, settings.method)
    return Trial(table, settings, asked.leak, asked.cache, whole_file)


def _decide(asked: Asked, tried: Sequence[Option], tries: _Tries, report: Report) -> dict[str, Any]:
    """Return all that was tried as plain values, controls, and the recommended setting or None."""
    alone = report if tries.data.file else no_report  # stages report themselves
    found: dict[Option, dict[str, Any]] = {}
    for option, each in tries.each("trying", tried, FAST, 1, use=True):
        measured = joined_use([one.useful for one in each if one.useful]).measures | _protection(each)
        found[option] = measured | {"worst_of_fast": measured["worst"], "missed": asked.wishes.missed(measured)}
        alone(f"tried {option.name}", TRYING / len(tried))
    possible = sorted((o for o in tried if not found[o]["missed"]), key=lambda o: _order(found[o]))[:FINALISTS]
    alone("all adversaries on the best", 0)
    for option, each in tries.each("trying the best", possible, asked.adversaries, asked.seeds):
        found[option] |= _protection(each)
        alone(f"all adversaries on {option.name}", (1 - TRYING) / len(possible))
    best = _best(possible, found)
    rows = [{"name": o.name, "settings": o.assignments, **found[o]} for o in tried]
    for row, on_frontier in zip(rows, frontier(rows), strict=True):
        row |= {"frontier": on_frontier, "complete": len(row["accuracy"]) > len(FAST) + 1}
    nearest = best or min(tried, key=lambda o: (len(found[o]["missed"]), *_order(found[o])))
    controls = tries.controls(nearest)
    for row in rows:
        lost = accuracy_lost([spread(controls[ALL][CLEAN])["mean"]], [row["worst"]])
        row["protection"] = round(lost[0], 4)
    return {
        "tried": rows,
        "recommended": None if best is None else rows[tried.index(best)],
        "nearest": rows[tried.index(nearest)],
        "controls": controls[ALL],
        "controls_on_moves": controls[MOVES],
        "leak": asked.leak,
        "seeds": asked.seeds,
        "victim": VICTIM,
        "pseudonyms": asked.rows.settings.identity.pseudonyms,
        "wishes": vars(asked.wishes),
    }


def _order(found: Mapping[str, Any]) -> tuple[float, float]:
    """Order by protection, then by usefulness."""
    return found["worst"], -found["flows"]


def _best(finalists: Sequence[Option], found: Mapping[Option, dict[str, Any]]) -> Option | None:
    """Return the most useful finalist among those as well protected as the best, as far as the test can distinguish.

    Genuine rows count as protection: they make a release useful, but nothing hides them.
    """
    least = min((found[o] for o in finalists), key=_order, default=None)
    if least is None:
        return None
    error = SAMPLING_ERRORS * math.sqrt(2 * least["worst"] * (1 - least["worst"]) / least["test_positions"])
    equal = [o for o in finalists if found[o]["worst"] <= least["worst"] + error]
    fewest = min(found[o]["left_genuine"] for o in equal)
    equal = [o for o in equal if found[o]["left_genuine"] <= fewest + FEW_GENUINE]
    return max(equal, key=lambda o: (found[o]["flows"], -found[o]["popularity"]))


def _protection(each: Sequence[Tried]) -> dict[str, Any]:
    """Return what adversaries learn from a release, given acc@1 behind each in every region."""
    found, positions = joined(each), sum(one.positions[ALL] for one in each)
    top, moving = strongest(found[ALL]), found[MOVES]
    accuracy = {name: spread(values) for name, values in found[ALL].items()}
    return {
        "accuracy": accuracy, "strongest": top, "worst": accuracy[top]["mean"], "test_positions": positions,
        "worst_on_moves": spread(moving[strongest(moving)])["mean"],
    }  # fmt: skip
