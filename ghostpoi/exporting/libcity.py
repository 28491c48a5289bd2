"""LibCity (libcity.ai): atomic files, with users and venues as numbers."""

import json

from ghostpoi.exporting.base import ExportData, Visits
from ghostpoi.exporting.text import csv_text, iso, user_numbers

GEO = ("geo_id", "type", "coordinates", "venue_id", "venue_category_name")
USR = ("usr_id", "user_id")
DYNA = ("dyna_id", "type", "time", "entity_id", "location")
CONFIG = {
    "geo": {"including_types": ["Point"], "Point": {"venue_id": "other", "venue_category_name": "enum"}},
    "usr": {"properties": {"user_id": "other"}},
    "dyna": {"including_types": ["trajectory"], "trajectory": {"entity_id": "usr_id", "location": "geo_id"}},
    "info": {"distance_upper": 30.0},
}
USAGE = """Copy this folder to `raw_data/{name}` of LibCity, then:

    python run_model.py --task traj_loc_pred --model DeepMove --dataset {name}

`usr_id` and `geo_id` are numbers; `{name}.usr` and `{name}.geo` give the ids of the release. Times are UTC.
"""
SPLIT_USAGE = """
LibCity cuts and splits `{name}.dyna` itself, and tests on released rows. To test on clean ones, use the other files,
which have the same numbers: `train` shows released venues, `clean` the clean venues of the same rows; `valid` and
`test` are clean.
"""


class LibCity:
    """Atomic files of all rows; with clean data, also one .dyna file per part."""

    summary = "LibCity: NAME.geo, NAME.usr, NAME.dyna and config.json; with --private, a .dyna file per part"

    def files(self, data: ExportData) -> dict[str, str]:
        venues, name, number = data.venues, data.name, user_numbers(data)
        places = [f"[{lon},{lat}]" for lat, lon in zip(venues.lat.tolist(), venues.lon.tolist(), strict=True)]
        geo = zip(places, venues.id, venues.category, strict=True)
        found = {
            f"{name}.geo": csv_text(GEO, ((k - 1, "Point", *row) for k, row in enumerate(geo) if k)),
            f"{name}.usr": csv_text(USR, ((k, user) for user, k in number.items())),
            f"{name}.dyna": _dyna(data.released, number),
            "config.json": json.dumps(CONFIG, indent=2) + "\n",
        }
        return found | {f"{name}.{part}.dyna": _dyna(visits, number) for part, visits in data.parts.items()}

    def usage(self, data: ExportData) -> str:
        return (USAGE + (SPLIT_USAGE if data.parts else "")).format(name=data.name)


def _dyna(visits: Visits, number: dict[str, int]) -> str:
    rows = zip(iso(visits.time), visits.user, visits.venue.tolist(), strict=True)
    found = ((k, "trajectory", f"{time}Z", number[user], v - 1) for k, (time, user, v) in enumerate(rows))
    return csv_text(DYNA, found)
