"""Check a release against its manifest and, if given, against the file that it was made from."""

from pathlib import Path

from ghostpoi.errors import InputError
from ghostpoi.publish.manifest import hash_complaint, read_clean, read_data, read_manifest
from ghostpoi.publish.seal import parse_fingerprint
from ghostpoi.publish.verify.against_clean import compare
from ghostpoi.publish.verify.check import Check
from ghostpoi.publish.verify.folder import audit_belongs, nothing_private, signature
from ghostpoi.publish.verify.speed import counted_speed
from ghostpoi.publish.verify.users import order_check

__all__ = ["Check", "verify"]


def verify(
    release: Path, against: Path | None, mapping: dict[str, str], signed_by: str | None = None,
    private: Path | None = None,
) -> list[Check]:  # fmt: skip
    """Run all checks. If the data file does not match the manifest, its content is not checked.

    The private folder, by default RELEASE.private, undoes pseudonyms for the comparison with the clean file.
    """
    if private is not None and against is None:
        raise InputError("--private is for a comparison with the clean file; add --against FILE, or leave it out")
    demanded = None if signed_by is None else parse_fingerprint(signed_by)
    manifest = read_manifest(release)
    complaint = hash_complaint(release, manifest)
    matches = f"SHA-256 {manifest['data']['sha256'][:16]}… matches the manifest"
    checks = [
        signature(release, demanded),
        Check("data file", complaint is None, complaint or matches),
        nothing_private(release, manifest),
        *audit_belongs(manifest),
    ]
    if complaint:
        return checks
    written = read_data(release, manifest)
    checks.append(counted_speed(written.table, manifest, last=against is None))
    checks += order_check(written.table, manifest)
    if against is not None:
        clean = read_clean(against, mapping, manifest)
        checks += compare(clean, written, manifest, private or Path(f"{release}.private"))
    return checks
