"""A clean file and a release of the same rows, cut into sessions as the recipient of the release would cut them.

At their positions stand the columns that the release keeps, and the control `random-matched`.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ghostpoi import formats
from ghostpoi.attack.evidence import KeptColumn, Rule, rule_of
from ghostpoi.audits.controls import RANDOM
from ghostpoi.columns.dependence import value_codes
from ghostpoi.columns.traces import NUMBER, TOKEN, numbers, readings, text_of
from ghostpoi.data import sessions
from ghostpoi.data.candidates import Candidates
from ghostpoi.data.checkins import Bools, Checkins, Floats, Ints, Longs, Venues, renumber
from ghostpoi.data.geo import haversine_km
from ghostpoi.data.sessions import Sessions, Vocabulary
from ghostpoi.draw.catalogue import KeptCrowds
from ghostpoi.draw.channel import Channel, uniform
from ghostpoi.draw.methods import METHODS, AnyMethod
from ghostpoi.draw.publication import Publication
from ghostpoi.draw.whole_table import prepare
from ghostpoi.errors import InputError
from ghostpoi.formats import CheckinFile, Source
from ghostpoi.options import option
from ghostpoi.randomness import Seed
from ghostpoi.release.identity import clean_rows
from ghostpoi.release.manifest import checked_manifest, read_clean, read_data, settings_of, with_groups, withholds
from ghostpoi.release.series.ledger import read_table
from ghostpoi.settings import FilterSettings, Published


@dataclass(frozen=True)
class Side:
    """What is matched of a file, without the text of the columns that fields are read from: it needs much memory."""

    table: Checkins
    columns: list[str]
    varying: dict[str, pl.Series]  # (N,) each: the columns that no field is read from and whose rows differ

    @staticmethod
    def of(file: CheckinFile, released: "Side | None" = None) -> "Side":
        """Return one side of a pair; of the clean file, with the columns that vary in its release."""
        if released:
            names = [name for name in released.varying if name in file.rows.columns]
            return Side(file.table, file.rows.columns, {name: file.rows.get_column(name) for name in names})
        each = {c: file.rows.get_column(c) for c in file.rows.columns if c not in file.mapping.values()}
        varying = {name: column for name, column in each.items() if value_codes(column).max() > 0}
        return Side(file.table, file.rows.columns, varying)

    def undone(self, clean: Checkins, row: Longs) -> tuple["Side", Longs]:
        """Return the release with true users, in clean order, and the pseudonym of each row; `row` (N,): clean rows."""
        table, order = self.table, np.argsort(row)
        raw = clean.user[row[order]]
        distinct = np.unique(raw)
        user, user_ids = renumber(raw, distinct, clean.user_ids[distinct])
        columns = {name: getattr(table, name)[order] for name in ("venue", "category", "lat", "lon", "time")}
        varying = {name: column.gather(pl.Series(order)) for name, column in self.varying.items()}
        restored = replace(table, user=user, user_ids=user_ids, **columns)
        return Side(restored, self.columns, varying), table.user[order].astype(np.int64)


FAR_KM = 100.0  # tables without a common venue whose centres are further apart show different cities


@dataclass(frozen=True)
class TablePair:
    """A clean table and its release. Another tool's release has no manifest."""

    clean: Checkins
    released: Checkins  # with the clean user ids, in the order of the clean file
    clean_row: Longs  # (N,) the clean row of each released row; the publisher may have withheld some
    manifest: dict[str, Any] | None
    kept: dict[str, pl.Series]  # (N,) each: the extra columns that vary and that the release shares with the file
    pseudonym: Longs | None = None  # (N,) of each row; None: a user has one id
    crowds: KeptCrowds | None = None  # of the series to which the release belongs


@dataclass(frozen=True)
class AlignedSessions:
    """Clean sessions and the released POIs at the same positions. The vocabulary holds every POI of either."""

    vocabulary: Vocabulary
    train: Sessions
    val: Sessions
    test: Sessions
    released: Ints  # (N,) at the positions of train
    all: Sessions  # train, val and test
    all_released: Ints  # (N,) at the positions of all
    pseudonym: Longs | None  # (S,) of train, by the first row of each session; None: the release keeps the user ids
    sample: dict[str, Any] | None = None  # of the people that train, val and test are about; None: all of them


MOST_VISITS = 300_000  # in sessions; with more, adversaries and victims see a sample of the people


def sampled_users(user_ids: Any, data: Sessions, most: int) -> Bools:
    """Return whether each session belongs to the sample, (S,): people in the order of hashes, up to `most` visits."""
    users, which = np.unique(data.user, return_inverse=True)
    visits = np.bincount(which, data.length)
    order = sorted(range(len(users)), key=lambda k: hashlib.sha256(str(user_ids[users[k]]).encode()).digest())
    count = max(1, int(np.searchsorted(np.cumsum(visits[order]), most, "right")))
    return np.isin(which, order[:count])


def read_pair(
    file: Source | Path, release: Source | Path, mapping: dict[str, str], private: Path | None = None
) -> TablePair:  # fmt: skip
    """Read a file and its release; refuse a release of other rows.

    The private folder, by default RELEASE.private, undoes pseudonyms.
    """
    file, released, manifest, pseudonym = Source.of(file), Source.of(release), None, None
    if (folder := released.path).is_dir():
        manifest = checked_manifest(folder)
    after = Side.of(read_data(folder, manifest, file.limit) if manifest else formats.read(released, mapping))
    before = Side.of(read_clean(file, mapping, manifest) if manifest else formats.read(file, mapping), after)
    clean, crowds = before.table, None
    if manifest is not None:
        if (settings := settings_of(manifest)).reorders:
            row = clean_rows(private or Path(f"{release}.private"), clean, after.table, settings)
            after, pseudonym = after.undone(clean, row)
            pseudonym = pseudonym if settings.rotates_users else None  # one per person is as good as her id
        clean, crowds = read_table(private or Path(f"{release}.private"), with_groups(clean, manifest), manifest)
    return pair_of(replace(before, table=clean), after, (file, release), manifest, pseudonym, crowds)


def pair_of(
    before: Side, after: Side, names: tuple[object, object], manifest: dict[str, Any] | None,
    pseudonym: Longs | None = None, crowds: KeptCrowds | None = None, whole_file: bool = True,
) -> TablePair:  # fmt: skip
    """Match the rows of a file, or of a region of it, with those of its release; refuse a release of other rows."""
    clean, released, (file, release) = before.table, after.table, names
    dropped = manifest["columns"]["dropped"] if manifest else []
    ours, theirs = [c for c in before.columns if c not in dropped], after.columns
    if ours != theirs:
        odd = [c for c in theirs if c not in ours] or [c for c in ours if c not in theirs]
        what = f"only one of them has the column {odd[0]!r}" if odd else "their order differs"
        raise InputError(
            f"{release} does not have the columns of {file} ({what}); give a release in the format of the file"
        )
    _check_city(file, release, clean, released)
    rows, settings = np.arange(len(clean)), None if manifest is None else settings_of(manifest)
    if manifest is not None and settings and manifest.get("rows", {}).get("withheld"):
        rows = prepare(clean, settings, whole_file, crowds).shown(withholds(manifest))
    if settings and settings.reorders and not whole_file and len(rows) == len(released):
        after, pseudonym = after.undone(clean, rows)  # rows of regions are in the order of the file
        released, pseudonym = after.table, pseudonym if settings.rotates_users else None
    kept = dict[str, pl.Series]()
    if len(rows) == len(released):
        shown = pl.Series(rows)
        kept = {name: one for name, one in after.varying.items() if one.equals(before.varying[name].gather(shown))}
        if clean.crossing is not None:
            released = replace(released, crossing=clean.crossing[rows])
    pair = TablePair(clean, released, rows, manifest, kept, pseudonym, crowds)
    _check_rows(file, release, pair)
    return pair


def align(pair: TablePair, filters: FilterSettings, window: int = 0) -> AlignedSessions:
    """Build the recipient's sessions and the clean ones at the same positions, split for a window of test sessions."""
    # Sessions are those of the clean times, which the recipient sees as pseudonyms or nearly so.
    data = sessions.build(replace(pair.released, time=pair.clean.time[pair.clean_row]), filters)
    part = _parts(data.all, filters, window)
    counts = dict(zip(("training", "validation", "test"), np.bincount(part, minlength=4).tolist(), strict=False))
    lacking = [name for name, count in counts.items() if not count]
    if lacking and not window:  # without sessions in an earlier window, an audit has enough with the later ones
        raise InputError(
            f"{pair.released.name}: the filters leave no {lacking[0]} sessions "
            f"({', '.join(f'{count:,} {name}' for name, count in counts.items())}); divide them otherwise with "
            f"{option('set', 'filters.train_share=0.5', 'filters.val_share=0.25')}, or lower "
            "filters.min_session_length or filters.min_poi_checkins"
        )
    before, after, venues = joint_venues(pair)
    used = np.unique(np.concatenate([before[data.all.row], after[data.all.row]]))
    vocabulary, poi_of = sessions.vocabulary_of(venues, used)
    clean, released = poi_of[before], poi_of[after]
    everything = replace(data.all, poi=clean[data.all.row])
    about, sample = np.ones(len(part), bool), None
    if data.all.positions > MOST_VISITS:
        about = sampled_users(pair.released.user_ids, data.all, MOST_VISITS)
        users, some = (len(np.unique(data.all.user[which])) for which in (about >= 0, about))
        share = float(data.all.length[about].sum() / data.all.positions)
        sample = {"users": some, "of_users": users, "share_of_visits": round(share, 3)}
    train, val, test = (everything.take((part == k) & about) for k in range(3))
    train = replace(train, time=pair.released.time[train.row])  # which adversaries see; predictions are of clean times
    pseudonym = None if pair.pseudonym is None else pair.pseudonym[train.row[train.start[:-1]]]
    return AlignedSessions(
        vocabulary, train, val, test, released[train.row], everything, released[everything.row], pseudonym, sample
    )


def has_sessions(released: Checkins, filters: FilterSettings) -> bool:
    """Whether there are sessions to train, validate and test a victim on."""
    found = sessions.build(released, filters, may_be_empty=True).all
    part = _parts(found, filters)
    return bool(np.all(np.bincount(part, minlength=3)) and np.any(found.length[part == 2] > 1))


def _parts(data: Sessions, filters: FilterSettings, window: int = 0) -> NDArray[np.int8]:
    """Split sessions as `sessions.split` does.

    Where nobody has enough of them for one to validate on, people with several training sessions give their last one,
    as many people as the share asks for.
    """
    part = sessions.split(data.user, filters, window)
    if filters.val_share and not np.any(part == 1):
        train = np.flatnonzero(part == 0)
        user = np.concatenate([[-1], data.user[train], [-1]])
        last = train[(user[1:-1] == user[:-2]) & (user[1:-1] != user[2:])]
        count = min(len(last), int(np.ceil(filters.val_share * len(data))))
        part[last[np.arange(count) * len(last) // max(1, count)]] = 1
    return part


def publisher_of(manifest: dict[str, Any] | None) -> AnyMethod | None:
    """Return the method that made a release, with its settings; None if the release is another tool's."""
    return settings_of(manifest).method if manifest is not None and manifest["method"] in METHODS else None


def public_rule(pair: TablePair, vocabulary: Vocabulary, settings: Published, method: AnyMethod | None) -> Rule:
    """Return the rule of a method. Without one, a uniform draw from candidate sets serves as the first guess."""
    return rule_of(method, _candidates(pair, vocabulary, settings, method or METHODS[RANDOM]), vocabulary)


def _candidates(pair: TablePair, vocabulary: Vocabulary, settings: Published, method: AnyMethod) -> Candidates:
    """The publisher's candidate sets, in the numbers of the audit's vocabulary.

    Which venues the publisher's models know depends on clean data, and so do learned sets. An adversary can infer most
    of them from the release; the audit grants it all of them, which is conservative for the publisher.
    """
    publisher = Publication(settings.filters, settings.candidates, hide=settings.hide, method=method)
    try:
        own = prepare(pair.clean, publisher, pair.manifest is None, pair.crowds)  # a region may have no sessions
    except InputError:  # no candidates under these settings: the release comes from another tool
        return Candidates(np.zeros((len(vocabulary), 1), np.int32), np.zeros(len(vocabulary)))
    venues, modelled = len(pair.clean.venue_ids), own.data.vocabulary.venue
    known = np.flatnonzero((vocabulary.venue > 0) & (vocabulary.venue < venues))  # others have no candidates
    poi_of = np.zeros(venues, np.int32)
    poi_of[vocabulary.venue[known]] = known
    in_sessions, anywhere = own.session_sets, own.venue_sets

    def combined(inside: NDArray[Any], outside: NDArray[Any]) -> NDArray[Any]:
        """Those of all venues, replaced by those over the publisher's vocabulary where it knows the venue."""
        table = np.zeros((venues, max(inside.shape[1], outside.shape[1])), outside.dtype)
        table[:, : outside.shape[1]] = outside
        table[modelled] = 0
        table[modelled, : inside.shape[1]] = inside
        return table

    sets = combined(modelled[in_sessions.poi], anywhere.poi)
    radius = anywhere.radius_km.copy()
    radius[modelled[1:]] = in_sessions.radius_km[1:]
    venue = np.zeros(len(vocabulary), np.int64)
    venue[known] = vocabulary.venue[known]
    found = poi_of[sets[venue]]
    order = np.argsort(found == 0, axis=1, kind="stable")  # padding last
    found = np.take_along_axis(found, order, 1)
    weight = None
    if in_sessions.weight is not None and anywhere.weight is not None:
        weight = np.take_along_axis(combined(in_sessions.weight, anywhere.weight)[venue], order, 1) * (found > 0)
    return Candidates(found, radius[venue], weight, everywhere=anywhere.everywhere, hidden=own.hidden[venue])


def joint_venues(pair: TablePair) -> tuple[Longs, Longs, Venues]:
    """The clean and the released venue of every released row under one numbering, and the place of each venue.

    The clean file describes its own venues; the release describes only those that another tool invented.
    """
    clean, released = pair.clean, pair.released
    venue = _renumber(clean.venue_ids, released.venue_ids)
    category = _renumber(clean.category_ids, released.category_ids)
    a, b = clean.venues, released.venues
    new = np.flatnonzero(venue >= len(clean.venue_ids))
    lat, lon = np.append(a.lat, b.lat[new]), np.append(a.lon, b.lon[new])
    venues = Venues(lat, lon, np.append(a.category, category[b.category[new]]).astype(np.int32))
    return clean.venue[pair.clean_row].astype(np.int64), venue[released.venue], venues


def _renumber(ours: Any, theirs: Any) -> Longs:
    """The number of each of their ids among ours; ids that we lack get the next numbers, in order."""
    known = {name: code for code, name in enumerate(ours)}
    return np.array([known.setdefault(name, len(known)) for name in theirs], np.int64)


def _check_city(file: object, release: object, clean: Checkins, released: Checkins) -> None:
    if not set(clean.venue_ids[1:]).isdisjoint(released.venue_ids[1:]):
        return
    centres = (np.array(np.median(values)) for values in (clean.lat, clean.lon, released.lat, released.lon))
    km = float(haversine_km(*centres))
    if km > FAR_KM:
        raise InputError(
            f"{release} shows another city than {file}: it is {km:,.0f} km away and has no venue in common; "
            "give a release of that file"
        )


def _check_rows(file: object, release: object, pair: TablePair) -> None:
    clean, released, rows = pair.clean, pair.released, pair.clean_row
    user = _renumber(clean.user_ids, released.user_ids)
    if len(strangers := np.flatnonzero(user >= len(clean.user_ids))):
        raise InputError(
            f"{release} has users that {file} lacks, for example {released.user_ids[strangers[0]]!r}; "
            "give a release of that file with its user ids"
        )
    if len(rows) != len(released):
        withheld = f" minus {len(clean) - len(rows):,} withheld" if len(rows) < len(clean) else ""
        raise InputError(
            f"{release} has {len(released):,} rows and {file} {len(clean):,}{withheld}; give a release of all its rows"
        )
    kept = pair.manifest is None or settings_of(pair.manifest).identity.times == "keep"  # else `undo` has checked them
    time = released.time if kept else clean.time[rows]
    a, b = np.stack([clean.user[rows], clean.time[rows]]), np.stack([user[released.user], time])
    differs = (a != b).any(axis=0)
    if not differs.any():
        return
    at = int(differs.argmax())
    if np.array_equal(a[:, np.lexsort(a)], b[:, np.lexsort(b)]):
        raise InputError(
            f"{release} has the rows of {file} in another order, from row {at + 1:,} on; "
            "put them in the order of the file"
        )
    theirs, ours = (
        f"{t.user_ids[t.user[row]]} at {datetime.fromtimestamp(int(t.time[row]), UTC):%Y-%m-%dT%H:%M:%SZ}"
        for t, row in ((released, at), (clean, rows[at]))
    )
    raise InputError(
        f"row {at + 1:,} of {release} is user {theirs}, but in {file} it is user {ours}; "
        "give a release of the same rows"
    )


NEAR_KM = 0.5  # a position names the nearest venue within this distance
MOST_DECODED = 50_000  # distinct values


def kept_columns(pair: TablePair, data: AlignedSessions) -> tuple[KeptColumn, ...]:
    """Return the kept columns at the positions of the training sessions."""
    ids = pair.clean.venue_ids
    poi_of_id = {str(ids[v]): poi for poi, v in enumerate(data.vocabulary.venue.tolist()) if 0 < v < len(ids)}
    out = []
    for name, column in pair.kept.items():
        code = value_codes(column)
        first = np.unique(code, return_index=True)[1]
        values = column.gather(first[:MOST_DECODED]).to_list()
        named = np.zeros(len(first), np.int32)
        named[: len(values)] = [_named(value, poi_of_id, data.vocabulary) for value in values]
        at = code[data.train.row]
        out.append(KeptColumn(name, at, named[at], numbers(column)[data.train.row]))
    return (*out, *_positions(pair, data))


def _positions(pair: TablePair, data: AlignedSessions) -> Iterator[KeptColumn]:
    """Yield pairs of columns that look like latitudes and longitudes of the city."""
    v, row = data.vocabulary, data.train.row
    values = {name: numbers(column)[row] for name, column in pair.kept.items()}

    def inside(axis: Floats) -> dict[str, Floats]:
        low, high = axis[1:].min() - 0.1, axis[1:].max() + 0.1
        return {name: value for name, value in values.items() if ((value > low) & (value < high)).mean() > 0.5}

    for (one, lat), (two, lon) in product(inside(v.lat).items(), inside(v.lon).items()):
        if one != two:
            named = [_nearest(a, b, v) if a == a and b == b else 0 for a, b in zip(lat, lon, strict=True)]
            nothing = np.zeros(len(row), np.int64), np.full(len(row), np.nan)
            yield KeptColumn(f"{one}, {two}", nothing[0], np.array(named, np.int32), nothing[1])


def _named(value: object, poi_of_id: dict[str, int], vocabulary: Vocabulary) -> int:
    """Return the POI whose id or position a value holds, or 0."""
    text = readings(value if isinstance(value, bytes) else text_of(value))
    for token in (text, *TOKEN.findall(text)):
        if token in poi_of_id:
            return poi_of_id[token]
    degrees = [float(number) for number in NUMBER.findall(text)[:4]]
    for lat, lon in pairwise(degrees):
        for one, two in ((lat, lon), (lon, lat)):
            if abs(one) <= 90 and abs(two) <= 180 and (poi := _nearest(one, two, vocabulary)):
                return poi
    return 0


def _nearest(lat: float, lon: float, vocabulary: Vocabulary) -> int:
    v: Ints = np.flatnonzero(np.abs(vocabulary.lat - lat) < 0.01).astype(np.int32)
    v = v[v > 0]
    if not len(v):
        return 0
    km = haversine_km(np.array(lat), np.array(lon), vocabulary.lat[v], vocabulary.lon[v])
    return int(v[km.argmin()]) if km.min() < NEAR_KM else 0


def matched_draw(rule: Rule, clean: Ints, released: Ints, seed: Seed) -> Ints:
    """Draw a release, (N,), from the clean POIs (N,) and the audited release (N,).

    Where the audit knows no other venue of the set, the released venue stays.
    """
    generator = seed.generator("audit", "random-matched")
    if rule.candidates.everywhere:  # any POI but the clean one
        other = generator.integers(1, max(2, len(rule.candidates.poi) - 1), len(clean))
        return np.where(released != clean, other + (other >= clean), released).astype(np.int32)
    sets = rule.candidates.poi[clean]  # (N, K)
    other = (sets > 0) & (sets != clean[:, None])
    size = other.sum(axis=1)
    k = (generator.random(len(clean)) * size).astype(np.int64)  # take the k-th other
    column = (np.cumsum(other, axis=1) <= k[:, None]).sum(axis=1)
    drawn = (released != clean) & (size > 0)
    return np.where(drawn, sets[np.arange(len(clean)), np.where(drawn, column, 0)], released).astype(np.int32)


def matched_rule(method: AnyMethod, rule: Rule, clean: Ints, released: Ints) -> Rule:
    """Return what an adversary knows about the control: the method's sets and the share of venues that stay."""
    sets, channel = rule.candidates, uniform(rule.candidates)
    has, moves = sets.size[clean] > 0, channel.clean != channel.released
    anchors, share = np.unique(channel.clean[moves]), float((released == clean)[has].mean()) if has.any() else 0.0
    # Sets of its own hold the venue itself, which stays as often as any other is drawn.
    if share and len(anchors) and not method.own_sets:
        probability = np.where(moves, (1 - share) * channel.probability, channel.probability)
        channel = Channel.of(
            np.append(channel.clean, anchors), np.append(channel.released, anchors),
            np.append(probability, np.full(len(anchors), share)), channel.symbols,
        )  # fmt: skip
    return Rule(sets, channel, True, rule.lat, rule.lon)
