"""One release of a series: its venues join, rows that were released before repeat their draws, and the ledger grows."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from ghostpoi.columns import Tests, VenueColumns
from ghostpoi.data.checkins import Checkins, Longs
from ghostpoi.draw import table as rows_outside_sessions
from ghostpoi.draw.catalogue import Catalogue, KeptCrowds, check_method, join, with_crowds
from ghostpoi.draw.methods.crowd import Crowd
from ghostpoi.draw.noise import ByContent, plain
from ghostpoi.draw.publication import Publication
from ghostpoi.draw.walks import Substitution
from ghostpoi.draw.whole_table import WholeTable, has_donor
from ghostpoi.errors import InputError
from ghostpoi.formats import CheckinFile, Rows
from ghostpoi.options import option, with_urls
from ghostpoi.progress import Report
from ghostpoi.randomness import Seed
from ghostpoi.release.identity import NewUsers, draw, numbers
from ghostpoi.release.manifest import MANIFEST
from ghostpoi.release.private_folder import ReleaseRequest, keyed_hash
from ghostpoi.release.series import ledger
from ghostpoi.release.series.ledger import ROWS, USERS, Entry, Series, kept, row_keys
from ghostpoi.stores import fetched


def open_series(request: ReleaseRequest, folder: Path) -> Series:
    """Return the series of a request, or a new one that is not stored yet."""
    check_method(request.method, request.settings.method)
    series = None
    if (folder / ledger.NOTE).exists():
        series = ledger.read_series(folder)
        if broken := ledger.damage(series):
            raise InputError(f"the series folder {folder} is damaged: {'; '.join(broken)}; restore it from a backup")
    else:
        ledger.check_new(folder)
    if series is None or not series.entries:  # nothing was released, so nothing is fixed but the seed
        seed = request.seed or (series.seed if series else Seed.fresh())
        return Series(folder, seed, request.method, asked_settings(request), {})
    check_settings(series, request)
    for entry in series.entries:  # the process was killed before it could say that a release has its place
        if entry.status == ledger.BEGUN and _published(entry):
            series = completed(series, entry)
    return series


def completed(series: Series, entry: Entry) -> Series:
    """Return the series with a complete entry. Its release has replaced earlier ones in the same place."""
    for older in series.entries:
        if older.release == entry.release and older.number < entry.number:
            series = series.entry(replace(older, status=ledger.REPLACED))
    return series.entry(replace(entry, status=ledger.COMPLETE, completed=ledger.now()))


def _published(entry: Entry) -> bool:
    try:
        with fetched(f"{entry.release}/{MANIFEST}") as path:
            return bool(json.loads(path.read_text("utf-8"))["data"]["sha256"] == entry.data_sha256)
    except (OSError, ValueError, KeyError, TypeError):
        return False


@dataclass(frozen=True)
class SeriesRelease:
    """A release in the making."""

    series: Series  # without the entry `same`
    request: ReleaseRequest
    file: CheckinFile
    columns: VenueColumns
    same: Entry | None  # of an interrupted or earlier run with the same file and place, which this one repeats
    before: Catalogue
    catalogue: Catalogue
    table: Checkins  # with all venues of the series
    kept: KeptCrowds
    keys: pl.DataFrame  # of the rows
    earlier: pl.DataFrame  # rows
    found: Longs  # (N,) the place of each row among the earlier ones, -1: new
    input: str

    @staticmethod
    def plan(
        series: Series, request: ReleaseRequest, file: CheckinFile, table: Checkins, columns: VenueColumns,
        pseudonym: Longs | None,
    ) -> "SeriesRelease":  # fmt: skip
        """Let the venues of a file join, and find the rows that were released before."""
        columns = series_columns(series, file, columns, request, pseudonym)
        if not series.entries:
            series = replace(series, columns=described_columns(file, columns, request))
        own = keyed_hash(file.sha256, series.seed)
        place = with_urls(str(request.release.resolve()))
        last = series.entries[-1] if series.entries else None
        same = last if last and (last.input, last.release) == (own, place) else None
        if same:
            series = replace(series, entries=series.entries[:-1])
        ledger.check_forgotten(series, table)
        before = ledger.read_catalogue(series)
        method = cast(Crowd, request.settings.method)
        catalogue = join(before, table, method, request.settings.hide)
        keys, earlier = row_keys(table, series.seed), kept(series, ROWS)
        ledger.check_written_alike(kept(series, USERS), table, series.seed)
        found = ledger.find(earlier, keys)
        ledger.check_unchanged(earlier, found, keys, str(request.file))
        if request.settings.hides_users:
            kept_users(table, request.settings, earlier, found)
        table, crowds = with_crowds(table, catalogue, method, found >= 0)
        request = replace(request, seed=Seed(series.seed.derive("release", file.sha256.hex())))
        return SeriesRelease(
            series, request, file, columns, same, before, catalogue, table, crowds, keys, earlier, found, own
        )

    @property
    def number(self) -> int:
        """The number of the release in the series, from 1."""
        return len(self.series.entries) + 1

    @property
    def public(self) -> dict[str, Any]:
        """Further sections of the manifest."""
        return {"series": {"number": self.number, "repeated": int((self.found >= 0).sum())}}

    def start(self) -> None:
        """Store a new series, whose seed an interrupted run needs again."""
        if not self.series.entries and not self.same:
            self.series.store()

    def draw(self, whole: WholeTable, report: Report) -> Substitution:
        """Draw a venue for every row; repeat those that were drawn before."""
        released = np.zeros(len(self.table), np.int32)
        here = np.zeros(len(self.catalogue), np.int32)
        here[self.kept.in_series[1:]] = np.arange(1, len(self.kept.in_series))
        again = self.found >= 0
        released[again] = here[self.earlier["venue"].to_numpy()[self.found[again]]]
        report("substituting", 0)
        noise, speed = whole.noise(self.series.seed), self.request.settings.speed
        return rows_outside_sessions.draw(whole, released, noise, speed, keep_clean=False)

    def with_fields(self, rows: Rows, whole: WholeTable, released: Substitution, every: bool) -> Rows:
        """Return the rows of the file with the venue fields that the series keeps."""
        total = len(rows)
        drawn, place = np.zeros(total, bool), np.zeros(total, np.int64)
        present = self.file.present if len(self.file.kept) else np.arange(total)
        drawn[present] = has_donor(whole, released.poi, self.request.settings.method, every)
        place[present] = self.kept.in_series[released.poi]
        return ledger.with_fields(rows, self.columns.change, self._stored(rows), place, drawn)

    def _stored(self, rows: Rows) -> Rows:
        """Return one row of each venue of the catalogue."""
        names = (name for entry in self.series.entries for name in entry.files if name.startswith("fields-"))
        earlier = ledger.read_rows([self.series.folder / name for name in names], rows, self.file)
        return rows.joined([earlier, self._new_fields()], ledger.NAME)

    def _new_fields(self) -> Rows:
        ids = self.catalogue.ids[len(self.before) :].tolist()
        table = self.file.table
        uniform = ByContent.of(table, self.series.seed).uniform("venue fields")
        return self.file.rows.take(ledger.sample_rows(table, ids, uniform)).drop(self.columns.drop)

    def users(self, table: Checkins, shown: Longs, settings: Publication, seed: Seed, most: int | None) -> NewUsers:
        """Draw the pseudonyms of new rows."""
        if not settings.hides_users:
            return draw(table, shown, settings, seed)
        kept = kept_users(table, settings, self.earlier, self.found)
        return draw(table, shown, settings, seed, most, kept, self.earlier["user"].unique().to_list())

    def store_private(self, folder: Path, rows: Rows) -> tuple[str, ...]:
        """Store what `verify` and `audit` need of the series; return the names of the files."""
        names = (ledger.VENUES, f"{ledger.FIELDS}{self.request.file.extension}")
        self.catalogue.save(folder / names[0], since=Catalogue.empty())
        ledger.write_rows(folder / names[1], self._stored(rows))
        return names

    def begin(self, manifest: dict[str, Any], released: Substitution, shown: Longs, new: NewUsers | None) -> None:
        """Write down what is about to be released. `shown` (M,): the clean row of each released row."""
        user = new.released_ids.astype(str) if new and new.hidden else np.full(len(shown), "")
        fresh = self.found[shown] < 0
        row = shown[fresh]
        rows = self.keys[row].with_columns(venue=self.kept.in_series[released.poi[row]], user=user[fresh]).sort("row")
        if self.same:
            if not ledger.read(self.series, ROWS, self.same).equals(rows):
                raise InputError(
                    f"release {self.number} of {self.series.folder} cannot be repeated exactly; use the version of "
                    "ghostpoi that made it"
                )
            sha = manifest["data"]["sha256"]
            self.series.entry(replace(self.same, status=ledger.BEGUN, completed=None, data_sha256=sha)).store()
            return
        files, known = self._write_files(rows), self.catalogue
        guests = (known.crowd > 0) & ~known.member & ~known.hidden
        entry = Entry(
            self.number, ledger.BEGUN, ledger.now(), None, with_urls(str(self.request.release.resolve())),
            with_urls(str(self.request.private.resolve())), self.input, manifest["data"]["sha256"],
            int(self.table.time.min()), int(self.table.time.max()), len(shown), int((~fresh).sum()),
            len(known) - len(self.before), int(guests[len(self.before) :].sum()), files,
        )  # fmt: skip
        self.series.entry(entry).store()

    def _write_files(self, rows: pl.DataFrame) -> dict[str, str]:
        paths = [self.series.named("venues", self.number, ".npz")]
        self.catalogue.save(paths[0], since=self.before)
        for kind, frame in ((ROWS, rows), (USERS, ledger.users_of(self.table, self.series.seed))):
            paths.append(ledger.write(self.series, kind, self.number, frame))
        if len(self.catalogue) > len(self.before):
            paths.append(self.series.named("fields", self.number, self.request.file.extension))
            ledger.write_rows(paths[-1], self._new_fields())
        return ledger.hashes_of(paths)

    def complete(self) -> None:
        """Write down that the release has its place."""
        series = ledger.read_series(self.series.folder)
        completed(series, series.entries[-1]).store()


SECTIONS = ("method", "speed", "hide", "identity")
READ_ALIKE = ("timezone", "time_format", "decimal", "columns", "normalise")  # read otherwise, a row would count as new
PARTS = {  # that all files share
    "form": "its format", "names": "its columns", "fields": "its fields", "reading": "how its values are read",
}  # fmt: skip


def asked_settings(request: ReleaseRequest) -> dict[str, dict[str, Any]]:
    """Return the settings that decide the draws of a series."""
    every = request.settings.public()
    chosen = {name: every.get(name, {}) for name in SECTIONS}
    chosen["filters"] = {"session_gap_s": request.settings.filters.session_gap_s}
    return chosen


def check_settings(series: Series, request: ReleaseRequest) -> None:
    """Refuse another method or other settings than those of the series."""
    other = f"use what the series uses (ghostpoi series show {series.folder}), or start another series"
    if request.method != series.method:
        raise InputError(f"{option('method', request.method)}: {series.folder} is a series of {series.method}; {other}")
    if request.seed not in (None, series.seed):
        raise InputError(
            f"{option('seed')} differs from the seed of the series {series.folder}; leave {option('seed')} out"
        )
    for section, values in asked_settings(request).items():
        for key, value in values.items():
            kept = series.settings.get(section, {}).get(key, value)
            if kept != value:
                raise InputError(f"{section}.{key} is {value} here and {kept} in {series.folder}; {other}")
    if request.withhold != bool(series.columns.get("withhold")):
        kind = "keep" if request.withhold else "withhold"
        raise InputError(f"{series.folder} is a series with {option('no_candidate', kind)}; {other}")


def described_columns(file: CheckinFile, columns: VenueColumns, request: ReleaseRequest) -> dict[str, Any]:
    """Return the form of a file and what becomes of its columns."""
    return {
        "form": f"{file.format}, {request.file.extension or 'no extension'}",
        "names": [name for name in file.rows.columns if name not in columns.drop],
        "fields": file.mapping,
        "reading": {name: value for name, value in file.reading.stated.items() if name in READ_ALIKE},
        "changed": columns.change,
        "withhold": request.withhold,
    }


def series_columns(
    series: Series, file: CheckinFile, columns: VenueColumns, request: ReleaseRequest, pseudonym: Longs | None
) -> VenueColumns:
    """Return what becomes of the columns: as in the first release, if that is safe in this file, too."""
    ledger.check_file(file)
    if pseudonym is None:
        _check_order(file)
    if not series.entries:
        return columns
    here = described_columns(file, columns, request)
    for key, what in PARTS.items():
        kept = series.columns.get(key, {} if key == "reading" else None)
        if here[key] != kept:
            raise InputError(
                f"{request.file} does not fit into the series {series.folder}: {what} ({_text(here[key]) or 'none'}) "
                f"should be {_text(kept) or 'none'}; give files of one kind"
            )
    changed = list(series.columns["changed"])
    kept = [name for name in here["names"] if name not in changed and name not in file.mapping.values()]
    if newly := [name for name in kept if name in columns.change]:
        category = request.settings.keeps_category
        tests = Tests(file.table, file.rows, file.mapping, pseudonym, category=category)
        found = tests.telling([*changed, *columns.drop])
        if wrong := [name for name in newly if name in found and name not in request.keep]:
            raise InputError(
                f"{request.file}: the column {wrong[0]!r}, which earlier releases kept, {found[wrong[0]]}; leave it "
                "out of the file and start another series, or keep it at your own risk with "
                f"{option('keep', wrong[0])}"
            )
    return replace(columns, change=changed, keep=kept)


FEW = 20  # rows, whose order no test can judge


def _check_order(file: CheckinFile) -> None:
    """Refuse a few rows in an order that may be that of their venues: over months, it would reveal a lot."""
    table = file.table
    if len(table) >= FEW:
        return
    user = np.array([plain(str(name)) for name in table.user_ids])[table.user]
    orders = [(table.time,), (table.time, user), (table.time, user, np.char.str_len(user))]  # the last: as numbers
    if not any((np.diff(np.lexsort(keys)) > 0).all() for keys in orders):
        raise InputError(
            f"{file.path} has {len(table)} rows, too few to test what their order reveals; put them in the order of "
            "time, or of user id and time"
        )


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{field}={column}" for field, column in value.items())
    return value if isinstance(value, str) else ", ".join(map(str, value or []))


def kept_users(table: Checkins, settings: Publication, earlier: pl.DataFrame, found: Longs) -> dict[int, str]:
    """Return the earlier pseudonym of each number; refuse a file that cuts sessions otherwise than before.

    `found` (N,) is the place of each row among the earlier ones, -1 for a new row.
    """
    again = np.flatnonzero(found >= 0)
    number, user = numbers(table, settings)[again], earlier["user"].gather(found[again])
    pairs = sorted(set(zip(number.tolist(), user.to_list(), strict=True)))
    kept = dict(pairs)
    if len(kept) < len(pairs) or len(set(kept.values())) < len(pairs):
        raise InputError(
            f"{table.name} has rows that were released before, in other sessions: their pseudonyms cannot be repeated; "
            "give all rows of these sessions as they were, or leave them out"
        )
    return kept
