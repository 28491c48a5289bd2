"""The base of standard mechanisms that draw from crowds. They use the same crowds as `crowd`."""

from dataclasses import dataclass

from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Bools
from ghostpoi.data.places import Places
from ghostpoi.publish import crowd_partition
from ghostpoi.publish.methods.base import KeepsCategory, Method
from ghostpoi.settings import setting


@dataclass(frozen=True)
class CrowdDraw(Method):
    """Draw a venue of the crowd by its weight."""

    may_keep = True
    own_sets = True
    exact_channel = True

    size: int = setting(16, "minimum crowd size", 2)
    reach_km: float = setting(5.0, "maximum width of a crowd", 0, 20_100)
    category: KeepsCategory = setting("any", "which venues share a crowd")

    @property
    def keeps_category(self) -> KeepsCategory:
        return self.category

    def crowds(self, places: Places, known: Bools | None) -> Candidates:
        """Return the crowd of each place."""
        return crowd_partition.find(places.lat, places.lon, places.kind(self.category), self.size, self.reach_km, known)
