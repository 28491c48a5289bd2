"""The manifest, which describes a release. Its presence means that the release is complete."""

import hashlib
import json
from pathlib import Path
from typing import Any

from ghostpoi.errors import InputError
from ghostpoi.files import remove_partial, replacing
from ghostpoi.publish.methods import METHODS
from ghostpoi.publish.publication_settings import Publication, publication
from ghostpoi.publish.seal import SIGNATURE, Seal, fingerprint, has_key, read_seal, sign
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
PRIVATE_MARK = "ghostpoi-private"  # class of the body of every page that shows clean data


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


def seal_of(release: Path) -> Seal:
    """Check the signature of a release's manifest."""
    return read_seal(release / SIGNATURE, (release / MANIFEST).read_bytes())


def complaint_about(release: Path, manifest: dict[str, Any]) -> str | None:
    """Return why a release is not what its publisher made, as far as its hash and its signature tell, or None."""
    return hash_complaint(release, manifest) or seal_of(release).complaint


def store_manifest(release: Path, manifest: dict[str, Any], private: Path | None = None) -> None:
    """Write the manifest and its signature.

    The key is that of the private folder, by default RELEASE.private. Without the key, or if the manifest there is
    unsigned, the new one is unsigned. A manifest that was changed after it was signed is never signed again.
    """
    private = private or Path(f"{release}.private")
    text = (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode()
    path, signature, old = release / MANIFEST, release / SIGNATURE, ""
    signs = has_key(private)
    remove_partial(release)
    if path.exists():
        seal = seal_of(release)
        if seal.complaint:
            raise InputError(f"{release}: {seal.complaint}; make the release again with protect")
        signs = signs and seal.signer == fingerprint(private)
        old = sign(private, path.read_bytes()) if signs else ""
    if not signs:
        signature.unlink(missing_ok=True)
        _write(path, text)
        return
    # At any moment one of the lines signs the manifest that is there.
    line = sign(private, text)
    _write(signature, (old + line).encode())
    _write(path, text)
    if old:
        _write(signature, line.encode())


def _write(path: Path, content: bytes) -> None:
    with replacing(path) as out:
        out.write(content)


def release_identity(manifest: dict[str, Any]) -> dict[str, str]:
    """Return hashes of the data and of the settings, by which figures name the release that they belong to."""
    settings = {key: manifest.get(key) for key in ("settings", "method", "protocol")}
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"))
    return {
        "data_sha256": manifest["data"]["sha256"],
        "settings_sha256": hashlib.sha256(text.encode()).hexdigest(),
    }


def settings_of(manifest: dict[str, Any]) -> Publication:
    """Return the settings that decide sessions and candidate sets. A method that is not installed counts as random."""
    name = manifest.get("method")
    settings = publication(name if isinstance(name, str) and name in METHODS else "random")
    for section in ("filters", "candidates", "speed", "method"):
        values = manifest["settings"].get(section, {}).items()
        settings = override(settings, [f"{section}.{key}={value}" for key, value in values], "the manifest's")
    return settings
