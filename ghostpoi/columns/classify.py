"""Classify the columns of a file: those that change with the venue, those that are kept, those that are refused.

A column of the venue that did not change would undo the substitution. The rules for extra columns, in this order:
- A constant column is kept.
- A column that follows from user and time, or numbers rows or sessions, is kept.
- A column that is constant per venue or category (a name, an address) changes with the venue.
- A column that is constant per user is kept if no test finds clean venues in it.
- A column that is constant per variant of a venue, if the file gives venues several positions or categories, changes
  with the venue.
- A column with few values, or with numbers that increase from row to row, is kept if no test finds clean venues in it.
- A column that does not change and holds emails, phone numbers or other identifiers of people is refused.
- Any other column is refused until the publisher removes it (--drop) or accepts the risk (--keep).
- If user ids become pseudonyms, a kept column that identifies the user is refused too.

How kept text is written, such as its padding, is tested like a column of its own.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, islice
from pathlib import Path
from shlex import quote

import numpy as np
import polars as pl

from ghostpoi.columns import harmless
from ghostpoi.columns.dependence import (
    MOST_ROWS,
    Units,
    agreement,
    bins,
    codes,
    dependence,
    of_rows,
    of_users,
    tested_rows,
    value_codes,
    venue_gain,
)  # fmt: skip
from ghostpoi.columns.order import numbered_by_first_row, order_reveals, venues_dated_by_id
from ghostpoi.columns.pairs import VenuePairs
from ghostpoi.columns.related import RELATIONS, Finding, RelatedVenues, refused
from ghostpoi.columns.traces import Sample, numbers, trace
from ghostpoi.columns.users import UserTests, check_identifiers, check_user_ids, likeness
from ghostpoi.data.checkins import DATE, GROUP, Checkins, Ints, Longs
from ghostpoi.data.created import creation_times
from ghostpoi.draw.methods.base import KeepsCategory
from ghostpoi.errors import InputError
from ghostpoi.formats import Columns
from ghostpoi.formats.geometry import boxes
from ghostpoi.formats.rows import Rows, form_of, plain
from ghostpoi.formats.source import POINT
from ghostpoi.formats.times import TIMEZONE
from ghostpoi.options import option

VENUE_FIELDS = ("poi", "category", "lat", "lon", GROUP, POINT)
IDS_IN_ORDER = (
    "venue ids increase with the first visit, so they reveal which venues were new: nobody visited {:.0%} of them in "
    "the first tenth of the period, and a release that shows them there gives substitutes away; {}"
)
RANDOM_IDS = "replace them in the file by random ids, which no option does"
IDS_BY_ROW = (
    f"venue ids follow the order of the venues' first rows, which reveals where new venues appear; {RANDOM_IDS}"
)
LAST_DIGITS = (10, 100, 1000, 10_000, 1 << 8, 1 << 10, 1 << 12)  # moduli: the last digits and bits of a number
REPEATED = 0.9  # share of the sessions of a user whose ids have a part that no other session has
NEEDED = 0.9  # share of a gain that the columns named for it reach
TOGETHER = "predicts the clean venue together with the others named here"
NOTATION = "the notation (offset, fraction of a second, spelling, padding)"
UNKNOWN = "is not known to be harmless"
WHY = {  # a kept column of each kind is harmless
    "constant": "the same in all rows", "time": "follows from the time", "rows": "numbers the rows",
    "session": "names sessions or days", "user": "the same in all rows of a user; no test finds clean venues in it",
}  # fmt: skip
TESTED, ASKED = "no test finds clean venues in it", "kept on request, at the publisher's risk"
REASONS = {*WHY.values(), TESTED, ASKED}


@dataclass(frozen=True)
class VenueColumns:
    """The columns that change with the venue, those that are kept, and those that the release leaves out."""

    change: list[str]
    keep: list[str]
    drop: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    why: dict[str, str] = field(default_factory=dict, compare=False)  # a column is kept


def classify(
    table: Checkins, rows: Columns, mapping: dict[str, str], path: Path | str,
    keep: Sequence[str] = (), drop: Sequence[str] = (), pseudonym: Longs | None = None, order: bool = True,
    category: KeepsCategory = "any", hides_new: bool = False,
) -> VenueColumns:  # fmt: skip
    """Classify all columns of a file; refuse those that could reveal clean venues. See `Tests`.

    Without `order`, that of the rows is not tested. `hides_new`: venues that were created in the period are hidden.
    """
    _check_options(rows, mapping, path, keep, drop)
    tests = Tests(table, rows, mapping, pseudonym, category=category)
    if order:
        check_order(tests, path)
    kind = {name: tests.kind(name) for name in tests.extra if name not in drop}
    change = [c for c in rows.columns if c in tests.fields]
    change += [name for name in kind if kind[name] == "change" and name not in keep]
    check_forms(tests, path, [*change, *keep, *drop])
    if pseudonym is None:
        check_user_ids(rows, mapping, path, keep)
    of_user = [n for n in kind if n not in change or constant_within(value_codes(rows.get_column(n)), table.user)]
    warnings = list(check_identifiers(rows, of_user, path, keep))
    found = tests.findings(change, drop, keep)
    revealing = {name: one for name, one in found.items() if one is not None}
    if wrong := {name: one for name, one in revealing.items() if name not in keep}:
        secret = "clean venues" if pseudonym is None else "clean venues or users"
        raise refused(path, wrong, f", so it could reveal {secret}", f"could reveal {secret}")
    keeps = option("keep")
    warnings += [f"the column {name!r}, which {keeps} names, {one}" for name, one in revealing.items() if one.share > 0]
    fine, users = (name for name, one in found.items() if not one and kind[name] != "time"), tests.users
    warnings += [f"the column {n!r} {one}" for n in fine if users and (one := users.rare_values(rows.get_column(n)))]
    if dated := venues_dated_by_id(tests.related):
        hold_times = bool(np.isfinite(creation_times(table.venue_ids[1:].tolist(), table.time.max())).any())
        remedy = f"hide them with {option('set', 'hide.new=true')}" if hold_times else RANDOM_IDS
        warnings += [] if hold_times and hides_new else [IDS_IN_ORDER.format(dated, remedy)]
    elif numbered_by_first_row(tests.related):
        warnings.append(IDS_BY_ROW)
    kept = [c for c in kind if c not in change]
    why = {c: ASKED if c in keep else WHY.get(kind[c], TESTED) for c in kept}
    return VenueColumns(change, kept, [c for c in rows.columns if c in drop], warnings, why)


def check_order(tests: "Tests", path: Path | str) -> None:
    """Refuse rows whose order reveals clean venues."""
    if complaint := tests.order_finding():
        raise InputError(
            f"{path}: its rows {complaint}, so their order reveals clean venues; sort them by time with "
            f"{option('order', 'time')}"
        )


def check_forms(tests: "Tests", path: Path | str, other: Collection[str]) -> None:
    """Refuse text that is written in a way that reveals clean venues or users, but for that of `other` columns."""
    if not (found := tests.form_findings(other)):
        return
    listed = " and ".join(f"{what} {one}" for what, one in found.values())
    times = "; write times in UTC and whole seconds" if {*tests.times} & found.keys() else ""
    raise InputError(
        f"{path}: {listed}, so it could reveal clean venues or users; write it in one form with "
        f"{option('normalise', ','.join(found), shown=quote)}{times}"
    )


class Tests:
    """All tests of the columns of one file, or of a release.

    `category` says what substitutes share with the clean venue. If a release has new user ids, `pseudonym` (N,) numbers
    them, and columns that identify users are found too.
    """

    def __init__(
        self, table: Checkins, rows: Columns, mapping: dict[str, str], pseudonym: Longs | None = None,
        most_rows: int = MOST_ROWS, category: KeepsCategory = "any",
    ) -> None:  # fmt: skip
        self.table, self.rows, self.mapping, self.most_rows = table, rows, mapping, most_rows
        self.shown = table.venues.category.astype(np.int64) if category == "exact" else None
        self.related = RelatedVenues(table)
        self.users = None if pseudonym is None else UserTests(self.related, pseudonym)
        schema = getattr(rows, "schema", None)  # of Parquet
        self.fields = {mapping[f] for f in VENUE_FIELDS if f in mapping} | {*(boxes(schema) if schema else ())}
        self.times = [mapping[f] for f in ("time", DATE) if f in mapping]
        self.extra = [c for c in rows.columns if c not in self.fields and c not in (mapping["user"], *self.times)]
        position = {"category": table.category, "lat": table.lat, "lon": table.lon}
        self._variant = value_codes(pl.DataFrame({"venue": table.venue, **position}).hash_rows())
        self._repeated = bool((np.bincount(self._variant)[self._variant] > 1).mean() > 0.5)
        self._kinds: dict[str, str] = {}

    @cached_property
    def _tested(self) -> Longs:
        return tested_rows(self.related, self.most_rows)

    @cached_property
    def _units(self) -> Units:
        return of_rows(self.related, self._tested, self.shown)

    @cached_property
    def _pairs(self) -> VenuePairs:
        return VenuePairs(self.related, self.shown)

    @cached_property
    def _users(self) -> Units:
        return of_users(self.related, self.shown)

    def sample(self, change: Sequence[str]) -> Sample:
        """Return rows to look for traces in, with the columns that describe venues in words."""
        columns = (self.rows.get_column(c) for c in change if c not in self.fields)
        names = [c for c in columns if c.dtype in (pl.String, pl.Categorical, pl.Enum)]
        return Sample(self.related, names, self.rows.get_column(self.mapping["time"]))

    def kind(self, name: str) -> str:
        """Return the kind of an extra column: constant, time, rows, session, change, user or varying."""
        if name not in self._kinds:
            self._kinds[name] = self._kind(self.rows.get_column(name))
        return self._kinds[name]

    def _kind(self, column: pl.Series) -> str:
        code, table = value_codes(column), self.table
        if code.max() == 0:
            return "constant"
        if harmless.follows_from_time(column, self.related):
            return "time"
        if harmless.numbers_rows(column, self.related) or harmless.follows_from_sequence(column, self.related):
            return "rows"
        if harmless.numbers_sessions(code, self.related):
            return "session"
        if constant_within(code, table.venue) or constant_within(code, table.category):
            return "change"
        if constant_within(code, table.user):
            return "user"
        return "change" if self._repeated and constant_within(code, self._variant) else "varying"

    def constant_in(self, name: str) -> Ints | Longs | None:
        """Return the venues, categories or variants of venues, (N,), in which a column is constant, or None."""
        code, groups = value_codes(self.rows.get_column(name)), (self.table.venue, self.table.category, self._variant)
        return next((group for group in groups if constant_within(code, group)), None)

    def finding(self, name: str, sample: Sample) -> Finding | None:
        """Return what a kept column reveals; a share of 0 means that no rule recognises it as harmless."""
        kind, column = self.kind(name), self.rows.get_column(name)
        found = self._of_venues(kind, column, sample)
        if self.users is None or (found and found.share):
            return found
        offsets = harmless.time_offsets(column, self.table.time) if kind == "time" else None
        return self.users.finding(kind, column, offsets) or found

    def findings(
        self, change: Sequence[str], drop: Collection[str] = (), keep: Collection[str] = ()
    ) -> dict[str, Finding | None]:
        """Return what each extra column reveals that neither changes nor is dropped; those to `keep` only alone."""
        sample = self.sample(change)
        found = {name: self.finding(name, sample) for name in self.extra if name not in {*change, *drop}}
        return found | self.together([name for name, one in found.items() if one is None and name not in keep])

    def telling(self, change: Sequence[str]) -> dict[str, Finding]:
        """Return the columns, other than those that change, that reveal clean venues or, under pseudonyms, users."""
        found = self.findings(change)
        found |= {name: one for name, (_, one) in self.form_findings(change).items() if not found.get(name)}
        return {name: one for name, one in found.items() if one is not None and one.share > 0}

    def form_findings(self, other: Collection[str]) -> dict[str, tuple[str, Finding]]:
        """Return, by column, what is written in a way that reveals venues or users, and how; not of `other` columns."""
        found = {}
        raw = self.rows.raw if isinstance(self.rows, Rows) else self.rows.get_column
        rewritten = [self.mapping["user"]] if self.users else []  # with pseudonyms, as line ends are
        for name in (c for c in self.rows.columns if c not in {*other, *self.fields, *rewritten}):
            if (one := self._of_form(name, raw(name))) and not self._refused_in_any_form(name):
                what = NOTATION if name in self.times else "the form"
                found[name] = (f"{what} of the values in the column {name!r}", one)
        ends = self.rows.line_ends if isinstance(self.rows, Rows) and not self.users else None
        if not found and ends is not None and (one := self._of_codes([value_codes(ends)])):
            found[self.mapping["user"]] = ("how lines end (CRLF or LF)", one)
        return found

    def _refused_in_any_form(self, name: str) -> bool:
        if name not in self.extra:
            return False
        column = plain(self.rows.get_column(name).cast(pl.String).str.strip_chars('"'))
        kind = self._kind(column)
        return kind != "change" and self._of_venues(kind, column, self.sample([])) is not None

    def _of_form(self, name: str, raw: pl.Series) -> Finding | None:
        if name in self.times:
            return self._of_codes(harmless.time_numberings(raw))
        if raw.dtype not in (pl.String, pl.Categorical, pl.Enum):
            return None
        code = value_codes(form_of(raw))
        if name == self.mapping["user"] and code.max():  # 1 and 1.0 are one person
            person = value_codes(plain(raw.cast(pl.String).str.strip_chars('"')))
            table = replace(self.table, user=person.astype(np.int32), user_ids=np.arange(person.max() + 1).astype(str))
            return Tests(table, self.rows, self.mapping, None, self.most_rows)._of_codes([code])
        return self._of_codes([code])

    def _of_codes(self, numberings: Iterable[Longs]) -> Finding | None:
        varying = [code for code in numberings if code.max()]
        of_users = None if self.users is None else self.users.agreement(varying)
        kinds = (("user" if constant_within(code, self.table.user) else "varying", pl.Series(code)) for code in varying)
        return of_users or next(filter(None, (self._dependence(kind, column) for kind, column in kinds)), None)

    def _of_venues(self, kind: str, column: pl.Series, sample: Sample) -> Finding | None:
        if kind in ("constant", "rows"):
            return None
        if kind == "time":
            if (offsets := harmless.time_offsets(column, self.table.time)) is None:
                return None
            return self._of_codes([value_codes(pl.Series(offsets)), *harmless.time_numberings(column)])
        if kind == "user":  # rows of a user are no evidence of their own
            sample = replace(sample, among=np.unique(self.table.user, return_index=True)[1])
        found = trace(column, sample) or self._dependence(kind, column)
        found = found or (None if kind == "user" else self._pairs.finding(column))
        known = kind in ("session", "user") or harmless.has_few_values(column) or harmless.increases(column)
        return found if found or known else Finding(0.0, UNKNOWN)

    def together(self, names: Sequence[str]) -> dict[str, Finding | None]:
        """Return those of some columns that predict clean venues together, although none of them does alone."""
        codes = {
            name: code[self._tested] for name in names if self.kind(name) in ("varying", "session")
            for code in list(islice(self._numberings(self.kind(name), self.rows.get_column(name)), 1))
        }  # fmt: skip
        found: dict[str, Finding | None] = {}
        of_values = {name: value_codes(self.rows.get_column(name)) for name in names if self.kind(name) == "varying"}
        for pair in combinations(of_values, 2):
            if agreed := self._pairs.together(*(of_values[name] for name in pair)):
                found |= dict.fromkeys(pair, Finding(agreed, TOGETHER, "more pairs of a venue's rows agree"))
        gain = venue_gain(list(codes.values()), "own", self._units) if len(codes) > 1 else 0.0
        if not gain:
            return found
        share = {name: self._units.named([code], "own").mean() for name, code in codes.items()}
        names, base = sorted(share, key=share.__getitem__, reverse=True), self._units.predictor["own"].named.mean()
        needed = next(
            (n for n in (2**k for k in range(1, len(names).bit_length()))
             if self._units.named([codes[name] for name in names[:n]], "own").mean() - base > NEEDED * gain), len(names)
        )  # fmt: skip
        return found | dict.fromkeys(names[:needed], Finding(gain, TOGETHER, "more venues predicted"))

    def _numberings(self, kind: str, column: pl.Series) -> Iterable[Longs]:
        """Yield numberings, (N,), of what a column could encode a venue in."""
        if kind == "session":  # the number of a session follows from the user and the time, but not a zone in its id
            user = self.table.user.astype(np.int64) << 32
            sessions = len(np.unique(user | value_codes(column)))
            for part in codes(column, parts=True):
                if len(self.related.usual_of_user) < len(np.unique(user | part)) < REPEATED * sessions:
                    yield part
            return
        yield from codes(column)
        if harmless.increases(column):
            value, related = numbers(column), self.related
            by_time = np.argsort(related.by_time)
            yield bins(np.diff(value, prepend=0))
            yield bins(np.diff(value[related.by_time], prepend=0)[by_time])
            yield bins(np.where(related.previous_row >= 0, value - value[related.previous_row], np.nan))
            yield bins(value - self.table.time)
            text = column.cast(pl.String).str.strip_chars(' "\t\r').str.strip_suffix(".0")
            exact = text.cast(pl.Int64, strict=False)  # a float has too few digits for a long id
            whole = pl.Series(value).cast(pl.Int64, strict=False) if exact.null_count() else exact
            yield from (value_codes(whole % m) for m in LAST_DIGITS)

    def order_finding(self) -> str | None:
        """Return how the order of the rows depends on what a release hides."""
        hidden = {self.mapping[f] for f in ("category", GROUP) if f in self.mapping} & {*self.rows.columns}
        hidden |= {name for name in self.extra if self.kind(name) == "change"}
        return order_reveals(self.related, {name: self.rows.get_column(name) for name in sorted(hidden)})

    def _dependence(self, kind: str, column: pl.Series) -> Finding | None:
        if kind == "user":
            first = np.unique(self.table.user, return_index=True)[1]
            values = column.gather(first)
            more = bins(self.related.beyond_rows(numbers(values)))
            found = dependence([*codes(values), more], self._users, self.related.of_users)
            return found or likeness(values, self.related)
        if kind != "session" and (share := self._of_one_venue(value_codes(column))):
            return Finding(share, f"predicts {RELATIONS['own']}", "more pairs of a venue's rows agree")
        measures = self.related.travel | self.related.habits
        tested = {what: value[self._tested] for what, value in measures.items()}
        numberings = (code[self._tested] for code in self._numberings(kind, column))
        return dependence(numberings, self._units, tested)

    def _of_one_venue(self, code: Longs) -> float:
        """Return how many more rows of the same venue agree than chance has it, if all do; 0 if substitutes do too."""
        venue, rows = self.table.venue, self._tested
        if not constant_within(code, venue) or (self.shown is not None and constant_within(code, self.shown[venue])):
            return 0.0
        return agreement(code[rows], venue[rows], self._units.shuffled)


def _check_options(
    rows: Columns, mapping: dict[str, str], path: Path | str, keep: Sequence[str], drop: Sequence[str]
) -> None:
    for flag, names in (("keep", keep), ("drop", drop)):
        for name in names:
            if name not in rows.columns:
                listed = ", ".join(rows.columns)
                raise InputError(f"{option(flag, name)}: {path} has no column {name!r}; its columns are {listed}")
    if clash := sorted({mapping[f] for f in VENUE_FIELDS if f in mapping}.intersection(keep)):
        kept = option("keep", clash[0])
        raise InputError(f"{kept}: this column describes the venue and must change; remove the option")
    if mapping.get(TIMEZONE) in drop:
        raise InputError(
            f"{option('drop', mapping[TIMEZONE])}: the times need this column; write them in UTC, or state one zone "
            f"for all with {option('timezone')}"
        )
    if clash := sorted(set(mapping.values()).intersection(drop)):
        raise InputError(f"{option('drop', clash[0])}: a release needs this column; remove the option")
    if clash := sorted(set(keep).intersection(drop)):
        both = " and ".join(option(flag, clash[0]) for flag in ("keep", "drop"))
        raise InputError(f"{both} contradict each other; give one of them")


def constant_within(code: Longs, group: Ints | Longs) -> bool:
    """Return whether all rows of each group have the same value, given as codes."""
    of_group = np.empty(int(group.max()) + 1, np.int64)
    of_group[group] = code  # one of the group's values
    return bool((of_group[group] == code).all())
