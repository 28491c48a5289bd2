"""Tables: CSV for scikit-mobility (scikit-mobility.github.io), Parquet for datasets (huggingface.co/docs), and maps."""

import io
import json

import numpy as np
import polars as pl

from ghostpoi.exports.base import Described, ExportData, csv_text

COLUMNS = ("user_id", "time", "venue_id", "category", "latitude", "longitude")
SKMOB = {"user_id": "uid", "time": "datetime", "latitude": "lat", "longitude": "lng", "venue_id": "location_id",
         "category": "category", "session": "tid"}  # fmt: skip
OLDEST = pl.CompatLevel.oldest()  # GDAL cannot read the newest text type


def _tables(data: ExportData) -> dict[str, pl.DataFrame]:
    """Return the released rows, under no name, and those of each part, with their sessions."""
    parts = {part: data.rows(visits).select(*COLUMNS, "session") for part, visits in data.parts.items()}
    return {"": data.rows(data.released).select(COLUMNS)} | parts


class ScikitMobility(Described):
    """One CSV file of all rows; with clean data, also one per part."""

    summary = "scikit-mobility: NAME.csv for a TrajDataFrame; with --private, a file of sessions per part"

    def files(self, data: ExportData) -> dict[str, str]:
        found = {}
        for part, table in _tables(data).items():
            table = table.with_columns(pl.col("time").dt.strftime("%Y-%m-%d %H:%M:%S"))
            table = table.select(pl.col(name).alias(theirs) for name, theirs in SKMOB.items() if name in table.columns)
            found[".".join(filter(None, (data.name, part, "csv")))] = csv_text(table.columns, table.iter_rows())
        return found


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
        found: dict[str, str | bytes] = {"README.md": _card(data)}
        for part, table in _tables(data).items():
            table.write_parquet(out := io.BytesIO())
            found[f"{part or 'released'}.parquet"] = out.getvalue()
        return found


def _card(data: ExportData) -> str:
    configs = [
        {"config_name": name, "data_files": [{"split": s, "path": f"{file}.parquet"} for s, file in splits.items()]}
        for name, splits in (HF_SPLIT if data.parts else HF_RELEASED).items()
    ]
    card = {"pretty_name": data.name, "tags": ["check-ins", "human-mobility", "privacy"], "configs": configs}
    lines = (f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in card.items())  # JSON is YAML
    return f"---\n{''.join(lines)}---\n\n"


class GeoJson(Described):
    """A collection of points of all rows; with clean data, also one per part."""

    summary = "GeoJSON: NAME.geojson, a point per row; with --private, a file of sessions per part"

    def files(self, data: ExportData) -> dict[str, str]:
        return {
            ".".join(filter(None, (data.name, part, "geojson"))): _features(table)
            for part, table in _tables(data).items()
        }


def _features(table: pl.DataFrame) -> str:
    features = []
    for row in table.iter_rows(named=True):
        point = {"type": "Point", "coordinates": [row.pop("longitude"), row.pop("latitude")]}
        said = row | {"time": f"{row['time']:%Y-%m-%dT%H:%M:%SZ}"}
        features.append(json.dumps({"type": "Feature", "geometry": point, "properties": said}, ensure_ascii=False))
    return '{"type": "FeatureCollection", "features": [\n' + ",\n".join(features) + "\n]}\n"


class GeoPackage(Described):
    """A layer of all rows and one of venues; with clean data, also one per part."""

    summary = "GeoPackage: NAME.gpkg with layers of check-ins and venues, for QGIS; with --private, a layer per part"

    def files(self, data: ExportData) -> dict[str, bytes]:
        from ghostpoi.formats.geometry import wkb_points, written

        venues, layers = data.venues, _tables(data)
        count = np.bincount(data.released.venue, minlength=len(venues.id))
        shown = np.flatnonzero(count)
        layers = {"checkins": layers.pop(""), "venues": pl.DataFrame({
            "venue_id": [venues.id[v] for v in shown], "category": [venues.category[v] for v in shown],
            "checkins": count[shown], "latitude": venues.lat[shown], "longitude": venues.lon[shown],
        })} | layers  # fmt: skip
        for name, table in layers.items():
            points = wkb_points(table["longitude"].to_numpy(), table["latitude"].to_numpy())
            layers[name] = table.drop("latitude", "longitude").with_columns(geom=pl.Series(points, dtype=pl.Binary))
        return {f"{data.name}.gpkg": written({n: (t.to_arrow(compat_level=OLDEST), "geom") for n, t in layers.items()})}
