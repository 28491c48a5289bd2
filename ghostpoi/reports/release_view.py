"""A release as the report reads it: manifest, audit and data, read and checked once.

Another tool's release is a plain file. In place of a manifest it has what the file and its audit say.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ghostpoi import formats
from ghostpoi.data.checkins import Checkins
from ghostpoi.draw.methods import METHODS, AnyMethod
from ghostpoi.draw.whole_table import fast_steps
from ghostpoi.errors import InputError
from ghostpoi.files import file_hashes, joint_hash
from ghostpoi.formats import CheckinFile, Source
from ghostpoi.options import option
from ghostpoi.release.manifest import complaint_about, read_data, read_manifest, section_of, settings_of
from ghostpoi.reports.audit_view import AuditView
from ghostpoi.reports.texts import PER_USER, TEXTS, UTILITY, UtilityMeasure, share
from ghostpoi.settings import HideSettings, SpeedSettings

PLAUSIBILITY = ("substitution_rate", "beyond_1km", "mean_km", "p95_km")
LONGEST = 200  # characters of what the publisher says
NOT_ANONYMOUS = "This is not anonymisation."  # the title of a limit
Audits = dict[str, dict[str, Any]]  # by the SHA-256 of the release that each measured


@dataclass(frozen=True)
class About:
    """What only the publisher can say about a release; "" where nothing is said."""

    title: str = ""
    publisher: str = ""
    license: str = ""

    def __post_init__(self) -> None:
        for name in ("title", "publisher", "license"):
            text = getattr(self, name)
            if text and not (text.isprintable() and text.strip() and len(text) <= LONGEST):
                raise InputError(f"--{name} {text[:20]!r}: give one line of at most {LONGEST} characters")


NOTHING_SAID = About()


@dataclass(frozen=True, kw_only=True)
class ReleaseView:
    """One release whose data is what its manifest was written for."""

    folder: str  # its name, not its path; of another tool's release, the name of the file
    manifest: dict[str, Any]
    audit: AuditView | None
    file: CheckinFile

    @property
    def table(self) -> Checkins:
        return self.file.table

    @property
    def ours(self) -> bool:
        """Whether ghostpoi made it."""
        return "method" in self.manifest

    @property
    def method(self) -> str:
        name = self.manifest.get("method", self.folder)  # another tool's release goes by its file
        return METHODS[name].label if self.installed_method else name

    @property
    def installed_method(self) -> AnyMethod | None:
        return METHODS[self.manifest["method"]] if self.ours and self.manifest["method"] in METHODS else None

    @property
    def summary(self) -> str:
        return self.installed_method.summary if self.installed_method else ""

    @property
    def citations(self) -> dict[str, str]:
        """What a user of the release cites: ghostpoi, and the paper if it describes the method."""
        cited = {"The tool that made this release": TEXTS["citations"]["tool"]}
        if self.installed_method is not None and self.installed_method.in_paper:
            cited["The paper that describes the method"] = TEXTS["citations"]["paper"]
        return cited

    @property
    def plausibility(self) -> dict[str, float] | None:
        return self.manifest.get("plausibility")

    @property
    def withheld(self) -> int:
        return int(self.manifest["rows"]["withheld"]) if self.ours else 0

    @property
    def pseudonyms(self) -> dict[str, str] | None:
        """What to say about user ids that change with time; None if the release keeps the user ids of the file."""
        return TEXTS["pseudonyms"].get(settings_of(self.manifest).identity.pseudonyms if self.ours else "keep")

    @property
    def kind_of_times(self) -> str:
        """The setting of times; those of other tools are taken for those of the file."""
        return settings_of(self.manifest).identity.times if self.ours else "keep"

    @property
    def rotates_users(self) -> bool:
        """Whether a person has several user ids."""
        return self.ours and settings_of(self.manifest).rotates_users

    @property
    def limits(self) -> list[list[str]]:
        """What the release does not protect against: title and text."""
        new = {NOT_ANONYMOUS: self.pseudonyms["limit"]} if self.pseudonyms else {}
        texts = {title: new.get(title, text) for title, text in TEXTS["limits"]}
        return [[title, f"{self.times} {text}" if title == NOT_ANONYMOUS else text] for title, text in texts.items()]

    @property
    def keeps_times(self) -> bool:
        return self.kind_of_times == "keep"

    @property
    def times(self) -> str:
        return TEXTS["times"][self.kind_of_times]

    @property
    def identity(self) -> str:
        """What becomes of users and times, as sentences."""
        genuine = [name for name, kept in (("users", not self.pseudonyms), ("times", self.keeps_times)) if kept]
        users = self.pseudonyms["about"] if self.pseudonyms else ""
        kept = f"{' and '.join(genuine).capitalize()} are genuine." if genuine else ""
        return " ".join(filter(None, (users, kept, "" if self.keeps_times else self.times)))

    @property
    def same_category(self) -> bool:
        """Whether all substitutes have the category of the clean venue: those of hidden venues may be of any."""
        if self.plausibility:
            return self.plausibility["category_match"] == 1
        return settings_of(self.manifest).keeps_category == "exact" and not self.hides

    @property
    def hides(self) -> bool:
        """Whether there may be venues that the release never shows."""
        return settings_of(self.manifest).hide != HideSettings(homes=False)

    @property
    def genuine(self) -> str:
        """What never changes, and what becomes of times, as sentences."""
        never = {"users": not self.pseudonyms, "times": self.keeps_times, "categories": self.same_category}
        listed = " and ".join(", ".join(name for name in never if never[name]).rsplit(", ", 1)).capitalize()
        return " ".join([*([f"{listed} are genuine."] if listed else []), *([] if self.keeps_times else [self.times])])

    @property
    def disclosure(self) -> str:
        """What a substitute has in common with the clean venue, and which aggregates the draws publish."""
        found, texts = self.manifest["disclosure"], TEXTS["disclosure"]
        shown, category = "; ".join(found["aggregates"]), found["category"]
        parts = [texts.get(category, texts["any"])]
        if category in ("exact", "group") and self.hides and not self.same_category:
            parts.append(texts["hidden"])
        return " ".join([*parts, *([texts["aggregates"].format(shown)] if shown else [])])

    @property
    def utility_measures(self) -> list[UtilityMeasure]:
        """The measures of utility that mean something for this release: a pseudonym is no user."""
        shown = [u for u in UTILITY if self.table.category_field or not u.key.startswith("category")]
        return [u for u in shown if not (self.rotates_users and u.group in PER_USER)]

    @property
    def row_counts(self) -> dict[str, dict[str, int]]:
        """How many rows had which outcome, by group. The only reader of these keys of the manifest."""
        rows = self.manifest["rows"]
        return {"in sessions": rows["in_sessions"], "outside sessions": rows["outside_sessions"]}

    @property
    def own_sets(self) -> bool:
        return self.installed_method is not None and self.installed_method.own_sets

    @property
    def clean_rows(self) -> str:
        """How many released rows show their clean venue, and why."""
        left, own = (self.manifest["rows"].get(name) for name in ("left_genuine", "drawn_own"))
        if own is None:
            return (
                f"{left['rows']:,} of the {len(self.table):,} released rows are left genuine. {TEXTS['few_new_rows']}"
            )
        both = share((left["rows"] + own["rows"]) / max(1, len(self.table)), 1)
        because = TEXTS["left_genuine"]["own_sets" if self.own_sets else "other"]
        text = f"{both} of the released rows keep their clean venue: {share(left['share'], 1)} ({left['rows']:,} of "
        text += f"{len(self.table):,}) are left genuine" + (f", because {because}" if left["rows"] else "")
        if own["rows"]:
            text += (
                f"; {share(own['share'], 1)} ({own['rows']:,}) drew it from their set by chance, and nothing marks them"
            )
        return f"{text}."

    @property
    def outcomes(self) -> dict[str, str]:
        withheld = {"no_candidate": "withheld: no candidate nearby"} if self.withheld else {}
        return TEXTS["outcomes"] | (TEXTS["outcomes_of_own_sets"] if self.own_sets else {}) | withheld


def open_release(
    source: Source | Path, mapping: dict[str, str] | None = None, audits: Audits | None = None
) -> ReleaseView:  # fmt: skip
    """Read a release folder, or another tool's file with the columns of `mapping` and its audit.

    Refuse a release that is damaged or whose manifest lacks something.
    """
    source = Source.of(source)
    path = source.path
    if is_file(path):
        return _open_file(source, mapping or {}, audits or {})
    manifest = read_manifest(path)
    if complaint := complaint_about(path, manifest):
        raise InputError(f"{path} is damaged ({complaint}); make the release again with protect")
    file = read_data(path, manifest, source.limit)
    audit = AuditView.read(manifest, path)
    return ReleaseView(folder=path.resolve().name, manifest=manifest, audit=audit, file=file)


def is_file(path: Path) -> bool:
    """Return whether a release is another tool's file, and not a folder; refuse a path that is neither."""
    if not path.is_dir() and not path.is_file():
        raise InputError(f"{path} is neither a release folder nor a file; give what protect or another tool wrote")
    return path.is_file()


def read_audits(paths: Sequence[Path]) -> Audits:
    """Read what `audit --json` printed about releases of other tools."""
    audits: Audits = {}
    for path in paths:
        try:
            found = json.loads(path.read_text("utf-8"))
            digest = str(found["release_sha256"])
        except OSError as e:
            raise InputError(f"{option('audits', path)} cannot be read ({(e.strerror or str(e)).lower()})") from None
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InputError(
                f"{option('audits', path)} is not what ghostpoi audit --json prints; run the audit again"
            ) from None
        if digest in audits:
            twice = f"{option('audits', path)} measured the same file as an earlier one"
            raise InputError(f"{twice}; give one audit of each file")
        audits[digest] = found
    return audits


def _open_file(source: Source, mapping: dict[str, str], audits: Audits) -> ReleaseView:
    file, limits, path = formats.read(source, mapping), SpeedSettings(), source.path
    digest = joint_hash(file_hashes(path))
    manifest: dict[str, Any] = {
        "data": {"file": path.name, "format": file.format, "rows": len(file.table), "sha256": digest},
        "columns": {"fields": file.mapping, "changed_with_the_venue": []},
        "speed": fast_steps(file.table, limits.limit_kmh, limits.min_gap_s),
    }
    if found := audits.get(digest):
        manifest |= {"audit": found, "plausibility": found.get("plausibility")}
        needed = (*PLAUSIBILITY, *(["category_match"] if file.table.category_field else []))
        stated = section_of(manifest, "plausibility") or {}
        if lacking := [key for key in needed if not isinstance(stated.get(key), int | float)]:
            raise InputError(
                f"the audit of {path} lacks plausibility.{lacking[0]}, which the report needs; run ghostpoi audit again"
            )
    audit = AuditView.read(manifest, path)
    return ReleaseView(folder=path.resolve().name, manifest=manifest, audit=audit, file=file)
