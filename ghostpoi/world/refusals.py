"""Refuse what needs all rows of a dataset at once, a dataset without sessions, and workers elsewhere."""

from pathlib import Path

from ghostpoi.errors import EngineFailed, InputError
from ghostpoi.formats import Reading, Source
from ghostpoi.options import option
from ghostpoi.publish.private_folder import RowsRequest


def refuse(request: RowsRequest, reading: Reading, series: bool = False) -> None:
    """Refuse options that do not go with regions."""
    settings = request.settings
    needs = {
        option("series"): series, option("venues"): bool(reading.venues),
        option("cluster_points"): bool(reading.cluster_points),
        option("pseudonyms", settings.identity.pseudonyms): settings.identity.pseudonyms != "keep",
        option("set", "method.category=group"): settings.method.keeps_category == "group" and not (
            request.groups or "category_group" in request.mapping
        ),
    }  # fmt: skip
    for named, asked in needs.items():
        if asked:
            raise InputError(
                f"{named} needs all rows at once, which the engine for regions avoids; leave out {option('engine')}, "
                f"{option('memory')} and the other options of regions"
            )


def no_sessions(source: Source) -> InputError:
    """Say that models have nothing to learn from."""
    return InputError(
        f"{source}: the filters leave no sessions in any region; lower filters.min_poi_checkins, "
        "filters.min_user_checkins or filters.min_session_length, or raise filters.session_gap_s, with "
        f"{option('set')}"
    )


def unseen(folder: Path) -> EngineFailed:
    """Say that a worker does not read and write the folder of this machine."""
    return EngineFailed(
        f"some workers cannot use {folder} of this machine; give all machines of the cluster the same folders and user"
    )
