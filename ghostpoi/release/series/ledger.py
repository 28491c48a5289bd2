"""The series folder: the ledger of what was released when, the released rows, and the fields of their venues."""

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ghostpoi import formats
from ghostpoi.data.checkins import Bools, Checkins, Floats, Ints, Longs
from ghostpoi.draw.catalogue import UNREADABLE, Catalogue, KeptCrowds, with_crowds
from ghostpoi.draw.methods.crowd import CrowdDraw
from ghostpoi.draw.noise import ByContent, hashed, plain
from ghostpoi.errors import InputError
from ghostpoi.files import PARTIAL, file_hashes, joint_hash, make_private_folder, remove_partial, replacing
from ghostpoi.formats import CheckinFile, Rows
from ghostpoi.options import option
from ghostpoi.randomness import Seed
from ghostpoi.release.identity import PAIRS
from ghostpoi.release.manifest import settings_of

NOTE = "series.json"
FORMAT = 3
BEGUN, COMPLETE, REPLACED = "begun", "complete", "replaced"


@dataclass(frozen=True)
class Entry:
    """One release in the ledger."""

    number: int
    status: str
    begun: str  # UTC
    completed: str | None
    release: str
    private: str
    input: str  # keyed hash of the file
    data_sha256: str  # of the released data
    first: int  # UTC seconds of the earliest row
    last: int
    rows: int  # released ones
    repeated: int  # of them, rows that an earlier release showed
    new_venues: int
    new_guests: int  # of them, venues that joined the crowd of another
    files: dict[str, str]  # what the series folder keeps of it: name -> SHA-256


@dataclass(frozen=True)
class Series:
    """A series folder as its note describes it. `repr` hides the seed."""

    folder: Path
    seed: Seed
    method: str
    settings: dict[str, dict[str, Any]]  # those that decide the draws
    columns: dict[str, Any]  # names, roles and the form of the file
    entries: tuple[Entry, ...] = ()
    created: str = field(default_factory=lambda: now())
    forgotten: tuple[str, ...] = ()  # keyed hashes of the users of whom no row may come again

    def named(self, kind: str, number: int, ending: str) -> Path:
        """Return the path of a file of an entry."""
        return self.folder / f"{kind}-{number:04}{ending}"

    def entry(self, changed: Entry) -> "Series":
        """Return the series with this entry in place of the one with its number, or as the last one."""
        others = [e for e in self.entries if e.number != changed.number]
        return replace(self, entries=tuple(sorted([*others, changed], key=lambda e: e.number)))

    def store(self) -> None:
        """Write the note."""
        make_private_folder(self.folder)
        remove_partial(self.folder)
        note = {name: getattr(self, name) for name in ("created", "method", "settings", "columns")}
        note |= {"releases": [asdict(entry) for entry in self.entries]}
        note |= {"forgotten": list(self.forgotten)} if self.forgotten else {}
        text = json.dumps({"format": FORMAT, "seed": f"{self.seed.value:x}"} | note, indent=2, ensure_ascii=False)
        with replacing(self.folder / NOTE, mode=0o600) as out:
            out.write(text.encode())


def now() -> str:
    """Return the time as text."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"


def read_series(folder: Path) -> Series:
    """Read a series folder; refuse one that is damaged."""
    path = folder / NOTE
    if not path.is_file():
        raise InputError(
            f"{folder} is not a series folder: it has no {NOTE}; give the folder of protect {option('series')}"
        )
    try:
        found = json.loads(path.read_text("utf-8"))
        if found["format"] != FORMAT:
            raise InputError(f"{path} was written by another version of ghostpoi; use that version")
        entries = tuple(_entry(one) for one in found["releases"])
        if [entry.number for entry in entries] != list(range(1, len(entries) + 1)):
            raise ValueError
        if not all(isinstance(found[name], dict) for name in ("settings", "columns")):
            raise TypeError
        seed = Seed(int(found["seed"], 16))
        return Series(
            folder, seed, str(found["method"]), found["settings"], found["columns"], entries, str(found["created"]),
            tuple(map(str, found.get("forgotten", ()))),
        )  # fmt: skip
    except (ValueError, KeyError, TypeError, AttributeError):  # the message must not quote the note: it holds the seed
        raise InputError(f"{path} is damaged; restore the series folder from a backup") from None


def _entry(stored: dict[str, Any]) -> Entry:
    entry = Entry(**stored)
    for f in fields(Entry):
        kind: Any = dict if f.name == "files" else f.type
        if not isinstance(getattr(entry, f.name), kind):
            raise TypeError
    if entry.status not in (BEGUN, COMPLETE, REPLACED) or any(Path(name).name != name for name in entry.files):
        raise ValueError
    return entry


def check_new(folder: Path) -> None:
    """Refuse to start a series in a folder that holds anything but what a killed process left of the note."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{option('series', folder)} is a file; give a folder")
    if folder.exists() and any(not path.match(f".{NOTE}.*{PARTIAL}") for path in folder.iterdir()):
        raise InputError(
            f"{option('series', folder)} holds files but no {NOTE}, so it is another folder or a part of a series; "
            "give an empty or new folder, or restore the series from a backup"
        )


def damage(series: Series) -> list[str]:
    """Return what is wrong with the files that the ledger names."""
    found = []
    for entry in series.entries:
        for name, digest in entry.files.items():
            path = series.folder / name
            if not path.is_file():
                found.append(f"{name} is missing")
            elif hashes_of([path])[name] != digest:
                found.append(f"{name} is damaged")
    return found


def hashes_of(paths: Sequence[Path]) -> dict[str, str]:
    """Return the SHA-256 of files, by their names."""
    return {path.name: joint_hash(file_hashes(path)) for path in paths}


def read_catalogue(series: Series) -> Catalogue:
    """Read the venues of all releases of a series."""
    catalogue = Catalogue.empty()
    try:
        for entry in series.entries:
            catalogue = catalogue.load_more(series.named("venues", entry.number, ".npz"))
    except UNREADABLE:
        raise InputError(f"the venues in {series.folder} cannot be read; restore the folder from a backup") from None
    return catalogue


MOMENT = "series moment"
ROWS, USERS = "rows", "users"  # what the folder keeps of each release, with these columns
SCHEMA: dict[str, Any] = {
    # The released rows, by key: of user, time and venue (the second of two equal rows has another than the first); of
    # user and time; the released venue, as an index into the catalogue; the pseudonym, "" if user ids are kept.
    ROWS: {"row": pl.UInt64, "moment": pl.UInt64, "venue": pl.Int64, "user": pl.String},
    # Keyed hashes of the user ids, and of what these mean however they are written.
    USERS: {"written": pl.UInt64, "meant": pl.UInt64},
}


def kept(series: Series, kind: str) -> pl.DataFrame:
    """Return what the folder keeps of all releases."""
    return pl.concat([pl.DataFrame(schema=SCHEMA[kind]), *(read(series, kind, one) for one in series.entries)])


def read(series: Series, kind: str, entry: Entry) -> pl.DataFrame:
    """Return what the folder keeps of a release."""
    return pl.read_parquet(series.named(kind, entry.number, ".parquet"))


def write(series: Series, kind: str, number: int, frame: pl.DataFrame) -> Path:
    """Store what the folder keeps of a release, in the order of its keys; return the path."""
    path = series.named(kind, number, ".parquet")
    with replacing(path, mode=0o600) as out:
        frame.sort(*SCHEMA[kind]).write_parquet(out)
    return path


def row_keys(table: Checkins, seed: Seed) -> pl.DataFrame:
    """Return the columns `row` and `moment` of all rows."""
    of_moment = ByContent.of(table, seed)
    venue = hashed(list(map(str, table.venue_ids)), seed, "venues")[:, 0]
    visits = pl.DataFrame({"user": table.user, "time": table.time, "venue": table.venue})
    copies = visits.select(pl.int_range(pl.len()).over("user", "time", "venue")).to_series()  # equal rows before
    of_row = replace(of_moment, place=venue[table.venue] + copies.to_numpy().astype(np.uint64))
    return pl.DataFrame({"row": of_row.words(1, "series row")[0], "moment": of_moment.words(1, MOMENT)[0]})


def find(earlier: pl.DataFrame, keys: pl.DataFrame) -> Longs:
    """Return the place of each row, (N,), among the rows of earlier releases, -1 if it is not one of them."""
    places = earlier.select("row").with_row_index("place")
    found = keys.select("row").join(places, on="row", how="left", maintain_order="left")
    return found["place"].cast(pl.Int64).fill_null(-1).to_numpy()


def check_unchanged(earlier: pl.DataFrame, found: Longs, keys: pl.DataFrame, name: str) -> None:
    """Refuse a row whose user and time were released at another venue: the draw of that visit cannot be repeated.

    A further check-in in the same second is no change, if the file still has the earlier one.
    """
    gone = np.ones(len(earlier), bool)
    gone[found[found >= 0]] = False
    changed = np.flatnonzero((found < 0) & np.isin(keys["moment"], earlier["moment"].filter(pl.Series(gone))))
    if len(changed):
        rows = f"{len(changed):,} row{'s' * (len(changed) > 1)}"
        raise InputError(
            f"{name}: the series has released the user and time of check-in {changed[0] + 1:,} at another venue "
            f"({rows} in all), and a second draw would reveal more about the visit; give these rows as they were, "
            "or leave them out"
        )


def forgotten_key(user: str, seed: Seed) -> str:
    """Return the keyed hash of a user by which a series knows whom it has forgotten."""
    return "".join(f"{word:016x}" for word in hashed([plain(user)], seed, "forgotten")[0])


def check_forgotten(series: Series, table: Checkins) -> None:
    """Refuse a file that holds rows of a person whom the series has forgotten."""
    if not series.forgotten:
        return
    gone = [str(user) for user in table.user_ids if forgotten_key(str(user), series.seed) in series.forgotten]
    if gone:
        raise InputError(
            f"{table.name}: the series has forgotten {len(gone):,} of its users, for example {gone[0]!r}; leave their "
            "rows out"
        )


PREFIXED = re.compile(r"(\D*)0*(\d+)")


def meaning(user: str) -> str:
    """Return what a user id means, however it is written: u7 for U007 and u7, 7 for 007."""
    found = PREFIXED.fullmatch(text := plain(user).casefold())
    return f"{found[1]}{found[2]}" if found else text


def users_of(table: Checkins, seed: Seed) -> pl.DataFrame:
    """Return the columns `written` and `meant` of the users of a table."""
    ids = list(map(str, table.user_ids))
    return pl.DataFrame({"written": user_keys(ids, seed), "meant": user_keys(list(map(meaning, ids)), seed)})


def user_keys(ids: list[str], seed: Seed) -> NDArray[np.uint64]:
    """Return the keyed hash of each id of a user."""
    return hashed(ids, seed, "known users")[:, 0]


def check_written_alike(known: pl.DataFrame, table: Checkins, seed: Seed) -> None:
    """Refuse a user whose id earlier releases write otherwise: the rows would seem to be another user's."""
    here = users_of(table, seed)
    gone = known.join(here, on="written", how="anti")
    other = here.with_row_index("at").join(known, on="written", how="anti", maintain_order="left")
    other = other.join(gone, on="meant", how="semi", maintain_order="left")
    if len(other):
        raise InputError(
            f"{table.name}: the user id {table.user_ids[other['at'][0]]!r} is written otherwise than in earlier "
            f"releases of the series ({len(other):,} of {len(here):,} ids), so its visits would seem to be new; "
            "write user ids as in the first file"
        )


NAME = "the series"  # in messages


def sample_rows(table: Checkins, ids: Sequence[str], uniform: Floats) -> Longs:
    """Return a row of each of these venues, drawn among those with the venue's usual category. `uniform`: (N,)."""
    number = {name: v for v, name in enumerate(table.venue_ids)}
    usual = table.category == table.venues.category[table.venue]
    order = np.lexsort((uniform, ~usual, table.venue))
    first = order[np.searchsorted(table.venue[order], np.arange(len(table.venue_ids)))[1:]]
    return first[np.array([number[name] for name in ids], np.int64) - 1]


def write_rows(path: Path, rows: Rows) -> None:
    """Store rows in the format of their file."""
    with replacing(path, mode=0o600) as out:
        rows.write(out)


def read_rows(paths: Sequence[Path], like: Rows, file: CheckinFile) -> Rows:
    """Read stored rows of several files, to be joined to `like`."""
    parts = [formats.read(file.source.at(path), file.mapping, file.format).all_rows for path in paths]
    return like.joined([like.take(np.empty(0, np.int64)), *parts], NAME)


def check_file(file: CheckinFile) -> None:
    """Refuse a file whose venue fields a series cannot keep."""
    here = option("series")
    if not file.rows.can_join:
        raise InputError(f"{here}: releases of this format cannot form a series; use CSV, TSV, TSMC2014 or Parquet")
    if file.venues is not None:
        why = "exclude each other; write position and category into the file itself"
        raise InputError(f"{here} and {option('venues')} {why}")
    if file.reading.cluster_points:
        why = "exclude each other: clusters change from file to file"
        raise InputError(f"{here} and {option('cluster_points')} {why}")


def with_fields(rows: Rows, columns: list[str], stored: Rows, place: Longs, drawn: Bools) -> Rows:
    """Return the rows with these columns taken from stored rows: place (N,) for the rows that `drawn` (N,) marks."""
    count = len(drawn)
    both = rows.joined([rows, stored], NAME)
    donor = np.arange(count + len(stored))
    donor[:count][drawn] = count + place[drawn]
    return both.copy_fields(columns, donor).take(np.arange(count))


VENUES, FIELDS = "series-venues.npz", "series-fields"  # the venues of a series, and a row of each


def read_table(
    private: Path, table: Checkins, manifest: dict[str, Any], clean: bool = True
) -> tuple[Checkins, KeptCrowds | None]:
    """Return check-ins of a release with all venues of its series, and their crowds, if it belongs to one.

    If they are the `clean` rows, in the order of the file, the private folder knows which of them repeat a draw.
    """
    if "series" not in manifest:
        return table, None
    method = cast(CrowdDraw, settings_of(manifest).method)
    try:
        known = Catalogue.empty().load_more(private / VENUES)
    except FileNotFoundError:
        raise InputError(
            f"the release belongs to a series, and {private} lacks the crowds of the series; name the private folder "
            f"that protect wrote with {option('private')}"
        ) from None
    except UNREADABLE:
        raise InputError(f"{private / VENUES} cannot be read; restore it from a backup") from None
    if not clean:
        return with_crowds(table, known, method)
    try:
        with np.load(private / PAIRS, allow_pickle=False) as pairs:
            repeated = pairs["repeated"]
        if len(repeated) == len(table):
            return with_crowds(table, known, method, repeated)
    except UNREADABLE:
        pass
    raise InputError(f"{private} does not match the clean file; give the private folder of this release")


def read_fields(private: Path, kept: KeptCrowds | None, file: CheckinFile, like: Rows) -> tuple[Rows, Ints] | None:
    """Return the stored row of each venue of a series, and its venue in the table; None without a series."""
    if kept is None:
        return None
    [path] = list(private.glob(f"{FIELDS}*")) or [private / FIELDS]
    place = np.empty(len(kept.in_series) - 1, np.int32)
    place[kept.in_series[1:]] = np.arange(1, len(kept.in_series))
    return read_rows([path], like, file), place
