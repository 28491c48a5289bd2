"""Try settings on a sample of regions; what is measured in each is joined, weighted by what it is taken of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ghostpoi.data.displacement import Moves
from ghostpoi.errors import InputError
from ghostpoi.evaluate.choose import FAST, Asked, Found, decide, protection
from ghostpoi.evaluate.choose.options import Option, options
from ghostpoi.evaluate.choose.trial import Accuracies, Trial, Useful
from ghostpoi.formats import Source
from ghostpoi.options import option as named
from ghostpoi.progress import Report, Say, no_report
from ghostpoi.publish.private_folder import RowsRequest
from ghostpoi.publish.whole_table import check_category, grouped
from ghostpoi.settings import override
from ghostpoi.world.columns import test_columns, tests_of
from ghostpoi.world.dataset import divided, job_of, working
from ghostpoi.world.job import Job, Region
from ghostpoi.world.refusals import refuse
from ghostpoi.world.region_rows import read_region
from ghostpoi.world.sample import sample, sampled
from ghostpoi.world.scale import Scale, Stages, done_all


@dataclass(frozen=True, kw_only=True)
class RegionsRequest(Asked):
    """What the publisher of a dataset of many regions asks for."""

    rows: RowsRequest
    has_category: bool = True

    @property
    def options(self) -> list[Option]:
        return options(self.wishes, self.has_category, self.has_groups)

    @property
    def has_groups(self) -> bool:
        """Whether groups of categories are given."""
        return bool(self.rows.groups) or "category_group" in self.rows.mapping


@dataclass(frozen=True)
class Tried:
    """What was measured of a setting in a region: acc@1 per seed behind each adversary, and over how many steps."""

    accuracies: Accuracies
    positions: Mapping[str, int]
    useful: Useful | None = None


def choose_by_regions(
    file: Source, request: RegionsRequest, scale: Scale, count: int | None, say: Say, report: Report
) -> dict[str, Any]:  # fmt: skip
    """Try settings on `count` regions, by default on as many as have enough rows."""
    grouping = override(request.settings, ["method.category=group"])
    if request.wishes.keep_category == "group":
        refuse(RowsRequest(**vars(request.rows) | {"settings": grouping}), file.reading)
    refuse(request.rows, file.reading)
    with working(scale, request.cache.folder, say, report) as (place, stages):
        job = divided(job_of(place, file, request.rows, scale.settings, scale.region_column), stages)
        done_all(stages.run("testing columns", test_columns, job, tests_of(job.regions)), job.name_of)
        chosen = sample(job.regions, count)
        table = read_region(job, chosen[0]).table
        if request.wishes.keep_category != "any":
            check_category(table, grouping)
        request = RegionsRequest(**vars(request) | {"has_category": bool(table.category_field)})
        tries = _tried(job, chosen, request, stages)
        found = decide(request, tries, no_report)
        return found | {"regions": sampled(job.regions, chosen, [*tries.begun])}


@dataclass(frozen=True)
class _OnRegions:
    """Measures settings on regions. All settings have been tried once: only then is known which regions can be used."""

    job: Job
    request: RegionsRequest
    stages: Stages
    begun: dict[int, dict[Option, Tried]]  # by region

    def first(self, options: Sequence[Option]) -> Found:
        for option in options:
            each = [found[option] for found in self.begun.values()]
            useful = [one.useful for one in each if one.useful is not None]
            yield option, joined_use(useful).measures | _protection(each)

    def final(self, options: Sequence[Option]) -> Found:
        asked = (self.request, tuple(options), self.request.adversaries, self.request.seeds)
        found = self._run("trying the best", try_region, *asked) if options else {}
        for option in options:
            yield option, _protection([one[option] for one in found.values()])

    def controls(self, option: Option) -> Accuracies:
        each = [*self._run("trying controls", control_region, self.request, option).values()]
        return _joined(each)

    def _run(self, label: str, task: Any, *more: object) -> dict[int, Any]:
        sizes = [self.job.regions[number].rows for number in self.begun]
        found, failed = self.stages.run(label, task, self.job, [*self.begun], *more, sizes=sizes)
        done_all((found, failed), self.job.name_of)
        return {number: found[number] for number in self.begun}


def _tried(job: Job, chosen: Sequence[Region], request: RegionsRequest, stages: Stages) -> _OnRegions:
    asked = (request, tuple(request.options), FAST, 1)
    numbers, sizes = [region.number for region in chosen], [region.rows for region in chosen]
    found, failed = stages.run("trying", try_region, job, numbers, *asked, sizes=sizes)
    done_all((found, failed), job.name_of)
    begun = {number: found[number] for number in numbers if found[number] is not None}
    if not begun:
        raise InputError(
            f"{job.pieces.path}: the filters leave too few sessions in all {len(chosen):,} regions of the sample; try "
            f"more with {named('regions')}, or lower filters.min_poi_checkins or filters.min_session_length with "
            f"{named('set')}"
        )
    return _OnRegions(job, request, stages, begun)


def try_region(
    job: Job, number: int, request: RegionsRequest, options: Sequence[Option], adversaries: Sequence[str], seeds: int
) -> dict[Option, Tried] | None:
    """Try settings on a region; None if a release of it has too few sessions."""
    found = {}
    for option in options:
        trial = _trial(job, number, request, option)
        if not trial.has_sessions:
            return None
        found[option] = Tried(trial.accuracies(adversaries, seeds), trial.test_positions, trial.usefulness())
    return found


def control_region(job: Job, number: int, request: RegionsRequest, option: Option) -> Tried:
    """Measure in a region what settings are compared with."""
    trial = _trial(job, number, request, option)
    return Tried(trial.controls(request.seeds), trial.test_positions)


def _trial(job: Job, number: int, request: RegionsRequest, option: Option) -> Trial:
    settings = override(request.settings, option.assignments)
    table = read_region(job, job.regions[number]).table
    if option.category == "group":
        table = grouped(table, request.rows.groups, settings.method)
    return Trial(table, settings, request.leak, request.cache, whole_file=False)


def _protection(each: Sequence[Tried]) -> dict[str, Any]:
    return protection(_joined(each), {part: sum(one.positions[part] for one in each) for part in each[0].positions})


def _joined(each: Sequence[Tried]) -> Accuracies:
    """Return accuracies over the test steps of all regions, and over their moves."""
    return {
        part: {name: _mean([one.accuracies[part][name] for one in each], [one.positions[part] for one in each])
               for name in named}
        for part, named in each[0].accuracies.items()
    }  # fmt: skip


def _mean(values: Sequence[Any], weights: Sequence[int]) -> Any:
    """Return the weighted mean; 0 where nothing has a weight."""
    return np.average(np.array(values), axis=0, weights=weights if any(weights) else None).tolist()


def joined_use(each: Sequence[Useful]) -> Useful:
    """Join what a setting keeps in several regions. Flows and visits to venues are those of the whole."""
    moved, weights = [one.moved for one in each], {"flows": [one.steps for one in each]}
    positions = [one.positions for one in each]
    return Useful(
        Moves(
            sum(one.rows for one in moved), np.concatenate([one.km for one in moved]),
            sum(one.same_category for one in moved),
        ),
        sum(one.left_genuine for one in each),
        {
            name: float(np.average([one.kept[name] for one in each], weights=weights.get(name, positions)))
            for name in each[0].kept
        },
        sum(positions),
        sum(one.steps for one in each),
        each[0].has_category,
    )  # fmt: skip
