"""Is this release what its manifest says? Line by line, from the release alone or against the publisher's file."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ghostpoi.data import formats
from ghostpoi.data.checkins import Checkins, Longs
from ghostpoi.publish.manifest import (
    MANIFEST,
    PAGES,
    PRIVATE_MARK,
    PUBLIC_KEYS,
    hash_complaint,
    read_manifest,
    settings_of,
)
from ghostpoi.publish.table import Prepared, fast_steps, prepare

PRIVATE_WORDS = ("seed", "pairs", "checkpoint", "private")
PRIVATE_LINE = re.compile(rf"^[^\w\n]*({'|'.join(PRIVATE_WORDS)})[^\w\n]*[:=]", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class Line:
    """One check."""

    check: str
    passed: bool
    detail: str


def verify(release: Path, against: Path | None, mapping: dict[str, str]) -> list[Line]:
    """All checks that can be made."""
    manifest = read_manifest(release)
    lines = [_data_file(release, manifest), _nothing_private(release, manifest)]
    if not lines[0].passed:
        return lines
    data = release / manifest["data"]["file"]
    written, source = formats.read(data, manifest["columns"]["fields"], manifest["data"]["format"])
    lines.append(_speed(written, manifest))
    if against is not None:
        lines += _against(against, mapping, manifest, written, source)
    return lines


def _data_file(release: Path, manifest: dict[str, Any]) -> Line:
    complaint = hash_complaint(release, manifest)
    passed = f"SHA-256 {manifest['data']['sha256'][:16]}… as in the manifest"
    return Line("data file", complaint is None, complaint or passed)


def _nothing_private(release: Path, manifest: dict[str, Any]) -> Line:
    allowed = {MANIFEST, *PAGES, manifest["data"]["file"]}
    strange = sorted(
        str(p.relative_to(release)) for p in release.rglob("*") if str(p.relative_to(release)) not in allowed
    )
    keys = sorted(set(manifest) - PUBLIC_KEYS) + sorted(_private_keys(manifest))
    inside = [f"{page} with {what}" for page in PAGES for what in _private_inside(release / page)]
    if strange or keys or inside:
        found = ", ".join(strange + keys + inside)
        return Line("nothing private", False, f"found {found}; remove it before you release")
    return Line("nothing private", True, "only the data, the manifest and public pages")


def _private_inside(page: Path) -> list[str]:
    """What a public page must not hold. It cannot be seen what words mean, but keys and the mark of a private page."""
    if not page.is_symlink() and not page.exists():
        return []
    if page.is_symlink() or not page.is_file():
        return ["no content of its own"]  # a link leads out of the release, perhaps into the private folder
    try:
        text = page.read_text("utf-8")
        keys = _private_keys(json.loads(text)) if page.suffix == ".json" else set()
    except (OSError, ValueError, RecursionError):
        return ["content that cannot be read"]
    if page.suffix == ".md":
        keys = {word.lower() for word in PRIVATE_LINE.findall(text)}
    return sorted(keys) + ["clean data"] * (PRIVATE_MARK in text)


def _private_keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {k for k in value if k in PRIVATE_WORDS}.union(*map(_private_keys, value.values()))
    return set().union(*map(_private_keys, value)) if isinstance(value, list) else set()


def _speed(written: Checkins, manifest: dict[str, Any]) -> Line:
    counted = manifest["speed"]
    found = fast_steps(written, counted["limit_kmh"], counted["min_gap_s"])
    detail = f"{found['steps_over_limit']:,} of {found['steps']:,} steps over {found['limit_kmh']:g} km/h"
    same = found == counted
    return Line("speed", same, f"{detail}, {'all counted' if same else 'not what the manifest counts'}")


def _against(
    file: Path, mapping: dict[str, str], manifest: dict[str, Any], written: Checkins, source: formats.Source
) -> list[Line]:
    table, clean_source = formats.read(file, mapping or manifest["columns"]["fields"], manifest["data"]["format"])
    settings = settings_of(manifest)
    prepared = prepare(table, settings)
    withheld = manifest["rows"]["withheld"]
    shown = np.flatnonzero(prepared.has_candidates) if withheld else np.arange(len(table))
    expected = len(table) - withheld
    if len(shown) != expected or len(written) != expected:
        detail = f"the release has {len(written):,} rows, the file {len(table):,} of which {withheld:,} are withheld"
        return [Line("rows", False, detail)]
    clean_rows, rows = formats.read_rows(clean_source).take(shown), formats.read_rows(source)
    if missing := set(manifest["columns"]["changed_with_the_venue"]).difference(rows.columns):
        return [Line("rows", False, f"the manifest names columns that are not there: {', '.join(map(str, missing))}")]
    lines = [_alignment(clean_rows, rows, manifest)]
    if not lines[0].passed:
        return lines
    released = _codes(table, written)
    if (released < 0).any():
        unknown = written.pois[written.poi[np.flatnonzero(released < 0)[0]]]
        return [*lines, Line("venues", False, f"the venue {unknown} does not occur in {file}")]
    clean = table.poi[shown].astype(np.int64)
    changed = released != clean
    drawn = prepared.has_candidates[shown] if settings.method.own_sets else changed
    return [
        *lines,
        _category(prepared, clean, released, changed),
        _candidates(prepared, shown, released, changed),
        _genuine(clean_rows, rows, manifest, clean, released, drawn),
        _counts(manifest, changed),
    ]


def _alignment(clean: formats.Rows, rows: formats.Rows, manifest: dict[str, Any]) -> Line:
    if clean.columns != rows.columns:
        return Line("rows", False, f"the columns are {', '.join(rows.columns)}, not {', '.join(clean.columns)}")
    same = [c for c in rows.columns if c not in manifest["columns"]["changed_with_the_venue"]]
    for name in same:
        one, two = clean.column(name), rows.column(name)
        if one.dtype != two.dtype:
            return Line("rows", False, f"the column {name} is of type {two.dtype}, not {one.dtype}")
        if not one.equals(two):
            return Line("rows", False, f"row {int(one.ne_missing(two).arg_max() or 0) + 1} has another {name}")
    return Line("rows", True, f"{len(rows.column(rows.columns[0])):,} rows, in order, other columns untouched")


def _codes(table: Checkins, written: Checkins) -> Longs:
    """The released venues as codes of the clean table; -1 for one that does not occur there."""
    known = {name: code for code, name in enumerate(table.pois)}
    return np.array([known.get(name, -1) for name in written.pois], np.int64)[written.poi]


def _category(prepared: Prepared, clean: Longs, released: Longs, changed: NDArray[np.bool_]) -> Line:
    category = prepared.places.category
    wrong = int((category[clean] != category[released]).sum())
    return Line("category", wrong == 0, f"{int(changed.sum()) - wrong:,} of {int(changed.sum()):,} substitutes match")


def _candidates(prepared: Prepared, shown: Longs, released: Longs, changed: NDArray[np.bool_]) -> Line:
    """Every substitute must lie in the candidate set of its row's rule."""
    table, words = prepared.table, prepared.data.vocabulary
    number = np.zeros(len(table.pois), np.int64)
    number[words.source[1:]] = np.arange(1, len(words))
    row = shown[changed]
    covered = prepared.is_covered[row]
    inside = np.empty(len(row), bool)
    for mask, sets, code in (
        (covered, prepared.covered, number),
        (~covered, prepared.every, np.arange(len(table.pois)) + 1),
    ):
        anchor, chosen = code[table.poi[row[mask]]], code[released[changed][mask]]
        inside[mask] = (sets.poi[anchor] == chosen[:, None]).any(axis=1) & (chosen > 0)
    return Line(
        "radius", bool(inside.all()), f"{int(inside.sum()):,} of {len(row):,} substitutes lie in their candidate set"
    )


def _genuine(
    clean: formats.Rows,
    rows: formats.Rows,
    manifest: dict[str, Any],
    poi: Longs,
    released: Longs,
    drawn: NDArray[np.bool_],
) -> Line:
    """Venue fields must be those of one genuine row of the new venue, or the row's own where none was drawn."""
    names = manifest["columns"]["changed_with_the_venue"]

    def keys(source: formats.Rows, code: Longs) -> NDArray[np.uint64]:
        columns = {f"c{i}": source.column(name) for i, name in enumerate(names)}
        return pl.DataFrame({"poi": pl.Series(code), **columns}).hash_rows().to_numpy()

    genuine, shown = keys(clean, poi), keys(rows, released)
    stale = int((np.where(drawn, ~np.isin(shown, genuine), shown != genuine)).sum())
    mixed = f"{stale:,} rows mix the fields of two venues"
    return Line("venue fields", stale == 0, mixed if stale else f"{', '.join(names)} change together")


def _counts(manifest: dict[str, Any], changed: NDArray[np.bool_]) -> Line:
    counted = sum(int(manifest["rows"][group].get("substituted", 0)) for group in ("covered", "outside"))
    found = int(changed.sum())
    return Line("counts", counted == found, f"{found:,} rows substituted, {counted:,} in the manifest")
