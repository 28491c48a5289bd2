"""A release as the report reads it: manifest, audit and data, read and checked once."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ghostpoi.data import formats
from ghostpoi.data.checkins import Checkins
from ghostpoi.data.formats import CheckinFile
from ghostpoi.errors import InputError
from ghostpoi.publish.manifest import MANIFEST, complaint_about, read_manifest
from ghostpoi.report.audit_view import AuditView
from ghostpoi.report.labels import method_label
from ghostpoi.report.templates import TEXTS

NEEDED: dict[Any, tuple[str, ...]] = {  # by type; beyond what read_manifest checks
    str: ("method", "protocol", "tool.name", "tool.version"),
    int | float: tuple(
        f"plausibility.{key}" for key in ("substitution_rate", "category_match", "beyond_1km", "mean_km", "p95_km")
    ),
    int: ("speed.steps", "speed.steps_over_limit"),
}


@dataclass(frozen=True, kw_only=True)
class ReleaseView:
    """One release whose data is what its manifest was written for."""

    folder: str  # its name, not its path
    manifest: dict[str, Any]
    audit: AuditView | None
    file: CheckinFile

    @property
    def table(self) -> Checkins:
        return self.file.table

    @property
    def method(self) -> str:
        """The method's name for readers."""
        return method_label(self.manifest["method"])

    @property
    def row_counts(self) -> dict[str, dict[str, int]]:
        """How many rows had which outcome, by group. The only reader of these keys of the manifest."""
        rows = self.manifest["rows"]
        return {"in sessions": rows["in_sessions"], "outside sessions": rows["outside_sessions"]}

    @property
    def outcomes(self) -> dict[str, str]:
        """The outcomes of rows by their key in the manifest."""
        withheld = {"no_candidate": "withheld: no candidate nearby"} if self.manifest["rows"]["withheld"] else {}
        return {**TEXTS["outcomes"], **withheld}


def open_release(folder: Path) -> ReleaseView:
    """Read a release; refuse one that is damaged or whose manifest lacks something."""
    manifest = read_manifest(folder)
    if complaint := complaint_about(folder, manifest):
        raise InputError(f"{folder} is damaged ({complaint}); make the release again with protect")
    for kind, path in ((kind, path) for kind, paths in NEEDED.items() for path in paths):
        value: Any = manifest
        for key in path.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if not isinstance(value, kind):
            raise InputError(
                f"{folder / MANIFEST} lacks {path}, which the report needs; make the release again with protect"
            )
    data = manifest["data"]
    file = formats.read(folder / data["file"], manifest["columns"]["fields"], data["format"])
    audit = AuditView.read(manifest, folder)
    return ReleaseView(folder=folder.resolve().name, manifest=manifest, audit=audit, file=file)
