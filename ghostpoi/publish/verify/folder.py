"""Checks of the release folder: who signed it, what is in it, and which release its audit belongs to."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from ghostpoi.options import option
from ghostpoi.publish.manifest import MANIFEST, PAGES, PRIVATE_MARK, release_identity, seal_of
from ghostpoi.publish.seal import SIGNATURE
from ghostpoi.publish.staging import leftovers
from ghostpoi.publish.verify.check import Check

PUBLIC_KEYS = {
    "tool", "method", "protocol", "settings", "columns", "disclosure", "identity", "rows", "plausibility", "speed",
    "data", "audit", "series", "regions",
}  # fmt: skip
PRIVATE_KEYS = ("seed", "pairs", "checkpoint", "private")
PRIVATE_LINE = re.compile(rf"^[^\w\n]*({'|'.join(PRIVATE_KEYS)})[^\w\n]*[:=]", re.MULTILINE | re.IGNORECASE)
PRIVATE_COMMENT = re.compile(rf"^<!-- {PRIVATE_MARK} -->$", re.MULTILINE)
UNSIGNED = "unsigned, so anyone could have changed the figures; compare them with "


def signature(release: Path, demanded: str | None) -> Check:
    """Check the signature of the manifest; `demanded` is the fingerprint of the key that must have made it."""
    seal = seal_of(release)
    detail = seal.complaint or (f"signed by key {seal.signer}" if seal.signer else UNSIGNED + option("against", "FILE"))
    if seal.complaint or demanded in (None, seal.signer):
        return Check("signature", seal.complaint is None, detail)
    return Check("signature", False, f"{detail.split(',')[0]}, not signed by key {demanded}")


def audit_belongs(manifest: dict[str, Any]) -> list[Check]:
    """Check that the audit in a manifest, if any, is of this data and these settings."""
    audit = manifest.get("audit")
    if audit is None:
        return []
    same = isinstance(audit, dict) and audit.get("of") == release_identity(manifest)
    fine, wrong = "made for this data and these settings", "made for other data or settings; run audit again"
    return [Check("audit", same, fine if same else wrong)]


def nothing_private(release: Path, manifest: dict[str, Any]) -> Check:
    """Allow only known files, public manifest keys, and pages without private keys or the private-page marker."""
    data = manifest["data"]
    parts = [Path(data["file"], name) for name in data.get("parts", {})]
    folders = {str(folder) for part in parts for folder in part.parents} - {"."}
    allowed = {MANIFEST, SIGNATURE, *PAGES, data["file"], *data.get("beside", {}), *map(str, parts), *folders}
    names = (str(path.relative_to(release)) for path in release.rglob("*"))
    unknown = sorted(name for name in names if name not in allowed)
    keys = sorted(set(manifest) - PUBLIC_KEYS) + sorted(_private_keys(manifest))
    inside = [f"{page} with {content}" for page in PAGES for content in _private_content(release / page)]
    beside = [f"{path.name} next to the release" for path in leftovers(release.resolve())]
    if found := unknown + keys + inside + beside:
        return Check("nothing private", False, f"found {', '.join(found)}; remove it before you publish the release")
    return Check("nothing private", True, "only the data, the manifest and public pages")


def _private_content(page: Path) -> list[str]:
    """Detect private keys and the private-page marker in a public page. It cannot judge prose."""
    if not page.is_symlink() and not page.exists():
        return []
    if page.is_symlink() or not page.is_file():
        return ["no content of its own"]  # a link may point to the private folder
    try:
        text = page.read_text("utf-8")
        keys = _private_keys(json.loads(text)) if page.suffix == ".json" else set()
    except (OSError, ValueError, RecursionError):
        return ["content that cannot be read"]
    marked = page.suffix == ".html" and _Body.is_private(text)
    if page.suffix == ".md":
        keys = {key.lower() for key in PRIVATE_LINE.findall(text)}
        marked = bool(PRIVATE_COMMENT.search(text))
    return sorted(keys) + ["clean data"] * marked


class _Body(HTMLParser):
    """Find the body of a page. The marker is its class: the same text elsewhere may be a name from the data."""

    private = False

    @staticmethod
    def is_private(page: str) -> bool:
        parser = _Body()
        parser.feed(page)
        return parser.private

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "body":
            self.private |= any(name == "class" and PRIVATE_MARK in (value or "").split() for name, value in attrs)


def _private_keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {k for k in value if k in PRIVATE_KEYS}.union(*map(_private_keys, value.values()))
    return set().union(*map(_private_keys, value)) if isinstance(value, list) else set()
