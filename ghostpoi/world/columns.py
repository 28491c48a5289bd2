"""What becomes of each column of the dataset: tested on some regions, and held to that in all others."""

from dataclasses import replace

from ghostpoi.data.formats import CheckinFile
from ghostpoi.errors import InputError
from ghostpoi.publish.columns import VenueColumns, classify
from ghostpoi.publish.columns.classify import Tests
from ghostpoi.publish.venue_files import classify_file
from ghostpoi.world.job import Job, Region
from ghostpoi.world.region_rows import read_region
from ghostpoi.world.sample import sample

FEW_ROWS = 20_000  # smaller regions are tested only if there is no larger one


def tested_regions(regions: tuple[Region, ...]) -> list[Region]:
    """Choose the regions whose columns are tested."""
    large = [region for region in regions if region.rows >= FEW_ROWS]
    return sample(large or [max(regions, key=lambda region: region.rows)])


def test_columns(job: Job, number: int) -> VenueColumns:
    """Test the columns of a region; refuse those that could reveal clean venues."""
    return classify_file(read_region(job, job.regions[number]), job.request.keep, job.request.drop, None)


def agreed(found: list[VenueColumns]) -> VenueColumns:
    """Return what becomes of each column, if some change with the venue in one region and are constant in others."""
    first = found[0]
    change = list(dict.fromkeys(name for one in found for name in one.change))
    keep = [name for name in dict.fromkeys(name for one in found for name in one.keep) if name not in change]
    warnings = list(dict.fromkeys(text for one in found for text in one.warnings))
    return replace(first, change=change, keep=keep, warnings=warnings)


def check_columns(job: Job, file: CheckinFile, columns: VenueColumns) -> None:
    """Refuse a region in which a column is not what it is elsewhere, unless it has one value only."""
    tests = Tests(file.table, file.rows, file.mapping)
    wrong = [
        name
        for name in tests.extra
        if name not in columns.drop and name not in job.request.keep
        and tests.kind(name) != "constant" and (tests.kind(name) == "change") != (name in columns.change)
    ]  # fmt: skip
    if not wrong:
        return
    # A small table may be ambiguous: all rows of a venue may agree by chance.
    try:
        classify(file.table, file.rows, file.mapping, file.path, job.request.keep, job.request.drop)
    except InputError:
        raise
    name = wrong[0]
    follows = ("does not follow", "follows") if name in columns.change else ("follows", "does not follow")
    raise InputError(
        f"{file.path}: the column {name!r} {follows[0]} from the venue here and {follows[1]} from it in other regions; "
        f"leave it out with --drop {name}, or keep it at your own risk with --keep {name}"
    )
