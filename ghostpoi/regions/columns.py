"""What becomes of each column of the dataset: tested on a sample of regions, and held to that in all others.

Regions with few rows are tested together, as one table, so that what becomes of a column follows from its rows
everywhere, and not from the region that happens to be the largest. When a region is protected, its columns are tested
again: a column may follow from the venue in a single town.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ghostpoi.columns import VenueColumns
from ghostpoi.columns.classify import Tests, check_forms, check_order, constant_within
from ghostpoi.columns.dependence import agreement, of_rows, value_codes
from ghostpoi.columns.related import refused
from ghostpoi.data.checkins import Ints, Longs
from ghostpoi.formats import CheckinFile
from ghostpoi.regions.divide import read_joint, read_region
from ghostpoi.regions.job import Job, Region, TestedColumns, by_hash, joint, sample
from ghostpoi.regions.scale import Stages, done_all
from ghostpoi.release.refusals import check_parts
from ghostpoi.release.users import hidden, wanted
from ghostpoi.release.venue_files import classify_file

FEW_ROWS = 20_000  # with fewer, a region is too small for all tests
ORDERED = 1000  # with fewer rows, their order may seem to reveal venues by chance
TOGETHER = -1  # the number of the test of several regions at once
DIVIDED = 2  # regions in several pieces that are tested in addition to the others


def tests_of(regions: tuple[Region, ...]) -> list[int]:
    """Return the numbers of tests: of several regions at once, of large ones, and of some in several pieces.

    The last are there to test the parts of a folder.
    """
    chosen = _alone(regions)
    large = [region for region in regions if region.rows >= FEW_ROWS]
    divided = [region for region in by_hash(large or regions) if len(region.pieces) > 1 and region not in chosen]
    numbers = [region.number for region in [*chosen, *divided[:DIVIDED]]]
    return [TOGETHER, *numbers] if _together(regions) else numbers


def _alone(regions: tuple[Region, ...]) -> list[Region]:
    """Return the regions that are tested one by one, however the dataset is divided into parts."""
    together = {region.number for region in _together(regions)}
    large = [region for region in regions if region.rows >= FEW_ROWS]
    chosen = sample(region for region in large if region.number not in together)
    if not large or not (chosen or together):
        return [max(regions, key=lambda region: region.rows)]
    return chosen


def _together(regions: tuple[Region, ...]) -> list[Region]:
    """Return the regions that are tested at once; none if there is only one."""
    found = joint(regions)
    return found if len(found) > 1 else []


def test_all_columns(job: Job, stages: Stages) -> Job:
    """Find out what becomes of each column; refuse a dataset whose columns could reveal clean venues or users."""
    if file := job.file:
        settings = job.request.settings
        number = wanted(file, settings)
        found = classify_file(file, job.request.keep, job.request.drop, number, settings.keeps_category)
        return replace(job, columns=_seen(file, found))
    tested, failed = stages.run("testing columns", test_columns, job, tests_of(job.regions))
    done_all((tested, failed), job.name_of)
    return replace(job, columns=agreed([tested[number] for number in sorted(tested)]))


def test_columns(job: Job, number: int) -> TestedColumns | None:
    """Test columns and the parts of a region; refuse what could reveal clean venues. None: only parts were tested."""
    request, category = job.request, job.request.settings.keeps_category
    if number == TOGETHER:
        file = read_joint(job)
        found = classify_file(
            file,
            request.keep,
            request.drop,
            hidden(file.table, request.settings),
            category,
            order=False,  # of regions
        )
        return _seen(file, found)
    region = job.regions[number]
    file = read_region(job, region)
    alone = region in _alone(job.regions)
    if not alone or (region.rows < FEW_ROWS and _together(job.regions)):
        tests = Tests(file.table, file.rows, file.mapping)
        if alone:
            check_order(tests, file.path)
        if not request.settings.reorders:
            check_parts(file, [name for name in tests.extra if tests.kind(name) == "change"])
        return None
    found = classify_file(file, request.keep, request.drop, hidden(file.table, request.settings), category)
    if not request.settings.reorders:  # else rows are divided again
        check_parts(file, found.change)
    return _seen(file, found)


def _seen(file: CheckinFile, found: VenueColumns) -> TestedColumns:
    codes = {name: value_codes(file.rows.get_column(name)) for name in found.keep}
    constant = [name for name, code in codes.items() if code.max() == 0]
    of_user = [name for name, code in codes.items() if constant_within(code, file.table.user)]
    return TestedColumns(**vars(found), constant=constant, of_user=of_user)


def agreed(tested: list[TestedColumns | None]) -> TestedColumns:
    """Return what becomes of each column. Some change with the venue in one region and are constant in others."""
    found = [one for one in tested if one is not None]

    def names(field: str) -> list[str]:
        return list(dict.fromkeys(name for one in found for name in getattr(one, field)))

    def everywhere(field: str) -> list[str]:
        return [name for name in keep if all(name in getattr(one, field) for one in found)]

    change = names("change")
    keep = [name for name in names("keep") if name not in change]
    return TestedColumns(
        change, keep, found[0].drop, names("warnings"), {k: v for one in reversed(found) for k, v in one.why.items()},
        everywhere("constant"), everywhere("of_user"),
    )  # fmt: skip


def check_columns(job: Job, file: CheckinFile, columns: TestedColumns) -> None:
    """Refuse a region in which a column is not what it was in the regions that were tested."""
    category = job.request.settings.keeps_category
    tests = Tests(file.table, file.rows, file.mapping, most_rows=FEW_ROWS, category=category)
    for name, what in _others(job, tests, columns):
        raise refused(file.path, {name: what}, "", "")
    if len(file.table) >= ORDERED:
        check_order(tests, file.path)
    if len(file.table) >= FEW_ROWS:
        check_forms(tests, file.path, [*columns.change, *job.request.keep, *columns.drop])


def _others(job: Job, tests: Tests, columns: TestedColumns) -> Iterator[tuple[str, str]]:
    """Yield the columns that differ from other regions, and how."""
    sample, large = tests.sample(columns.change), len(tests.table) >= FEW_ROWS
    for name in (name for name in tests.extra if name not in (*job.request.keep, *columns.drop)):
        code, group = value_codes(tests.rows.get_column(name)), tests.constant_in(name)
        known = name not in columns.constant  # else nothing is known of its other values
        if name in columns.change:
            if group is None:  # its values would come from other rows
                yield name, "follows from the venue in other regions, but not here"
        elif code.max() == 0:
            continue
        elif group is not None and tests.kind(name) == "change":
            known_user = name in columns.of_user and constant_within(code, tests.table.user)
            if not known_user and not (known and _by_chance(tests, code, group)):
                yield name, "follows from the venue here, but not in other regions"
        elif (large or not known) and (found := tests.finding(name, sample)):
            yield name, f"{found} in this region"


def _by_chance(tests: Tests, code: Longs, group: Ints | Longs) -> bool:
    """Return whether the rows of each group may agree by chance, as values shuffled within each user do."""
    units = of_rows(tests.related, np.arange(len(code)))
    return not agreement(code, group, units.shuffled[:1])
