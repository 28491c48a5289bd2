"""The manifest, which describes a release. Its presence means that the release is complete."""

import hashlib
import json
from pathlib import Path
from typing import Any

from ghostpoi.errors import InputError
from ghostpoi.publish.methods import METHODS
from ghostpoi.publish.publication_settings import Publication, publication
from ghostpoi.settings import override

MANIFEST = "manifest.json"
PAGES = ("card.md", "croissant.json", "report.html")
REQUIRED: dict[str, dict[str, Any]] = {  # type of each key, by section
    "data": {"file": str, "format": str, "sha256": str},
    "columns": {"fields": dict, "changed_with_the_venue": list},
    "rows": {"in_sessions": dict, "outside_sessions": dict, "withheld": int},
    "settings": {"filters": dict, "candidates": dict, "speed": dict},
    "speed": {"limit_kmh": (int, float), "min_gap_s": (int, float)},
}
PRIVATE_MARK = "ghostpoi-private"  # text in every page that shows clean data


def read_manifest(release: Path) -> dict[str, Any]:
    """Read the manifest of a complete release and check its shape."""
    path = release / MANIFEST
    if not release.is_dir():
        raise InputError(f"{release} is not a folder; give the folder that protect wrote")
    if not path.is_file():
        raise InputError(f"{release} has no {MANIFEST}, so it is not a complete release; make it again with protect")
    try:
        manifest: dict[str, Any] = json.loads(path.read_text("utf-8"))
        for section, key, kind in ((s, key, kind) for s, keys in REQUIRED.items() for key, kind in keys.items()):
            if not isinstance(manifest[section][key], kind):
                raise ValueError(f"{section}.{key} has the wrong type")
        if Path(manifest["data"]["file"]).name != manifest["data"]["file"]:
            raise ValueError("data.file is not a plain file name")
    except OSError as e:
        raise InputError(f"{path} cannot be read ({(e.strerror or str(e)).lower()}); change its permissions") from None
    except (ValueError, KeyError, TypeError, RecursionError) as e:
        raise InputError(f"{path} is not a manifest of ghostpoi ({e}); make the release again with protect") from None
    return manifest


def hash_complaint(release: Path, manifest: dict[str, Any]) -> str | None:
    """Return how the data file differs from the manifest, or None."""
    data = release / manifest["data"]["file"]
    if not data.is_file():
        return f"{data.name} is missing"
    if hashlib.sha256(data.read_bytes()).hexdigest() != manifest["data"]["sha256"]:
        return f"the SHA-256 of {data.name} differs from the manifest"
    return None


def release_identity(manifest: dict[str, Any]) -> dict[str, str]:
    """Return what an audit belongs to: the hash of the released data and that of method, protocol and settings."""
    settings = {key: manifest.get(key) for key in ("method", "protocol", "settings")}
    canonical = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    return {"data_sha256": manifest["data"]["sha256"], "settings_sha256": digest}


def settings_of(manifest: dict[str, Any]) -> Publication:
    """Return the settings that decide sessions and candidate sets. A method that is not installed counts as random."""
    name = manifest.get("method")
    settings = publication(name if isinstance(name, str) and name in METHODS else "random")
    for section in ("filters", "candidates", "speed", "method"):
        values = manifest["settings"].get(section, {}).items()
        settings = override(settings, [f"{section}.{key}={value}" for key, value in values], "the manifest's")
    return settings
