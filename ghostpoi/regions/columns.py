"""What becomes of each column of the dataset: tested on a sample of regions, and held to that in all others.

Regions with few rows are tested together, as one table, so that what becomes of a column follows from its rows
everywhere, and not from the region that happens to be the largest. When a region is protected, its columns are tested
again: a column may follow from the venue in a single town.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ghostpoi.columns.classify import Tests, check_forms, check_order, constant_within
from ghostpoi.columns.dependence import agreement, of_rows, value_codes
from ghostpoi.columns.related import refused
from ghostpoi.formats import CheckinFile
from ghostpoi.regions.dataset import Stages
from ghostpoi.regions.divide import read_joint, read_region
from ghostpoi.regions.job import Job, Region, TestedColumns, by_hash, joint, sample
from ghostpoi.release.identity import creation_warnings, visits_on_creation, wanted
from ghostpoi.release.plan import check_parts
from ghostpoi.release.private_folder import RowsRequest
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
        return replace(job, columns=_tested(file, job.request))
    tested = stages.run("testing columns", test_columns, job, tests_of(job.regions), job.name_of)
    return replace(job, columns=agreed([*tested.values()]))


def test_columns(job: Job, number: int) -> TestedColumns | None:
    """Test columns and the parts of a region; refuse what could reveal clean venues. None: only parts were tested."""
    if number == TOGETHER:
        return _tested(read_joint(job), job.request, order=False)  # that of regions
    region, alone, reorders = job.regions[number], _alone(job.regions), job.request.settings.reorders
    file, found = read_region(job, region), None
    if region in alone and (region.rows >= FEW_ROWS or not _together(job.regions)):
        found = _tested(file, job.request)
        change = found.change
    else:
        tests = Tests(file.table, file.rows, file.mapping)
        if region in alone:
            check_order(tests, file.path)
        change = [] if reorders else [name for name in tests.extra if tests.kind(name) == "change"]
    if not reorders:  # else rows are divided again
        check_parts(file, change)
    return found


def _tested(file: CheckinFile, request: RowsRequest, order: bool = True) -> TestedColumns:
    settings = request.settings
    found = classify_file(file, request.keep, request.drop, wanted(file, settings), settings, order)
    codes = {name: value_codes(file.rows.get_column(name)) for name in found.keep}
    constant = [name for name, code in codes.items() if code.max() == 0]
    of_user = [name for name, code in codes.items() if constant_within(code, file.table.user)]
    near = visits_on_creation(file.table, settings)
    return TestedColumns(**vars(found), constant=constant, of_user=of_user, on_creation=near)


def agreed(tested: list[TestedColumns | None]) -> TestedColumns:
    """Return what becomes of each column. Some change with the venue in one region and are constant in others."""
    found = [one for one in tested if one is not None]
    change, keep, warnings = (
        list(dict.fromkeys(name for one in found for name in getattr(one, field)))
        for field in ("change", "keep", "warnings")
    )
    keep = [name for name in keep if name not in change]
    constant, of_user = (
        [name for name in keep if all(name in getattr(one, field) for one in found)]
        for field in ("constant", "of_user")
    )
    why = {name: text for one in reversed(found) for name, text in one.why.items()}
    warnings += creation_warnings(sum(one.on_creation for one in found), sampled=True)
    return TestedColumns(change, keep, found[0].drop, warnings, why, constant, of_user)


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
            shuffled = of_rows(tests.related, np.arange(len(code))).shuffled[:1]  # within each user
            if not known_user and (not known or agreement(code, group, shuffled)):
                yield name, "follows from the venue here, but not in other regions"
        elif (large or not known) and (found := tests.finding(name, sample)):
            yield name, f"{found} in this region"
