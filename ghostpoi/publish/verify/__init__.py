"""Check a release against its manifest and, if given, against the file that it was made from."""

from pathlib import Path
from typing import Any

from ghostpoi.errors import InputError
from ghostpoi.formats.source import SizeLimit, Source
from ghostpoi.options import option
from ghostpoi.publish.manifest import hash_complaint, read_clean, read_data, read_manifest
from ghostpoi.publish.seal import parse_fingerprint
from ghostpoi.publish.verify.check import Check
from ghostpoi.publish.verify.folder import audit_belongs, nothing_private, signature
from ghostpoi.publish.verify.speed import counted_speed
from ghostpoi.publish.verify.users import order_check

__all__ = ["Check", "folder_checks", "verify"]


def verify(
    release: Path, against: Source | Path | None, mapping: dict[str, str], signed_by: str | None = None,
    private: Path | None = None, limit: SizeLimit | None = None,
) -> list[Check]:  # fmt: skip
    """Run all checks. If the data file does not match the manifest, its content is not checked.

    The private folder, by default RELEASE.private, undoes pseudonyms for the comparison with the clean file. A release
    of many regions is compared by `world.verify`. `limit`: of what is read.
    """
    if private is not None and against is None:
        raise InputError(
            f"{option('private')} is for a comparison with the clean file; add {option('against', 'FILE')}, or leave "
            "it out"
        )
    manifest = read_manifest(release)
    checks, complaint = folder_checks(release, manifest, signed_by)
    if complaint:
        return checks
    if "regions" in manifest:
        return [
            *checks,
            Check("speed", True, f"not checked: it is counted by region, which takes {option('against', 'FILE')}"),
        ]
    written = read_data(release, manifest, limit)
    checks.append(counted_speed(written.table, manifest, last=against is None))
    checks += order_check(written.table, manifest)
    if against is not None:
        from ghostpoi.publish.verify.against_clean import compare  # imports much that the other checks do without

        clean = read_clean(against, mapping, manifest)
        checks += compare(clean, written, manifest, private or Path(f"{release}.private"))
    return checks


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
