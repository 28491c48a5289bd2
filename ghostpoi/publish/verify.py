"""Check a release against its manifest and, if given, against the file that it was made from."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ghostpoi.data import formats
from ghostpoi.data.checkins import Bools, Checkins, Longs
from ghostpoi.data.formats import CheckinFile, Rows
from ghostpoi.publish.manifest import MANIFEST, PAGES, PRIVATE_MARK, hash_complaint, read_manifest, settings_of
from ghostpoi.publish.whole_table import WholeTable, fast_steps, prepare

PUBLIC_KEYS = {"tool", "method", "protocol", "settings", "columns", "rows", "plausibility", "speed", "data", "audit"}
PRIVATE_KEYS = ("seed", "pairs", "checkpoint", "private")
PRIVATE_LINE = re.compile(rf"^[^\w\n]*({'|'.join(PRIVATE_KEYS)})[^\w\n]*[:=]", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class Check:
    """The result of one check."""

    name: str
    passed: bool
    detail: str


def verify(release: Path, against: Path | None, mapping: dict[str, str]) -> list[Check]:
    """Run all checks. If the data file does not match the manifest, its content is not checked."""
    manifest = read_manifest(release)
    complaint = hash_complaint(release, manifest)
    matches = f"SHA-256 {manifest['data']['sha256'][:16]}… matches the manifest"
    checks = [Check("data file", complaint is None, complaint or matches), _nothing_private(release, manifest)]
    if complaint:
        return checks
    data = release / manifest["data"]["file"]
    written = formats.read(data, manifest["columns"]["fields"], manifest["data"]["format"])
    checks.append(_speed(written.table, manifest))
    if against is not None:
        clean = formats.read(against, mapping or written.mapping, written.format)
        checks += _against(clean, written, manifest)
    return checks


def _nothing_private(release: Path, manifest: dict[str, Any]) -> Check:
    """Allow only known files, public manifest keys, and pages without private keys or the private-page marker."""
    allowed = {MANIFEST, *PAGES, manifest["data"]["file"]}
    names = (str(path.relative_to(release)) for path in release.rglob("*"))
    unknown = sorted(name for name in names if name not in allowed)
    keys = sorted(set(manifest) - PUBLIC_KEYS) + sorted(_private_keys(manifest))
    inside = [f"{page} with {content}" for page in PAGES for content in _private_content(release / page)]
    if found := unknown + keys + inside:
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
    if page.suffix == ".md":
        keys = {key.lower() for key in PRIVATE_LINE.findall(text)}
    return sorted(keys) + ["clean data"] * (PRIVATE_MARK in text)


def _private_keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {k for k in value if k in PRIVATE_KEYS}.union(*map(_private_keys, value.values()))
    return set().union(*map(_private_keys, value)) if isinstance(value, list) else set()


def _speed(written: Checkins, manifest: dict[str, Any]) -> Check:
    counted = manifest["speed"]
    found = fast_steps(written, counted["limit_kmh"], counted["min_gap_s"])
    detail = f"{found['steps_over_limit']:,} of {found['steps']:,} steps over {found['limit_kmh']:g} km/h"
    same = found == counted
    return Check("speed", same, f"{detail}, {'as' if same else 'not as'} counted in the manifest")


def _against(clean: CheckinFile, written: CheckinFile, manifest: dict[str, Any]) -> list[Check]:
    """Run the checks that need the clean file."""
    table, settings = clean.table, settings_of(manifest)
    whole = prepare(table, settings)
    withheld = manifest["rows"]["withheld"]
    shown = np.flatnonzero(whole.has_candidates) if withheld else np.arange(len(table))
    expected = len(table) - withheld
    if len(shown) != expected or len(written.table) != expected:
        detail = f"the release has {len(written.table):,} rows; the file has {len(table):,}, {withheld:,} withheld"
        return [Check("rows", False, detail)]
    clean_rows, rows = clean.rows.take(shown), written.rows
    if missing := set(manifest["columns"]["changed_with_the_venue"]).difference(rows.columns):
        return [Check("rows", False, f"columns of the manifest are missing: {', '.join(map(str, missing))}")]
    checks = [_same_rows(clean_rows, rows, manifest)]
    if not checks[0].passed:
        return checks
    number = {name: venue for venue, name in enumerate(table.venue_ids)}
    known = np.array([number.get(name, 0) for name in written.table.venue_ids], np.int64)
    released = known[written.table.venue]  # in the numbering of the clean table, 0 for a venue that it lacks
    if not released.all():
        unknown = written.table.venue_ids[written.table.venue[int(np.argmin(released))]]
        return [*checks, Check("venues", False, f"the venue {unknown} does not occur in {clean.path}")]
    before = table.venue[shown].astype(np.int64)
    changed = released != before
    drawn = whole.has_candidates[shown] if settings.method.own_sets else changed
    category, found = table.venues.category, int(changed.sum())
    wrong = int((category[before] != category[released]).sum())
    counted = sum(int(manifest["rows"][group].get("substituted", 0)) for group in ("in_sessions", "outside_sessions"))
    return [
        *checks,
        Check("category", wrong == 0, f"{found - wrong:,} of {found:,} substitutes match"),
        _candidates(whole, shown[changed], released[changed]),
        _genuine_fields(clean_rows, rows, manifest, before, released, drawn),
        Check("counts", counted == found, f"{found:,} rows substituted, {counted:,} in the manifest"),
    ]


def _same_rows(clean: Rows, rows: Rows, manifest: dict[str, Any]) -> Check:
    if clean.columns != rows.columns:
        return Check("rows", False, f"the columns are {', '.join(rows.columns)}, not {', '.join(clean.columns)}")
    for name in rows.columns:
        if name in manifest["columns"]["changed_with_the_venue"]:
            continue
        one, two = clean.get_column(name), rows.get_column(name)
        if one.dtype != two.dtype:
            return Check("rows", False, f"the column {name} has type {two.dtype}, not {one.dtype}")
        if not one.equals(two):
            return Check("rows", False, f"row {int(one.ne_missing(two).arg_max() or 0) + 1} has a different {name}")
    return Check("rows", True, f"{len(rows.get_column(rows.columns[0])):,} rows in order, other columns unchanged")


def _candidates(whole: WholeTable, row: Longs, released: Longs) -> Check:
    """Check that every substitute is in the candidate set that applies to its row."""
    table, sessions, vocabulary = whole.table, whole.data.all, whole.data.vocabulary
    poi = np.zeros(len(table), np.int32)  # 0 outside sessions
    poi[sessions.row] = sessions.poi
    in_session, poi = poi[row] > 0, poi[row]
    inside = (whole.venue_sets.poi[table.venue[row]] == released[:, None]).any(axis=1)
    session_sets = vocabulary.venue[whole.session_sets.poi[poi[in_session]]]
    inside[in_session] = (session_sets == released[in_session, None]).any(axis=1)
    detail = f"{int(inside.sum()):,} of {len(row):,} substitutes are in their candidate set"
    return Check("radius", bool(inside.all()), detail)


def _genuine_fields(
    clean: Rows, rows: Rows, manifest: dict[str, Any], before: Longs, released: Longs, drawn: Bools
) -> Check:
    """Check that venue fields come from one genuine row of the released venue; rows that were not drawn keep theirs."""
    names = manifest["columns"]["changed_with_the_venue"]

    def keys(source: Rows, venue: Longs) -> NDArray[np.uint64]:
        columns = {f"c{i}": source.get_column(name) for i, name in enumerate(names)}
        return pl.DataFrame({"venue": pl.Series(venue), **columns}).hash_rows().to_numpy()

    genuine, shown = keys(clean, before), keys(rows, released)
    mixed = int((np.where(drawn, ~np.isin(shown, genuine), shown != genuine)).sum())
    detail = f"{mixed:,} rows mix the fields of two venues" if mixed else f"{', '.join(names)} change together"
    return Check("venue fields", mixed == 0, detail)
