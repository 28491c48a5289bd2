"""scikit-mobility (scikit-mobility.github.io): CSV with the column names of its TrajDataFrame."""

from ghostpoi.exporting.base import ExportData, ExportVenues, Visits
from ghostpoi.exporting.text import csv_text, iso, session_of

COLUMNS = ("uid", "datetime", "lat", "lng", "location_id", "category")
USAGE = """In the folder above this one:

    import pandas, skmob
    ids = {{"uid": str, "location_id": str, "category": str}}
    rows = pandas.read_csv("{name}/{name}.csv", dtype=ids, keep_default_na=False)
    trajectories = skmob.TrajDataFrame(rows)

Times are UTC.
"""
SPLIT_USAGE = """
`train`, `valid`, `test` and `clean` hold sessions, numbered by `tid`. `train` shows released venues; `clean` shows the
clean venues of the same rows; `valid` and `test` are clean.
"""


class ScikitMobility:
    """One CSV file of all rows; with clean data, also one per part."""

    summary = "scikit-mobility: NAME.csv for a TrajDataFrame; with --private, a file of sessions per part"

    def files(self, data: ExportData) -> dict[str, str]:
        name, venues = data.name, data.venues
        found = {f"{name}.csv": csv_text(COLUMNS, _rows(data.released, venues))}
        for part, visits in data.parts.items():
            rows = zip(session_of(visits), _rows(visits, venues), strict=True)
            found[f"{name}.{part}.csv"] = csv_text((*COLUMNS, "tid"), ((*row, tid) for tid, row in rows))
        return found

    def usage(self, data: ExportData) -> str:
        return USAGE.format(name=data.name) + (SPLIT_USAGE if data.parts else "")


def _rows(visits: Visits, venues: ExportVenues) -> list[tuple[str, str, float, float, str, str]]:
    lat, lon = venues.lat.tolist(), venues.lon.tolist()
    rows = zip(visits.user, iso(visits.time), visits.venue.tolist(), strict=True)
    return [(u, t.replace("T", " "), lat[v], lon[v], venues.id[v], venues.category[v]) for u, t, v in rows]
