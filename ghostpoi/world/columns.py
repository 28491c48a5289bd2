"""What becomes of each column of the dataset: tested on some regions, and held to that in all others."""

from dataclasses import replace

from ghostpoi.data.formats import CheckinFile
from ghostpoi.errors import InputError
from ghostpoi.publish.columns import VenueColumns
from ghostpoi.publish.columns.classify import Tests
from ghostpoi.publish.parts import check_parts
from ghostpoi.publish.venue_files import classify_file
from ghostpoi.world.job import Job, Region
from ghostpoi.world.region_rows import read_region
from ghostpoi.world.sample import by_hash, sample

FEW_ROWS = 20_000  # smaller regions are tested only if there is no larger one
DIVIDED = 2  # regions in several pieces that are tested beside the others


def tested_regions(regions: tuple[Region, ...]) -> list[Region]:
    """Choose the regions whose columns are tested, and some whose rows are in several pieces: parts may tell, too."""
    large = [region for region in regions if region.rows >= FEW_ROWS]
    chosen = sample(large or [max(regions, key=lambda region: region.rows)])
    divided = [region for region in by_hash(large or regions) if len(region.pieces) > 1 and region not in chosen]
    return [*chosen, *divided[:DIVIDED]]


def test_columns(job: Job, number: int) -> VenueColumns:
    """Test the columns of a region, and the parts of its rows; refuse what could reveal clean venues."""
    file = read_region(job, job.regions[number])
    found = classify_file(file, job.request.keep, job.request.drop, None)
    check_parts(file, found.change)
    return found


def agreed(found: list[VenueColumns]) -> VenueColumns:
    """Return what becomes of each column. Some change with the venue in one region and are constant in others."""
    first = found[0]
    change = list(dict.fromkeys(name for one in found for name in one.change))
    keep = [name for name in dict.fromkeys(name for one in found for name in one.keep) if name not in change]
    warnings = list(dict.fromkeys(text for one in found for text in one.warnings))
    return replace(first, change=change, keep=keep, warnings=warnings)


def check_columns(job: Job, file: CheckinFile, columns: VenueColumns) -> None:
    """Refuse a region in which a column that is kept elsewhere follows from the venue.

    In a small one, all rows of a venue may agree by chance. A column that changes with the venue elsewhere may do so
    everywhere: its values come from genuine rows.
    """
    if len(file.table) < FEW_ROWS:
        return
    tests = Tests(file.table, file.rows, file.mapping)
    kept = (name for name in columns.keep if name not in job.request.keep)
    if name := next((name for name in kept if name in tests.extra and tests.kind(name) == "change"), None):
        raise InputError(
            f"{file.path}: the column {name!r} follows from the venue here, but not in other regions; leave it out "
            f"with --drop {name}, or keep it at your own risk with --keep {name}"
        )
