"""Checks of a release: of its folder, and of its rows against the clean ones."""

from pathlib import Path
from typing import Any

from ghostpoi.publish.manifest import hash_complaint
from ghostpoi.publish.seal import parse_fingerprint
from ghostpoi.publish.verify.check import Check
from ghostpoi.publish.verify.folder import audit_belongs, nothing_private, signature

__all__ = ["Check", "folder_checks"]


def folder_checks(release: Path, manifest: dict[str, Any], signed_by: str | None) -> tuple[list[Check], str | None]:
    """Check the folder and the hashes of the data; also return what is wrong with the data, or None."""
    demanded = None if signed_by is None else parse_fingerprint(signed_by)
    complaint = hash_complaint(release, manifest)
    matches = f"SHA-256 {manifest['data']['sha256'][:16]}… matches the manifest"
    checks = [
        signature(release, demanded),
        Check("data file", complaint is None, complaint or matches),
        nothing_private(release, manifest),
        *audit_belongs(manifest),
    ]
    return checks, complaint
