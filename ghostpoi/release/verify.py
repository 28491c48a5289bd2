"""Check a release against its manifest and, if given, against the file that it was made from.

The release itself shows some of what the manifest states: keys, settings, columns, disclosure, the bytes of the data. A
signature vouches for what cannot be computed again. Without one, it is refused.
"""

import io
import json
import re
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, get_args

import numpy as np

from ghostpoi import __version__, formats
from ghostpoi.columns.classify import REASONS
from ghostpoi.data.checkins import DATE, Checkins, Longs
from ghostpoi.data.places import hidden_venues
from ghostpoi.data.pseudonyms import DAY_S
from ghostpoi.draw.methods import METHODS
from ghostpoi.draw.publication import PRESETS, Protocol, Publication, described, publication
from ghostpoi.draw.whole_table import published_aggregates
from ghostpoi.errors import InputError
from ghostpoi.formats import CheckinFile
from ghostpoi.formats.content import PARQUET
from ghostpoi.formats.source import SizeLimit
from ghostpoi.formats.text import BOM, first_line
from ghostpoi.options import option
from ghostpoi.release import manifest as manifests
from ghostpoi.release.identity import RESOLUTION_S, PrivateMap, numbers, released_order, times_agree
from ghostpoi.release.manifest import PAGES, PRIVATE_MARK, data_source, seal_of, settings_of
from ghostpoi.release.private_folder import leftovers
from ghostpoi.settings import override


@dataclass(frozen=True)
class Check:
    """The result of one check."""

    name: str
    passed: bool
    detail: str


PRIVATE_KEYS = ("seed", "pairs", "checkpoint", "private")
PRIVATE_LINE = re.compile(rf"^[^\w\n]*({'|'.join(PRIVATE_KEYS)})[^\w\n]*[:=]", re.MULTILINE | re.IGNORECASE)
PRIVATE_COMMENT = re.compile(rf"^<!-- {PRIVATE_MARK} -->$", re.MULTILINE)
UNSIGNED = "unsigned, so anyone could have changed the figures; compare them with "


def folder_checks(
    release: Path, manifest: dict[str, Any], signed_by: str | None, limit: SizeLimit | None
) -> tuple[list[Check], str | None]:  # fmt: skip
    """Check the folder and the hashes of the data; also return what is wrong with the data, or None."""
    seal, demanded = seal_of(release), None if signed_by is None else manifests.parse_fingerprint(signed_by)
    signed = seal.complaint or (f"signed by key {seal.signer}" if seal.signer else UNSIGNED + option("against", "FILE"))
    if other := not seal.complaint and demanded not in (None, seal.signer):
        signed = f"{signed.split(',')[0]}, not signed by key {demanded}"
    signature = Check("signature", not (seal.complaint or other), signed)
    complaint = manifests.hash_complaint(release, manifest)
    if complaint is None and not seal.signer:
        complaint = spare_bytes(release, manifest, limit)
    matches = f"SHA-256 {manifest['data']['sha256'][:16]}… matches the manifest"
    checks = [signature, Check("data file", complaint is None, complaint or matches)]
    checks.append(nothing_private(release, manifest))
    if (audit := manifest.get("audit")) is not None:
        same = isinstance(audit, dict) and audit.get("of") == manifests.release_identity(manifest)
        fine, wrong = "made for this data and these settings", "made for other data or settings; run audit again"
        checks.append(Check("audit", same, fine if same else wrong))
    return checks, complaint


def nothing_private(release: Path, manifest: dict[str, Any]) -> Check:
    """Allow only known files, public manifest keys, and pages without private keys or the private-page marker."""
    data = manifest["data"]
    parts = [Path(data["file"], name) for name in data.get("parts", {})]
    folders = {str(folder) for part in parts for folder in part.parents} - {"."}
    own = {manifests.MANIFEST, manifests.SIGNATURE, *PAGES, data["file"], *data.get("beside", {})}
    names = {str(path.relative_to(release)) for path in release.rglob("*")}
    unknown = sorted(names - own - folders - {*map(str, parts)})
    keys = ["a link in place of the folder"] * release.is_symlink() + manifests.unknown_keys(manifest)
    keys += sorted(_private_keys(manifest))
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
    (body := _Body()).feed(text if page.suffix == ".html" else "")
    marked = body.private
    if page.suffix == ".md":
        keys = {key.lower() for key in PRIVATE_LINE.findall(text)}
        marked = bool(PRIVATE_COMMENT.search(text))
    return sorted(keys) + ["clean data"] * marked


class _Body(HTMLParser):
    """Find the body of a page. The marker is its class: the same text elsewhere may be a name from the data."""

    private = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "body":
            self.private |= any(name == "class" and PRIVATE_MARK in (value or "").split() for name, value in attrs)


def _private_keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {k for k in value if k in PRIVATE_KEYS}.union(*map(_private_keys, value.values()))
    return set().union(*map(_private_keys, value)) if isinstance(value, list) else set()


def hidden_check(rows: int) -> Check:
    """Check that no row shows a venue that must be hidden."""
    fine = "no row shows a venue that is to be hidden"
    return Check("hidden venues", not rows, f"{rows:,} rows show a venue that is to be hidden" if rows else fine)


def shown_homes(written: Checkins, manifest: dict[str, Any]) -> int:
    """Count the rows that show a venue of a hidden category. The other rules take the clean file."""
    hidden = hidden_venues(written, replace(settings_of(manifest).hide, min_visitors=1, new=False))
    return int(hidden[written.venue].sum())


UNIT = {"file": "user", "session": "session", "week": "week of a user"}


def order_check(written: Checkins, manifest: dict[str, Any]) -> list[Check]:
    """Check what anyone can see: the number of pseudonyms, the order of rows, and how coarse the times are."""
    settings = settings_of(manifest)
    if not settings.reorders:
        return []
    stated, found = manifest.get("identity", {}).get("ids"), len(written.user_ids)
    order = released_order(written.time, written.user_ids[written.user])
    moved = np.flatnonzero(order != np.arange(len(order)))
    if len(moved):
        return [Check("row order", False, f"row {moved[0] + 1:,} is not in the order of time and user id")]
    detail, checks = "rows are ordered by time", []
    if kind := RESOLUTION_S.get(settings.identity.times):
        finer = int(np.count_nonzero((written.time - written.time[0]) % kind))
        detail = f"{finer:,} times are finer than the setting" if finer else f"as coarse as {kind:,} s; {detail}"
        checks = [Check("times", not finer, detail)]
    if settings.hides_users:
        detail = f"{found:,} user ids, {'as' if found == stated else f'not {stated} as'} in the manifest; {detail}"
        checks.append(Check("user ids", found == stated, detail))
    return checks


def map_check(known: PrivateMap, clean: Checkins, shown: Longs, written: Checkins, settings: Publication) -> Check:
    """Check the private map: each row has the time that its clean row gives it, and the right user id.

    A pseudonym covers one user, session or week, and is no clean user id.
    """
    number, row, ids = numbers(clean, settings), known.row, written.user_ids[written.user]
    problem = None
    name = "pseudonyms" if settings.hides_users else "times"
    if not np.array_equal(np.sort(row), shown) or len(known.pseudonym) != number.max() + 1:
        problem = "the private map is of another file or release"
    elif not (right := times_agree(clean, row, written.time, settings)).all():
        problem = f"row {int(np.argmin(right)) + 1:,} has another time than its clean row gives it"
    elif (moved := _moved(clean, row, written)) is not None:
        problem = f"row {moved + 1:,} is before an earlier check-in of its session"
    elif settings.hides_users and (kept := sorted(set(written.user_ids).intersection(clean.user_ids))):
        problem = f"{len(kept):,} user ids occur in the clean file, for example {kept[0]!r}"
    elif not (right := ids == known.pseudonym[number[row]].astype(object)).all():
        problem = f"{int((~right).sum()):,} rows have another pseudonym than the private map gives them"
    elif len(np.unique(known.pseudonym)) != len(known.pseudonym):
        problem = "two pseudonyms have the same id"
    if not settings.hides_users:
        return Check(name, not problem, problem or "every row has the time that its clean row gives it")
    unit = UNIT[settings.identity.pseudonyms]
    return Check(name, not problem, problem or f"{len(written.user_ids):,} new user ids, one per {unit}")


def _moved(clean: Checkins, row: Longs, written: Checkins) -> int | None:
    """Return the first row that stands after another of its id, time and clean day that is later in truth, or None."""
    key = np.stack([written.user, written.time, clean.time[row] // DAY_S])
    same = (np.diff(key) == 0).all(axis=0)
    back = np.flatnonzero(same & (np.diff(clean.time[row]) < 0))
    return int(back[0]) + 1 if len(back) else None


def stated_check(release: Path, manifest: dict[str, Any], file: CheckinFile | None) -> Check:
    """Check that what the manifest states of settings, columns and disclosure is what the release shows."""
    wrong = complaints(manifest, file, seal_of(release).signer is not None)
    return Check("manifest", not wrong, "; ".join(wrong) or "settings, columns and disclosure fit the release")


def complaints(manifest: dict[str, Any], file: CheckinFile | None, signed: bool) -> list[str]:
    """Return what a manifest states and the release does not show. `file`: its data; None if they are not read."""
    tool = manifest.get("tool")
    if not signed and tool != (ours := {"name": "ghostpoi", "version": __version__}):
        return [f"tool is {tool}, not {ours}; only the version that made an unsigned release can check it"]
    if manifest["method"] not in METHODS:
        return [] if signed else [f"the method {manifest['method']} is not installed, so its settings are not checked"]
    if (protocol := manifest["protocol"]) not in get_args(Protocol):
        return [f"protocol is {protocol}"]
    stated = manifest["settings"]
    try:
        assigned = [f"{section}.{key}={value}" for section, values in stated.items() for key, value in values.items()]
        settings = override(publication(manifest["method"]), assigned, "the manifest's")
    except InputError as e:
        return [e.text]
    found: dict[str, Any] = {"settings": settings.public()}
    doubtful: list[str] = []
    if file is not None:
        changed, kept, doubtful = _columns(manifest, file)
        has_category = bool(file.table.category_field)
        groups = manifests.with_groups(file.table, manifest).category_groups
        category = settings.keeps_category if has_category else manifests.NO_CATEGORY
        found |= {
            "data": {"rows": len(file.table) + len(file.kept)},
            "disclosure": {"category": category, "aggregates": published_aggregates(has_category, groups, settings)},
            "columns": {"changed_with_the_venue": changed, "kept": kept},
        }
        needs = set(file.table.category_ids.astype(str)) if settings.keeps_category == "group" else set()
        if (needs and not needs <= set(groups)) or (groups and not needs):
            return ["disclosure.category_groups are not those of the categories in the data"]
    if stated_preset := manifest.get("preset"):
        name, method = stated_preset["name"], manifest["method"]
        known = [described(settings, name, method, one)["preset"] for one in (True, False) if name in PRESETS]
        if stated_preset not in known:
            return [f"preset is {stated_preset}, which the settings are not"]
    sections = {name: {key: manifest[name].get(key) for key in values} for name, values in found.items()}
    sections["settings"] = stated
    wrong = [text for name in found for text in differences(found, sections, name)] + doubtful
    rows, stated_rows = manifest["rows"], manifest["data"]["rows"]
    counted = sum(rows[part]["rows"] for part in ("in_sessions", "outside_sessions"))
    if (counted := int(counted - rows["withheld"] + rows.get("missing", {}).get("kept", 0))) != stated_rows:
        wrong.append(f"the counts of rows add up to {counted:,}, data.rows to {stated_rows:,}")
    return wrong


def _columns(manifest: dict[str, Any], file: CheckinFile) -> tuple[list[str], list[str], list[str]]:
    """Return which columns change, which are kept, and what the manifest says of columns that cannot be.

    Every column of the data changes, is kept, or is a user or a time.
    """
    columns, present = manifest["columns"], file.all_rows.columns
    stated, kept = columns["changed_with_the_venue"], columns["kept"]
    own = {columns["fields"].get(field) for field in ("user", "time", DATE)}
    beside = file.venues.rows.columns if file.venues else []
    odd = [name for name, why in columns["why"].items() if why not in REASONS or name not in kept]
    gone = [name for name in columns["kept_on_request"] if name not in (*kept, *beside)]
    wrong = [f"columns.why says of {name!r} what no release says" for name in odd]
    wrong += [f"columns.dropped names {name!r}, which is there" for name in columns["dropped"] if name in present]
    wrong += [f"columns.kept_on_request names {name!r}, which is not kept" for name in gone]
    return (
        [name for name in stated if name in present and name not in own],
        [name for name in present if name not in stated and name not in own],
        wrong,
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
        if content.startswith(PARQUET) or data["format"] in ("json", "geojson", "excel", "geopackage"):
            rows = formats.decoded(source, content, data["format"])[1]
            rows.without_metadata().write(rewritten := io.BytesIO())  # what `protect` writes in its place
            spare = rewritten.getvalue() != content
        else:
            start, end = content[: first_line(content)], content[len(content.rstrip(b"\r\n")) :]
            spare = start not in (b"", BOM) or end not in (b"", b"\n", b"\r\n")
        if spare:
            return f"{name} holds more than its rows, and no signature vouches for that"
    return None
