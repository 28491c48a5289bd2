"""Hugging Face datasets (huggingface.co/docs/datasets): Parquet files and a card that names the splits."""

import json

from ghostpoi.exporting.base import ExportData, ExportVenues, Visits
from ghostpoi.exporting.text import session_of

RELEASED = {"default": {"train": "released"}}
SPLIT = {
    "default": {"train": "train", "validation": "valid", "test": "test"},
    "clean": {"train": "clean", "validation": "valid", "test": "test"},
    "released": {"train": "released"},
}
USAGE = """In the folder above this one:

    from datasets import load_dataset
    rows = load_dataset("./{name}")

"""
PUBLIC_USAGE = """The split `train` holds all released rows.
"""
SPLIT_USAGE = """`train` shows released venues; `validation` and `test` are clean. `load_dataset("./{name}", "clean")`
shows the clean venues of the same training rows, and `"released"` all released rows.

`load_dataset` copies what it reads, clean rows included, to its cache: choose the place with `cache_dir`, and delete
it.
"""


class HuggingFace:
    """A Parquet file of all rows; with clean data, also one per part."""

    summary = "Hugging Face datasets: a folder for load_dataset; with --private, clean validation and test splits"

    def files(self, data: ExportData) -> dict[str, str | bytes]:
        found = {"released.parquet": _parquet(data.released, data.venues)}
        found |= {f"{part}.parquet": _parquet(v, data.venues, session_of(v)) for part, v in data.parts.items()}
        return {"README.md": _card(data)} | found

    def usage(self, data: ExportData) -> str:
        return (USAGE + (SPLIT_USAGE if data.parts else PUBLIC_USAGE)).format(name=data.name)


def _card(data: ExportData) -> str:
    configs = [
        {"config_name": name, "data_files": [{"split": s, "path": f"{file}.parquet"} for s, file in splits.items()]}
        for name, splits in (SPLIT if data.parts else RELEASED).items()
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
    written: bytes = out.getvalue().to_pybytes()
    return written
