"""Plain tables: CSV for scikit-mobility (scikit-mobility.github.io), Parquet for datasets (huggingface.co/docs)."""

import json

from ghostpoi.exports.base import ExportData, ExportVenues, Visits, csv_text, iso, session_of, usage_of

SKMOB_COLUMNS = ("uid", "datetime", "lat", "lng", "location_id", "category")


class ScikitMobility:
    """One CSV file of all rows; with clean data, also one per part."""

    summary = "scikit-mobility: NAME.csv for a TrajDataFrame; with --private, a file of sessions per part"

    def files(self, data: ExportData) -> dict[str, str]:
        name, venues = data.name, data.venues
        found = {f"{name}.csv": csv_text(SKMOB_COLUMNS, _rows(data.released, venues))}
        for part, visits in data.parts.items():
            rows = zip(session_of(visits), _rows(visits, venues), strict=True)
            found[f"{name}.{part}.csv"] = csv_text((*SKMOB_COLUMNS, "tid"), ((*row, tid) for tid, row in rows))
        return found

    def usage(self, data: ExportData) -> str:
        return usage_of("skmob", data)


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


class HuggingFace:
    """A Parquet file of all rows; with clean data, also one per part."""

    summary = "Hugging Face datasets: a folder for load_dataset; with --private, clean validation and test splits"

    def files(self, data: ExportData) -> dict[str, str | bytes]:
        found = {"released.parquet": _parquet(data.released, data.venues)}
        found |= {f"{part}.parquet": _parquet(v, data.venues, session_of(v)) for part, v in data.parts.items()}
        return {"README.md": _card(data)} | found

    def usage(self, data: ExportData) -> str:
        return usage_of("hf", data)


def _card(data: ExportData) -> str:
    configs = [
        {"config_name": name, "data_files": [{"split": s, "path": f"{file}.parquet"} for s, file in splits.items()]}
        for name, splits in (HF_SPLIT if data.parts else HF_RELEASED).items()
    ]
    card = {"pretty_name": data.name, "tags": ["check-ins", "human-mobility", "privacy"], "configs": configs}
    lines = (f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in card.items())  # JSON is YAML
    return f"---\n{''.join(lines)}---\n\n"


def _parquet(visits: Visits, venues: ExportVenues, session: list[int] | None = None) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

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
    out = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), out)
    return out.getvalue().to_pybytes()
