"""Refuse what needs all rows of a dataset at once."""

from ghostpoi.data.formats import current_reading
from ghostpoi.errors import InputError
from ghostpoi.publish.private_folder import RowsRequest


def refuse(request: RowsRequest, series: bool = False) -> None:
    """Refuse options that do not go with regions."""
    reading, settings = current_reading(), request.settings
    needs = {
        "--series": series, "--venues": bool(reading.venues), "--cluster-points": bool(reading.cluster_points),
        f"--pseudonyms {settings.identity.pseudonyms}": settings.identity.pseudonyms != "keep",
        "--set method.category=group": settings.method.keeps_category == "group" and not (
            request.groups or "category_group" in request.mapping
        ),
    }  # fmt: skip
    for option, given in needs.items():
        if given:
            raise InputError(
                f"{option} needs all rows at once, which the engine for regions avoids; leave out --engine, --memory "
                "and the other options of regions"
            )
