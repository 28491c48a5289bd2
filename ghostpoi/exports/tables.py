"""Tables: CSV for scikit-mobility (scikit-mobility.github.io), Parquet for datasets (huggingface.co/docs), and maps."""

import json
from typing import TYPE_CHECKING

import numpy as np

from ghostpoi.exports.base import Described, ExportData, ExportVenues, Visits, csv_text, iso, session_of

if TYPE_CHECKING:  # slow to import
    import pyarrow as pa

SKMOB_COLUMNS = ("uid", "datetime", "lat", "lng", "location_id", "category")


class ScikitMobility(Described):
    """One CSV file of all rows; with clean data, also one per part."""

    summary = "scikit-mobility: NAME.csv for a TrajDataFrame; with --private, a file of sessions per part"

    def files(self, data: ExportData) -> dict[str, str]:
        name, venues = data.name, data.venues
        found = {f"{name}.csv": csv_text(SKMOB_COLUMNS, _rows(data.released, venues))}
        for part, visits in data.parts.items():
            rows = zip(session_of(visits), _rows(visits, venues), strict=True)
            found[f"{name}.{part}.csv"] = csv_text((*SKMOB_COLUMNS, "tid"), ((*row, tid) for tid, row in rows))
        return found


def _rows(visits: Visits, venues: ExportVenues) -> list[tuple[str, str, float, float, str, str]]:
    lat, lon = venues.lat.tolist(), venues.lon.tolist()
    rows = zip(visits.user, iso(visits.time), visits.venue.tolist(), strict=True)
    return [(u, t.replace("T", " "), lat[v], lon[v], venues.id[v], venues.category[v]) for u, t, v in rows]


HF_RELEASED = {"default": {"train": "released"}}
HF_SPLIT = {
    "default": {"train": "train", "validation": "valid", "test": "test"},
    "clean": {"train": "clean", "validation": "valid", "test": "test"},
    "released": {"train": "released"},
}


class HuggingFace(Described):
    """A Parquet file of all rows; with clean data, also one per part."""

    summary = "Hugging Face datasets: a folder for load_dataset; with --private, clean validation and test splits"

    def files(self, data: ExportData) -> dict[str, str | bytes]:
        found = {"released.parquet": _parquet(data.released, data.venues)}
        found |= {f"{part}.parquet": _parquet(v, data.venues, session_of(v)) for part, v in data.parts.items()}
        return {"README.md": _card(data)} | found


def _card(data: ExportData) -> str:
    configs = [
        {"config_name": name, "data_files": [{"split": s, "path": f"{file}.parquet"} for s, file in splits.items()]}
        for name, splits in (HF_SPLIT if data.parts else HF_RELEASED).items()
    ]
    card = {"pretty_name": data.name, "tags": ["check-ins", "human-mobility", "privacy"], "configs": configs}
    lines = (f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in card.items())  # JSON is YAML
    return f"---\n{''.join(lines)}---\n\n"


def _table(visits: Visits, venues: ExportVenues, session: list[int] | None = None) -> "pa.Table":
    import pyarrow as pa

    at = visits.venue.tolist()
    columns = {
        "user_id": pa.array(visits.user.tolist(), pa.string()),
        "time": pa.array(visits.time, pa.timestamp("s", "UTC")),
        "venue_id": pa.array([venues.id[v] for v in at], pa.string()),
        "category": pa.array([venues.category[v] for v in at], pa.string()),
        "latitude": pa.array(venues.lat[visits.venue]),
        "longitude": pa.array(venues.lon[visits.venue]),
    }
    if session is not None:
        columns["session"] = pa.array(session, pa.int32())
    return pa.table(columns)


def _parquet(visits: Visits, venues: ExportVenues, session: list[int] | None = None) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(_table(visits, venues, session), out := pa.BufferOutputStream())
    return out.getvalue().to_pybytes()


class GeoJson(Described):
    """A collection of points of all rows; with clean data, also one per part."""

    summary = "GeoJSON: NAME.geojson, a point per row; with --private, a file of sessions per part"

    def files(self, data: ExportData) -> dict[str, str]:
        found = {f"{data.name}.geojson": _features(_table(data.released, data.venues))}
        for part, visits in data.parts.items():
            found[f"{data.name}.{part}.geojson"] = _features(_table(visits, data.venues, session_of(visits)))
        return found


def _features(table: "pa.Table") -> str:
    features = []
    for row in table.to_pylist():
        point = {"type": "Point", "coordinates": [row.pop("longitude"), row.pop("latitude")]}
        said = row | {"time": f"{row['time']:%Y-%m-%dT%H:%M:%SZ}"}
        features.append(json.dumps({"type": "Feature", "geometry": point, "properties": said}, ensure_ascii=False))
    return '{"type": "FeatureCollection", "features": [\n' + ",\n".join(features) + "\n]}\n"


class GeoPackage(Described):
    """A layer of all rows and one of venues; with clean data, also one per part."""

    summary = "GeoPackage: NAME.gpkg with layers of check-ins and venues, for QGIS; with --private, a layer per part"

    def files(self, data: ExportData) -> dict[str, bytes]:
        import pyarrow as pa

        from ghostpoi.formats.geometry import written

        venues = data.venues
        count = np.bincount(data.released.venue, minlength=len(venues.id))
        shown = np.flatnonzero(count)
        own = pa.table({
            "venue_id": [venues.id[v] for v in shown], "category": [venues.category[v] for v in shown],
            "checkins": count[shown], "latitude": venues.lat[shown], "longitude": venues.lon[shown],
        })  # fmt: skip
        layers = {"checkins": _table(data.released, venues), "venues": own}
        layers |= {part: _table(visits, venues, session_of(visits)) for part, visits in data.parts.items()}
        return {f"{data.name}.gpkg": written({name: (_with_points(table), "geom") for name, table in layers.items()})}


def _with_points(table: "pa.Table") -> "pa.Table":
    """Return a table with a column of points in place of degrees."""
    import pyarrow as pa

    from ghostpoi.formats.geometry import wkb_points

    lon, lat = (table.column(name).to_numpy() for name in ("longitude", "latitude"))
    points = pa.array(wkb_points(lon, lat), pa.binary())
    return table.drop_columns(["latitude", "longitude"]).append_column("geom", points)
