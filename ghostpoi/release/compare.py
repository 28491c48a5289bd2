"""Checks that need the clean file: rows, venues, speed, and every figure of the manifest that follows from them."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ghostpoi.columns import Tests
from ghostpoi.data.candidates import CHUNK, Candidates
from ghostpoi.data.checkins import Bools, Ints, Longs
from ghostpoi.data.geo import over_limit
from ghostpoi.draw.crowds import LEARNED
from ghostpoi.draw.methods.base import KeepsCategory
from ghostpoi.draw.publication import Publication
from ghostpoi.draw.walks import Substitution, Trails, draw_at
from ghostpoi.draw.whole_table import WholeTable, category_groups, has_donor, places_of, prepare
from ghostpoi.formats import CheckinFile, Rows
from ghostpoi.formats.rows import difference
from ghostpoi.formats.written_times import with_times
from ghostpoi.options import option
from ghostpoi.release.identity import hidden, read_map
from ghostpoi.release.manifest import settings_of, with_groups, withholds
from ghostpoi.release.plan import Figures, counted, in_file
from ghostpoi.release.series.ledger import read_fields, read_table
from ghostpoi.release.venue_files import files_beside
from ghostpoi.release.verify import Check, differences, hidden_check, map_check
from ghostpoi.settings import SpeedSettings

ROUNDING = 1 + 1e-9  # a GPU may round a speed differently


def counted_speed(found: dict[str, float], manifest: dict[str, Any], last: bool) -> Check:
    """Compare the steps over the limit with the manifest's count."""
    counted = manifest["speed"]
    detail = f"{found['steps_over_limit']:,} of {found['steps']:,} steps over {found['limit_kmh']:g} km/h"
    limits = {key: manifest["settings"]["speed"].get(key) for key in ("limit_kmh", "min_gap_s")}
    same = found == counted and limits == {key: counted[key] for key in limits}
    more = f"; whether they are allowed takes {option('against', 'FILE')}" if same and last else ""
    return Check("speed", same, f"{detail}, {'as' if same else 'not as'} counted in the manifest{more}")


def allowed_speed(whole: WholeTable, released: Ints, emptied: Bools, rule: SpeedSettings) -> Check:
    """Check that every step over the limit is one that the rule allows; arguments are (N,), per row of the table."""
    table, decided, has = whole.table, whole.in_session | whole.repeated, whole.has_candidates
    if whole.venue_sets.everywhere:
        return Check("speed rule", True, "the method has no speed rule")
    starts = np.zeros(len(table), bool)
    starts[whole.drawn_sessions.row[whole.drawn_sessions.start[:-1]]] = True
    order = whole.order.row
    a, b = order[:-1], order[1:]
    same_user = table.user[a] == table.user[b]

    def over(venue: Ints, limit: float) -> Bools:
        lat, lon = table.venues.lat[venue[order]], table.venues.lon[venue[order]]
        return over_limit(lat, lon, table.time[order], limit, rule.min_gap_s) & same_user

    row = np.where(decided[b] & ~decided[a], a, b)  # the one that had to keep the limit
    allowed = ~has[row] | emptied[row] | starts[row] | whole.repeated[row]
    fast = over(released, rule.limit_kmh * ROUNDING)
    wrong, clean = int((fast & ~allowed).sum()), int(over(table.venue, rule.limit_kmh).sum())
    fine = f"over the limit only where no candidate was within it (steps over it in the clean file: {clean:,})"
    why = f"{wrong:,} steps over the limit though a candidate was within it" if wrong else fine
    return Check("speed rule", not wrong, why)


def emptied_sets(whole: WholeTable, released: Ints, rule: SpeedSettings) -> Bools:
    """Mark the rows whose candidates were all too far away, given the released venues (N,)."""
    table, s, vocabulary, venues = whole.table, whole.drawn_sessions, whole.data.vocabulary, whole.table.venues
    emptied = np.zeros(len(table), bool)
    sets = np.zeros((len(table.venue_ids), whole.session_sets.poi.shape[1]), np.int32)
    sets[vocabulary.venue] = vocabulary.venue[whole.session_sets.poi]
    anchor, inside = vocabulary.venue[s.poi], Candidates(sets, np.zeros(len(sets)))
    trails = Trails(s.session_of(), s.time, anchor, venues.lat, venues.lon, inside)
    drawn, nothing = released[s.row], np.zeros(s.positions, np.int32)
    emptied[s.row] = _emptied(trails, np.arange(s.positions), (drawn, nothing), rule)
    row, decided = whole.order.leading, whole.in_session | whole.repeated
    before = np.where(decided[row], released[row], 0)  # what was known when rows outside sessions were drawn
    at = np.flatnonzero(before == 0)
    emptied[row[at]] = _emptied(whole.trails, at, (released[row], before), rule)
    return emptied[whole.order.first]


def _emptied(trails: Trails, at: Longs, around: tuple[Ints, Ints], rule: SpeedSettings) -> Bools:
    parts = (at[begin : begin + CHUNK] for begin in range(0, len(at), CHUNK))
    found = [draw_at(trails, part, around, np.zeros(len(part)), rule, keep_clean=False)[1] for part in parts]
    return np.concatenate([np.empty(0, bool), *found])


@dataclass(frozen=True)
class Comparison:
    """What was found, and the figures of the release as they follow from it; none if a check made them meaningless."""

    checks: list[Check]
    figures: Figures | None = None
    speed: dict[str, float] = field(default_factory=dict)  # the steps over the limit


def comparison(
    clean: CheckinFile, written: CheckinFile, manifest: dict[str, Any], private: Path, whole_file: bool
) -> Comparison:  # fmt: skip
    """Run the checks that need the clean file; stop at the first that makes the later ones meaningless.

    If user ids are pseudonyms, the private folder says which row is which. Rows may be those of one region.
    """
    (table, crowds), settings = read_table(private, with_groups(clean.table, manifest), manifest), settings_of(manifest)
    hides_users = settings.hides_users
    known = read_map(private) if settings.reorders and whole_file else None  # regions are in the order of the file
    whole = prepare(table, settings, whole_file, crowds)
    shown, withheld = whole.shown(withholds(manifest)), manifest["rows"]["withheld"]
    expected = len(shown)
    if len(written.table) != expected or (whole_file and expected != len(table) - withheld):
        detail = f"the release has {len(written.table):,} rows; the file has {len(table):,}, {withheld:,} withheld"
        return Comparison([Check("rows", False, detail)])
    identity = []
    if known is not None:
        identity = [map_check(known, table, shown, written.table, settings)]
        if not identity[0].passed:
            return Comparison(identity)
        shown = known.row
    changed = manifest["columns"]["changed_with_the_venue"]
    if missing := set(changed).difference(written.rows.columns):
        detail = f"columns of the manifest are missing: {', '.join(map(str, missing))}"
        return Comparison([Check("rows", False, detail)])
    dropped = [name for name in clean.rows.columns if name in manifest["columns"]["dropped"]]
    ignored = [*changed, written.mapping["user"]] if hides_users else changed
    expected_rows = clean.rows.take(shown).drop(dropped)
    if settings.identity.times != "keep":
        expected_rows = with_times(clean, expected_rows, written.table.time)
    problem = difference(expected_rows, written.rows, ignore=ignored)
    if not problem and whole_file:
        problem = _not_followed(clean, written, dropped, manifest, hides_users)
    if problem:
        return Comparison([*identity, Check("rows", False, problem)])
    checks = [*identity, Check("rows", True, f"{expected:,} rows in order, other columns unchanged")]
    if whole_file or not settings.reorders:  # rows in another order are in other parts, whose sizes are known before
        checks += _parts(clean.rows.take(shown), written.rows, settings.reorders, whole_file)
    checks += _missing_values(clean, written, shown, dropped)
    number = {name: venue for venue, name in enumerate(table.venue_ids)}
    renumbered = np.array([number.get(name, 0) for name in written.table.venue_ids], np.int32)
    venue = renumbered[written.table.venue]  # in the numbering of the clean table, 0 for a venue that it lacks
    if not venue.all():
        unknown = written.table.venue_ids[written.table.venue[int(np.argmin(venue))]]
        return Comparison([*checks, Check("venues", False, f"the venue {unknown} does not occur in {clean.path}")])
    released = table.venue.copy()
    released[shown] = venue
    drawn = has_donor(whole, released, settings.method, every=hides_users)[shown]
    emptied = emptied_sets(whole, released, settings.speed)
    stored = read_fields(private, crowds, clean, written.rows)
    checks += [
        _category(whole, released, settings, manifest["disclosure"]["category_groups"] if whole_file else []),
        _candidates(whole, released),
        hidden_check(int(whole.hidden[venue].sum())),
        _genuine_fields((clean.rows, table.venue), (written.rows, venue), shown, changed, drawn, stored),
        allowed_speed(whole, released, emptied, settings.speed),
        *_kept(clean, [*changed, *dropped], hidden(table, settings), settings.keeps_category),
        *_beside(clean, written, manifest),
    ]
    drawn_again = Substitution(released, emptied)
    return Comparison(checks, counted(whole, settings.method, drawn_again, shown, clean.counted))


def _parts(clean: Rows, written: Rows, reorders: bool, whole_file: bool) -> list[Check]:
    """Check that the parts of a folder are the same or, in another order, divided again."""
    if not (clean.parts and written.parts):
        same = bool(clean.parts) == bool(written.parts)
        return [] if same else [Check("parts", False, "the release and the file are not both folders")]
    clean = clean.divided_anew() if reorders else clean
    (names, part), (new_names, new_part) = _used(clean), _used(written)
    same = names == new_names and np.array_equal(part, new_part) and not (whole_file and clean.parts != written.parts)
    return [Check("parts", same, f"{len(clean.parts):,} parts" if same else "the rows are in other parts than before")]


def _used(rows: Rows) -> tuple[list[str], Longs]:
    """Return the names of the parts that have rows, and which of them each row is in."""
    numbers, part = np.unique(rows.part, return_inverse=True)
    return [rows.parts[number] for number in numbers], part


def _beside(clean: CheckinFile, written: CheckinFile, manifest: dict[str, Any]) -> list[Check]:
    """Check that the files next to the data are what follows from the clean table of venues and the released rows."""
    if clean.venues is None:
        return []
    table, columns, hide = written.table, manifest["columns"], settings_of(manifest).hide
    venues, kept = table.venue_ids[table.venue], columns["kept_on_request"]
    expected = files_beside(clean, kept, columns["dropped"], hide, venues, table.user_ids)
    found = {name: written.path.parent / name for name in expected}
    wrong = [name for name, path in found.items() if not path.is_file() or path.read_bytes() != expected[name]]
    detail = f"{', '.join(wrong)} is not the table that the clean one gives" if wrong else "as the clean table gives it"
    return [Check("venue table", not wrong, detail)]


def _missing_values(clean: CheckinFile, written: CheckinFile, shown: Longs, dropped: list[str]) -> list[Check]:
    """Check that rows that lack a value are where they were and as they were, or were left out."""
    if not len(clean.missing) and not len(written.missing):
        return []
    _, order = in_file(clean, np.arange(len(clean.table)), shown)
    problem = None
    if not np.array_equal(np.flatnonzero(np.isin(order, clean.kept)), written.kept):
        problem = "other rows of the release lack a value than of the file"
    elif len(clean.kept):
        kept = clean.all_rows.take(clean.kept).drop(dropped)
        problem = difference(kept, written.all_rows.take(written.kept))
    one = len(clean.missing) == 1
    fate = "left out" if not len(clean.kept) else "as it was" if one else "as they were"
    rows = f"{len(clean.missing):,} row{'s' * (not one)}, {fate}"
    return [Check("missing values", problem is None, problem or rows)]


def _not_followed(
    clean: CheckinFile, written: CheckinFile, dropped: list[str], manifest: dict[str, Any], hides_users: bool
) -> str | None:  # fmt: skip
    """Return what stands before or after the rows, or is said to be left out, and does not follow from the file."""
    known = {*dropped, *(clean.venues.rows.columns if clean.venues else ())}
    if strange := [name for name in manifest["columns"]["dropped"] if name not in known]:
        return f"the manifest says that the column {strange[0]!r} was left out, which the file does not have"
    before, after = clean.rows.drop(dropped), written.rows
    before = before.divided_anew() if hides_users else before
    one, two, parts = before.dialect, after.dialect, len(before.parts)
    if one is None or two is None or parts != len(after.parts) or (parts and len(clean.missing)):  # parts may be empty
        return None
    same = one.start == two.start and (before.tails or one.tail) == (after.tails or two.tail)
    return None if same else "the header or the end of the data is not that of the file"


def _category(whole: WholeTable, released: Ints, settings: Publication, groups: list[list[str]]) -> Check:
    """Check that substitutes have the category, or the group of categories, that the method promises.

    `groups` are those of the manifest, if it states them. Learned ones are learned again.
    """
    table = whole.table
    learned = bool(groups) and whole.crowds is None and all(LEARNED.fullmatch(group) for _, group in groups)
    if learned and category_groups(replace(whole, table=replace(table, category_groups={})), settings) != groups:
        return Check("category", False, "the manifest states other groups of categories than the file gives")
    if not table.category_field:
        return Check("category", True, "the file has no category")
    places, kept = places_of(table, settings), settings.keeps_category
    changed = np.flatnonzero((released != table.venue) & ~whole.borrows)  # a hidden venue may have no other of its own
    kind = places.group if kept == "group" else places.category
    same = int((kind[table.venue[changed]] == kind[released[changed]]).sum())
    what = {"exact": "match", "group": "match by group", "any": "match; the method does not keep categories"}[kept]
    return Check("category", kept == "any" or same == len(changed), f"{same:,} of {len(changed):,} substitutes {what}")


def _candidates(whole: WholeTable, venues: Ints) -> Check:
    """Check that every substitute is in the candidate set that applies to its row."""
    table, sessions, vocabulary = whole.table, whole.data.all, whole.data.vocabulary
    if whole.venue_sets.everywhere:
        return Check("radius", True, "the method may release any venue for any other")
    row = np.flatnonzero(venues != table.venue)
    released, poi = venues[row], np.zeros(len(table), np.int32)  # 0 outside sessions
    poi[sessions.row] = sessions.poi
    in_session, poi = poi[row] > 0, poi[row]
    inside = (whole.venue_sets.poi[table.venue[row]] == released[:, None]).any(axis=1)
    session_sets = vocabulary.venue[whole.session_sets.poi[poi[in_session]]]
    inside[in_session] = (session_sets == released[in_session, None]).any(axis=1)
    detail = f"{int(inside.sum()):,} of {len(row):,} substitutes are in their candidate set"
    return Check("radius", bool(inside.all()), detail)


Located = tuple[Rows, Ints]  # rows, and the venue of each


def _genuine_fields(
    clean: Located, released: Located, shown: Longs, names: list[str], drawn: Bools, stored: Located | None
) -> Check:
    """Check that venue fields come from one genuine row of the released venue; rows that were not drawn keep theirs.

    A genuine row may be one that the release withholds. In a series, it is the stored one of its venue.
    """

    def keys(source: Rows, venue: Ints) -> NDArray[np.uint64]:
        fields = source.requote(names)  # protect may have put stray quotes into quotes
        columns = {f"c{i}": fields.get_column(name) for i, name in enumerate(names)}
        return pl.DataFrame({"venue": pl.Series(venue), **columns}).hash_rows().to_numpy()

    genuine, found = keys(*clean), keys(*released)
    donors = genuine if stored is None else keys(*stored)
    mixed = int(np.where(drawn, ~np.isin(found, donors), found != genuine[shown]).sum())
    detail = f"{mixed:,} rows mix the fields of two venues" if mixed else f"{', '.join(names)} change together"
    return Check("venue fields", mixed == 0, detail)


def _kept(clean: CheckinFile, not_kept: list[str], pseudonym: Longs | None, category: KeepsCategory) -> list[Check]:
    """Test what the columns and the order of rows, both as in the file, reveal about clean venues."""
    tests = Tests(clean.table, clean.rows, clean.mapping, pseudonym, category=category)
    found, order = tests.telling(not_kept), tests.order_finding()
    listed = "; ".join(f"{name!r} {finding}" for name, finding in found.items())
    secret = "clean venues" if pseudonym is None else "clean venues or users"
    return [
        Check("kept columns", not found, listed or f"no test finds {secret} in them"),
        Check("row order", order is None, f"rows {order}" if order else "it does not depend on the venues"),
    ]


def figure_checks(found: dict[str, Any], manifest: dict[str, Any]) -> list[Check]:
    """Compare the counts and the plausibility of a release with the manifest."""
    stated = manifest | {"data": {"rows": manifest["data"].get("rows")}}
    counts = differences(found, stated, "rows") + differences(found, stated, "data")
    measures = differences(found, stated, "plausibility")
    rows, moved = found["rows"], found["plausibility"]
    if moved is None:
        fine = "as in the manifest, which states no figures of draws: they would reveal single rows"
        return [Check("counts", not (wrong := [*counts, *measures]), "; ".join(wrong) or fine)]
    substituted = f"{sum(rows[part]['substituted'] for part in ('in_sessions', 'outside_sessions')):,} rows substituted"
    mean = f"{moved['mean_km']:g} km on average"
    return [
        Check("counts", not counts, "; ".join(counts) or f"{substituted}, all counts as in the manifest"),
        Check("plausibility", not measures, "; ".join(measures) or f"{mean}, all figures as in the manifest"),
    ]
