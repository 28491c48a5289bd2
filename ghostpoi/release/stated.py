"""What a manifest states and the release itself shows: keys, settings, columns, disclosure, the bytes of the data.

A signature vouches for what cannot be computed again. Without one, it is refused.
"""

import io
from pathlib import Path
from typing import Any, get_args

from ghostpoi import __version__, formats
from ghostpoi.columns.classify import REASONS
from ghostpoi.data.checkins import DATE
from ghostpoi.draw.methods import METHODS
from ghostpoi.draw.publication import PRESETS, Protocol, described, publication
from ghostpoi.draw.whole_table import published_aggregates
from ghostpoi.errors import InputError
from ghostpoi.formats import CheckinFile, Rows, Source
from ghostpoi.formats.base import PARQUET
from ghostpoi.formats.source import SizeLimit
from ghostpoi.formats.text import BOM, first_line
from ghostpoi.release.manifest import NO_CATEGORY, data_source, with_groups
from ghostpoi.settings import override

COUNTS = {"rows", "substituted", "no_candidate", "kept_by_speed", "kept_by_method", "slowest_taken"}
KEYS: dict[str, set[str] | None] = {  # of the sections of a manifest; None: other checks read these
    "tool": {"name", "version"}, "preset": {"name", "sets", "changed"}, "method": None, "protocol": None,
    "settings": None,
    "columns": {"fields", "changed_with_the_venue", "kept", "why", "dropped", "kept_on_request"},
    "disclosure": {"category", "category_groups", "aggregates"},
    "identity": {"ids", "row_order"}, "series": {"number", "repeated"},
    "rows": {
        "in_sessions", "outside_sessions", "withheld", "hidden", "duplicates", "missing", "left_genuine", "drawn_own",
    },
    "rows.in_sessions": COUNTS, "rows.outside_sessions": COUNTS, "rows.missing": {"kept", "dropped"},
    "rows.hidden": {"venues", "rows", "borrowed", "withheld"},
    "rows.left_genuine": {"rows", "share"}, "rows.drawn_own": {"rows", "share"},
    "plausibility": {"substitution_rate", "category_match", "beyond_1km", "mean_km", "p95_km"},
    "speed": {"limit_kmh", "min_gap_s", "steps", "steps_over_limit"},
    "data": {"file", "format", "reading", "beside", "rows", "sha256", "parts"},
    "regions": {"count", "gap_km", "column", "most_venues", "most_rows"}, "audit": None,
}  # fmt: skip


def unknown_keys(manifest: dict[str, Any]) -> list[str]:
    """Return the keys that no release has: they could hold anything."""
    found = [name for name in manifest if name not in KEYS]
    for path, known in KEYS.items():
        section, _, inner = path.partition(".")
        holder = manifest.get(section)
        holder = holder.get(inner) if inner and isinstance(holder, dict) else holder
        if known is not None and isinstance(holder, dict):
            found += [f"{path}.{name}" for name in holder if name not in known]
    return sorted(found)


def complaints(manifest: dict[str, Any], file: CheckinFile | None, signed: bool) -> list[str]:
    """Return what a manifest states and the release does not show. `file`: its data; None if they are not read."""
    tool = manifest.get("tool")
    if not signed and tool != (ours := {"name": "ghostpoi", "version": __version__}):
        return [f"tool is {tool}, not {ours}; only the version that made an unsigned release can check it"]
    if manifest["method"] not in METHODS:
        return [] if signed else [f"the method {manifest['method']} is not installed, so its settings are not checked"]
    if manifest.get("protocol") not in get_args(Protocol):
        return [f"protocol is {manifest.get('protocol')}"]
    stated = manifest["settings"]
    if strange := [section for section, values in stated.items() if not isinstance(values, dict)]:
        return [f"settings.{strange[0]} is not a section"]
    try:
        assigned = [f"{section}.{key}={value}" for section, values in stated.items() for key, value in values.items()]
        settings = override(publication(manifest["method"]), assigned, "the manifest's")
    except InputError as e:
        return [e.text]
    found: dict[str, Any] = {"settings": settings.public()}
    if file is not None:
        has_category = bool(file.table.category_field)
        groups = with_groups(file.table, manifest).category_groups
        category = settings.keeps_category if has_category else NO_CATEGORY
        found |= {
            "data": {"rows": len(file.table) + len(file.kept)},
            "disclosure": {"category": category, "aggregates": published_aggregates(has_category, groups, settings)},
            "columns": _columns(manifest, file),
        }
        needs = set(file.table.category_ids.astype(str)) if settings.keeps_category == "group" else set()
        if (needs and not needs <= set(groups)) or (groups and not needs):
            return ["disclosure.category_groups are not those of the categories in the data"]
    if stated_preset := manifest.get("preset"):
        name, method = str(stated_preset.get("name")), manifest["method"]
        known = [described(settings, name, method, one)["preset"] for one in (True, False) if name in PRESETS]
        if stated_preset not in known:
            return [f"preset is {stated_preset}, which the settings are not"]
    sections = {name: {key: manifest[name].get(key) for key in values} for name, values in found.items()}
    sections["settings"] = stated
    wrong = [text for name in found for text in differences(found, sections, name)] + _doubtful(manifest, file)
    if (counted := _rows(manifest)) != (rows := manifest["data"]["rows"]):
        wrong.append(f"the counts of rows add up to {counted:,}, data.rows to {rows:,}")
    return wrong


def _rows(manifest: dict[str, Any]) -> int:
    """Return how many rows the data have by the counts of the manifest."""
    rows = manifest["rows"]
    counted = sum(rows[part].get("rows", 0) for part in ("in_sessions", "outside_sessions"))
    return int(counted - rows["withheld"] + rows.get("missing", {}).get("kept", 0))


def _columns(manifest: dict[str, Any], file: CheckinFile) -> dict[str, list[str]]:
    """Return which columns change and which are kept: every column of the data is one of these, a user or a time."""
    stated, mapping = manifest["columns"]["changed_with_the_venue"], manifest["columns"]["fields"]
    own = {mapping.get(field) for field in ("user", "time", DATE)}
    present = file.all_rows.columns
    return {
        "changed_with_the_venue": [name for name in stated if name in present and name not in own],
        "kept": [name for name in present if name not in stated and name not in own],
    }


def _doubtful(manifest: dict[str, Any], file: CheckinFile | None) -> list[str]:
    """Return the columns that were dropped but are there, or kept on request but are not."""
    if file is None:
        return []
    columns, present = manifest["columns"], set(file.all_rows.columns)
    beside = set(file.venues.rows.columns) if file.venues else set()
    there = [name for name in columns["dropped"] if name in present]
    gone = [name for name in columns.get("kept_on_request", []) if name not in {*columns["kept"], *beside}]
    odd = [name for name, why in columns.get("why", {}).items() if why not in REASONS or name not in columns["kept"]]
    return (
        [f"columns.why says of {name!r} what no release says" for name in odd]
        + [f"columns.dropped names {name!r}, which is there" for name in there]
        + [f"columns.kept_on_request names {name!r}, which is not kept" for name in gone]
    )


def differences(found: dict[str, Any], stated: dict[str, Any], key: str) -> list[str]:
    """Name the figures below a key that the manifest states differently."""
    one, two = found.get(key), stated.get(key)
    if isinstance(one, dict) and isinstance(two, dict):
        return [
            f"{key}.{text}"
            for name in sorted({*one, *two}, key=str)
            for text in differences(one, two, name)
        ]  # fmt: skip
    return [] if one == two else [f"{key} is {one}, {two} in the manifest"]


def spare_bytes(release: Path, manifest: dict[str, Any], limit: SizeLimit | None) -> str | None:
    """Return which data file holds bytes that its rows do not need, such as notes or blank lines, or None."""
    data = manifest["data"]
    for name in [f"{data['file']}/{part}" for part in data.get("parts", {})] or [data["file"]]:
        path = release / name
        source, content = data_source(release, manifest, limit).at(path), path.read_bytes()
        if content.startswith(PARQUET) or data["format"] in ("json", "geojson", "excel"):
            spare = _rewritten(source, content, manifest) != content
        else:
            start, end = content[: first_line(content)], content[len(content.rstrip(b"\r\n")) :]
            spare = start not in (b"", BOM) or end not in (b"", b"\n", b"\r\n")
        if spare:
            return f"{name} holds more than its rows, and no signature vouches for that"
    return None


def _rewritten(source: Source, content: bytes, manifest: dict[str, Any]) -> bytes:
    """Return what `protect` writes in place of a file."""
    if content.startswith(PARQUET):
        from ghostpoi.formats.parquet import read_rows  # pyarrow is slow to import

        rows: Rows = read_rows(source, content)
    else:
        rows = formats.read(source, manifest["columns"]["fields"], manifest["data"]["format"]).all_rows
    rows.without_metadata().write(memory := io.BytesIO())
    return memory.getvalue()
