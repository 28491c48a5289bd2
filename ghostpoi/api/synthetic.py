"""`ghostpoi.synth`: check-ins to try things on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ghostpoi.api.wording import step

if TYPE_CHECKING:
    import polars


@step
def synth(
    users: int = 500, pois: int = 1500, days: int = 120, *, seed: int = 0, density: float = 40.0
) -> polars.DataFrame:
    """Return the check-ins of a synthetic city: people with homes, jobs and habits at clustered venues.

    >>> ghostpoi.synth(users=150, pois=300, days=60, seed=7).write_csv("checkins.csv")
    """
    from ghostpoi.data.synthetic import make_city
    from ghostpoi.data.synthetic_file import city_frame

    return city_frame(make_city(users, pois, days, seed, density), seed)
